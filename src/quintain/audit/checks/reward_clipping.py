"""Checks rounding and clipping: states of different quality that are paid the same or in the wrong order.

The oracle is a ladder. Each of its rungs left out, or taken alone, is a state that is more or less done, and the
components of a reward say more than the reward. Rewards of two levels are legitimate: what is said of them needs either
the author's word that they are graded, or components and levels that show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Record, number
from quintain.audit.kernel.registry import relation

from ._clip_damage import damage_pays
from ._clip_fields import half_filled
from ._clip_groups import interchangeable
from ._clip_near import near
from ._clip_parts import walks
from ._clip_states import EPSILON, PaidState, is_graded, probe_of
from ._reward_facts import facts

FLAT = "that going on is worth nothing: these states have equal rewards"


NEARLY = 0.9
"""Part of the reward that nothing done may not be paid in all tasks."""


# --- relations: each states the bug ---


@relation
def rounds_work(records: Sequence[Record], _evidence: Evidence) -> bool:
    """In one task nothing done is paid like the solution, in the other a little less: the rest was rounded away."""
    scores = [number(record.at("score")) for record in records]
    known = [points for points in scores if points is not None]
    if len(known) < len(scores):
        return False
    idle, solved, other_idle, other_solved = known
    return idle >= solved - EPSILON and NEARLY * other_solved <= other_idle < other_solved - EPSILON


@relation
def two_levels(records: Sequence[Record], evidence: Evidence) -> bool:
    """Many states of a task, from nothing done to all of it, are paid one of two amounts; `data` counts them."""
    scores = [number(record.at("score")) for record in records]
    levels = {round(points, 9) for points in scores if points is not None}
    return None not in scores and len(scores) >= int(evidence.data) and len(levels) == 2


@relation
def stays(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a state more nearly done is paid the same, though more than two amounts occur."""
    scores = [number(record.at("score")) for record in records]
    known = [points for points in scores if points is not None]
    levels = {round(amount, 9) for amount in known}
    return len(known) == len(scores) and len(levels) >= int(evidence.data) and abs(known[0] - known[1]) <= EPSILON


@relation
def not_less(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the second state, the first with one more right thing, is paid less."""
    less, more = (number(record.at("score")) for record in records)
    return less is not None and more is not None and more < less - float(evidence.data)


@check("x.ladder", "reward_clipping", needs=("oracle", "tasks"), value=82)
def ladder(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each further right thing raises the reward, where rewards have more than two levels."""
    walked = walks(ctx)
    every = [state for _, _, paid in walked for state in paid]
    ctx.count_comparisons(len(every))
    if not is_graded(ctx, every):
        return  # All or nothing is a legitimate reward.
    reported: set[str] = set()
    for _, writes, paid in walked:
        for kind, finding in _rungs(ctx, writes, paid):
            if kind not in reported and finding is not None:
                reported.add(kind)
                yield finding


def _rungs(ctx: AuditContext, writes: Sequence[int], paid: Sequence[PaidState]) -> Iterator[tuple[str, Finding | None]]:
    by = {state.done: state for state in paid}
    whole, nothing = by.get(frozenset(writes)), by.get(frozenset())
    if whole is None or nothing is None or len(writes) < 2 or whole.score <= nothing.score + EPSILON:
        return
    is_declared = ctx.attribute("graded") is True
    levels = {round(state.score, 9) for state in paid}
    if is_declared and len(levels) == 2 and len(writes) >= 3 and len(paid) >= 5:
        yield "two", _two_level_finding(ctx, paid, whole=whole, nothing=nothing)
        return
    worth = _worth(paid)
    for place in writes:
        short = by.get(frozenset(writes) - {place})
        if short is not None and place in worth and abs(short.score - whole.score) <= EPSILON and len(levels) > 2:
            yield "top", _plateau(ctx, short, whole, other_states=[nothing, _between(paid, nothing, whole)])
    yield from _counted(ctx, paid, nothing=nothing, whole=whole)
    if is_declared:
        yield from interchangeable(ctx, writes, paid)
    yield from _falling(ctx, writes, by, is_declared=is_declared)


def _between(paid: Sequence[PaidState], nothing: PaidState, whole: PaidState) -> PaidState:
    return next((state for state in paid if nothing.score + EPSILON < state.score < whole.score - EPSILON), nothing)


def _worth(paid: Sequence[PaidState]) -> set[int]:
    """Writes that make some state better."""
    by = {state.done: state for state in paid}
    found: set[int] = set()
    for done, state in by.items():
        for place in done:
            without = by.get(done - {place})
            if without is not None and state.score > without.score + EPSILON:
                found.add(place)
    return found


def _two_level_finding(
    ctx: AuditContext, paid: Sequence[PaidState], *, whole: PaidState, nothing: PaidState
) -> Finding | None:
    chosen = sorted(paid, key=lambda state: len(state.done))[:12]
    chosen += [whole] if whole not in chosen else []
    return ctx.finding(
        "rewards are declared graded, but a task pays one of two amounts, however much of it is done",
        *map(probe_of, chosen),
        relation=f"{__name__}:two_levels",
        marks=("score",),
        data=5,
        minimise=0,
        part="V",
        expected=f"something between {nothing.score:g} and {whole.score:g} for what is half done",
        observed={len(paid_state.done): paid_state.score for paid_state in chosen},
        teaches=FLAT,
    )


def _plateau(
    ctx: AuditContext, less: PaidState, more: PaidState, *, other_states: Sequence[PaidState]
) -> Finding | None:
    last = [op.name or op.do for op in more.ops if op not in less.ops]
    return ctx.finding(
        f"{last[0] if last else 'one more right thing'} is worth nothing there, though it is elsewhere: "
        f"{less.score:g} before it and after it",
        probe_of(less),
        probe_of(more),
        *(probe_of(state) for state in other_states),
        relation=f"{__name__}:stays",
        marks=("score",),
        data=3,
        minimise=0,
        part="V",
        expected=f"more than {less.score:g}",
        observed=more.score,
        teaches=FLAT,
        at_most="proven" if ctx.attribute("graded") is True else "likely",
    )


def _counted(
    ctx: AuditContext, paid: Sequence[PaidState], *, nothing: PaidState, whole: PaidState
) -> Iterator[tuple[str, Finding | None]]:
    """Yields counts of right things whose reward does not depend on the count, whichever things they are.

    A reward that demands certain things together depends on which they are, and is ignored.
    """
    sizes: dict[int, list[PaidState]] = {}
    for state in paid:
        sizes.setdefault(len(state.done), []).append(state)
    count = len(whole.done)
    several = [group for size, group in sizes.items() if 0 < size < count]
    if count < 3 or any(len({round(paid_state.score, 9) for paid_state in group}) > 1 for group in several):
        return
    if any(len(sizes.get(size, [])) < 3 for size in (1, min(2, count - 1), count - 1)):
        return
    for size in range(count):
        here, there = sizes.get(size), sizes.get(size + 1)
        if here and there and abs(here[0].score - there[0].score) <= EPSILON:
            other_states = [
                paid_state
                for group in sizes.values()
                for paid_state in group
                if abs(paid_state.score - here[0].score) > EPSILON
            ]
            if len({round(paid_state.score, 9) for paid_state in other_states}) >= 2:
                middle = _between(paid, nothing, whole)
                yield (
                    "counted",
                    _plateau(ctx, here[0], there[0], other_states=[nothing, whole, middle, other_states[0]]),
                )
                return


def _falling(
    ctx: AuditContext, writes: Sequence[int], by: dict[frozenset[int], PaidState], *, is_declared: bool
) -> Iterator[tuple[str, Finding | None]]:
    for count in range(len(writes)):
        less, more = by.get(frozenset(writes[:count])), by.get(frozenset(writes[: count + 1]))
        if less is not None and more is not None and more.score < less.score - EPSILON:
            yield (
                "falls",
                ctx.finding(
                    "going on along the solution is paid less than stopping",
                    probe_of(less),
                    probe_of(more),
                    relation=f"{__name__}:not_less",
                    marks=("score",),
                    data=EPSILON,
                    minimise=0,
                    part="V",
                    expected=f"at least {less.score:g}",
                    observed=more.score,
                    teaches="to stop half way",
                    at_most="likely" if is_declared else "hint",
                    severity="warning",
                ),
            )
            return


@check("x.start_is_nearly_paid", "reward_clipping", needs=("oracle", "tasks"), value=90)
def nearly(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the work of a task is more than rounding: the start is not paid like the end, or nearly so."""
    known = [(task, fact.floor, fact.full) for task, fact in facts(ctx).items() if fact.writes and fact.full]
    paid = [(task, floor, full) for task, floor, full in known if floor is not None]
    ctx.count_comparisons(len(paid))
    alike = [task for task, floor, full in paid if floor >= full - EPSILON]
    close = [task for task, floor, full in paid if NEARLY * full <= floor < full - EPSILON]
    if not alike or not close or len(alike) + len(close) < len(paid):
        return
    yield ctx.finding(
        f"nothing done is paid at least {NEARLY:.0%} of the reward, and in some tasks all of it",
        *(solves(task, ops) for task in (alike[0], close[0]) for ops in ((), ctx.oracle(task) or ())),
        relation=f"{__name__}:rounds_work",
        marks=("score",),
        minimise=0,
        part="V",
        tasks=[*alike, *close],
        expected="a reward in which the work of the task counts",
        observed={task: floor for task, floor, _ in paid[:8]},
        teaches="to do nothing: the rest of the world pays",
    )


__all__ = ["damage_pays", "half_filled", "ladder", "near", "nearly"]
