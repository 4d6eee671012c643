"""Helpers of the incident desk's tests."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from typing import Any

import quintain as qn
from quintain.authoring import LEVELS
from quintain.environments.ops import env
from quintain.environments.ops.description import causes
from quintain.models import Scripted

Task = qn.Task[Any]
Call = tuple[str, dict[str, Any]]
KINDS = [(cause, level) for cause in causes() for level in LEVELS]


@functools.cache
def task_of(cause: str, level: str = "easy") -> Task:
    """Returns the first training task of a root cause at a level."""
    tasks = env.tasks("train")
    for index in range(len(tasks)):
        task = tasks[index]
        if (task.tags["variant"], task.tags["level"]) == (cause, level):
            return task
    raise LookupError(f"no task of {cause} at {level}")


def play(task: Task, calls: Sequence[Call], *, of: qn.Environment[Any] = env, answer: str = "done") -> qn.Trace:
    """Returns the record of an episode in which these calls are made."""
    return asyncio.run(qn.rollout(of, task, Scripted.calls(calls, answer))).trace


def rewards(trace: qn.Trace) -> dict[str, float | None]:
    """Returns the trajectory-level rewards by name."""
    return {reward.name: reward.value for reward in trace.rewards if reward.level.value == "trajectory"}


def solution(task: Task) -> list[Call]:
    """Returns the solution of a task."""
    assert task.solution is not None
    return list(task.solution)
