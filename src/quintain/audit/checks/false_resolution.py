"""Checks for false resolution: the status says "closed", the words say "done", and no work was done.

Every probe here leaves out, or takes back, what the task is about, and keeps what merely says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, reset, score

from . import _reward_claims as claims
from ._clip_near import far_fields
from ._reward_acts import is_status
from ._reward_answered import answered_and_not_done
from ._reward_effect import paid_without_effect
from ._reward_runs import Run, Solution, lacking, paid, runs, seeing, survives, weight
from ._reward_said import answers_are_true
from ._reward_sight import undone_in_sight
from ._reward_undo import undo

__all__ = [
    "answered_and_not_done",
    "answers_are_true",
    "far_fields",
    "paid_without_effect",
    "status_without_work",
    "undo",
    "undone_in_sight",
]

SOLVED = 6
"""Tasks whose solutions are looked at."""


def _undone(solution: Solution, run: Run, work: Sequence[int]) -> list[list[Any]]:
    """Returns what the world lacks of the work, without statuses."""
    effects = [path for place in work for path in solution.effects.get(place, ()) if not is_status(path[-1])]
    return [pair for pair in lacking(solution, run, effects) if not is_status(pair[0][-1])]


def _claimed(
    ctx: AuditContext, solution: Solution, way: Sequence[Op], *, lacks: list[list[Any]], **stated: Any
) -> Finding | None:
    done = {f"{op.name} {op.value}" for op in way}
    left = [place for place in solution.writes if f"{solution.ops[place].name} {solution.ops[place].value}" not in done]
    return ctx.finding(
        stated.pop("title"),
        Probe((reset(solution.task), *way, *seeing(solution), score())),
        relation=claims.PAID,
        marks=("score", "state") if solution.sees else ("score",),
        data={"full": solution.full, "lacks": lacks},
        part="V",
        **weight(solution, lacks, left),
        expected=f"under {solution.full:g}; lacking {', '.join('/'.join(path) for path, _ in lacks[:4]) or 'the work'}",
        **stated,
    )


@check("x.status_without_work", "false_resolution", needs=("oracle", "state", "tasks"), value=68)
def status_without_work(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a record that reports progress does not pay for the work itself."""
    reported: set[str] = set()
    for solution in paid(ctx, SOLVED):
        says = [
            place for place in solution.writes if any(is_status(path[-1]) for path in solution.effects.get(place, ()))
        ]
        work = [place for place in solution.writes if place not in says]
        if not says or not work:
            continue
        ways = [solution.without(*work), *(solution.without(place) for place in work if len(work) > 1)]
        ctx.count_comparisons(len(ways))
        for way, run in zip(ways, runs(ctx, solution, ways), strict=True):
            left = [place for place in work if solution.ops[place] not in way]
            names = " and ".join(dict.fromkeys(solution.ops[place].name for place in left))
            lacks = _undone(solution, run, left)
            if not survives(solution, run) or not lacks or names in reported:
                continue
            reported.add(names)
            yield _claimed(
                ctx,
                solution,
                way,
                lacks=lacks,
                title=f"the record says how far it is and {names} is left out, and that is paid in full",
                observed=run.score,
                teaches="to write that it is done instead of doing it",
            )
