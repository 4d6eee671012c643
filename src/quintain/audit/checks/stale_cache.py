"""Class 1: checks that every read shows what has been written, at once and permanently.

The oracle is differential: a read after a write must not depend on an earlier read, on the order of reads, on other
sessions, or on a wait. So it works without `state()`; where that is offered, a different world is
separated from a wrong answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, permutations, product

from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, Record, reset

from ._leak_reading import unique
from ._same_cache import confused, scored, variants
from ._same_reads import HERE
from ._same_scripts import alone, bare, broad, doing, marked, other_tasks, reads
from ._same_splits import apart, differing, pair, split
from ._same_walks import NEW, TEACHES, WRITE, OldRead, Walk, moved, parts, shown, single, walked, walks

__all__ = [
    "cache_keys", "cache_sessions", "read_walks", "read_your_writes", "score_is_now", "shown_after_restore",
    "visible_at_once",
]  # fmt: skip
MAX_FINDINGS = 2
"""Findings of one kind: more of them say no more."""
TRIES = 8
"""Candidates that are held against a play of their own."""
SLOW_S = 0.2
"""A score that takes longer is asked for in one way only."""
WALKS = 3
"""Tasks, each of another kind, in which many writes are made."""
DELAYS = (0.02, 0.2, 1.0)
"""Seconds that are waited after a write, one after the other."""


@check("x.read_your_writes", "stale_cache", needs=("tools", "tasks"), value=80)
def read_your_writes(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that reads after a write give the same with and without reads before it."""
    return _old_reads(ctx, (part for walk in single(ctx) for part in parts(ctx, walk)))


@check("x.read_walks", "stale_cache", needs=("tools", "tasks"), value=100)
def read_walks(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that reads after many writes of all tools equal those of a session without earlier reads."""
    return _old_reads(ctx, walks(ctx, WALKS))


def _old_reads(ctx: AuditContext, every: Iterable[Walk]) -> Iterator[Finding | None]:
    tried: set[tuple[str, str]] = set()
    reported = 0
    for walk in every:
        found = walked(ctx, walk)
        if found is None:  # The episode does not bear so many calls.
            found = walked(ctx, walk._replace(steps=walk.steps[:4], reads=walk.reads[:4])) or []
        by_key: dict[tuple[str, str], OldRead] = {}
        for old in found:
            by_key.setdefault((old.walk.steps[0].name or old.walk.steps[0].do, old.read.name), old)
        new = [key for key in by_key if key not in tried][: TRIES - len(tried)]
        tried.update(new)
        # An old answer is shown in a few plays; what else may differ takes many.
        for prove, key in product((shown, moved), new):
            if reported < MAX_FINDINGS and key in by_key and (finding := prove(ctx, by_key[key])):
                reported += 1
                del by_key[key]
                yield finding
        if reported == MAX_FINDINGS or len(tried) == TRIES:
            return


@check("x.visible_at_once", "stale_cache", needs=("tools", "tasks"), value=88)
def visible_at_once(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a write is visible at once: a wait changes no answer."""
    every = list(single(ctx, 6, 3, then=(Op("wait", value=sum(DELAYS)),)))
    cases = [(walk, op, is_warm) for walk in every for op in walk.reads for is_warm in (False, True)]
    sessions = [_session(*case, number=number) for number, case in enumerate(cases)]
    waited = ctx.play_probe(_sweep(sessions, wait=True))
    ctx.count_comparisons(len(cases) * len(DELAYS))
    tries = TRIES
    for number, (walk, op, _) in enumerate(cases):
        for place, delay in enumerate(DELAYS):
            marks = tuple(f"{number} {word}" for word in ("old", "write", "soon", f"after {delay}"))
            old, _, soon, later = map(waited.at, marks)
            if tries and apart(old, later, ctx.volatile) and not apart(old, soon, ctx.volatile):
                tries -= 1
                finding = ctx.finding(
                    f"{op.name} does not show what {walk.steps[0].name} wrote until time has passed",
                    *(_sweep([sessions[number]], wait=wait, most=place + 1) for wait in (True, False)),
                    relation=f"{HERE}late", marks=marks, minimise=0, expected=later.value,
                    observed=f"{soon.value!r} at once, the new one after at most {delay} s", teaches=TEACHES,
                )  # fmt: skip
                yield finding
                if finding is not None:
                    return


def _session(walk: Walk, op: Op, is_warm: bool, *, number: int) -> list[Op]:  # noqa: FBT001 (a row of a table)
    """A read, a write, and the read at once; the first read in another session, where it must not warm a cache."""
    on = f"session {number}"
    first = on if is_warm else f"{on} before"
    start, write = (reset(walk.task), *walk.before), walk.steps[0]
    ops = [*start, op.marked(f"{number} old"), write.marked(f"{number} write"), op.marked(f"{number} soon")]
    asked = [each.moved(first) for each in ops[:-2]]
    again = [] if is_warm else [each.moved(on) for each in start]
    return [*asked, *again, *(each.moved(on) for each in ops[-2:])]


def _sweep(sessions: Sequence[list[Op]], *, wait: bool, most: int = len(DELAYS)) -> Probe:
    """All sessions; they wait together, and each reads once more after each wait."""
    ops = [op for session in sessions for op in session]
    for delay in DELAYS[:most]:
        ops += [Op("wait", value=delay)] if wait else []
        ops += [session[-1].marked(session[-1].mark.replace("soon", f"after {delay}")) for session in sessions]
    return Probe(tuple(ops))


@check("x.shown_after_restore", "stale_cache", needs=("snapshot", "restore", "tools", "tasks"), value=59)
def shown_after_restore(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that what a write brought does not show only after the state was saved and restored."""
    back = (Op("snapshot", name="kept"), Op("restore", name="kept"))
    for walk in single(ctx):
        write = walk.steps[0].marked(WRITE)
        ways = ((write, *back), (write,), ())
        records = ctx.play_all([Probe((*walk.start, *way, *marked(walk.reads, tag="read "))) for way in ways])
        ctx.count_comparisons(len(walk.reads))
        for place, op in enumerate(walk.reads):
            restored, soon, old = (record.at(f"read {place}") for record in records)
            if apart(restored, soon, ctx.volatile) and not apart(soon, old, ctx.volatile):
                finding = ctx.finding(
                    f"{op.name} does not show what {write.name} brought until the state is saved and restored",
                    *(Probe((*walk.start, *way, op.marked(NEW))) for way in ways),
                    relation=f"{HERE}kept_old", marks=(NEW,), minimise=0, expected=restored.value, observed=soon.value,
                    teaches=TEACHES,
                )  # fmt: skip
                yield finding
                if finding is not None:
                    return


@check("x.cache_keys", "stale_cache", needs=("tools", "tasks"), value=13)
def cache_keys(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a read answers for its own arguments, not for those of the read before."""
    by_task = variants(ctx)
    if not by_task:
        raise NotChecked("no tool that reads was called in two ways")
    tries = 12
    for task, rows in by_task.items():
        there = [marked(row, tag=f"{row[0].name} ") for row in rows]
        # Between two calls of one turn stands any of their order, so that each comes after each in some turn.
        turns = [[op for row in there for op in (*row[turn:], *row[:turn])] for turn in range(max(map(len, there)))]
        records = ctx.play_all([Probe((reset(task), *ops)) for ops in turns])
        for row in there:
            ctx.count_comparisons(len(row))
            pairs = (both for both in permutations(row, 2) if _is_mixed(ctx, records, row, both=both))
            for other_op, op in islice(pairs, tries):
                tries -= 1
                begin = reset(task)
                if finding := confused(ctx, (begin, bare(other_op)), (begin, bare(op)), same_session=True):
                    yield finding
                    break


def _is_mixed(ctx: AuditContext, records: Sequence[Record], row: Sequence[Op], *, both: tuple[Op, Op]) -> bool:
    """True if the second call once gave what the first one gives where it is the tool's first call."""
    other_first, own_first = (records[row.index(op)].at(op.mark) for op in both)
    seen = [record.at(both[1].mark) for record in records]
    wrong = [each for each in seen if apart(each, own_first, ctx.volatile)]
    return any(not apart(each, other_first, ctx.volatile) for each in wrong)


@check("x.cache_sessions", "stale_cache", needs=("tools", "tasks"), value=14)
def cache_sessions(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a call answers for its own session and task, not for an earlier one with equal arguments."""
    found: set[str] = set()
    searches = broad(ctx)[:8]
    for task in ctx.sample_tasks(2):
        known = [bare(call.op) for call in ctx.discovery.calls if call.task == task and not call.before]
        acts = [op for op in doing(ctx, task) if op.do == "call"]
        calls = unique((*reads(ctx, task, 30, each=2), *searches, *known, *acts))
        own_ops = (reset(task), *marked(calls, tag="second "))
        alone_ops = [op.moved("b") for op in own_ops]
        clean = ctx.play(*alone_ops)
        for other_task in other_tasks(ctx, task, 2):
            other_ops = (reset(other_task), *marked(calls, tag="first "))
            for later in (alone_ops, own_ops):
                mixed = ctx.play(*other_ops, *later)
                ctx.count_comparisons(len(calls))
                for op, mark in zip(calls, (step.mark for step in own_ops[1:]), strict=True):
                    if op.name not in found and apart(mixed.at(mark), clean.at(mark), ctx.volatile):
                        first, second = (reset(other_task), op), (reset(task), op)
                        finding = confused(ctx, first, second, same_session=later is own_ops)
                        found |= {op.name} if finding is not None else set()
                        yield finding


@check("x.score_is_now", "stale_cache", needs=("tasks",), value=16)
def score_is_now(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the score is that of the current state, even after an earlier request."""
    mark = "step score"
    ways = 3
    for task in ctx.sample_tasks(4):
        cases = [Probe(ops) for ops in islice(scored(doing(ctx, task), task, mark), ways)]
        records = ctx.play_all([probe for early in cases for probe in (early, Probe(alone(early.ops)))])
        for early, mixed, clean in zip(cases, records[::2], records[1::2], strict=True):
            ctx.count_comparisons()
            ways = 1 if clean.at(mark).seconds > SLOW_S else ways
            gap = split(clean, mixed, [mark], volatile=ctx.volatile)
            found = pair(ctx, early.ops, mark) if gap is not None else None
            if gap is not None and found is not None:
                title = "the score at the end is another one when it was asked for before"
                teaches = "that actions after the first score request do not count"
                yield differing(ctx, title, found, gap=gap, part="V", teaches=teaches)
                return
