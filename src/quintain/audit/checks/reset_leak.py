"""Class 5: checks that an episode depends on its task, its seed and its calls only.

One script is played in many surroundings and compared, op by op, with itself played alone: in another process, under
another hash seed, zone, locale, user, day; after other episodes that ended in every way; beside other sessions; after a
restore. The first difference is reported, with the fewest ops that still show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, ProcessContext, Record, reset

from . import _same_dirt as dirt
from ._same_leaks import PAUSE, TEACHES, ReportedDifferences, first_unlike, leak, what
from ._same_scripts import (
    broad,
    doing,
    elsewhere,
    episode,
    half,
    marked,
    misses_locale,
    op_label,
    parts,
    reads,
    state_op,
    tour,
)
from ._same_splits import UNLIKE, Split, fewest, pair, split, through, wavers
from ._same_splits import apart as differ
from ._same_wide import detours, dirty, kinds, rows, wide

MAX_TOOLS = 20
"""Tools up to which an episode can try all of them, in several kinds of tasks."""
WITHIN = "quintain.audit.checks._same_splits:unlike_within"


@check("runtime.episode_determinism", "reset_leak", needs=("tasks",), value=67)
def episode_determinism(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the same task, seed and calls give the same episode in every process."""
    plan = [(task, seed) for task in ctx.sample_tasks(3) for seed in (0, 1)]
    scripts = [_with_words(ctx, task, seed) for task, seed in plan]
    if ctx.discovery.calls:
        plan.append((ctx.tasks[0], 0))
        scripts.append(marked(tour(ctx, ctx.tasks[0], early=False)[:-1]))
    for task in kinds(ctx, 2) if ctx.about.tools else ():
        plan.append((task, 0))
        scripts.append(marked([op for op in wide(ctx, task) if op.do != "score"]))
    first = ctx.tasks[0]
    for some in ((reset(first), *broad(ctx)), rows(ctx, first)):
        if len(some) > 1:
            plan.append((first, 0))
            scripts.append(marked(some))
    ops = _side_by_side(scripts)
    usual = ctx.play(*ops)
    found = ReportedDifferences()
    fresh = ctx.pool.fresh(Probe(ops), ctx.limit)
    for number, apart in _splits(ctx, usual, fresh, scripts=scripts):
        yield _by_itself(ctx, plan[number][0], scripts[number], apart=apart, found=found)
    if found:
        return  # What varies by itself varies in every context, too.
    contexts = elsewhere()
    for context, record in zip(contexts, ctx.play_all([Probe(ops, context) for context in contexts]), strict=True):
        for number, apart in _splits(ctx, usual, record, scripts=scripts):
            yield _in_context(ctx, plan[number][0], scripts[number], apart=apart, context=context, found=found)


@check("runtime.seed_control", "reset_leak", needs=("tasks",), value=50)
def seed_control(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that variation between episodes is decided by the seed."""
    task, seeds = ctx.sample_tasks(1)[0], (0, 1, 7, 12345)
    beginning = (Op(state_op(ctx)),) if state_op(ctx) else ()
    scripts = [marked((reset(task, seed=seed), *beginning, *reads(ctx, task, 3))) for seed in seeds]
    ops = _side_by_side(scripts)
    twice = ctx.play(*ops), ctx.pool.fresh(Probe(ops), ctx.limit)
    varied: list[int] = []
    for number, seed in enumerate(seeds):
        ctx.count_comparisons()
        marks = [_tag(number) + str(place) for place in range(len(scripts[number]))]
        if split(twice[0], twice[1], marks, volatile=ctx.volatile):
            varied.append(seed)
    if not varied:
        return
    all_of_them = len(varied) == len(seeds)
    shown = scripts[seeds.index(varied[0])]
    yield ctx.finding(
        "the seed given to reset does not decide how the episode begins"
        if all_of_them
        else f"seed {varied[0]} is not taken for a seed: other seeds decide how the episode begins, this one does not",
        Probe(shown),
        Probe(shown),
        relation=UNLIKE,
        marks=[op.mark for op in shown],
        tries=3,
        minimise=0,
        expected="the same beginning twice",
        observed=f"two beginnings differ with the seeds {', '.join(map(str, varied))}, of {', '.join(map(str, seeds))}",
        teaches=TEACHES,
    )


@check("runtime.episode_isolation", "reset_leak", needs=("tasks",), value=68)
def episode_isolation(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that after a reset nothing is left of earlier episodes, in whatever way they ended."""
    found = ReportedDifferences()
    tasks = ctx.sample_tasks(2)
    scripts = [(tasks[0], marked(tour(ctx, tasks[0])))] if ctx.discovery.calls else []
    for task, own_ops in (*scripts, *((task, marked(episode(ctx, task))) for task in tasks[-1:])):
        clean = ctx.play(*own_ops)
        stages = dirt.stages(ctx, task)
        rounds = [dirt.rounds([stage], own_ops) for stage in stages if stage.apart]
        rounds.append(dirt.rounds([stage for stage in stages if not stage.apart], own_ops))
        for round_, record in zip(rounds, ctx.play_all([Probe(item.ops) for item in rounds]), strict=True):
            for place, stage in enumerate(round_.stages):
                ctx.count_comparisons()
                apart = round_.split(clean, record, place, volatile=ctx.volatile)
                if apart is not None and found.wants(apart.key):
                    finding = leak(ctx, task, (*stage.ops, *own_ops), apart=apart, after=stage.after)
                    if finding is None and place:
                        several = (*round_.before(place), *own_ops)
                        finding = leak(ctx, task, several, apart=apart, after="after several episodes")
                    yield found.tried(apart.key, finding)
    if not found:
        yield from _after_dirt(ctx)


def _after_dirt(ctx: AuditContext) -> Iterator[Finding | None]:
    """The same with many more calls before and after, each episode before in a process of its own."""
    if not ctx.about.tools:
        return
    found = ReportedDifferences()
    for task in kinds(ctx, 2 if len(ctx.about.tools) <= MAX_TOOLS else 1):
        own_ops = marked(wide(ctx, task))
        stages = list(dirty(ctx, task))
        ways = [(stage.after, (*stage.ops, *own_ops)) for stage in stages]
        ways += [(stage.after, (*stage.ops, *own_ops[:2], PAUSE, *own_ops[2:])) for stage in stages[:1]]
        yield from first_unlike(ctx, task, own_ops, ways=ways, found=found)


@check("x.snapshot_restore", "reset_leak", needs=("snapshot", "restore", "tasks"), value=38)
def snapshot_restore(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a restored state equals the saved one, and that the same calls follow the same way."""
    found = ReportedDifferences()
    for task in ctx.sample_tasks(3):
        done = doing(ctx, task)
        first, rest = half(done), done[len(half(done)) :]
        looks = _looks(ctx, task)
        before, after, again = (marked(looks, tag=f"{tag} ") for tag in ("before", "after", "again"))
        kept, back = Op("snapshot", name="kept", mark="kept"), Op("restore", name="kept", mark="back")
        ops = (reset(task), *first, kept, *before, *rest, back, *after, *rest, back, *again)
        record = ctx.play(*ops)
        for left, right in zip((*before, *before), (*after, *again), strict=True):
            ctx.count_comparisons()
            pairs = (record.at(left.mark), record.at(right.mark))
            if found.wants(op_label(left)) and differ(*pairs, ctx.volatile):
                once = right in after
                finding = ctx.finding(
                    f"{op_label(left)} is not what it was when the snapshot was taken that has been restored",
                    Probe((reset(task), *first, kept, left, *rest, back, *(() if once else (*rest, back)), right)),
                    Probe((reset(task), *first, kept, left, right)),
                    relation=WITHIN,
                    marks=(left.mark, right.mark),
                    expected=pairs[0].value,
                    observed=pairs[1].value,
                    teaches=TEACHES,
                )
                yield found.tried(op_label(left), finding)
    if not found and ctx.about.tools:
        yield from _after_detours(ctx)


def _after_detours(ctx: AuditContext) -> Iterator[Finding | None]:
    """The same with many more calls before the moment, until the way back, and after it."""
    found = ReportedDifferences()
    for task in kinds(ctx, 2):
        own_ops = marked(wide(ctx, task))
        yield from first_unlike(ctx, task, own_ops, ways=list(detours(ctx, task, own_ops)), found=found)


# --- what is common ---


def _tag(number: int) -> str:
    return f"{number}:"


def _side_by_side(scripts: Sequence[Sequence[Op]]) -> tuple[Op, ...]:
    """Scripts one after the other, each on an instance of its own."""
    return tuple(
        op for number, ops in enumerate(scripts) for op in marked(ops, on=f"session {number}", tag=_tag(number))
    )


def _with_words(ctx: AuditContext, task: str, seed: int) -> tuple[Op, ...]:
    """Returns an episode without its score, which the verifier checks cover, and with tools and prompt."""
    words: tuple[Op, ...] = (Op("tools"),) if ctx.about.tools else ()
    words += (Op("prompt", name=task),) if "prompt" in ctx.offers else ()
    first, *rest = episode(ctx, task, seed=seed)[:-1]
    return marked((first, *words, *rest))


def _looks(ctx: AuditContext, task: str) -> tuple[Op, ...]:
    look = (Op(state_op(ctx)),) if state_op(ctx) else ()
    return (*look, *reads(ctx, task, 24, each=2), Op("score"))


def _splits(
    ctx: AuditContext, usual: Record, record: Record, *, scripts: Sequence[Sequence[Op]]
) -> Iterator[tuple[int, Split]]:
    """The first difference of each script, with its number; its op is marked as in the script."""
    for number, ops in enumerate(scripts):
        ctx.count_comparisons()
        for place, op in enumerate(ops):
            apart = split(usual, record, [f"{_tag(number)}{place}"], volatile=ctx.volatile)
            if apart is not None:
                yield number, Split(op, apart.path, apart.expected, apart.observed, apart.kind)
                break


def _severity(apart: Split) -> str:
    if apart.kind == "duration" or (apart.kind == "order" and apart.op.do == "state"):
        return "warning"
    return "error"


def _by_itself(
    ctx: AuditContext, task: str, ops: tuple[Op, ...], *, apart: Split, found: ReportedDifferences
) -> Finding | None:
    if not found.wants(apart.key):
        return None
    target = apart.op.mark
    least = fewest(ctx, through(ops, target), (target,), holds=lambda some: wavers(ctx, some, target), trials=12)
    finding = ctx.finding(
        f"{what(apart)} is not the same in two equal processes",
        Probe(least),
        Probe(least),
        relation=UNLIKE,
        marks=(target,),
        tries=3,
        minimise=0,
        severity=_severity(apart),
        tasks=(task,),
        expected=apart.expected,
        observed=apart.observed,
        teaches=TEACHES,
    )
    return found.tried(apart.key, finding)


def _in_context(
    ctx: AuditContext,
    task: str,
    ops: tuple[Op, ...],
    *,
    apart: Split,
    context: ProcessContext,
    found: ReportedDifferences,
) -> Finding | None:
    if not found.wants(apart.key) or misses_locale(context, apart.expected, apart.observed):
        return None
    target = apart.op.mark
    finding = None
    for words, part in (*parts(context), ("the process", context)):
        probes = pair(ctx, ops, target, context=part)
        if probes is not None:
            finding = ctx.finding(
                f"{what(apart)} depends on {words}",
                *probes,
                relation=UNLIKE,
                marks=(target,),
                minimise=0,
                severity=_severity(apart),
                tasks=(task,),
                expected=apart.expected,
                observed=apart.observed,
                teaches=TEACHES,
            )
            break
    return found.tried(apart.key, finding)
