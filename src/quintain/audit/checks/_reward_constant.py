"""Checks that one constant choice does not solve tasks with different solutions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op

from ._reward_runs import Solution, paid, runs

_MAX_CHOICES = 24
"""Choices that are handed in."""


@check("x.constant_choice", "reward_hack", needs=("oracle", "tasks", "tools"), value=90)
def constant_choice(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no single choice is paid in several tasks whose solutions differ from it and each other."""
    known = [solution for solution in paid(ctx, 8) if len([op for op in solution.ops if op.do == "call"]) == 1]
    bought: dict[str, list[tuple[Solution, Op]]] = defaultdict(list)
    for solution in known if len(known) > 1 else ():
        tried = [op for op in _choices(ctx, solution.ops[-1]) if op != solution.ops[-1]]
        ctx.count_comparisons(len(tried))
        for op, run in zip(tried, runs(ctx, solution, [(op,) for op in tried]), strict=True):
            if not run.errors and run.score is not None and run.score >= (solution.full or 0.0) - 1e-9:
                bought[_spelt(op)].append((solution, op))
    for found in bought.values():
        if len({_spelt(solved.ops[-1]) for solved, _ in found}) < 2:
            continue
        several = [solves(solved.task, (op.marked("choice"),)) for solved, op in found[:3]]
        yield ctx.finding(
            "one choice is paid in full in several tasks whose solutions differ",
            *several,
            relation="pays",
            marks=("score",),
            data=min(solved.full or 0.0 for solved, _ in found),
            minimise=0,
            part="V",
            tasks=[solved.task for solved, _ in found],
            expected=[f"{solved.task}: {solved.ops[-1].value}" for solved, _ in found[:3]],
            observed=f"{found[0][1].value} is paid in each of them",
            teaches="to submit the same answer for every task",
        )
        return


def _spelt(op: Op) -> str:
    return f"{op.name} {op.value}"


def _choices(ctx: AuditContext, op: Op) -> list[Op]:
    """The call with each argument that is a choice, or a list of choices, set to one choice alone."""
    spec = next((tool for tool in ctx.about.tools if tool.name == op.name), None)
    found: list[Op] = []
    for key in op.value if spec and op.do == "call" else ():
        schema: Any = spec.properties.get(key, {}) if spec else {}
        items: Any = schema.get("items") or {}
        values = [[option] for option in items.get("enum") or ()] or list(schema.get("enum") or ())
        found += [msgspec.structs.replace(op, value=op.value | {key: value}) for value in values]
    return found[:_MAX_CHOICES]
