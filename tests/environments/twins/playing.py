"""Helpers of the twins' tests: sound and poisoned environments, and ways to play them."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable
from typing import Any

import quintain as qn
from quintain import plugins
from quintain.episode import Episode
from quintain.models import Scripted

Env = qn.Environment[Any]
Task = qn.Task[Any]
Call = tuple[str, dict[str, Any]]
Change = Callable[[dict[str, Any]], dict[str, Any]]

ENVIRONMENTS = ("sales", "coding", "helpdesk")


@functools.cache
def made(name: str, twin: str = "") -> Env:
    """The environment as a command line gets it."""
    return plugins.environment(name, **({"twin": twin} if twin else {}))


def play(env: Env, task: Task, calls: Iterable[Call] | None = None) -> qn.Trace:
    """The trace of an agent that makes these calls, or else those of the solution, one a turn."""
    chosen = list(task.solution or () if calls is None else calls)
    trace = asyncio.run(qn.rollout(env, task, Scripted.calls(chosen, task.answer))).trace
    assert trace.failure is None, trace.failure
    return trace


def scores(name: str, twin: str, *, task: str, calls: Iterable[Call]) -> tuple[float | None, float | None]:
    """Returns the scores of these calls in the twin and in the sound environment."""
    chosen = list(calls)
    pair = (made(name, twin), made(name))
    twisted, plain = (play(env, env.task("validation", task), chosen).score for env in pair)
    return twisted, plain


def verdict_under(fault: str, env: Env, *, task: Task, calls: Iterable[Call]) -> qn.Trace:
    """The trace of an episode after whose last call a service fails, so that the verifier meets it."""

    async def run() -> qn.Trace:
        episode = await Episode.begin(env, task)
        await env.harness.play(episode.session, Scripted.calls(list(calls), task.answer))
        episode.state.inject(fault)
        await episode.verify()
        return episode.trace

    return asyncio.run(run())


def solution(task: Task) -> list[Call]:
    assert task.solution is not None
    return [(name, dict(arguments)) for name, arguments in task.solution]


def without(task: Task, *tools: str) -> list[Call]:
    return [call for call in solution(task) if call[0] not in tools]


def bent(task: Task, **changes: Change) -> list[Call]:
    """The solution with the arguments of some tools changed."""
    return [(name, changes[name](given) if name in changes else given) for name, given in solution(task)]


@functools.cache
def _task(name: str, number: int) -> Task:
    """A task of the sound environment, made once: to find one with a property, many others are made."""
    return made(name).tasks("validation")[number]


def first(name: str, such: Callable[[Task], bool]) -> Task:
    """The first task of the sound environment with a property."""
    numbers = range(len(made(name).tasks("validation")))
    return next(task for task in (_task(name, number) for number in numbers) if such(task))


def world(env: Env, task: Task) -> Any:
    """A copy of the world in which a task starts, to call tools in."""
    return env.task("validation", task.id).world().copy()


def use(env: Env, world: Any, tool: str, **arguments: Any) -> Any:
    """Returns the result of a tool."""
    return env.tools[tool].bind(world)(**arguments)
