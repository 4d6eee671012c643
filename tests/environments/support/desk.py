"""Helpers of the help desk's tests: playing tasks and bending solutions."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import quintain as qn
from quintain.authoring import LEVELS
from quintain.environments.support import env
from quintain.environments.support.goals import Truth
from quintain.environments.support.seed import base
from quintain.environments.support.state import Support
from quintain.environments.support.tasks import FAMILIES
from quintain.models import Scripted

Task = qn.Task[Support]
Call = tuple[str, dict[str, Any]]
Calls = list[Call]

KINDS = [(family, level, variant.__name__) for family, levels in FAMILIES.items() for level in LEVELS
         for variant in levels[level]]  # fmt: skip
WRITES = frozenset({
    "reply", "update_ticket", "merge_tickets", "link_incident", "verify_identity", "redirect_parcel", "open_claim",
    "unlock_account", "lock_account", "send_password_reset", "end_sessions", "update_firmware", "set_default_card",
    "retry_payment", "send_payment_link", "refund_payment", "request_approval", "grant_credit", "change_plan",
    "cancel_subscription", "apply_coupon", "reissue_invoice", "update_order_address", "refund_order",
    "ship_replacement",
})  # fmt: skip
"""Tools with which the solutions change the world."""
DESK = frozenset({"reply", "update_ticket", "verify_identity"})
"""Writes that repair nothing by themselves."""


@functools.cache
def first(family: str, level: str, variant: str, skip: int = 0) -> Task:
    """A task of a kind, from the validation split or, where it has too few, from train."""
    found = 0
    for split in ("validation", "train"):
        for index, task in _of(split, family, level):
            del index
            if task.tags["variant"] == variant:
                if found == skip:
                    return task
                found += 1
    raise LookupError(f"no task number {skip} of {family}, {level}, {variant}")


def having(family: str, level: str, variant: str, *, such: Callable[[Task], bool]) -> Task:
    """The first task of a kind with a property."""
    return next(task for skip in range(40) if such(task := first(family, level, variant, skip)))


def _of(split: str, family: str, level: str) -> Iterator[tuple[int, Task]]:
    start = list(FAMILIES).index(family) + len(FAMILIES) * LEVELS.index(level)
    for index in range(start, len(env.tasks(split)), len(FAMILIES) * len(LEVELS)):
        yield index, env.tasks(split)[index]


def play(task: Task, calls: Iterable[Call]) -> qn.Trace:
    """The trace of an agent that makes these calls, one a turn."""
    trace = asyncio.run(qn.rollout(env, task, Scripted.calls(list(calls), task.answer))).trace
    assert trace.failure is None, trace.failure
    return trace


def score(task: Task, calls: Iterable[Call]) -> float:
    found = play(task, calls).score
    assert found is not None
    return found


def rewards(task: Task, calls: Iterable[Call]) -> dict[str, float | None]:
    """Returns the rewards of the trajectory-level criteria by name."""
    return {reward.name: reward.value for reward in play(task, calls).rewards}


def reasons(task: Task, calls: Iterable[Call]) -> str:
    return "; ".join(reward.reason for reward in play(task, calls).rewards if reward.reason)


def solution(task: Task) -> Calls:
    assert task.solution is not None
    return [(name, dict(arguments)) for name, arguments in task.solution]


def without(task: Task, *tools: str) -> Calls:
    return [call for call in solution(task) if call[0] not in tools]


def bent(task: Task, tool: str, **changed: Any) -> Calls:
    """The solution with other arguments in the calls of a tool; a function is applied to what was there."""
    return [
        (
            name,
            given | {k: v(given.get(k)) if callable(v) else v for k, v in changed.items()} if name == tool else given,
        )
        for name, given in solution(task)
    ]


def truth(task: Task) -> Truth:
    found: Truth = task.truth
    return found


def ticket_of(task: Task) -> int:
    return truth(task).tickets[0]


def world_at(at: str) -> Support:
    """The base at a moment, with its clockwork going."""
    from quintain.environments.support.desk import seconds

    state = Support(db=base().fork())
    state.clock.now = seconds(at)
    state.wind()
    return state


def value(world: Support, sql: str, *values: Any) -> Any:
    """The only value of the only row."""
    ((found,),) = world.db.execute(sql, *values)
    return found
