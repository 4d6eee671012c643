"""Class 5: checks that an episode depends on its task, its seed and its calls only.

One script is played in many surroundings and compared, op by op, with itself played alone: in another process, under
another hash seed, zone, locale, user, day; after other episodes that ended in every way; beside other sessions; after a
restore. The first difference is reported, with the fewest ops that still show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, Record, reset

from ._same_dirt import dirty, stages
from ._same_leaks import PAUSE, TEACHES, ReportedDifferences, first_unlike, what
from ._same_scripts import broad, elsewhere, episode, marked, reads, state_op, tour
from ._same_splits import UNLIKE, Split, by_cause, differing, fewest, split, through, wavers
from ._same_wide import detours, kinds, rows, wide

MAX_TOOLS = 20
"""Tools up to which an episode can try all of them, in several kinds of tasks."""

SPARE = 8
"""Turns that an episode must bear besides those of a script that goes back."""


@check("runtime.episode_determinism", "reset_leak", needs=("tasks",), value=70)
def episode_determinism(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the same task, seed and calls give the same episode in every process."""
    first = ctx.tasks[0]
    scripts = [_with_words(ctx, task, seed) for task in ctx.sample_tasks(3) for seed in (0, 1)]
    more = [tour(ctx, first, early=False)[:-1]] if ctx.discovery.calls else []
    more += [tuple(op for op in wide(ctx, task) if op.do != "score") for task in kinds(ctx, 2) if ctx.about.tools]
    more += [some for some in ((reset(first), *broad(ctx)), rows(ctx, first)) if len(some) > 1]
    scripts += map(marked, more)
    ops = _side_by_side(scripts)
    usual, found = ctx.play(*ops), ReportedDifferences()
    for script, gap in _splits(ctx, usual, ctx.pool.fresh([Probe(ops)], ctx.limit)[0], scripts=scripts):
        if found.wants(gap.key):
            yield found.tried(gap.key, _by_itself(ctx, script, gap))
    if found:
        return  # What varies by itself varies in every context, too.
    contexts = elsewhere()
    for context, record in zip(contexts, ctx.play_all([Probe(ops, context) for context in contexts]), strict=True):
        for script, gap in _splits(ctx, usual, record, scripts=scripts):
            if found.wants(gap.key):
                finding = by_cause(ctx, what(gap), script, gap=gap, context=context, **_fields(script, gap))
                yield found.tried(gap.key, finding)


@check("runtime.seed_control", "reset_leak", needs=("tasks",), value=65)
def seed_control(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that variation between episodes is decided by the seed."""
    task, seeds = ctx.sample_tasks(1)[0], (0, 1, 7, 12345)
    beginning = (Op(state_op(ctx)),) if state_op(ctx) else ()
    scripts = [marked((reset(task, seed=seed), *beginning, *reads(ctx, task, 3))) for seed in seeds]
    ops = _side_by_side(scripts)
    gaps = _splits(ctx, ctx.play(*ops), ctx.pool.fresh([Probe(ops)], ctx.limit)[0], scripts=scripts)
    varied = [script for script, _ in gaps]
    if not varied:
        return
    known = [script[0].seed for script in varied]
    title = f"seed {known[0]} is not taken for a seed: other seeds decide how the episode begins, this one does not"
    yield ctx.finding(
        "the seed given to reset does not decide how the episode begins" if len(known) == len(seeds) else title,
        *[Probe(varied[0])] * 2, relation=UNLIKE, marks=[op.mark for op in varied[0]], tries=3, minimise=0,
        expected="the same beginning twice",
        observed=f"two beginnings differ with the seeds {', '.join(map(str, known))}, of {', '.join(map(str, seeds))}",
        teaches=TEACHES,
    )  # fmt: skip


@check("runtime.episode_isolation", "reset_leak", needs=("tasks",), value=42)
def episode_isolation(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that after a reset nothing is left of earlier episodes, in whatever way they ended."""
    found, tasks = ReportedDifferences(), ctx.sample_tasks(2)
    for task, own in ((tasks[0], tour(ctx, tasks[0])), (tasks[-1], episode(ctx, tasks[-1]))):
        own_ops = marked(own)
        ways = ((after, (*ops, *own_ops)) for after, ops in stages(ctx, task))
        yield from first_unlike(ctx, task, own_ops, ways=ways, found=found)
    if found:
        return
    # The same with many more calls before and after.
    for task in kinds(ctx, 2 if len(ctx.about.tools) <= MAX_TOOLS else 1) if ctx.about.tools else ():
        own_ops = marked(wide(ctx, task))
        wide_ways = [(after, (*ops, *own_ops)) for after, ops in dirty(ctx, task)]
        after, ops = wide_ways[0]
        wide_ways.append((after, (*ops[: -len(own_ops)], *own_ops[:2], PAUSE, *own_ops[2:])))
        yield from first_unlike(ctx, task, own_ops, ways=wide_ways, found=found)


@check("x.snapshot_restore", "reset_leak", needs=("snapshot", "restore", "tasks"), value=21)
def snapshot_restore(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a restored state equals the saved one, and that the same calls follow the same way."""
    found = ReportedDifferences()
    scripts = [(task, marked(episode(ctx, task))) for task in ctx.sample_tasks(3)]
    # The turns before a snapshot may count twice, so an episode must bear some more than the script has.
    most = ctx.attribute("budget", 0)
    scripts = [(task, ops) for task, ops in scripts if not most or len(ops) + SPARE <= most]
    scripts += [(task, marked(wide(ctx, task))) for task in kinds(ctx, 2) if ctx.about.tools]
    for task, own_ops in scripts:
        yield from first_unlike(ctx, task, own_ops, ways=detours(ctx, task, own_ops), found=found)


# --- what is common ---


def _side_by_side(scripts: Sequence[Sequence[Op]]) -> tuple[Op, ...]:
    """Scripts one after the other, each on an instance of its own."""
    parts = (marked(ops, on=f"session {number}", tag=f"{number}:") for number, ops in enumerate(scripts))
    return tuple(op for ops in parts for op in ops)


def _with_words(ctx: AuditContext, task: str, seed: int) -> tuple[Op, ...]:
    """Returns an episode without its score, which the verifier checks cover, and with tools and prompt."""
    words: tuple[Op, ...] = (Op("tools"),) if ctx.about.tools else ()
    words += (Op("prompt", name=task),) if "prompt" in ctx.offers else ()
    first, *rest = episode(ctx, task, seed=seed)[:-1]
    return marked((first, *words, *rest))


def _splits(
    ctx: AuditContext, usual: Record, record: Record, *, scripts: Sequence[tuple[Op, ...]]
) -> Iterator[tuple[tuple[Op, ...], Split]]:
    """Each script that differs, with its first difference, at an op that is marked as in the script."""
    for number, ops in enumerate(scripts):
        ctx.count_comparisons()
        by_mark = {f"{number}:{place}": op for place, op in enumerate(ops)}
        if gap := split(usual, record, list(by_mark), volatile=ctx.volatile):
            yield ops, msgspec.structs.replace(gap, op=by_mark[gap.op.mark])


def _fields(script: Sequence[Op], gap: Split) -> dict[str, object]:
    is_mild = gap.kind == "duration" or (gap.kind == "order" and gap.op.do == "state")
    return {"severity": "warning" if is_mild else "error", "tasks": (script[0].name,), "teaches": TEACHES}


def _by_itself(ctx: AuditContext, script: tuple[Op, ...], gap: Split) -> Finding | None:
    target = gap.op.mark
    least = fewest(ctx, through(script, target), (target,), holds=lambda some: wavers(ctx, some, target), trials=12)
    title = f"{what(gap)} is not the same in two equal processes"
    return differing(ctx, title, [Probe(least)] * 2, gap=gap, tries=3, **_fields(script, gap))
