"""Score components along the oracle's states, and components that do not raise the reward."""

from __future__ import annotations

import itertools

from quintain.audit.kernel.context import AuditContext

from ._clip_states import WALKED, PaidState, states, writes_of

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
