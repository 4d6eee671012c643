"""Checks that one session gives the same results when its calls run in several threads, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, reset, same, together
from quintain.audit.kernel.registry import relation

from ._same_scripts import doing

HERE = f"{__name__}:"


@relation
def strays(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if an op in its own thread gives another result than in one shared thread; both worked."""
    moved, record, again = records
    mark = evidence.marks[0]
    seen = _lane(moved, mark)
    if seen is None or any(each.is_error for each in (seen, _done(record, mark), _done(again, mark))):
        return False
    return same(_done(record, mark), _done(again, mark), evidence.volatile) and not same(
        seen, _done(record, mark), evidence.volatile
    )


def _lane(record: Record, mark: str) -> OpResult | None:
    lane = record.lane(mark, 0)
    return lane[0] if lane else None


def _done(record: Record, mark: str) -> OpResult:
    return record.at(mark)


@check("x.verdict_by_thread", "flaky_verifier", needs=("tasks",), value=84)
def verdict_by_thread(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an episode with calls from several threads in turn runs and scores as in one thread."""
    for task in ctx.sample_tasks(2):
        ops = [*doing(ctx, task), Op("score")]
        marks = [f"step {place}" for place in range(len(ops))]
        moved = Probe((reset(task), *(together((op,), mark=mark) for op, mark in zip(ops, marks, strict=True))))
        plain = Probe((reset(task), *(op.marked(mark) for op, mark in zip(ops, marks, strict=True))))
        records = ctx.play_all([moved, plain, plain])
        ctx.count_comparisons(len(ops))
        for op, mark in zip(ops, marks, strict=True):
            evidence = Evidence(f"{HERE}strays", (mark,), None, ctx.volatile)
            if not strays(records, evidence):
                continue
            is_score = op.do == "score"
            seen = _lane(records[0], mark)
            yield ctx.finding(
                "the verdict is another one in another thread of the process"
                if is_score
                else f"{op.name or op.do} gives something else in another thread of the process",
                *(moved, plain, plain),
                relation=evidence.relation,
                marks=(mark,),
                minimise=0,
                part="V" if is_score else "S",
                class_="flaky_verifier" if is_score else "races",
                tasks=(task,),
                expected=records[1].at(mark).value,
                observed=seen.value if seen else None,
                teaches="that the reward depends on the calling thread",
            )
            return
