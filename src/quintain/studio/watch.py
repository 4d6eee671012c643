"""Replay of a trace that records the changes of each step."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple, TypeVar

from quintain.changes import WorldChange, changes
from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.replay import ReplayModel, replay_env
from quintain.rollout import rollout
from quintain.state import State
from quintain.task import Task
from quintain.trace import Level, Trace, Turn
from quintain.verifier import Criterion, Score, StepView, Verifier

S = TypeVar("S", bound=State)

Steps = dict[tuple[int, int], list[WorldChange]]
"""(turn, step) to what the step changed."""


class StepChanges(NamedTuple):
    """Changes that the calls of a trace made."""

    steps: Steps
    """Changes by step; a step is missing if it broke the world or lies behind the divergence."""
    diverged: int | None
    """The first turn whose replay differs from the trace; None if all agree."""
    best: dict[str, float]
    """The maximum of each criterion, weight included."""


def task_of(env: Environment[Any], trace: Trace) -> Task[Any]:
    """Returns the task of a trace; searches all splits if the environment does not have the trace's split.

    Raises:
        UsageError: The environment has no such task.
    """
    if trace.split in env.splits:
        return env.task(trace.split, trace.task)
    for split in env.splits:
        with contextlib.suppress(UsageError):
            return env.task(split, trace.task)
    raise UsageError(f"{env.name} has no task {trace.task!r} in {', '.join(env.splits)}")


async def watch(env: Environment[S], task: Task[S], trace: Trace) -> StepChanges:
    """Replays a trace with a verifier that only records the changes of each step."""
    seen: list[list[WorldChange]] = []

    async def look(effect: StepView[S]) -> Score:
        seen.append(await changes(effect.before, effect.after))
        return Score(None, "only watching")

    spy: Verifier[S] = Verifier(
        Criterion(name="look", level=Level.STEP, fn=look),
        Criterion(name="nothing", level=Level.TRAJECTORY, fn=lambda outcome: 0.0),
    )
    names = {name: getattr(trace, name) for name in ("seed", "member", "attempt", "split", "agent")}
    again = (await rollout(replay_env(env, trace).replace(verifier=spy), task, ReplayModel(trace), **names)).trace
    diverged = next((old.index for old, new in _pairs(trace, again) if _differ(old, new)), None)
    places = [(turn.index, n) for turn in again.turns for n in range(len(turn.steps))]
    steps = dict(zip(places, seen, strict=False))
    known = {place: found for place, found in steps.items() if diverged is None or place[0] < diverged}
    return StepChanges(known, diverged, maxima(env.verifier))


def maxima(verifier: Verifier[Any]) -> dict[str, float]:
    """Returns the maximum of each criterion, weight included."""
    ends = {c.name: (0.0, 1.0) if c.normalize else (c.low, c.high) for c in verifier.criteria}
    return {c.name: max(c.weight * end for end in ends[c.name]) for c in verifier.criteria}


def _pairs(trace: Trace, again: Trace) -> list[tuple[Turn, Turn | None]]:
    found: list[Turn | None] = [*again.turns]
    return list(zip(trace.turns, found + [None] * len(trace.turns), strict=False))


def _differ(old: Turn, new: Turn | None) -> bool:
    return new is None or _facts(old) != _facts(new)


def _facts(turn: Turn) -> tuple[Any, ...]:
    """Returns the fields of a turn that do not depend on the verifier."""
    return turn.role, turn.reply, turn.steps, turn.state_digest
