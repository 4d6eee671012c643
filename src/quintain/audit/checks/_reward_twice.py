"""A solution of which one step is done once more: money moved twice, a thing ordered twice, is not what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quintain.audit.check import check
from quintain.audit.context import AuditContext
from quintain.audit.data import is_number
from quintain.audit.finding import Finding
from quintain.audit.probe import Probe, reset, score, state

from . import _reward_claims as claims
from ._reward_acts import names, words
from ._reward_runs import Solved, lacking, paid, runs, survives

SOLVED = 6
"""Tasks whose solutions are tried."""
_SAID = names("note log comment reply message notify send say tell email mail post remember memo check test run")
"""Words of tools that may well be used twice."""


@check("x.done_twice", "reward_hack", needs=("oracle", "state", "tasks"), value=79)
def done_twice(ctx: AuditContext) -> Iterator[Finding | None]:
    """A solution of which a step is done twice, so that twice as much is moved or made, is paid less."""
    told: set[str] = set()
    for one in paid(ctx, SOLVED):
        places = [place for place in one.demanded if one.ops[place].name not in told]
        ways = [(*one.ops[: place + 1], one.ops[place].marked("again"), *one.ops[place + 1 :]) for place in places]
        ctx.count_comparisons(len(ways))
        plain = [tuple(op.marked("") for op in way) for way in ways]
        for place, way, run in zip(places, ways, runs(ctx, one, plain), strict=True):
            op = one.ops[place]
            if set(run.errors) - set(one.errors) or not survives(one, run) or _SAID & set(words(op.name)):
                continue
            lacks = [pair for pair in lacking(one, run, one.effects.get(place, ())) if _counts(one, pair)]
            if not lacks:
                continue
            told.add(op.name)
            yield ctx.finding(
                f"{op.name} done twice is paid like once",
                Probe((reset(one.task), *way, state(), score())),
                relation=claims.PAID,
                marks=("score", "state", "again"),
                data={"full": one.full, "lacks": lacks, "done": ["again"]},
                minimise=0,
                part="V",
                expected=f"less than {one.full:g}; {', '.join('/'.join(path) for path, _ in lacks[:4])} differs",
                observed=run.score,
                teaches="that once more does no harm",
            )


def _counts(one: Solved, pair: list[Any]) -> bool:
    """Whether what is not as it should be is an amount that was there before and that the solution moved."""
    before, after = one.changed[tuple(pair[0])]
    return is_number(before) and is_number(after)
