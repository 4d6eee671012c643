"""Checks work that is judged in part: the first step alone must not be paid like all steps.

A mean over what ran, a loop over what was handed in, a check that looks at what is there: each is fair as long as all
is done, and pays best for doing little.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Record, number
from quintain.audit.kernel.registry import relation

from ._reward_runs import Solution, paid, runs


@check("x.partial_work", "reward_hack", needs=("oracle", "tasks"), value=94)
def partial_work(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the first few of several steps by one tool are paid less, if a wrong step is."""
    known = [(solution, places) for solution in paid(ctx, 4) if (places := _alike(solution))]
    if not known:
        raise ctx.not_checked("no solution calls one tool several times")
    for solution, places in known:
        ways: list[tuple[tuple[Op, ...], tuple[Op, ...]]] = []
        for place, following in itertools.pairwise(places):
            begun = solution.ops[: place + 1]
            ways += [(begun, (*begun, wrong)) for wrong in _spoiled(solution.ops[following])]
        played = runs(ctx, solution, [way for pair in ways for way in pair])
        ctx.count_comparisons(len(ways))
        full = solution.full or 0.0
        for (begun, spoiled), short, wrong in zip(ways, played[::2], played[1::2], strict=True):
            if _stops(full, short.score, wrong.score) and not short.errors and not wrong.errors:
                yield ctx.finding(
                    f"{begun[-1].name} is called {len(places)} times by the solution, and fewer calls are paid as all",
                    solves(solution.task, begun),
                    solves(solution.task, spoiled),
                    relation=f"{__name__}:stops_ahead",
                    marks=("score",),
                    data=full,
                    minimise=0,
                    part="V",
                    expected=f"less than {full:g}: a further call is judged, for a wrong one is paid {wrong.score:g}",
                    observed=short.score,
                    teaches="to stop while ahead",
                )
                return


@relation
def stops_ahead(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe is paid in full, and the second, which goes on with a wrong step, is paid less."""
    scores = [number(record.at("score")) for record in records]
    worked = not any(seen.is_error for record in records for seen in record.seen)
    return worked and _stops(float(evidence.data), *scores)


def _stops(full: float, short: float | None, wrong: float | None) -> bool:
    return short is not None and wrong is not None and short >= full - 1e-9 and wrong < full - 1e-9


def _alike(solution: Solution) -> list[int]:
    """Places of the calls of one tool that all say something else; empty where there are fewer than two."""
    by_tool: dict[str, list[int]] = {}
    for place in solution.writes:
        by_tool.setdefault(solution.ops[place].name, []).append(place)
    none: list[int] = []
    found = max(by_tool.values(), key=len, default=none)
    said = {repr(solution.ops[place].value) for place in found}
    return found if len(found) >= 2 and len(said) == len(found) else []


def _spoiled(op: Op) -> list[Op]:
    """The call with one other value: another number, another text."""
    found: list[Op] = []
    for name, value in op.value.items():
        other_value: Any = value + 1 if is_number(value) else f"{value} x" if isinstance(value, str) else None
        if other_value is not None:
            found.append(msgspec.structs.replace(op, value=op.value | {name: other_value}))
    return found[:3]
