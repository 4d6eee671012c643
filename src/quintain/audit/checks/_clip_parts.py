"""Score components along the oracle's states, and components that do not raise the reward."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from quintain.audit.kernel.context import AuditContext

from ._clip_states import EPSILON, WALKED, PaidState, counts, states, writes_of

Walk = tuple[str, tuple[int, ...], list[PaidState]]


def walks(ctx: AuditContext) -> list[Walk]:
    """Tasks, their oracles' writes, and states: nothing, each write alone, all but each, prefixes, pairs, all."""
    found = ctx.once(("ladders",), _walked)
    if not found:
        raise ctx.not_checked("no task has a solution that does anything")
    return found


def _walked(ctx: AuditContext) -> list[Walk]:
    found: list[Walk] = []
    for task in ctx.sample_tasks(WALKED):
        writes = writes_of(ctx, task)
        if not writes:
            continue
        whole = frozenset(writes)
        kept = [frozenset[int](), whole]
        kept += [frozenset(writes[:count]) for count in range(1, len(writes))]
        kept += [whole - {write} for write in writes[:12]]
        kept += [frozenset({write}) for write in writes[:12]]
        if 3 <= len(writes) <= 7:
            kept += [frozenset(pair) for pair in itertools.combinations(writes, 2)]
        if 4 <= len(writes) <= 6:
            kept += [frozenset(three) for three in itertools.combinations(writes, 3)]
        found.append((task, writes, states(ctx, task, writes, kept=list(dict.fromkeys(kept)))))
    return found


def lost(paid_states: Sequence[PaidState], name: str, whole: Sequence[str]) -> tuple[PaidState, PaidState] | None:
    """Returns two states that differ in one component, all others at their best, and are paid alike or worse.

    A component may be worth nothing while another one is bad (a product, a minimum), so the others must be at their
    best. Components that only pay together in an all-or-nothing reward are ignored.
    """
    best: dict[str, float] = {}
    for state in paid_states:
        for part, value in state.parts.items():
            best[part] = max(best.get(part, value), value)
    other_values = [text for text in best if text != name and counts(text) and text not in whole]
    at_best = [
        state
        for state in paid_states
        if name in state.parts
        and all(abs(state.parts.get(text, best[text]) - best[text]) <= EPSILON for text in other_values)
    ]
    rising = rises(paid_states, name)
    for low, high in itertools.permutations(at_best, 2):
        if low.task == high.task and high.parts[name] > low.parts[name] + EPSILON and rising:
            if high.score < low.score - EPSILON:
                return high, low
            if abs(high.score - low.score) <= EPSILON and (
                _levels(paid_states) > 2 or high.score >= max(_scores(paid_states))
            ):
                return high, low
    return None


def rises(paid_states: Sequence[PaidState], name: str) -> bool:
    """True if a component is better at the oracle's end than at the start in each task where it changes."""
    by_task: dict[str, list[PaidState]] = {}
    for state in paid_states:
        by_task.setdefault(state.task, []).append(state)
    gains: list[float] = []
    for own_states in by_task.values():
        first, last = (
            min(own_states, key=lambda state: len(state.done)),
            max(own_states, key=lambda state: len(state.done)),
        )
        gains.append(last.parts.get(name, 0.0) - first.parts.get(name, 0.0))
    return any(gain > EPSILON for gain in gains) and not any(gain < -EPSILON for gain in gains)


def _scores(paid_states: Sequence[PaidState]) -> list[float]:
    return [state.score for state in paid_states]


def _levels(paid_states: Sequence[PaidState]) -> int:
    return len({round(score, 9) for score in _scores(paid_states)})
