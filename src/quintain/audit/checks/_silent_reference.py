"""Checks unreadable references: a fallback for the comparison must not pay any answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Record, answer, number
from quintain.audit.kernel.registry import relation

from ._reward_runs import runs_of
from ._reward_tasks import asked

_NONSENSE = ("", "zq vx", "-17.25", "\\boxed{qqq}", "the moon, the moon")
"""Cannot all be right."""
_TASKS = 24


@check("x.unread_reference", "silent_default", needs=("answer", "tasks"), value=92)
def unread_reference(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no task pays all nonsense alike where other tasks pay nothing for it."""
    known = asked(ctx, 8)
    if not known:
        raise ctx.not_checked("no task is solved by words alone")
    ways: list[tuple[Op, ...]] = [(answer(text),) for text in _NONSENSE]
    paid: dict[str, list[float | None]] = {}
    for task in ctx.sample_tasks(_TASKS if ctx.about.kind == "scorer" else _TASKS // 2):
        ctx.count_comparisons()
        paid[task] = [run.score for run in runs_of(ctx, task, ways)]
    top = max(question.full for question in known)
    anything = [
        task for task, scores in paid.items() if all(score is not None and score >= top - 1e-9 for score in scores)
    ]
    strict = [
        task for task, scores in paid.items() if all(score is not None and score < top - 1e-9 for score in scores)
    ]
    if not anything or not strict:
        return
    yield ctx.finding(
        "some tasks pay in full for whatever is said, nonsense and nothing alike",
        *(solves(anything[0], way) for way in ways),
        solves(strict[0], ways[1]),
        relation=f"{__name__}:pays_whatever",
        marks=("score",),
        data=top,
        minimise=0,
        part="V",
        tasks=anything,
        expected=f"less than {top:g} for nonsense, as in {len(strict)} other tasks; or no verdict",
        observed=paid[anything[0]],
        teaches="that some questions need no right answer",
    )


@relation
def pays_whatever(records: Sequence[Record], evidence: Evidence) -> bool:
    """All probes but the last are paid `data`, and the last, which says one of their answers elsewhere, is not."""
    *many, other_score = [number(record.at("score")) for record in records]
    top = float(evidence.data)
    return (
        all(amount is not None and amount >= top - 1e-9 for amount in many)
        and other_score is not None
        and other_score < top - 1e-9
    )
