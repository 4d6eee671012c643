"""Checks refused work: a verifier that only counts calls pays for it as for successful work."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, reset, score

from . import _reward_claims as claims
from ._reward_acts import words
from ._reward_runs import lacking, paid, runs, seeing, survives, weight

SOLVED = 6
"""Tasks whose solutions are tried."""
UNKNOWN_ID = 987_654_321
"""A number that names nothing."""


@check("x.refused_work", "reward_hack", needs=("oracle", "tasks", "tools"), value=67)
def refused_work(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution with a refused call is not paid as if it had worked."""
    reported: set[str] = set()
    for solution in paid(ctx, SOLVED):
        tried = [(place, wrong) for place in solution.writes if (wrong := misled(solution.ops[place])) is not None]
        ways = [(*solution.ops[:place], wrong, *solution.ops[place + 1 :]) for place, wrong in tried]
        ctx.count_comparisons(len(ways))
        for (place, wrong), way, run in zip(tried, ways, runs(ctx, solution, ways), strict=True):
            lacks = lacking(solution, run, solution.effects.get(place, ()))
            if wrong.name in reported or not survives(solution, run) or (solution.sees and not lacks):
                continue
            reported.add(wrong.name)
            yield ctx.finding(
                f"{wrong.name} of a thing that does not exist is paid like the real one",
                Probe((reset(solution.task), *way, *seeing(solution), score())),
                relation=claims.PAID,
                marks=("score", "state") if solution.sees else ("score",),
                data={"full": solution.full, "lacks": lacks},
                part="V",
                **weight(solution, lacks, (place,)),
                expected=f"less than {solution.full:g}; it lacks {', '.join('/'.join(path) for path, _ in lacks[:4])}",
                observed=run.score,
                teaches="to make the right call, whether it works or not",
            )


def misled(op: Op) -> Op | None:
    """The call on something that is not there; None when it names nothing."""
    ids = [key for key in op.value if {"id", "ids", "key", "number", "code"} & set(words(key))]
    wrong = {key: UNKNOWN_ID if isinstance(op.value[key], int) else f"X-{UNKNOWN_ID}" for key in ids[:1]}
    return msgspec.structs.replace(op, value=op.value | wrong) if wrong else None
