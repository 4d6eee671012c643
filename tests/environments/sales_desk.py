"""Helpers of the sales desk's tests: playing tasks and bending solutions."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pytest

import quintain as qn
from quintain.authoring import LEVELS
from quintain.environments.sales import env
from quintain.environments.sales.goals import Booked, Goal, Truth
from quintain.environments.sales.state import Sales
from quintain.environments.sales.tasks import FAMILIES
from quintain.models import Scripted

G = TypeVar("G", bound=Goal)

Task = qn.Task[Sales]
Call = tuple[str, dict[str, Any]]
Calls = list[Call]

READS = frozenset({
    "crm_search", "crm_get", "crm_history", "crm_colleagues", "mail_sent_to", "mail_inbox_list", "mail_read",
    "calendar_free_slots", "calendar_agenda", "calendar_appointments", "now", "wait",
})  # fmt: skip
KINDS = [(family, level) for level in LEVELS for family in FAMILIES]
EVERY_KIND = [
    pytest.param(family, level, marks=() if number % len(LEVELS) == LEVELS.index(level) else pytest.mark.slow)
    for level in LEVELS
    for number, family in enumerate(FAMILIES)
]
"""All kinds as parameters; `make test` plays each family at one level."""


def play(task: Task, calls: Iterable[Call]) -> qn.Trace:
    """The trace of an agent that makes these calls, one a turn."""
    return asyncio.run(qn.rollout(env, task, Scripted.calls(list(calls), task.answer))).trace


def score(task: Task, calls: Iterable[Call]) -> float:
    trace = play(task, calls)
    assert trace.score is not None, trace.failure
    return trace.score


def solution(task: Task) -> Calls:
    assert task.solution is not None
    return [(name, dict(arguments)) for name, arguments in task.solution]


@functools.cache
def _task(split: str, number: int) -> Task:
    """A task, made once: to find one of a kind, many others are made."""
    return env.tasks(split)[number]


def each(family: str, level: str = "", split: str = "validation") -> Iterator[Task]:
    """The tasks of a family, and of a level."""
    for number in range(len(env.tasks(split))):
        task = _task(split, number)
        if task.tags["family"] == family and level in {"", task.tags["level"]}:
            yield task


def first(family: str, level: str = "", having: Callable[[Task], bool] = lambda task: True) -> Task:
    """The first task of a kind, with a property."""
    return next(filter(having, each(family, level)))


def calls_of(task: Task, tool: str) -> list[dict[str, Any]]:
    return [arguments for name, arguments in solution(task) if name == tool]


def uses(tool: str, **arguments: Any) -> Callable[[Task], bool]:
    """Returns a test for solutions that make such a call."""
    return lambda task: any(arguments.items() <= made.items() for made in calls_of(task, tool))


def without(task: Task, tool: str) -> Calls:
    return [call for call in solution(task) if call[0] != tool]


def bent(task: Task, tool: str, **changed: Any) -> Calls:
    """The solution with other arguments in the calls of a tool; a function is applied to what was there."""
    return [
        (name, given | {k: v(given[k]) if callable(v) else v for k, v in changed.items()} if name == tool else given)
        for name, given in solution(task)
    ]


def reasons(trace: qn.Trace) -> str:
    return "; ".join(reward.reason for reward in trace.rewards if reward.reason)


def goals_of(task: Task, kind: type[G]) -> list[G]:
    """The goals of one kind."""
    truth: Truth = task.truth
    return [goal for goal in truth.goals if isinstance(goal, kind)]


def start_of(task: Task) -> float:
    """Returns the time at which the job begins."""
    return task.world().clock.now


def demo_of(task: Task) -> Booked:
    """The appointment that a task asks for."""
    (goal,) = goals_of(task, Booked)
    return goal


def is_delayed(task: Task) -> bool:
    """True if the policy allows the letter only later."""
    return uses("mail_schedule")(task)
