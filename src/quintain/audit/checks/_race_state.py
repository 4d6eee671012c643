"""Checks that the state can be read: checks that compare states see nothing where reading it fails."""

from __future__ import annotations

from collections.abc import Iterator

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, reset, state
from quintain.audit.kernel.relations import breakage, way_of

MAX_TASKS, MAX_FINDINGS = 20, 3


@check("runtime.state_contract", "races", needs=("state", "tasks"), value=24)
def state_contract(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that state() works at the start, after a call of each tool and after each solution."""
    scripts: list[tuple[str, tuple[Op, ...]]] = [(task, ()) for task in ctx.sample_tasks(MAX_TASKS)]
    scripts += [
        (known.task, (*known.before, known.op)) for known in {k.op.name: k for k in ctx.discovery.calls}.values()
    ]
    scripts += [(task, ctx.oracle(task) or ()) for task in ctx.sample_tasks(MAX_TASKS)]
    probes = [Probe((reset(task), *ops, state(mark="look"))) for task, ops in scripts]
    reported: set[str] = set()
    for (task, ops), probe, record in zip(scripts, probes, ctx.play_all(probes), strict=True):
        seen = record.at("look")
        ctx.count_comparisons()
        if not breakage(seen) or record.died or seen.where in reported or len(reported) >= MAX_FINDINGS:
            continue
        reported.add(seen.where)
        yield ctx.finding(
            f"state() {way_of(seen)} after {ops[-1].name or ops[-1].do if ops else 'reset'}", probe, marks=("look",),
            relation="breaks", data=breakage(seen), part="S", expected="the state", observed=seen.raised,
            where=seen.where, tasks=(task,),
            teaches="nothing: a verdict on this state, and a snapshot of it, break as well",
        )  # fmt: skip
