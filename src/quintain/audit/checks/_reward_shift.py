"""Checks numbers that are right in their sum only: one call gives too little, another too much."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from quintain.audit.facts.data import is_number
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, number, reset, score, state
from quintain.audit.kernel.registry import relation

from . import _reward_claims as claims
from ._reward_acts import is_id
from ._reward_runs import Solution, lacking, paid, runs, survives, weight
from ._unsolv_runs import numbers, solution_runs, text_of

_PAIRS = 3
"""Pairs of calls that are tried in one task."""
_SHARED = re.compile(
    r"\b(split|divid\w+|share\w*|distribut\w+|between|among|in all|altogether|total|sum|any|either)\b", re.IGNORECASE
)
"""Words by which a task may leave open how much goes where."""


@check("x.right_in_sum", "reward_hack", needs=("oracle", "state", "tasks", "tools"), value=59)
def right_in_sum(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that two errors that cancel in a sum are paid less, if each of them alone is."""
    reported: set[str] = set()
    pairs = [(solution, pair) for solution in paid(ctx, 12) for pair in itertools.islice(_pairs(ctx, solution), _PAIRS)]
    if not pairs:
        raise ctx.not_checked("no solution calls one tool twice with numbers of which each is asked for")
    for left, (place, right, key) in pairs:
        name = left.ops[place].name
        if name in reported:
            continue
        less, more = _by(left.ops[place], key, -1), _by(left.ops[right], key, 1)
        ways = [_with(left, {place: less, right: more}), _with(left, {place: less}), _with(left, {right: more})]
        both, first, second = runs(ctx, left, ways)
        ctx.count_comparisons()
        worked = not {*both.errors, *first.errors, *second.errors} - {*left.errors}
        if not worked or not survives(left, both) or survives(left, first) or survives(left, second):
            continue
        reported.add(name)
        effects = (*left.effects.get(place, ()), *left.effects.get(right, ()))
        lacks = lacking(left, both, effects)
        if lacks:
            marked = _with(left, {place: less.marked("less"), right: more.marked("more")})
            yield ctx.finding(
                f"{name} is paid when {key} is too little in one call and too much in another: the sum alone is asked",
                Probe((reset(left.task), *marked, state(), score())),
                *(Probe((reset(left.task), *way, score())) for way in ways[1:]),
                relation=f"{__name__}:sum_alone",
                marks=("score", "state", "less", "more"),
                data={"full": left.full, "lacks": lacks, "done": ["less", "more"]},
                minimise=0,
                part="V",
                **(_weight(left, lacks)),
                expected=f"less than {left.full:g}, as for either of the two wrong numbers alone",
                observed=both.score,
                teaches="that the split of a sum does not matter",
            )


def _weight(solution: Solution, lacks: list[list[Any]]) -> dict[str, Any]:
    """Returns the severity: each number is required if either alone costs reward, unless the split is open."""
    return weight(solution, lacks) if _SHARED.search(solution.prompt) else {"severity": "error", "at_most": "proven"}


def _pairs(ctx: AuditContext, solution: Solution) -> Iterator[tuple[int, int, str]]:
    """Two writes by one tool that give different numbers, which may be one less and one more."""
    tools = {tool.name: tool for tool in ctx.about.tools}
    known: set[Decimal] | None = None
    for place, other_place in itertools.combinations(solution.writes, 2):
        left, right = solution.ops[place], solution.ops[other_place]
        spec = tools.get(left.name)
        if spec is None or left.name != right.name:
            continue
        for key, value in left.value.items():
            if left.value | {key: None} == right.value | {key: None}:
                continue  # It is one thing, done in two steps.
            both = (value, right.value.get(key))
            changed = (_by(left, key, -1), _by(right, key, 1)) if all(map(is_number, both)) and not is_id(key) else ()
            if changed and all(fits(op.value[key], spec.properties.get(key, {}), spec.parameters) for op in changed):
                known = _known(ctx, solution) if known is None else known
                if not _asks_for_sum(both, known):
                    yield place, other_place, key


def _known(ctx: AuditContext, solution: Solution) -> set[Decimal]:
    """Returns the numbers in the prompt, in the results that the solution reads, and in the world."""
    read = next(
        (
            solution_run.before(len(solution_run.ops))
            for solution_run in solution_runs(ctx)
            if solution_run.task == solution.task
        ),
        solution.prompt,
    )
    world = text_of(ctx.play(reset(solution.task), state()).at("state"))
    return numbers(f"{read}\n{world}", alone=True)


def _asks_for_sum(both: tuple[Any, ...], known: set[Decimal]) -> bool:
    """True if the sum of two numbers is known and not each of them, so that the split is free."""
    whole = sum(Decimal(str(item)) for item in both)
    return whole in known and not all(Decimal(str(item)) in known for item in both)


def _by(op: Op, key: str, step: int) -> Op:
    return msgspec.structs.replace(op, value=op.value | {key: op.value[key] + step})


def _with(solution: Solution, changed: dict[int, Op]) -> tuple[Op, ...]:
    return tuple(changed.get(place, op) for place, op in enumerate(solution.ops))


@relation
def sum_alone(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe is paid in full and lacks something; the others, with one of its two numbers, are paid less."""
    alone = [number(record.at("score")) for record in records[1:]]
    return claims.paid_anyway(records[:1], evidence) and all(
        got is not None and got < evidence.data["full"] - 1e-9 for got in alone
    )
