"""Checks refused work: a verifier that only counts calls pays for it as for successful work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
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
            free = [one for key, one in solution.ops[place].value.items() if wrong.value[key] != one]
            lacking_now = lacking(solution, run, solution.effects.get(place, ()))
            # A row that was made all the same, under another name, shows that the work was done: keys are free.
            there = {*run.made, *run.touched}
            lacks = [[path, item] for path, item in lacking_now if tuple(path) not in there or not _names(item, free)]
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


def _names(item: Any, names: Sequence[Any]) -> bool:
    return item in names or (is_dict(item) and any(value in names for value in item.values()))


def misled(op: Op) -> Op | None:
    """The call on something that is not there; None when it names nothing."""
    ids = [key for key in op.value if {"id", "ids", "key", "number", "code"} & set(words(key))]
    wrong = {key: UNKNOWN_ID if isinstance(op.value[key], int) else f"X-{UNKNOWN_ID}" for key in ids[:1]}
    return msgspec.structs.replace(op, value=op.value | wrong) if wrong else None
