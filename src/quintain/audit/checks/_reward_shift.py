"""Numbers that are right in their sum alone: what one call gives too little, another by its tool gives too much."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec

from quintain.audit.check import check
from quintain.audit.context import AuditContext
from quintain.audit.data import is_number
from quintain.audit.finding import Evidence, Finding
from quintain.audit.generate import fits
from quintain.audit.probe import Op, Probe, Record, number, reset, score, state

from . import _reward_claims as claims
from ._reward_acts import is_id
from ._reward_runs import Solved, lacking, paid, runs, survives, weight
from ._unsolv_runs import numbers, solution_runs, text_of

_PAIRS = 3
"""Pairs of calls that are tried in one task."""
_SHARED = re.compile(
    r"\b(split|divid\w+|share\w*|distribut\w+|between|among|in all|altogether|total|sum|any|either)\b", re.IGNORECASE
)
"""Words by which a task may leave open how much goes where."""


@check("x.right_in_sum", "reward_hack", needs=("oracle", "state", "tasks", "tools"), value=85)
def right_in_sum(ctx: AuditContext) -> Iterator[Finding | None]:
    """What one call gives too much and another too little is paid less, if either alone is."""
    told: set[str] = set()
    pairs = [(one, pair) for one in paid(ctx, 12) for pair in itertools.islice(_pairs(ctx, one), _PAIRS)]
    if not pairs:
        raise ctx.not_checked("no solution calls one tool twice with numbers of which each is asked for")
    for one, (place, other, key) in pairs:
        name = one.ops[place].name
        if name in told:
            continue
        less, more = _by(one.ops[place], key, -1), _by(one.ops[other], key, 1)
        ways = [_with(one, {place: less, other: more}), _with(one, {place: less}), _with(one, {other: more})]
        both, first, second = runs(ctx, one, ways)
        ctx.count_comparisons()
        worked = not {*both.errors, *first.errors, *second.errors} - {*one.errors}
        if not worked or not survives(one, both) or survives(one, first) or survives(one, second):
            continue
        told.add(name)
        effects = (*one.effects.get(place, ()), *one.effects.get(other, ()))
        lacks = lacking(one, both, effects)
        if lacks:
            marked = _with(one, {place: less.marked("less"), other: more.marked("more")})
            yield ctx.finding(
                f"{name} is paid when {key} is too little in one call and too much in another: the sum alone is asked",
                Probe((reset(one.task), *marked, state(), score())),
                *(Probe((reset(one.task), *way, score())) for way in ways[1:]),
                relation=f"{__name__}:sum_alone",
                marks=("score", "state", "less", "more"),
                data={"full": one.full, "lacks": lacks, "done": ["less", "more"]},
                minimise=0,
                part="V",
                **(_weight(one, lacks)),
                expected=f"less than {one.full:g}, as for either of the two wrong numbers alone",
                observed=both.score,
                teaches="that it does not matter who gets what",
            )


def _weight(one: Solved, lacks: list[list[Any]]) -> dict[str, Any]:
    """That either number alone costs the pay shows that it is asked for, unless the task leaves open how to share."""
    return weight(one, lacks) if _SHARED.search(one.told) else {"severity": "error", "at_most": "proven"}


def _pairs(ctx: AuditContext, one: Solved) -> Iterator[tuple[int, int, str]]:
    """Two writes by one tool that give different numbers, which may be one less and one more."""
    tools = {tool.name: tool for tool in ctx.about.tools}
    known: set[Decimal] | None = None
    for place, other in itertools.combinations(one.writes, 2):
        left, right = one.ops[place], one.ops[other]
        spec = tools.get(left.name)
        if spec is None or left.name != right.name:
            continue
        for key, value in left.value.items():
            if left.value | {key: None} == right.value | {key: None}:
                continue  # It is one thing, done in two steps.
            both = (value, right.value.get(key))
            changed = (_by(left, key, -1), _by(right, key, 1)) if all(map(is_number, both)) and not is_id(key) else ()
            if changed and all(fits(op.value[key], spec.properties.get(key, {}), spec.parameters) for op in changed):
                known = _known(ctx, one) if known is None else known
                if not _asks_for_sum(both, known):
                    yield place, other, key


def _known(ctx: AuditContext, one: Solved) -> set[Decimal]:
    """The numbers that the task tells, that its solution reads, and that the world holds."""
    read = next(
        (
            solution_run.before(len(solution_run.ops))
            for solution_run in solution_runs(ctx)
            if solution_run.task == one.task
        ),
        one.told,
    )
    world = text_of(ctx.play(reset(one.task), state()).at("state"))
    return numbers(f"{read}\n{world}", alone=True)


def _asks_for_sum(both: tuple[Any, ...], known: set[Decimal]) -> bool:
    """Whether the sum of two numbers is known, and not each of them: then it may be shared as one likes."""
    whole = sum(Decimal(str(one)) for one in both)
    return whole in known and not all(Decimal(str(one)) in known for one in both)


def _by(op: Op, key: str, step: int) -> Op:
    return msgspec.structs.replace(op, value=op.value | {key: op.value[key] + step})


def _with(one: Solved, changed: dict[int, Op]) -> tuple[Op, ...]:
    return tuple(changed.get(place, op) for place, op in enumerate(one.ops))


def sum_alone(records: list[Record], evidence: Evidence) -> bool:
    """The first probe is paid in full and lacks something; the others, with one of its two numbers, are paid less."""
    alone = [number(record.at("score")) for record in records[1:]]
    return claims.paid_anyway(records[:1], evidence) and all(
        got is not None and got < evidence.data["full"] - 1e-9 for got in alone
    )
