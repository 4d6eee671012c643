"""Checks interchangeable writes: the reward must depend on how many of them are done.

Goals that demand certain things together depend on which are done. Where every choice of so many is paid alike, the
reward counts; a count that goes up while the reward stays, or falls, was rounded, floored or cut off.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Record, number
from quintain.audit.kernel.registry import relation

from ._clip_states import EPSILON, PaidState, probe_of

LEAST = 4
"""Writes that a group has; with three, a goal that demands all of them looks like a floor."""
MAX_WRITES = 7
"""Writes among which a group is looked for."""


def interchangeable(
    ctx: AuditContext, writes: Sequence[int], paid: Sequence[PaidState]
) -> Iterator[tuple[str, Finding | None]]:
    """Plateaus and falls in what is paid for so many writes of a group."""
    by = {state.done: state for state in paid}
    group = _group(writes, by)
    if len(group) < LEAST:
        return
    steps = [_of_size(group, by, count) for count in range(len(group) + 1)]
    known = [(count, step) for count, step in enumerate(steps) if step]
    amounts = [step[0].score for _, step in known]
    rises = sum(after > before + EPSILON for before, after in itertools.pairwise(amounts))
    for (count, here), (further, there) in itertools.pairwise(known):
        if further != count + 1:
            continue
        stays = abs(here[0].score - there[0].score) <= EPSILON
        falls = there[0].score < here[0].score - EPSILON
        if falls or (stays and rises >= 2):
            yield "interchangeable", _finding(ctx, known, count, falls=falls)
            return


def _group(writes: Sequence[int], by: dict[frozenset[int], PaidState]) -> tuple[int, ...]:
    """Returns the largest group of writes whose subsets of equal size are paid alike.

    Subsets that cannot be played are left out.
    """
    for size in range(min(len(writes), MAX_WRITES), LEAST - 1, -1):
        for group in itertools.combinations(writes[:MAX_WRITES], size):
            if all(_is_even(group, by, count) for count in range(1, size)):
                return group
    return ()


def _is_even(group: Sequence[int], by: dict[frozenset[int], PaidState], count: int) -> bool:
    """Several choices of so many are known, each write has a part in one, and all are paid alike."""
    found = _of_size(group, by, count)
    parts = frozenset[int]().union(*(state.done for state in found))
    if len(found) < 2 or (count > 1 and parts != frozenset(group)):
        return False
    amounts = [state.score for state in found]
    return max(amounts) - min(amounts) <= EPSILON


def _of_size(group: Sequence[int], by: dict[frozenset[int], PaidState], count: int) -> list[PaidState]:
    found = [by.get(frozenset(some)) for some in itertools.combinations(group, count)]
    return [state for state in found if state is not None]


def _finding(
    ctx: AuditContext, known: Sequence[tuple[int, list[PaidState]]], count: int, *, falls: bool
) -> Finding | None:
    steps = dict(known)
    less, more = steps[count][:2], steps[count + 1][:2]
    other_states = [state for size, step in known if size not in (count, count + 1) for state in step[:1]]
    how = "less than" if falls else "no more than"
    return ctx.finding(
        f"of some things that are worth the same any {count + 1} are paid {how} any {count}",
        *map(probe_of, (*less, *more, *other_states)),
        relation=f"{__name__}:does_not_count",
        marks=("score",),
        data=[len(less), len(more)],
        minimise=0,
        part="V",
        expected=f"more than {less[0].score:g}",
        observed={size: step[0].score for size, step in known},
        teaches="that going on is worth nothing",
    )


@relation
def does_not_count(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first states are all paid as much as the next ones, or more, which have one right thing more.

    `data` is how many there are of both. Where they are paid the same, the other states show two further amounts.
    """
    scores = [number(record.at("score")) for record in records]
    amounts = [score for score in scores if score is not None]
    first, second = evidence.data
    if len(amounts) != len(scores):
        return False
    less, more, other_scores = amounts[:first], amounts[first : first + second], amounts[first + second :]
    if max(more) < min(less) - EPSILON:
        return True
    same = max(*less, *more) - min(*less, *more) <= EPSILON
    return same and len({round(score, 9) for score in other_scores if abs(score - less[0]) > EPSILON}) >= 2
