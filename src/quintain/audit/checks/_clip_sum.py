"""Checks rewards that are sums: components without weight or of the wrong sign, and sums cut off or rounded.

The terms are the components that score() reports; without components, they are the writes of a solution, each done or
not done. A reward that is not a sum is ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.histogram import atom
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, number, reset, score
from quintain.audit.kernel.registry import relation

from ._clip_fit import TIGHT, CutSum, basis, fitted, is_exact, rounded, spoilt
from ._clip_parts import Walk, lost, rises, walks
from ._clip_states import EPSILON, WHOLE, PaidState, counts, parts_of, probe_of, seen_parts

MORE = 6
"""Other writes that are played behind a solution, to see what damage costs."""
PROOF = 24
"""Largest number of states that a finding shows besides the one that deviates."""


# --- relations: each states the bug ---


@relation
def weightless(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the score is a sum in which one component has no weight or the wrong sign."""
    table = _table(records, evidence.data["names"])
    if table is None:
        return False
    rows, totals = table
    fit = fitted(rows, totals)
    place = list(evidence.data["names"]).index(evidence.data["part"])
    if not fit.known[place] or not is_exact(fit, totals):
        return False
    wide = max(row[place] for row in rows) - min(row[place] for row in rows)
    worth = fit.weights[place] * wide
    slack = TIGHT * 10 * max(1.0, max(totals) - min(totals))
    return abs(worth) <= slack if not evidence.data["sign"] else worth * evidence.data["sign"] > slack


@relation
def departs(records: Sequence[Record], evidence: Evidence) -> bool:
    """All scores but the last ones are a sum; those lie at a bound, beyond which the sum lies."""
    table = _table(records, evidence.data["names"], evidence.data.get("rows"))
    if table is None:
        return False
    rows, totals = table
    found = spoilt(rows, totals)
    where = () if found is None else found.top if evidence.data["bound"] == "top" else found.floor
    return len(records) - 1 in where


@relation
def is_rounded(records: Sequence[Record], evidence: Evidence) -> bool:
    """The scores are steps, and nearly a sum of the components, but not that sum."""
    table = _table(records, evidence.data["names"], evidence.data.get("rows"))
    return table is not None and rounded(*table) is not None


def _table(
    records: Sequence[Record], names: Sequence[str], rows: Sequence[Sequence[float]] | None = None
) -> tuple[list[Sequence[float]], list[float]] | None:
    """(parts, scores) of what records saw; None where something is missing."""
    totals: list[float] = []
    found: list[Sequence[float]] = []
    for place, record in enumerate(records):
        paid, parts = seen_parts(record)
        if paid is None or any(name not in parts for name in names) or any(seen.is_error for seen in record.seen[:-1]):
            return None
        totals.append(paid)
        found.append(rows[place] if rows is not None else [parts[name] for name in names])
    return (found, totals) if found and found[0] else None


# --- a sum of components ---


class Sum(msgspec.Struct, frozen=True):
    """States, and the parts of which their scores may be the sum.

    Attributes:
        names: Of the components; empty where the parts are what is done.
        rows: One per state.
        known: Names of which no other component, nor several together, say the same.
    """

    states: tuple[PaidState, ...]
    names: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    known: frozenset[str] = frozenset()

    @property
    def totals(self) -> list[float]:
        """Returns the scores of the states."""
        return [state.score for state in self.states]


@check("x.reward_is_a_sum", "reward_clipping", needs=("oracle", "tasks"), value=72, severity="warning")
def weighted(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a weighted-sum reward holds in each state and that each component has a weight of its sign."""
    walked = walks(ctx)
    states = [state for _, _, paid in walked for state in paid]
    ctx.count_comparisons(len(states))
    for table in _tables(ctx, walked, states):
        found = [*_weights(ctx, states, table), *_departures(ctx, table)]
        yield from found
        if found:
            return


def _tables(ctx: AuditContext, walked: Sequence[Walk], every: Sequence[PaidState]) -> list[Sum]:
    """Returns candidate sums: of components over all tasks or per task, else of the writes that are done."""
    if not any(state.parts for state in every):
        found = [_of_writes(writes, paid) for _, writes, paid in walked]
        return [table for table in found if table is not None]
    states = [state for state in (*every, *_further(ctx, [task for task, _, _ in walked])) if state.parts]
    whole = _of_components(states)
    if whole is not None and spoilt(whole.rows, whole.totals) is not None:
        return [whole]
    each = [[state for state in states if state.task == task] for task, _, _ in walked]
    found = [_of_components(states) for states in each if states]
    return [table for table in found if table is not None]


def _further(ctx: AuditContext, tasks: Sequence[str]) -> list[PaidState]:
    """Some tasks, begun and solved, with a write more that belongs to none of their solutions."""
    found: list[PaidState] = []
    for task in tasks[:3]:
        ops = ctx.oracle(task) or ()
        acts = [
            call.op for call in ctx.discovery.writes() if call.task == task and not call.before and call.op not in ops
        ]
        plays = [(*begun, act) for act in acts[:MORE] for begun in ((), ops)]
        for play, record in zip(plays, ctx.play_all([_scored(task, play) for play in plays]), strict=True):
            paid = number(record.at("score"))
            if paid is not None and not any(seen.is_error for seen in record.seen):
                found.append(PaidState(task, play, paid, parts_of(record.at("score")), frozenset()))
    return found


def _scored(task: str, ops: Sequence[Op]) -> Probe:
    return Probe((reset(task), *ops, score()))


def _of_components(states: Sequence[PaidState]) -> Sum | None:
    """Returns a sum of the components in all states, without those that repeat the score before or after a cut."""
    names = [name for name in states[0].parts if all(name in state.parts for state in states)]
    names = [name for name in names if name.rpartition(".")[2].lower() not in WHOLE]
    names = [name for name in names if any(abs(state.parts[name] - state.score) > EPSILON for state in states)]
    rows = [[state.parts[name] for name in names] for state in states]
    kept = [names[place] for place in basis(rows)]
    if not kept:
        return None
    own = fitted(rows, [state.score for state in states]).known
    found = _distinct(states, kept, [tuple(state.parts[name] for name in kept) for state in states])
    return msgspec.structs.replace(
        found, known=frozenset(name for name, is_own in zip(names, own, strict=True) if is_own)
    )


def _of_writes(writes: Sequence[int], paid: Sequence[PaidState]) -> Sum | None:
    """Returns a sum over the writes of one task, or None if too few states are known."""
    rows = [tuple(float(place in state.done) for place in writes) for state in paid]
    if len(writes) < 3 or not rows or len(basis(rows)) < len(writes):
        return None
    return _distinct(paid, (), rows)


def _distinct(states: Sequence[PaidState], names: Sequence[str], rows: Sequence[tuple[float, ...]]) -> Sum:
    """One state for each row and score."""
    first: dict[tuple[tuple[float, ...], float], int] = {}
    for place, (row, state) in enumerate(zip(rows, states, strict=True)):
        first.setdefault((row, state.score), place)
    kept = first.values()
    return Sum(tuple(states[place] for place in kept), tuple(names), tuple(rows[place] for place in kept))


def _weights(ctx: AuditContext, states: Sequence[PaidState], table: Sum) -> Iterator[Finding | None]:
    """Components without weight or of the wrong sign, other than those of which two states alone show it."""
    found = spoilt(table.rows, table.totals)
    if found is None or not table.names:
        return
    whole = [name for name in states[0].parts if name.rpartition(".")[2].lower() in WHOLE]
    kept = [table.states[place] for place in found.kept]
    for place, name in enumerate(table.names):
        values = [table.rows[amount][place] for amount in found.kept]
        worth = found.fit.weights[place] * (max(values) - min(values))
        ctx.count_comparisons()
        if name not in table.known or not counts(name) or lost(states, name, whole) is not None:
            continue
        slack = TIGHT * 10 * max(1.0, max(table.totals) - min(table.totals))
        way = 1 if rises(states, name) else -1 if rises([_turned(state, name) for state in states], name) else 0
        is_score = min(values) >= 0 and max(values) <= 1
        if abs(worth) <= slack and way:
            title, sign = f"component {name} has no weight in the reward, which is a sum of the others", 0
        elif way and worth * way < -slack:
            title, sign = f"component {name} has the wrong sign: the reward gets smaller as it gets better", -way
        else:
            continue
        yield ctx.finding(
            title,
            *map(probe_of, _few(kept, name)),
            relation=f"{__name__}:weightless",
            marks=("score",),
            data={"names": list(table.names), "part": name, "sign": sign},
            minimise=0,
            part="V",
            expected=f"a weight {'above' if way > 0 else 'below'} 0",
            observed={field: round(weight, 6) for field, weight in zip(table.names, found.fit.weights, strict=False)},
            teaches="that this does not count" if not sign else "to do worse",
            at_most="likely" if way > 0 and is_score else "hint",
        )


def _turned(state: PaidState, name: str) -> PaidState:
    parts = {part: -value if part == name else value for part, value in state.parts.items()}
    return msgspec.structs.replace(state, parts=parts)


def _few(kept: Sequence[PaidState], name: str) -> Sequence[PaidState]:
    """States enough for the fit, those first in which the component takes another value."""
    ordered = sorted(kept, key=lambda state: state.parts[name] == kept[0].parts[name])
    return ordered if len(ordered) <= PROOF else [*ordered[: PROOF // 2], *ordered[-PROOF // 2 :]]


# --- where the sum is left ---


def _departures(ctx: AuditContext, table: Sum) -> Iterator[Finding | None]:
    found = spoilt(table.rows, table.totals)
    if found is not None:
        yield from _cut_off(ctx, table, found)
        return
    # Work done is stepwise itself, so only reported components show that a sum was rounded.
    near = rounded(table.rows, table.totals) if table.names else None
    if near is not None and len(table.states) <= 2 * PROOF:
        fit, step = near
        off = max(range(len(fit.off)), key=lambda place: abs(fit.off[place]))
        yield _departed(
            ctx,
            f"the reward is rounded to steps of {step:g}: it is nearly, and not quite, a sum of its parts",
            table,
            chosen=range(len(table.states)),
            relation="is_rounded",
            bound="",
            stated={"sum": round(fit.at(table.rows[off]), 4), "score": table.totals[off]},
        )


def _cut_off(ctx: AuditContext, table: Sum, found: CutSum) -> Iterator[Finding | None]:
    is_graded = ctx.attribute("graded") is True
    for bound, places in (("top", found.top), ("floor", found.floor)):
        if not places or (bound == "top" and _is_plateau(table, places)):
            continue
        edge = max(table.totals) if bound == "top" else min(table.totals)
        sums = [found.fit.at(table.rows[place]) for place in places]
        far = places[max(range(len(places)), key=lambda amount: abs(sums[amount] - edge))]
        kept = found.kept if len(found.kept) <= PROOF else found.kept[:: -(-len(found.kept) // PROOF)]
        both = {table.totals.index(max(table.totals)), table.totals.index(min(table.totals))} - {far}
        yield _departed(
            ctx,
            f"the reward is a sum that is cut off at {edge:g}: states whose sums differ are paid the same",
            table,
            chosen=[*(index for index in range(len(table.states)) if index in {*kept, *both}), far],
            relation="departs",
            bound=bound,
            stated={"score": edge, "sums": sorted({round(sum_, 4) for sum_ in sums})},
            at_most="likely" if bound == "top" or is_graded else "hint",
        )


def _is_plateau(table: Sum, places: Sequence[int]) -> bool:
    """True if nearly complete work is paid like complete work, which `x.ladder` reports."""
    if table.names:
        return False
    most = max(sum(row) for row in table.rows)
    return any(sum(table.rows[place]) == most - 1 for place in places)


def _departed(
    ctx: AuditContext,
    title: str,
    table: Sum,
    *,
    chosen: Sequence[int],
    relation: str,
    bound: str,
    stated: Any,
    at_most: str = "hint",
) -> Finding | None:
    rows = None if table.names else [list(table.rows[place]) for place in chosen]
    return ctx.finding(
        title,
        *(probe_of(table.states[place]) for place in chosen),
        relation=f"{__name__}:{relation}",
        marks=("score",),
        data={"names": list(table.names), "rows": rows, "bound": bound},
        minimise=0,
        part="V",
        expected="the sum itself",
        observed=stated,
        teaches="that further work there is worth nothing: these states have equal rewards",
        at_most=at_most,
    )


# --- a histogram ---


@check("x.rewards_do_not_pile_up", "reward_clipping", needs=("oracle", "tasks"), value=61, severity="note")
def pile(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that states of different progress do not pile up at a bound where rewards are declared as graded."""
    walked = walks(ctx)
    every = [state for _, _, paid in walked for state in paid]
    ctx.count_comparisons(len(every))
    if ctx.attribute("graded") is not True:
        return  # A reward of few levels, or one that is paid from some point on, is legitimate.
    for task, writes, paid in walked:
        scores = [state.score for state in paid]
        table = _of_writes(writes, paid)
        if table is not None and spoilt(table.rows, table.totals) is not None:
            continue  # `x.reward_is_a_sum` says it.
        found = atom(scores)
        there = [state for state in paid if state.score == found]
        sizes = sorted({len(state.done) for state in there})
        # What is cut at the top `x.ladder` says.
        if found is None or found != min(scores) or len(sizes) < 3 or len(writes) < 4:
            continue
        yield ctx.finding(
            f"rewards pile up at {found:g}: {len(there)} of {len(paid)} states of a task, hardly any beside it",
            tasks=(task,),
            part="V",
            expected="rewards that tell these states apart",
            observed={"done": sizes, "rewards": dict(Counter(f"{state.score:g}" for state in paid).most_common(8))},
            teaches="nothing between these states: their rewards are equal",
            at_most="hint",
        )
        return
