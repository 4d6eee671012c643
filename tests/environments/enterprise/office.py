"""Helpers of the company's tests: worlds, people in them, and plays of a task."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import quintain as qn
from quintain.environments.enterprise import env
from quintain.environments.enterprise.desk import Desk
from quintain.environments.enterprise.goals import Call, CallGoal, call
from quintain.environments.enterprise.schema import base
from quintain.environments.enterprise.seeding import OPENING
from quintain.environments.enterprise.state import Enterprise
from quintain.models import Scripted

Task = qn.Task[Desk]

WHO = """
SELECT e.id FROM employees e JOIN role_grants g ON g.employee = e.id JOIN roles r ON r.id = g.role
WHERE e.status = 'active' AND g.status = 'active' AND r.name = ? ORDER BY e.id DESC
"""


def office() -> Desk:
    """Returns the company on its first day, before any sign-in."""
    world = Enterprise(db=base().fork())
    world.clock.now = OPENING
    return world


def able(world: Desk, role: str) -> list[int]:
    """Rows of employees with a role; those who are least in the hierarchy come first."""
    return [number for (number,) in world.db.execute(WHO, role)]


def use(world: Desk, employee: int, tool: str, /, **arguments: Any) -> Any:
    """Use a tool as an employee."""
    world.actor = employee
    return call(world, tool, **arguments)


def refusal(world: Desk, employee: int, tool: str, /, **arguments: Any) -> str:
    """Returns the refusal of a call by an employee without the right; the world stays as it was."""
    before = world.db.fork()
    try:
        use(world, employee, tool, **arguments)
    except qn.ToolError as error:
        assert before.diff(world.db) == []
        return str(error)
    raise AssertionError(f"{tool} was not refused")


def value(world: Desk, sql: str, *values: Any) -> Any:
    """The first column of the first row."""
    return world.db.execute(sql, *values)[0][0]


def every_task() -> list[Task]:
    return [task for split in env.splits for task in env.tasks(split)]


def first(family: str) -> Task:
    """The first task of a family."""
    return next(task for task in every_task() if task.tags["family"] == family)


def solution(task: Task) -> list[Call]:
    assert task.solution is not None
    return [(name, dict(arguments)) for name, arguments in task.solution]


def wanted(task: Task) -> set[str]:
    """Tools that the goal of a task needs."""
    goal: CallGoal = task.truth
    return {name for name, _ in goal.calls}


def play(task: Task, calls: Iterable[Call]) -> qn.Trace:
    """The trace of an agent that makes these calls, one a turn."""
    trace = asyncio.run(qn.rollout(env, task, Scripted.calls(list(calls), task.answer))).trace
    assert trace.failure is None, trace.failure
    return trace


def score(task: Task, calls: Iterable[Call]) -> float:
    found = play(task, calls).score
    assert found is not None
    return found


def reasons(trace: qn.Trace) -> str:
    return "; ".join(reward.reason for reward in trace.rewards if reward.reason)
