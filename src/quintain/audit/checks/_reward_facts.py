"""Reward of each task for its own solution and for no action, computed once for all checks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, Probe, ask, number, reset, score
from quintain.audit.kernel.registry import probe_function

from ._reward_acts import writes_by_name

_PART = 10
"""Tasks that one child plays."""
TOP = 1.0
"""The best reward of an environment that pays within [0, 1]."""
BEYOND_S = 0.6
"""Seconds after which no further tasks are begun that were not chosen."""


class Fact(msgspec.Struct, frozen=True):
    """One task.

    Attributes:
        solution: "known", "none", or "broken" where `oracle` itself failed.
        full: What the solution is paid; None when it gets no verdict, or none is known.
        floor: What is paid for nothing at all.
        calls: How many the solution makes.
        writes: Whether some of them change things, as their names say.
        spotless: No step of the solution was refused or broke.
    """

    solution: str
    full: float | None = None
    floor: float | None = None
    calls: int = 0
    writes: bool = False
    spotless: bool = True


def facts(ctx: AuditContext) -> dict[str, Fact]:
    """The facts of all tasks that are looked at."""
    parts = [ctx.tasks[start : start + _PART] for start in range(0, len(ctx.tasks), _PART)]
    return ctx.once(("facts",), lambda own: dict(zip(own.tasks, _several(own, parts), strict=True)))


def beyond(ctx: AuditContext) -> dict[str, Fact]:
    """The facts of tasks that the audit did not choose to look at, as far as `BEYOND_S` goes.

    A wrong solution spoils its own task alone, so that no sample stands for the others.
    """
    return ctx.once(("facts beyond",), _beyond)


def _beyond(ctx: AuditContext) -> dict[str, Fact]:
    chosen = set(ctx.tasks)
    rest = [task for task in ctx.about.tasks if task not in chosen]
    if not rest or not chosen:
        return {}
    rest = ctx.rng.sample(rest, len(rest))
    until = time.monotonic() + min(BEYOND_S, ctx.seconds_left() / 4)
    found: dict[str, Fact] = {}
    size = 4  # Few at first: the cost of one is still unknown.
    while len(found) < len(rest) and time.monotonic() < until:
        some = rest[len(found) : len(found) + size]
        parts = [some[place : place + _PART] for place in range(0, len(some), _PART)]
        found |= dict(zip(some, _several(ctx, parts), strict=True))
        size = min(2 * size, 4 * _PART)
    return found


def _several(ctx: AuditContext, parts: Sequence[Sequence[str]]) -> list[Fact]:
    found: list[Fact] = []
    probes = [Probe((ask(f"{__name__}:learn", list(part)),)) for part in parts]
    for part, record in zip(parts, ctx.play_all(probes), strict=True):
        seen = record.at("ask")
        if seen.fine:
            found += msgspec.convert(seen.value, list[Fact])
        elif len(part) > 1:  # One of them broke the child: each is asked alone.
            found += _several(ctx, [(task,) for task in part])
        else:
            found.append(Fact("broken", spotless=False))
    return found


@probe_function
def learn(player: Player, _on: str, tasks: list[str]) -> Any:
    """In the child: the facts of some tasks, each on instances of its own."""
    return [msgspec.to_builtins(_fact(player, task, place)) for place, task in enumerate(tasks)]


def _fact(player: Player, task: str, place: int) -> Fact:
    idle, busy = f"idle {place}", f"busy {place}"
    player.do(reset(task, on=idle))
    floor = number(player.do(score(on=idle)))
    seen = player.do(Op("oracle", busy, task))
    if not seen.fine or seen.value is None:
        known = Fact("none" if seen.fine or seen.how == "absent" else "broken", floor=floor)
    else:
        ops = msgspec.convert(seen.value, list[Op])
        begun = player.do(reset(task, on=busy))
        said = [player.do(op.moved(busy)) for op in ops]
        known = Fact(
            solution="known",
            full=number(player.do(score(on=busy))),
            floor=floor,
            calls=sum(op.do == "call" for op in ops),
            writes=any(map(writes_by_name, ops)),
            spotless=begun.fine and not any(result.is_error for result in said),
        )
    for on in (idle, busy):
        player.do(Op("close", on))
        player.adapters.pop(on, None)
    return known


@probe_function
def seeded(player: Player, _on: str, value: Any) -> Any:
    """Returns, in the child, the rewards of solutions under other seeds, or of nothing if `is_idle`.

    `oracle` is read once the episode has begun.
    """
    found: list[dict[str, Any]] = []
    for place, (task, seed) in enumerate(value["pairs"]):
        on = f"seeded {place}"
        begun = player.do(reset(task, on=on, seed=seed))
        seen = OpResult([]) if value["is_idle"] else player.do(Op("oracle", on, task))
        known = begun.fine and seen.fine and seen.value is not None
        ops = msgspec.convert(seen.value, list[Op]) if known else []
        for op in ops:
            player.do(op.moved(on))
        paid = number(player.do(score(on=on))) if known else None
        found.append({"known": known, "paid": paid, "ops": msgspec.to_builtins(ops)})
        player.do(Op("close", on))
        player.adapters.pop(on, None)
    return found
