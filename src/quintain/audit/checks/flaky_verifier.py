"""Class 13: checks that a verdict depends on the state and the actions only.

The same end of an episode is scored again: many times, in other processes, threads, zones, locales, on other days,
under load, after other episodes have been scored; and with the same acts written in another way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.clock_skew import shim
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import HOME, Op, Probe, ProcessContext, Record, reset
from quintain.audit.kernel.registry import relation

from ._flaky_ends import SCORE, TEACHES, WAVERS, by_process, counted, kinds, verdicts
from ._flaky_near import verdict_near_the_solution
from ._flaky_spelling import spelling_by_task
from ._flaky_threads import verdict_by_thread
from ._same_scripts import doing, elsewhere, half, reads, state_op
from ._same_splits import UNLIKE, split
from ._same_splits import wavers as wavering
from ._same_static import order_hints
from ._same_walks import kinds as task_kinds

__all__ = [
    "spelling_by_task",
    "verdict_by_thread",
    "verdict_near_the_solution",
    "verifier_determinism",
    "verifier_portability",
    "verifier_purity",
]

REPEATS = (29, 59)
"""Verdicts on one end: they find a flake of 10 %, or of 5 %, with a chance of 95 %."""
CHEAP_S = 1.5
"""Seconds that the greater number of verdicts on one end may take."""
PAUSE_S = 0.3
_LATER = (Op("wait", value=PAUSE_S, mark="pause"), Op("score", mark="later"))
KINDS = 6
"""Kinds of tasks, by the tools of their solutions, whose verdicts are compared."""
HALF_A_DAY = 200 + 43201 / 86400
"""Days ahead: another season, half of the day, and another second."""
CHANGED = "quintain.audit.checks.flaky_verifier:changed"


@check("semantic.verifier_determinism", "flaky_verifier", needs=("tasks",), value=52)
def verifier_determinism(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the same end is scored alike at every request."""
    ends = list(_ends(ctx, 3))
    timed = [ctx.play(*ops, Op("score", mark="score")) for _, _, ops in ends[:1]]
    cost = max((record.at("score").seconds for record in timed), default=0.0)
    times = REPEATS[1] if cost * REPEATS[1] < CHEAP_S else REPEATS[0]
    many = (Op("score", times=times, mark="many"),)
    records = ctx.play_all([Probe((*ops, *many, *_LATER)) for _, _, ops in ends])
    for (task, how, ops), record in zip(ends, records, strict=True):
        ctx.count_comparisons(times + 1)
        for title, asked, tries in _unsteady(record, how, many):
            finding = ctx.finding(
                title,
                Probe((*ops, *asked)),
                relation=WAVERS,
                marks=tuple(op.mark for op in asked if op.do == "score"),
                tries=tries,
                minimise=10,
                part="V",
                tasks=(task,),
                expected=f"{times + 1} equal verdicts",
                observed=counted(verdicts(record, ("many", "later"))),
                teaches=TEACHES,
            )
            if finding is not None:
                yield finding
                return


def _unsteady(record: Record, how: str, many: Sequence[Op]) -> Iterator[tuple[str, tuple[Op, ...], int]]:
    """Yields (finding text, ops that show it, number of plays) for verdicts that are not all equal."""
    values = [repr(value) for value in verdicts(record, ("many", "later"))]
    changes = sum(first != second for first, second in itertools.pairwise(values))
    waits = f"the verdict on a {how} episode is another one {PAUSE_S} s later"
    if changes == 1:  # Time does that, too, and on a busy machine it passes while the score is asked for.
        yield waits, (Op("score", mark="many"), *_LATER), 1
    if len(kinds(record, ("many",))) > 1:
        yield f"one and the same {how} episode is not always scored alike", tuple(many), 3
    elif changes:
        yield waits, (*many, *_LATER), 1


@check("semantic.verifier_portability", "flaky_verifier", needs=("tasks",), value=36)
def verifier_portability(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the same end is scored alike in every process, thread, zone and locale, on every day, under load."""
    ends = list(_ends(ctx, 3))
    scripts = [(*(op.marked(f"step {place}") for place, op in enumerate(ops)), SCORE) for _, _, ops in ends]
    ops = tuple(
        op.moved(f"session {place}").marked(f"{place}" if op is SCORE else "")
        for place, script in enumerate(scripts)
        for op in script
    )
    contexts: tuple[ProcessContext, ...] = (HOME, *elsewhere(), ProcessContext(loaded=True))
    if shim() is not None:
        contexts += (ProcessContext(days=HALF_A_DAY),)
    if any("set" in hint.title or "hash" in hint.title for hint in order_hints(ctx)):
        contexts += tuple(ProcessContext(hash_seed=seed) for seed in (3, 4, 5, 6, 7))
    usual, *records = ctx.play_all([Probe(ops, context) for context in contexts])
    found: set[str] = set()
    for context, record in zip(contexts[1:], records, strict=True):
        for place, (task, how, _) in enumerate(ends):
            ctx.count_comparisons()
            apart = split(usual, record, [f"{place}"], volatile=ctx.volatile)
            if apart is not None and how not in found and not wavering(ctx, scripts[place], SCORE.mark):
                finding = by_process(ctx, task, scripts[place], apart=apart, context=context, how=how)
                found |= {how} if finding is not None else set()
                yield finding


@check("x.verifier_purity", "flaky_verifier", needs=("tasks",), value=86)
def verifier_purity(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that scoring an episode does not change its world."""
    look = state_op(ctx)
    ends = list(_ends(ctx, 3))
    if not look:
        yield from _read_after(ctx, ends)
        return
    ops = (Op(look, mark="first"), Op(look, mark="before"), SCORE, Op("score"), Op(look, mark="after"))
    for (task, how, acts), record in zip(ends, ctx.play_all([Probe((*acts, *ops)) for *_, acts in ends]), strict=True):
        ctx.count_comparisons()
        if changed([record], Evidence(CHANGED, ("first", "before", "after"), None, ctx.volatile)):
            yield ctx.finding(
                f"to ask for the score of a {how} episode changes its world",
                Probe((*acts, *ops)),
                relation=CHANGED,
                marks=("first", "before", "after"),
                part="V",
                tasks=(task,),
                expected=record.at("before").value,
                observed=record.at("after").value,
                teaches="that the number of score requests matters",
            )
            return


def _read_after(ctx: AuditContext, ends: Sequence[tuple[str, str, tuple[Op, ...]]]) -> Iterator[Finding | None]:
    """Yields findings for readers of an invisible world that change once a score has been requested."""
    for task, how, acts in ends:
        seen = reads(ctx, task, 4)
        if not seen:
            continue
        ctx.count_comparisons()
        first = [op.marked(f"step {place}") for place, op in enumerate(acts)]
        last = [op.marked(f"step after {place}") for place, op in enumerate(seen)]
        judged, plain = Probe((*first, Op("score", times=3), *last)), Probe((*first, *last))
        left, right = ctx.play_all((judged, plain))
        apart = split(right, left, [op.mark for op in last], volatile=ctx.volatile)
        if apart is not None:
            yield ctx.finding(
                f"to ask for the score of a {how} episode changes what tools tell",
                *(judged, plain, plain),
                relation=UNLIKE,
                marks=(apart.op.mark,),
                minimise=0,
                part="V",
                tasks=(task,),
                expected=apart.expected,
                observed=apart.observed,
                teaches="that the number of score requests matters",
            )
            return


# --- relations ---


@relation
def changed(records: Sequence[Record], evidence: Evidence) -> bool:
    """The world stood still from "first" to "before", and is another one "after"."""
    first, before, after = (Record((Op("state", mark="at"),), (records[0].at(mark),)) for mark in evidence.marks)
    return not split(first, before, ["at"], volatile=evidence.volatile) and bool(
        split(before, after, ["at"], volatile=evidence.volatile)
    )


# --- what is common ---


def _ends(ctx: AuditContext, count: int) -> Iterator[tuple[str, str, tuple[Op, ...]]]:
    """Ends of episodes: (task, "solved", "half-solved" or "untouched", ops)."""
    solved = "solved" if "oracle" in ctx.offers else "played"
    there = False
    other_kinds = task_kinds(ctx, KINDS) if count > 1 and "oracle" in ctx.offers else ()
    for task in dict.fromkeys((*ctx.sample_tasks(count), *other_kinds)):
        acts = doing(ctx, task)
        calls = tuple(op for op in acts if op.do != "answer")
        for how, some in ((solved, acts), (f"half-{solved}", half(calls)), ("untouched", ())):
            if some or how == "untouched":
                there = True
                yield task, how, (reset(task), *some)
    if not there:
        raise NotChecked("the subject has no task")
