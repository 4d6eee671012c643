"""Checks that an agent that draws random calls from the schemas does not solve tasks."""

from __future__ import annotations

from collections.abc import Iterator

from quintain.audit.facts.generate import Values, valid
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, call

from ._reward_acts import only_reads
from ._reward_facts import facts
from ._reward_runs import runs_of, solve

_TRIES = 6
"""Episodes on each task."""
_CALLS = 6
"""Calls in an episode."""
_SHARE = 0.3
"""Share of solved episodes from which random success is not an accident."""


@check("x.aimless", "unsolvable", needs=("tasks", "tools"), value=83, severity="warning")
def aimless(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that random calls do not solve tasks."""
    tasks = [task for task in ctx.sample_tasks(4) if _is_known(ctx, task)]
    if not tasks:
        raise ctx.not_checked("no task is known to be paid more for its solution than for nothing")
    solved: list[tuple[str, tuple[Op, ...]]] = []
    for task in tasks:
        values = _seen(ctx, task)
        ways = [tuple(_draw(ctx, values) for _ in range(_CALLS)) for _ in range(_TRIES)]
        full = facts(ctx)[task].full or 1.0
        ctx.count_comparisons(len(ways))
        found = runs_of(ctx, task, ways)
        solved += [
            (task, way)
            for way, run in zip(ways, found, strict=True)
            if run.score is not None and run.score >= full - 1e-9
        ]
    if len(solved) < _SHARE * _TRIES * len(tasks):
        return
    task, way = solved[0]
    yield ctx.finding(
        "calls that are drawn at random are paid in full",
        solves(task, way),
        relation="pays",
        marks=("score",),
        data=facts(ctx)[task].full or 1.0,
        part="V",
        at_most="likely",
        tasks=list(dict.fromkeys(task for task, _ in solved)),
        expected=f"that fewer than {_SHARE:.0%} of {_TRIES * len(tasks)} aimless episodes are paid in full",
        observed=f"{len(solved)} are",
        teaches="nothing beyond random behavior",
    )


def _is_known(ctx: AuditContext, task: str) -> bool:
    fact = facts(ctx)[task]
    return bool(fact.full) and fact.floor is not None and fact.floor < (fact.full or 0.0) - 1e-9


def _seen(ctx: AuditContext, task: str) -> Values:
    """Returns the values that an agent has seen of a task: its prompt, and results of its solution's reads."""
    values = Values()
    for solution in solve(ctx, [task]):
        values.take(solution.first, "prompt")
        for op, seen in zip(solution.ops, solution.said, strict=True):
            if only_reads(ctx, op):
                values.take(seen.value, op.name)
    return values


def _draw(ctx: AuditContext, values: Values) -> Op:
    tool = ctx.rng.choice(ctx.about.tools)
    return call(tool.name, valid(tool, values, ctx.rng))
