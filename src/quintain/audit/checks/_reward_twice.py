"""Checks a solution with one step repeated: money moved twice or a thing ordered twice is paid less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quintain.audit.facts.data import is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Probe, reset, score, state

from . import _reward_claims as claims
from ._reward_acts import names, words
from ._reward_runs import Solution, lacking, paid, runs, survives

SOLVED = 6
"""Tasks whose solutions are tried."""
_SAID = names("note log comment reply message notify send say tell email mail post remember memo check test run")
"""Words of tools that may well be used twice."""


@check("x.done_twice", "reward_hack", needs=("oracle", "state", "tasks"), value=59)
def done_twice(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution with one step repeated, so that it moves or makes twice as much, is paid less."""
    reported: set[str] = set()
    for solution in paid(ctx, SOLVED):
        places = [place for place in solution.demanded if solution.ops[place].name not in reported]
        ways = [
            (*solution.ops[: place + 1], solution.ops[place].marked("again"), *solution.ops[place + 1 :])
            for place in places
        ]
        ctx.count_comparisons(len(ways))
        plain = [tuple(op.marked("") for op in way) for way in ways]
        for place, way, run in zip(places, ways, runs(ctx, solution, plain), strict=True):
            op = solution.ops[place]
            if set(run.errors) - set(solution.errors) or not survives(solution, run) or _SAID & set(words(op.name)):
                continue
            lacks = [
                pair for pair in lacking(solution, run, solution.effects.get(place, ())) if _counts(solution, pair)
            ]
            if not lacks:
                continue
            reported.add(op.name)
            yield ctx.finding(
                f"{op.name} done twice is paid like once",
                Probe((reset(solution.task), *way, state(), score())),
                relation=claims.PAID,
                marks=("score", "state", "again"),
                data={"full": solution.full, "lacks": lacks, "done": ["again"]},
                minimise=0,
                part="V",
                expected=f"less than {solution.full:g}; {', '.join('/'.join(path) for path, _ in lacks[:4])} differs",
                observed=run.score,
                teaches="that repeating a step does no harm",
            )


def _counts(solution: Solution, pair: list[Any]) -> bool:
    """True if the differing value is an earlier amount that the solution moved."""
    before, after = solution.changed[tuple(pair[0])]
    return is_number(before) and is_number(after)
