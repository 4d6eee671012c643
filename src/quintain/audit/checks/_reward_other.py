"""Checks a solution with one argument changed that the prompt decides: it must be paid less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, reset, score, state

from . import _reward_claims as claims
from ._reward_changed import OtherValue, changed_op, changes
from ._reward_runs import Run, Solution, lacking, paid, runs, survives

SOLVED = 6
"""Tasks whose solutions are changed."""
_ENOUGH = 2
"""Tasks in which one kind of change of one argument is tried."""


@check("x.changed_argument", "reward_hack", needs=("oracle", "state", "tasks", "tools"), value=58)
def changed_argument(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution with one argument other than the prompt says is paid less."""
    tried: Counter[tuple[str, str, str]] = Counter()
    reported: set[tuple[str, str]] = set()
    for solution in paid(ctx, SOLVED):
        ways: list[tuple[int, OtherValue, tuple[Op, ...]]] = []
        for place in solution.writes:
            found = list(changes(ctx, solution.ops[place], solution.prompt))
            fresh = [change for change in found if tried[solution.ops[place].name, change.key, change.kind] < _ENOUGH]
            tried.update({(solution.ops[place].name, change.key, change.kind) for change in fresh})
            ways += [
                (place, change, _with(solution, place, changed_op(solution.ops[place], change))) for change in fresh
            ]
        ctx.count_comparisons(len(ways))
        for (place, change, way), run in zip(ways, runs(ctx, solution, [way for *_, way in ways]), strict=True):
            name = solution.ops[place].name
            if (name, change.key) in reported or set(run.errors) - set(solution.errors) or not survives(solution, run):
                continue
            finding = _paid_all_the_same(ctx, solution, place, change=change, shown=(way, run))
            if finding is not None:
                reported.add((name, change.key))
                yield finding


def _with(solution: Solution, place: int, op: Op) -> tuple[Op, ...]:
    return (*solution.ops[:place], op, *solution.ops[place + 1 :])


def _paid_all_the_same(
    ctx: AuditContext, solution: Solution, place: int, *, change: OtherValue, shown: tuple[tuple[Op, ...], Run]
) -> Finding | None:
    way, run = shown
    lacks = lacking(solution, run, solution.effects.get(place, ()))
    if not lacks:
        return None
    name, key = solution.ops[place].name, change.key.replace("|", " and ")
    own: Any = {part: solution.ops[place].value[part] for part in change.key.split("|")}
    marked = [op.marked("wrong") if where == place else op for where, op in enumerate(way)]
    return ctx.finding(
        f"{name} is paid with {key} {change.kind}, not as the task says"
        if change.kind in ("turned round", "left out")
        else f"{name} is paid with another {key} than the one that the task names",
        Probe((reset(solution.task), *marked, state(), score())),
        relation=claims.PAID,
        marks=("score", "state", "wrong"),
        data={"full": solution.full, "lacks": lacks, "done": ["wrong"]},
        minimise=20,
        part="V",
        expected=f"{own}, as the prompt says",
        observed={"arguments": way[place].value, "score": run.score},
        teaches="that arguments given by the task may be wrong",
    )
