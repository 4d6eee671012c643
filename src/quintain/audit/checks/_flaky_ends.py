"""Verdicts on the end of an episode: counted, compared, and traced to the cause of a difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, ProcessContext, Record
from quintain.audit.kernel.registry import relation

from ._same_scripts import misses_locale, parts
from ._same_splits import UNLIKE, Split, pair, through

TEACHES = "noise: the same action is paid at one time and not at another"
WAVERS = f"{__name__}:wavers"
SCORE = Op("score", mark="step score")


@relation
def wavers(records: Sequence[Record], evidence: Evidence) -> bool:
    """The verdicts on one end are not all equal."""
    return len(kinds(records[0], evidence.marks)) > 1


def verdicts(record: Record, marks: Sequence[str]) -> list[Any]:
    """Returns the verdicts at the end, one per request; an exception counts as a verdict."""
    found: list[Any] = []
    for op in record.ops:
        seen = record.at(op.mark) if op.mark in marks else None
        if seen is not None and seen.how not in ("hung", "absent"):
            raised = seen.raised.partition(":")[0]
            found += [raised] if not seen.fine else list(seen.value) if op.times > 1 else [seen.value]
    return found


def kinds(record: Record, marks: Sequence[str]) -> set[str]:
    """The different ones of these verdicts."""
    return {repr(value) for value in verdicts(record, marks)}


def counted(values: Sequence[Any]) -> str:
    """Returns a phrase with the number of times that each verdict was reached."""
    kinds = [repr(value) for value in values]
    return "; ".join(f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds))


def by_process(
    ctx: AuditContext, task: str, ops: Sequence[Op], *, apart: Split, context: ProcessContext, how: str
) -> Finding | None:
    """Returns a finding for a score that depends on the process, with the one difference that causes it."""
    if misses_locale(context, apart.expected, apart.observed):
        return None
    for words, part in (*parts(context), ("the process", context)):
        probes = pair(ctx, through(ops, SCORE.mark), SCORE.mark, context=part)
        if probes is not None:
            return unlike(ctx, task, probes, apart=apart, title=f"the verdict on a {how} episode depends on {words}")
    return None


def unlike(ctx: AuditContext, task: str, probes: Sequence[Probe], *, apart: Split, title: str) -> Finding | None:
    """Returns a finding for a final score of the first probe that differs from the other probes."""
    return ctx.finding(
        title,
        *probes,
        relation=UNLIKE,
        marks=(SCORE.mark,),
        minimise=0,
        part="V",
        tasks=(task,),
        expected=apart.expected,
        observed=apart.observed,
        teaches=TEACHES,
    )
