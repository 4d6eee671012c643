"""Checks rounding and clipping: states of different quality that are paid the same or in the wrong order.

The oracle is a ladder. Each of its rungs left out, or taken alone, is a state that is more or less done, and the
components of a reward say more than the reward. Rewards of two levels are legitimate: what is said of them needs either
the author's word that they are graded, or components and levels that show it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from quintain.audit.facts.acts import scalars
from quintain.audit.facts.data import is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding

from ._clip_near import APPROXIMATE, near
from ._clip_states import EPSILON, FLAT, PaidState, is_graded, levels, paid_by, walks
from ._clip_work import damage_pays, half_filled
from ._reward_runs import SURE, Solution, lacking, runs, solve, weight

LEAST, MAX_WRITES = 4, 7
"""Writes of a group that counts, for with three of many a goal that demands all looks like a floor; and of the search.

A group is writes of which every choice of so many is paid alike: goals that demand certain things together depend on
which are done. A count that goes up while the reward stays, or falls, was rounded, floored or cut off.
"""

_FEWER = re.compile(rf"{APPROXIMATE.pattern}|suffic|\boptional|\b[Aa]ny (?:two|three|four|\d)")
"""Words of a prompt after which less than all may be enough."""

By = dict[frozenset[int], PaidState]
Rung = tuple[str, Finding | None]


@check("x.ladder", "reward_clipping", needs=("oracle", "tasks"), value=67)
def ladder(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each further right thing raises the reward, where rewards have more than two levels."""
    walked = walks(ctx)
    every = [state for _, _, paid in walked for state in paid]
    ctx.count_comparisons(len(every))
    graded = is_graded(ctx, every)  # All or nothing is a legitimate reward.
    reported: set[str] = set()
    for _, writes, paid in walked:
        by = {state.done: state for state in paid}
        for kind, finding in (*_all_but_one(ctx, writes, by), *(_rungs(ctx, writes, paid) if graded else ())):
            if kind not in reported and finding is not None:
                reported.add(kind)
                yield finding


def _rungs(ctx: AuditContext, writes: Sequence[int], paid: Sequence[PaidState]) -> Iterator[Rung]:
    by = {state.done: state for state in paid}
    whole, nothing = by.get(frozenset(writes)), by.get(frozenset())
    if whole is None or nothing is None or len(writes) < 2 or whole.score <= nothing.score + EPSILON:
        return
    seen = levels([state.score for state in paid])
    if ctx.attribute("graded") is True and len(seen) == 2 and len(writes) >= 3 and len(paid) >= 5:
        yield "two", _two(ctx, paid, whole=whole, nothing=nothing)
        return
    middle = next((state for state in paid if nothing.score + EPSILON < state.score < whole.score - EPSILON), nothing)
    for place in sorted(_worth(by)) if len(seen) > 2 else ():
        short = by.get(whole.done - {place})
        if short is not None and abs(short.score - whole.score) <= EPSILON:
            yield "top", _plateau(ctx, short, whole, others=[nothing, middle])
    yield from _uncounted(ctx, writes, by)


def _all_but_one(ctx: AuditContext, writes: Sequence[int], by: By) -> Iterator[Rung]:
    """Any one of some calls by one tool may be left out for free, and no two; the prompt asks for each."""
    if (whole := by.get(frozenset(writes))) is None:
        return
    names = [op.name for op in whole.ops]
    for name in dict.fromkeys(names[place] for place in writes):
        group = [place for place in writes if names[place] == name]
        single = [by[done] for place in group if (done := whole.done - {place}) in by]
        pairs = [by[done] for two in itertools.combinations(group, 2) if (done := whole.done - {*two}) in by]
        full = [state for state in (*single, *pairs) if state.score >= whole.score - EPSILON]
        if not name or not len(group) == len(single) >= 3 or full != single or not pairs:
            continue
        less = [state for state in single if pairs[0].done < state.done]
        if all(_lacks_asked(ctx, state) for state in less):
            finding = paid_by(
                ctx, "rounds", f"any one of {len(group)} calls of {name} may be left out, and no two: it is rounded",
                *(state.probe for state in (*less, pairs[0], whole)), expected="less for each call that is left out",
                observed=f"{whole.score:g} without any one", teaches="to leave out work that rounding pays for",
            )  # fmt: skip
            yield "rounded", finding


def _worth(by: By) -> set[int]:
    """Writes that make some state better."""
    pairs = [(place, state, by.get(done - {place})) for done, state in by.items() for place in done]
    return {place for place, state, without in pairs if without and state.score > without.score + EPSILON}


def _two(ctx: AuditContext, paid: Sequence[PaidState], *, whole: PaidState, nothing: PaidState) -> Finding | None:
    chosen = sorted(paid, key=lambda state: len(state.done))[:12]
    chosen += [whole] if whole not in chosen else []
    return paid_by(
        ctx, "two_levels",
        "rewards are declared graded, but a task pays one of two amounts, however much of it is done",
        *(state.probe for state in chosen), data=5,
        expected=f"something between {nothing.score:g} and {whole.score:g} for what is half done",
        observed={str(len(state.done)): state.score for state in chosen}, teaches=FLAT,
    )  # fmt: skip


def _plateau(ctx: AuditContext, less: PaidState, more: PaidState, *, others: Sequence[PaidState]) -> Finding | None:
    last = [op.name or op.do for op in more.ops if op not in less.ops]
    return paid_by(
        ctx, "stays",
        f"{last[0] if last else 'one more right thing'} is worth nothing there, though it is elsewhere: "
        f"{less.score:g} before it and after it",
        *(state.probe for state in (less, more, *others)), data=3, expected=f"more than {less.score:g}",
        observed=more.score, teaches=FLAT,
        at_most="proven" if ctx.attribute("graded") is True or _lacks_asked(ctx, less) else "likely",
    )  # fmt: skip


def _lacks_asked(ctx: AuditContext, state: PaidState) -> bool:
    """True if a state lacks what the prompt asks for; a bonus is not asked for, and a bound may be met with less."""
    known = [(one, runs(ctx, one, [state.ops])[0]) for one in solve(ctx, [state.task])]
    return any(weight(one, lacking(one, run)) == SURE and not _may_do(one, state) for one, run in known)


def _may_do(solution: Solution, state: PaidState) -> bool:
    """True if a prompt has a bound that a state may meet: calls without a number do not count towards 85 percent."""
    gives = any(is_number(leaf) for op in solution.ops if op not in state.ops for leaf in scalars(op.value))
    sizes = [re.match(r" (\d+)", solution.prompt[found.end() :]) for found in _FEWER.finditer(solution.prompt)]
    return any(gives or size is None or int(size[1]) <= len(solution.ops) for size in sizes)


def _uncounted(ctx: AuditContext, writes: Sequence[int], by: By) -> Iterator[Rung]:
    """A plateau or a fall in what is paid for so many writes of a group."""
    is_declared = ctx.attribute("graded") is True
    group = _group(writes, by, LEAST if is_declared and len(writes) > LEAST else max(3, len(writes)))
    steps = [(count, some) for count in range(len(group) + 1) if group and (some := _of_size(group, by, count))]
    rises = sum(more[0].score > less[0].score + EPSILON for (_, less), (_, more) in itertools.pairwise(steps))
    for (count, less), (further, more) in itertools.pairwise(steps):
        gain = more[0].score - less[0].score
        is_less = gain < -EPSILON
        if further != count + 1 or gain > EPSILON or not (is_declared if is_less else rises >= 2):
            continue
        others = [some[0] for size, some in steps if size not in (count, further)]
        how = "less" if is_less else "no more"
        yield "uncounted", paid_by(
            ctx, "does_not_count", f"of things that are worth the same any {further} are paid {how} than any {count}",
            *(state.probe for state in (*less[:2], *more[:2], *others)), data=[len(less[:2]), len(more[:2])],
            expected=f"more than {less[0].score:g}", observed={str(size): some[0].score for size, some in steps},
            teaches=FLAT, at_most="proven" if is_declared else "likely",
        )  # fmt: skip
        return


def _group(writes: Sequence[int], by: By, least: int) -> tuple[int, ...]:
    """Returns the largest group of writes whose known subsets of equal size are paid alike."""
    for size in range(min(len(writes), MAX_WRITES), least - 1, -1):
        for group in itertools.combinations(writes[:MAX_WRITES], size):
            if all(_is_even(group, by, count) for count in range(1, size)):
                return group
    return ()


def _is_even(group: Sequence[int], by: By, count: int) -> bool:
    """Several choices of so many are known, each write has a part in one, and all are paid alike."""
    found = _of_size(group, by, count)
    parts, amounts = frozenset[int]().union(*(state.done for state in found)), [state.score for state in found]
    return len(found) > 1 and (count == 1 or parts == frozenset(group)) and max(amounts) - min(amounts) <= EPSILON


def _of_size(group: Sequence[int], by: By, count: int) -> list[PaidState]:
    return [by[done] for some in itertools.combinations(group, count) if (done := frozenset(some)) in by]


__all__ = ["damage_pays", "half_filled", "ladder", "near"]
