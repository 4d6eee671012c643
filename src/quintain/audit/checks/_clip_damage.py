"""Checks that damage never pays: changes outside the solution must not raise the reward."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, number, reset, score
from quintain.audit.kernel.registry import relation

from ._clip_states import EPSILON, seen_parts
from ._same_wide import kinds, known

ACTS = 16
"""Writes that are tried in a task."""


@relation
def grows(records: Sequence[Record], _evidence: Evidence) -> bool:
    """Without damage, with one, with another one, with both: each is paid more than what it adds to."""
    if any(seen.is_error for record in records for seen in record.seen):
        return False
    scores = [number(record.at("score")) for record in records]
    if None in scores:
        return False
    none, first, second, both = (amount for amount in scores if amount is not None)
    return min(first, second) > none + EPSILON and both > max(first, second) + EPSILON


@relation
def makes_good(records: Sequence[Record], _evidence: Evidence) -> bool:
    """Without damage, with one, with another one, with both: each alone costs something, both less than each."""
    if any(seen.is_error for record in records for seen in record.seen):
        return False
    scores = [number(record.at("score")) for record in records]
    if None in scores:
        return False
    none, first, second, both = (amount for amount in scores if amount is not None)
    return max(first, second) < none - EPSILON and both > max(first, second) + EPSILON


@relation
def is_free(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if a second damage costs nothing although a component still counts it.

    The records are no damage, one damage, another damage and both. Some reward remains to be lost in each of them, and
    a score component tells one damage from two.
    """
    if any(seen.is_error for record in records for seen in record.seen):
        return False
    (none, before), (left, first), (right, _), (both, after) = map(seen_parts, records)
    if none is None or left is None or right is None or both is None:
        return False
    flat = max(left, right, both) - min(left, right, both) <= EPSILON < both < none - EPSILON
    return flat and any(_goes_on(before[name], first[name], after[name]) for name in _shared(before, first, after))


def _shared(*parts: dict[str, float]) -> list[str]:
    return [name for name in parts[0] if all(name in part for part in parts)]


def _goes_on(none: float, amount: float, both: float) -> bool:
    """True if a component keeps rising or keeps falling."""
    return none < amount - EPSILON < both - 2 * EPSILON or none > amount + EPSILON > both + 2 * EPSILON


@check("x.damage_pays", "reward_clipping", needs=("oracle", "state", "tasks", "tools"), value=55)
def damage_pays(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that damage outside the solution never raises the reward and that two damages cost at least one."""
    for task in kinds(ctx, 2):
        ops = ctx.oracle(task) or ()
        if not ops or not ctx.solution_score(task):
            continue
        acts = _elsewhere(ctx, task, ops)
        for begun in dict.fromkeys((0, len(ops) // 2, len(ops) - 1, len(ops))):
            ctx.count_comparisons()
            found = _worth(ctx, task, ops[:begun], acts=acts)
            if found is not None:
                yield found
                return


def _elsewhere(ctx: AuditContext, task: str, ops: Sequence[Op]) -> list[tuple[Op, ...]]:
    """Returns writes to rows that the solution does not touch, each to rows of its own.

    Tables in which the solution makes rows get no new rows from them.
    """
    look = Op("changes", mark="look")
    tried = [op for op in known(ctx, task).acts if op not in ops][:ACTS]
    whole, *records = ctx.play_all(
        [Probe((reset(task), *some, look)) for some in (tuple(ops), *((op,) for op in tried))]
    )
    background = ctx.discovery.background
    taken = _rows(whole.at("look").value, background)
    found: list[tuple[Op, ...]] = []
    for op, record in zip(tried, records, strict=True):
        rows = _rows(record.at("look").value, background)
        if rows and not rows & taken and not any(seen.is_error for seen in record.seen):
            taken |= rows
            found.append((op,))
    return found


def _rows(changes: Any, background: frozenset[str]) -> set[str]:
    """The rows in which something changed; the table, where a row is new, for a new row is like any other."""
    found: set[str] = set()
    for path, sides in changes.items() if is_dict(changes) else ():
        table, *rest = path.split("/")
        if table not in background:
            found.add(table if len(rest) < 2 and sides[0] is None else "/".join((table, *rest[:1])))
    return found


def _worth(ctx: AuditContext, task: str, begun: Sequence[Op], *, acts: Sequence[tuple[Op, ...]]) -> Finding | None:
    probes = [Probe((reset(task), *begun, *act, score())) for act in ((), *acts)]
    scores = [number(record.at("score")) for record in ctx.play_all(probes)]
    none = scores[0]
    if none is None:
        return None
    paid = [act for act, amount in zip(acts, scores[1:], strict=True) if amount is not None and amount > none + EPSILON]
    costs = [
        act for act, amount in zip(acts, scores[1:], strict=True) if amount is not None and amount < none - EPSILON
    ]
    costly = ("makes_good", "is_free") if ctx.attribute("graded") is True else ("makes_good",)
    for rules, some in ((("grows",), paid), (costly, costs)):
        pairs = list(itertools.islice(itertools.combinations(some, 2), 3))
        each = [[(), first, second, (*first, *second)] for first, second in pairs]
        plays = [[Probe((reset(task), *begun, *act, score())) for act in acts] for acts in each]
        for (first, second), probes in zip(pairs, plays, strict=True):
            records = ctx.play_all(probes)
            which = next((rule for rule in rules if RULES[rule](records, Evidence(""))), "")
            if which:
                return _finding(ctx, probes, which, f"{first[0].name} and {second[0].name}", none=none)
    return None


def _finding(ctx: AuditContext, probes: Sequence[Probe], which: str, *names: str, none: float) -> Finding | None:
    text = {
        "grows": "is paid, and twice is paid more",
        "makes_good": "costs something, and twice costs less",
        "is_free": "costs something once, and nothing any more, though it is counted",
    }[which]
    return ctx.finding(
        f"to change data outside the task {text}: {', '.join(names)}",
        *probes,
        relation=f"{__name__}:{which}",
        marks=("score",),
        minimise=0,
        part="V",
        expected=f"at most {none:g}" if which == "grows" else "less for both than for one",
        observed={"without": none},
        teaches="to do damage",
    )


RULES = {"grows": grows, "makes_good": makes_good, "is_free": is_free}
