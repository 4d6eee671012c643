"""Checks that a nearly right amount, time or date in a solution's call is not paid like the right one.

A verdict that rounds what it compares takes every value that rounds to the same. A value that the task does not fix may
lie anywhere, or on one side of a bound: so far values must be paid less on both sides, and near ones in full on both
sides, or on one where the task itself says the value.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, number, reset, score
from quintain.audit.kernel.registry import relation

from ._clip_numbers import APPROXIMATE
from ._clip_states import EPSILON, writes_of

TASKS = 6
"""Tasks whose solutions are bent."""
EACH = 2
"""Tasks in which one parameter of a tool is bent."""
BOUNDS = re.compile(
    r"between|or more|or less|or later|or earlier|minimum|maximum|up to|before|after|until|any time|under|over"
)
"""Words of a prompt after which many values may be right."""
_CLOCK = re.compile(r"(?P<before>(?:.*[T ])?)(?P<hour>\d\d):(?P<minute>\d\d)(?P<after>(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class NearAndFarValues(msgspec.Struct, frozen=True):
    """Values in the place of a right one.

    Attributes:
        near: Pairs, on both sides, the farthest first.
        far: Two that no rounding takes for the right one.
    """

    near: tuple[tuple[Any, Any], ...]
    far: tuple[Any, Any]


def bent(value: Any) -> NearAndFarValues | None:
    """Returns near and far values of an amount, time or date, or None for any other value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and abs(value) >= 2:
        sizes = sorted({max(1, abs(value) // 10), max(1, abs(value) // 100), 1}, reverse=True)
        return NearAndFarValues(
            tuple((value - size, value + size) for size in sizes), (value // 3 - 1, value * 3 + 1000)
        )
    if isinstance(value, float) and value:
        shares = (0.1, 0.01, 0.001)
        near = tuple((round(value * (1 - share), 6), round(value * (1 + share), 6)) for share in shares)
        return NearAndFarValues(near, (round(value / 3, 6), value * 3 + 1000))
    if isinstance(value, str) and (clock := _CLOCK.fullmatch(value)):
        return _bent_clock(clock)
    if isinstance(value, str) and _DATE.fullmatch(value):
        return _bent_date(value)
    return None


def _bent_clock(clock: re.Match[str]) -> NearAndFarValues | None:
    at = int(clock["hour"]) * 60 + int(clock["minute"])

    def clock_text(minutes: int) -> str:
        return f"{clock['before']}{minutes // 60 % 24:02d}:{minutes % 60:02d}{clock['after']}"

    if at > 23 * 60 + 59:
        return None
    near = tuple((clock_text(at - size), clock_text(at + size)) for size in (30, 15, 5, 1))
    return NearAndFarValues(near, (clock_text(at - 240), clock_text(at + 240)))


def _bent_date(value: str) -> NearAndFarValues | None:
    try:
        day = dt.date.fromisoformat(value)
    except ValueError:
        return None
    near = tuple((str(day - step), str(day + step)) for step in map(dt.timedelta, (7, 1)))
    return NearAndFarValues(near, (str(day - dt.timedelta(100)), str(day + dt.timedelta(100))))


@relation
def pays_near(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the bent values are paid like the right value, and the two far values are paid less."""
    right, *other_records = records
    near, far = other_records[:-2], other_records[-2:]
    full = number(right.at("score"))
    if full is None or full <= EPSILON or any(record.at("call").is_error for record in (right, *near)):
        return False
    if "look" in evidence.marks and any(record.at("look").value == right.at("look").value for record in near):
        return False
    paid = [number(record.at("score")) for record in near]
    less = [number(record.at("score")) for record in far]
    return all(amount is not None and amount >= full - EPSILON for amount in paid) and all(
        amount is not None and amount < full - EPSILON for amount in less
    )


@check("x.near_arguments", "reward_clipping", needs=("oracle", "tasks", "tools"), value=35)
def near_arguments(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a nearly right amount, time or date is not paid like the right one."""
    counts: dict[tuple[str, str], int] = {}
    reported: set[tuple[str, str]] = set()
    for task in ctx.sample_tasks(TASKS):
        if not ctx.solution_score(task) or not (writes := writes_of(ctx, task)):
            continue
        words = str(ctx.play(reset(task, mark="reset")).at("reset").value)
        if APPROXIMATE.search(words.lower()) or BOUNDS.search(words.lower()):
            continue
        ops = ctx.oracle(task) or ()
        for place in writes:
            for name, value in ops[place].value.items() if is_dict(ops[place].value) else ():
                key, values = (ops[place].name, name), bent(value)
                if values is None or _names(name) or counts.get(key, 0) >= EACH or key in reported:
                    continue
                counts[key] = counts.get(key, 0) + 1
                ctx.count_comparisons()
                found = _taken(ctx, task, place, name=name, values=values, is_told=_says(words, value))
                if found is not None:
                    reported.add(key)
                    yield found


def _names(name: str) -> bool:
    """True if a parameter holds an identifier, so that a near value names another thing."""
    return name.lower().endswith(("id", "ids", "number", "code", "key", "page", "limit_rows", "offset"))


def _says(words: str, value: Any) -> bool:
    """True if the task states the value with the same digits."""
    digits = str(value)
    return bool(re.search(rf"(?<![\d:.]){re.escape(digits)}(?!\d|:\d|\.\d)", words))


def _taken(
    ctx: AuditContext, task: str, place: int, *, name: str, values: NearAndFarValues, is_told: bool
) -> Finding | None:
    ops = ctx.oracle(task) or ()
    looks = "state" in ctx.offers
    right = ops[place].value[name]

    def probe(value: Any) -> Probe:
        own_op = msgspec.structs.replace(ops[place], value={**ops[place].value, name: value}, mark="call")
        look = (Op("changes", mark="look"),) if looks else ()
        return Probe((reset(task), *ops[:place], own_op, *ops[place + 1 :], *look, score()))

    lows, highs = [probe(low) for low, _ in values.near], [probe(high) for _, high in values.near]
    edges = [probe(right), *map(probe, values.far)]
    records = ctx.play_all([*edges, *lows, *highs])
    first, far = records[0], records[1:3]
    evidence = Evidence("", ("look",) if looks else ())
    for number_of, (low, high) in enumerate(zip(lows, highs, strict=True)):
        sides = (records[3 + number_of], records[3 + len(lows) + number_of])
        hits = [pays_near([first, side, *far], evidence) for side in sides]
        if not (all(hits) or (any(hits) and is_told)):
            continue
        chosen = [script for script, hit in zip((low, high), hits, strict=True) if hit]
        wrong = [item for item, hit in zip(values.near[number_of], hits, strict=True) if hit]
        return ctx.finding(
            f"{ops[place].name}: a wrong {name} is paid in full when it is near the right one",
            edges[0],
            *chosen,
            *edges[1:],
            relation=f"{__name__}:pays_near",
            marks=("call", "score", *(("look",) if looks else ())),
            minimise=0,
            part="V",
            expected=f"less for {', '.join(map(repr, wrong))} than for {right!r}",
            observed="as much",
            teaches="that a nearly right value is enough",
            at_most="proven" if looks else "likely",
        )
    return None


__all__ = ["bent", "near_arguments", "pays_near"]
