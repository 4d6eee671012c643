"""Class 1: checks that every read shows what has been written, at once and permanently.

The oracle is differential: a read after a write must not depend on an earlier read, on the order of reads, on other
sessions, or on a wait. So it works without `state()`; where that is offered, a different world is
separated from a wrong answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, reset

from . import _same_cache as cache
from ._same_cache import TEACHES, scored
from ._same_reads import HERE, Pair, late
from ._same_scripts import alone, bare, broad, doing, marked, other_tasks, reads, state_op
from ._same_splits import UNLIKE, apart, pair, split
from ._same_variants import variants
from ._same_walks import moved, shorter, shown, walked, walks

__all__ = ["cache_keys", "cache_sessions", "read_walks", "read_your_writes", "score_is_now", "visible_at_once"]
WRITES, READS = 20, 16
"""Writes that are looked at, and reads around each."""
MAX_FINDINGS = 2
"""Findings of one kind: more of them say no more."""
TRIES = 8
"""Candidates that are held against a play of their own."""
HELD_S = 6.0
"""Seconds that a play with clocks that stand still may take."""
SLOW_S = 0.2
"""A score that takes longer is asked for in one way only."""
WALKS = 3
"""Tasks, each of another kind, in which many writes are made."""


@check("x.read_your_writes", "stale_cache", needs=("tools", "tasks"), value=67)
def read_your_writes(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that reads after a write give the same with and without reads before it."""
    pairs = cache.pairs(ctx, WRITES, READS)
    world = (Op(state_op(ctx), mark="step world"),) if state_op(ctx) else ()
    found: set[tuple[str, str]] = set()
    probes = [(Probe(cache.warm(case, world)), Probe(cache.control(case, world))) for case in pairs]
    records = ctx.play_all([probe for both in probes for probe in both])
    for number, case in enumerate(pairs):
        warm, control = records[2 * number : 2 * number + 2]
        for place, op in enumerate(case.reads):
            ctx.count_comparisons()
            key = (case.write.name, op.name)
            if (
                key not in found
                and len(found) < MAX_FINDINGS
                and apart(warm.at(f"new {place}"), control.at(f"new {place}"), ctx.volatile)
            ):
                finding = cache.is_stale(ctx, case, op) or cache.is_moved(ctx, case, place, world=world)
                found |= {key} if finding is not None else set()
                yield finding


@check("x.read_walks", "stale_cache", needs=("tools", "tasks"), value=29)
def read_walks(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that reads after many writes of all tools equal those of a session without earlier reads."""
    tried: set[tuple[str, str]] = set()
    reported = 0
    for long in walks(ctx, WALKS):
        asked = long
        found = walked(ctx, asked)
        if found is not None and found.ended:
            asked = shorter(asked)
            found = walked(ctx, asked)
        if found is None:
            continue
        ctx.count_comparisons(found.looked)
        for prove, candidates in ((shown, found.stale), (moved, found.older)):
            for old in candidates:
                write = asked.steps[old.step - 1]
                key = (write.name or write.do, old.read.name)
                if key in tried or reported >= MAX_FINDINGS or len(tried) >= TRIES:
                    continue
                tried.add(key)
                finding = prove(ctx, asked, found, old=old)
                reported += finding is not None
                yield finding


@check("x.visible_at_once", "stale_cache", needs=("tools", "tasks"), value=26)
def visible_at_once(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a write is visible at once: a wait changes no answer."""
    pairs = cache.pairs(ctx, 6, 3)
    cases = [(case, op, is_warm) for case in pairs for op in case.reads for is_warm in (False, True)]
    sessions = [
        cache.timed(case, op, is_warm=is_warm, number=number) for number, (case, op, is_warm) in enumerate(cases)
    ]
    for held in (False, True) if ctx.about.kind == "plain" else (False,):
        finding = _late(ctx, cases, sessions, held=held)
        yield finding
        if finding is not None:
            return


def _late(
    ctx: AuditContext,
    cases: Sequence[tuple[Pair, Op, bool]],
    sessions: Sequence[tuple[list[Op], list[list[Op]]]],
    *,
    held: bool,
) -> Finding | None:
    """The first read that shows a write only after a while: that of real clocks, or of clocks that are held."""
    limit = HELD_S if held else None  # Who waits by such a clock would wait for ever.
    probes = [Probe(cache.sweep(sessions, wait=wait, held=held)) for wait in (True, False)]
    waited, hurried = ctx.play_all(probes, limit)
    for number, (case, op, is_warm) in enumerate(cases):
        for delay in cache.DELAYS:
            ctx.count_comparisons()
            marks = tuple(f"{number} {word}" for word in ("old", "write", "soon", f"after {delay}"))
            evidence = Evidence(HERE + "late", marks, None, ctx.volatile)
            if late((waited, hurried), evidence):
                ready, afterwards = cache.timed(case, op, is_warm=is_warm, number=number)
                session = ready, afterwards[: cache.DELAYS.index(delay) + 1]
                return ctx.finding(
                    f"{op.name} does not show what {case.write.name} wrote until time has passed",
                    Probe(cache.sweep([session], wait=True, held=held)),
                    Probe(cache.sweep([session], wait=False, held=held)),
                    relation=evidence.relation,
                    marks=marks,
                    minimise=0,
                    expected=waited.at(marks[3]).value,
                    observed=f"{waited.at(marks[2]).value!r} at once, the new one after at most {delay} s",
                    teaches=TEACHES,
                )
    return None


@check("x.cache_keys", "stale_cache", needs=("tools", "tasks"), value=24)
def cache_keys(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a read answers for its own arguments, not for those of the read before."""
    rows = variants(ctx)
    if not rows:
        raise NotChecked("no tool that reads was called in two ways")
    tries = 12
    for task in dict.fromkeys(row.task for row in rows):
        there = [marked(row, tag=f"{row[0].name} ") for row in rows if row.task == task]
        turns = [[op for row in there for op in (*row[turn:], *row[:turn])] for turn in range(max(map(len, there)))]
        records = ctx.play_all([Probe((reset(task), *ops)) for ops in turns])
        for row in there:
            first = {op.mark: records[place].at(op.mark) for place, op in enumerate(row)}  # the tool's first call there
            ctx.count_comparisons(len(row))
            # Between two calls of one turn stands any of their order, so that each comes after each in some turn.
            wrong = [
                (other_op, op)
                for op, other_op in itertools.permutations(row, 2)
                if any(apart(record.at(op.mark), first[op.mark], ctx.volatile) for record in records)
                and any(
                    not apart(record.at(op.mark), first[other_op.mark], ctx.volatile)
                    for record in records
                    if apart(record.at(op.mark), first[op.mark], ctx.volatile)
                )
            ]
            for other_op, op in wrong[:tries]:
                tries -= 1
                finding = cache.confused(ctx, (reset(task), bare(other_op)), (reset(task), bare(op)), same_session=True)
                if finding is not None:
                    yield finding
                    break


@check("x.cache_sessions", "stale_cache", needs=("tools", "tasks"), value=35)
def cache_sessions(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a call answers for its own session and task, not for an earlier one with equal arguments."""
    found: set[str] = set()
    searches = broad(ctx)[:8]
    for task in ctx.sample_tasks(2):
        for other_task in other_tasks(ctx, task, 2):
            known = [bare(call.op) for call in ctx.discovery.calls if call.task == task and not call.before]
            acts = [op for op in doing(ctx, task) if op.do == "call"]
            calls = cache.distinct((*reads(ctx, task, 30, each=2), *searches, *known, *acts))
            other_ops = (reset(other_task), *marked(calls, tag="first "))
            own_ops = (reset(task), *marked(calls, tag="second "))
            alone = ctx.play(*(op.moved("b") for op in own_ops))
            for on in ("b", "a"):
                mixed = ctx.play(*other_ops, *(op.moved(on) for op in own_ops))
                for place, op in enumerate(calls):
                    ctx.count_comparisons()
                    mark = f"second {place}"
                    if op.name not in found and apart(mixed.at(mark), alone.at(mark), ctx.volatile):
                        finding = cache.confused(
                            ctx, (reset(other_task), op), (reset(task), op), same_session=on == "a"
                        )
                        found |= {op.name} if finding is not None else set()
                        yield finding


@check("x.score_is_now", "stale_cache", needs=("tasks",), value=54)
def score_is_now(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the score is that of the current state, even after an earlier request."""
    mark = "step score"
    ways = 3
    for task in ctx.sample_tasks(4):
        known = scored(doing(ctx, task), task, mark)
        cases = [(early, Probe(alone(early))) for early in itertools.islice(known, ways)]
        records = ctx.play_all([probe for early, clean in cases for probe in (Probe(early), clean)])
        for place, (early, _) in enumerate(cases):
            ctx.count_comparisons()
            mixed, clean = records[2 * place : 2 * place + 2]
            ways = 1 if clean.at(mark).seconds > SLOW_S else ways
            gap = split(clean, mixed, [mark], volatile=ctx.volatile)
            found = pair(ctx, early, mark) if gap is not None else None
            if gap is not None and found is not None:
                yield ctx.finding(
                    "the score at the end is another one when it was asked for before",
                    *found,
                    relation=UNLIKE,
                    marks=(mark,),
                    minimise=0,
                    part="V",
                    expected=gap.expected,
                    observed=gap.observed,
                    teaches="that actions after the first score request do not count",
                )
                return
