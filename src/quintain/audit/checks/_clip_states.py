"""States of a task between start and solution, with their rewards: the oracle with some calls left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_number
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, number, reset, score

EPSILON = 1e-9
WALKED = 6
"""Tasks that are walked."""


class PaidState(msgspec.Struct, frozen=True):
    """A state and its reward.

    Attributes:
        ops: Ops that lead to the state, after the reset.
        score: Its reward.
        parts: Score components reported with the reward.
        done: Places of the oracle's writes that were played.
    """

    task: str
    ops: tuple[Op, ...]
    score: float
    parts: dict[str, float]
    done: frozenset[int]


def parts_of(seen: OpResult) -> dict[str, float]:
    """Returns the numeric components reported with a score, nested ones by their path."""
    return dict(_numbers(seen.value, "")) if seen.fine and is_dict(seen.value) else {}


def _numbers(value: dict[str, Any], under: str) -> Iterator[tuple[str, float]]:
    for name, item in value.items():
        path = f"{under}.{name}" if under else str(name)
        if is_dict(item):
            yield from _numbers(item, path)
        elif path != "score" and (is_number(item) or isinstance(item, bool)):
            yield path, float(item)


def writes_of(ctx: AuditContext, task: str) -> tuple[int, ...] | None:
    """Returns the places of the oracle's ops that change the world or hand in text, or None without an oracle."""
    ops = ctx.oracle(task)
    if ops is None:
        return None
    if "state" not in ctx.offers:
        return tuple(range(len(ops)))
    looked: list[Op] = [reset(task), Op("changes", mark="look")]
    for place, op in enumerate(ops):
        looked += [op, Op("changes", mark=f"look {place}")]
    record = ctx.play(*looked)
    before = record.at("look").value
    found: list[int] = []
    for place, op in enumerate(ops):
        after = record.at(f"look {place}").value
        if op.do == "answer" or _differs(before, after, ctx.discovery.background):
            found.append(place)
        before = after
    return tuple(found)


def _differs(before: Any, after: Any, background: frozenset[str]) -> bool:
    if not (is_dict(before) and is_dict(after)):
        return bool(before != after)
    paths = [path for path in {*before, *after} if path.partition("/")[0] not in background]
    return any(before.get(path) != after.get(path) for path in paths)


def states(ctx: AuditContext, task: str, writes: Sequence[int], *, kept: Sequence[frozenset[int]]) -> list[PaidState]:
    """Play the oracle with only these of its writes (reads all stay), each from the start, and score it."""
    ops = ctx.oracle(task) or ()
    plays = [tuple(op for place, op in enumerate(ops) if place not in writes or place in some) for some in kept]
    # Where the world can go back, many states share a probe: to go back costs less than to begin again.
    goes_back = {"snapshot", "restore"} <= ctx.offers
    size = max(1, (len(plays) + 3) // 4) if goes_back else 1
    parts = [list(range(start, min(start + size, len(plays)))) for start in range(0, len(plays), size)]
    records = ctx.play_all([Probe(tuple(_in_turn(task, [plays[place] for place in part]))) for part in parts])
    found: list[PaidState] = []
    for part, record in zip(parts, records, strict=True):
        at = 2 if size > 1 else 1
        for place in part:
            seen = record.seen[at : at + len(plays[place]) + 1]
            at += len(plays[place]) + 2
            paid = number(seen[-1]) if len(seen) == len(plays[place]) + 1 else None
            if paid is not None and not any(result.is_error for result in seen[:-1]):
                found.append(PaidState(task, plays[place], paid, parts_of(seen[-1]), kept[place]))
    return found


def _in_turn(task: str, plays: Sequence[Sequence[Op]]) -> Iterator[Op]:
    yield reset(task)
    if len(plays) == 1:
        yield from (*plays[0], Op("score"))
        return
    yield Op("snapshot", name="start")
    for play in plays:
        yield from (*play, Op("score"), Op("restore", name="start"))


def probe_of(state: PaidState) -> Probe:
    """Returns a probe that replays a state."""
    return Probe((reset(state.task), *state.ops, score()))


def seen_parts(record: Record) -> tuple[float | None, dict[str, float]]:
    """Score and components that a record saw."""
    seen = record.at("score")
    return number(seen), parts_of(seen)


def is_graded(ctx: AuditContext, paid: Sequence[PaidState]) -> bool:
    """True if rewards are declared as graded or more than two reward levels were seen."""
    return ctx.attribute("graded") is True or len({round(state.score, 9) for state in paid}) > 2
