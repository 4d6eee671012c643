"""Class 13: checks that a verdict depends on the state and the actions only.

The same end of an episode is scored again: many times, in other processes, threads, zones, locales, on other days,
under load, after other episodes have been scored; and with the same acts written in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quintain.audit.kernel.check import check
from quintain.audit.kernel.clock_skew import shim
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, ProcessContext, Record, reset, same, together
from quintain.audit.kernel.registry import relation

from ._flaky_ends import LATER, SCORE, TIMES, Ending, by_process, contexts, unsteady
from ._flaky_near import verdict_near_the_solution
from ._flaky_spelling import spelling_by_task
from ._same_scripts import doing, half, marked, state_op
from ._same_splits import split
from ._same_walks import kinds

__all__ = [
    "spelling_by_task", "verdict_by_thread", "verdict_near_the_solution", "verifier_determinism",
    "verifier_portability", "verifier_purity",
]  # fmt: skip

CHEAP_S = 1.5
"""Seconds that the verdicts on one end may take; else half as many are asked for."""
WORDS = 12
"""Tasks without tools whose verdicts are compared across processes."""
KINDS = 6
"""Kinds of tasks, by the tools of their solutions, whose verdicts are compared."""
HALF_A_DAY = 200 + 43201 / 86400
"""Days ahead: another season, half of the day, and another second."""


@check("semantic.verifier_determinism", "flaky_verifier", needs=("tasks",), value=33)
def verifier_determinism(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the same end is scored alike at every request."""
    ends = _ends(ctx, 3)
    cost = ctx.play(*ends[0].ops, SCORE).at(SCORE.mark).seconds
    yield from unsteady(ctx, ends, TIMES if cost * TIMES < CHEAP_S else TIMES // 2, later=LATER)


@check("semantic.verifier_portability", "flaky_verifier", needs=("tasks",), value=9)
def verifier_portability(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the same end is scored alike in every process, thread, zone and locale, on every day, under load."""
    days = [ProcessContext(days=HALF_A_DAY)] if shim() is not None else []
    # Verdicts on words alone cost little, and an order of chance shows only where there are several things to order.
    yield from by_process(
        ctx, _ends(ctx, 3 if ctx.about.tools else WORDS), (*contexts(ctx), ProcessContext(loaded=True), *days)
    )


@check("x.verifier_purity", "flaky_verifier", needs=("tasks",), value=87)
def verifier_purity(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that scoring an episode does not change its world."""
    look, ends, marks = state_op(ctx), _ends(ctx, 3), ("first", "before", "after")
    if not look:
        raise ctx.not_checked("the world is not to be seen")
    first, before, after = (Op(look, mark=mark) for mark in marks)
    probes = [Probe((*end.ops, first, before, Op("score", times=2), after)) for end in ends]
    for end, probe, record in zip(ends, probes, ctx.play_all(probes), strict=True):
        ctx.count_comparisons()
        if changed([record], Evidence("", marks, None, ctx.volatile)):
            yield ctx.finding(
                f"to ask for the score of a {end.how} episode changes its world", probe, relation=f"{__name__}:changed",
                marks=marks, part="V", tasks=(end.task,), expected=record.at("before").value,
                observed=record.at("after").value, teaches="that the number of score requests matters",
            )  # fmt: skip
            return


@check("x.verdict_by_thread", "flaky_verifier", needs=("tasks",), value=81)
def verdict_by_thread(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an episode with calls from several threads in turn runs and scores as in one thread."""
    for task in ctx.sample_tasks(2):
        ops = marked((*doing(ctx, task), Op("score")))
        probes = [Probe((reset(task), *(together((op.marked(""),), mark=op.mark) for op in ops)))]
        probes += [Probe((reset(task), *ops))] * 2
        records = ctx.play_all(probes)
        ctx.count_comparisons(len(ops))
        for op in ops:
            if not strays(records, Evidence("", (op.mark,), None, ctx.volatile)):
                continue
            is_score = op.do == "score"
            what = "the verdict is another one" if is_score else f"{op.name or op.do} gives something else"
            yield ctx.finding(
                f"{what} in another thread of the process", *probes, relation=f"{__name__}:strays", marks=(op.mark,),
                minimise=0, part="V" if is_score else "S", class_="flaky_verifier" if is_score else "races",
                tasks=(task,), expected=records[1].at(op.mark).value, observed=_in_lane(records[0], op.mark).value,
                teaches="that the reward depends on the calling thread",
            )  # fmt: skip
            return


# --- relations ---


@relation
def changed(records: Sequence[Record], evidence: Evidence) -> bool:
    """The world stood still from "first" to "before", and is another one "after"."""
    first, before, after = (Record((Op("state", mark="at"),), (records[0].at(mark),)) for mark in evidence.marks)
    return not split(first, before, ["at"], volatile=evidence.volatile) and bool(
        split(before, after, ["at"], volatile=evidence.volatile)
    )


@relation
def strays(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if an op in its own thread gives another result than in one shared thread; both worked."""
    (mark,) = evidence.marks
    moved, plain, again = _in_lane(records[0], mark), *(record.at(mark) for record in records[1:])
    if any(seen.is_error for seen in (moved, plain, again)):
        return False
    return same(plain, again, evidence.volatile) and not same(moved, plain, evidence.volatile)


def _in_lane(record: Record, mark: str) -> OpResult:
    return next(iter(record.lane(mark, 0)), OpResult(how="hung"))


def _ends(ctx: AuditContext, count: int) -> list[Ending]:
    """Solved, half-solved and untouched episodes of some tasks, and of each kind of task."""
    solved = "solved" if "oracle" in ctx.offers else "played"
    found: list[Ending] = []
    for task in dict.fromkeys((*ctx.sample_tasks(count), *(kinds(ctx, KINDS) if "oracle" in ctx.offers else ()))):
        acts = doing(ctx, task)
        calls = half([op for op in acts if op.do != "answer"])
        hows = ((solved, acts), (f"half-{solved}", calls), ("untouched", ()))
        found += [Ending(task, how, (reset(task), *some)) for how, some in hows if some or how == "untouched"]
    return found
