"""Checks for unsolvable and trivial tasks: unpaid right solutions, and rewards for no action.

The floor and the ceiling are measured: the oracle is played with its errors visible, and an idle episode is played
beside it. Between them stand the useful tasks; a task outside teaches noise.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.walks import TOP, Fact, beyond, facts, play_tasks
from quintain.audit.kernel import relations
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, answer, number, reset, same, score
from quintain.audit.kernel.registry import relation

from ._drift_words import show
from ._reward_runs import SURE, UNSURE, paid_unlike
from ._unsolv_cut import whole_texts
from ._unsolv_gold import gold_rule, refused_look, strictness

__all__ = ["gold_rule", "refused_look", "strictness", "whole_texts"]

_PAIRS = 36  # Pairs of a task and a seed in which the solution is played, where not all tasks can be tried.
_MAX_TASKS = 30  # Number of tasks up to which all are tried, under three seeds each.
_IDLE = 48  # Pairs of a task and a seed in which nothing is done.
_MAX_SEEDS = 12  # Seeds of one task in which nothing is done.


@check("x.solved_under_seeds", "unsolvable", needs=("oracle", "tasks"), value=26)
def solved_under_seeds(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution of a task under one seed works under others."""
    full = {task: fact.full for task, fact in facts(ctx).items() if fact.full is not None and fact.full > 0}
    if max(full.values(), default=0.0) > 1.0 + 1e-9:
        raise ctx.not_checked("rewards go beyond 1: the best under a seed is unknown")
    few = ctx.about.count <= _MAX_TASKS
    every = ctx.tasks_at(range(ctx.about.count)) if few else ctx.sample_tasks(_PAIRS)
    if few:
        full |= {task: fact.full for task, fact in beyond(ctx).items() if fact.full is not None}
        known = {task: ctx.solution_score(task) for task in every if task not in full}
        full |= {task: paid for task, paid in known.items() if paid is not None}
    tasks = [task for task in every if full.get(task, 0.0) > 0]
    pairs = list(_pairs(tasks, max(_PAIRS, 3 * len(tasks)) if few else _PAIRS, most=3))
    if not pairs:
        raise ctx.not_checked("no solution is paid under the first seed")
    played = [(*pair, fact) for pair, fact in zip(pairs, play_tasks(ctx, pairs, plays="solution"), strict=True)]
    solved = [item for item in played if item[2].solution == "known"]
    looked, share = len(solved), 2 if ctx.attribute("graded") else 1
    lost = [item for item in solved if item[2].full is None or item[2].full < full[item[0]] / share - 1e-9]
    ctx.count_comparisons(looked)
    # A solution that fails under most seeds was written for one of them; so was the reward that differs everywhere.
    usual = len(lost) <= looked / 3
    if lost:
        task, seed, fact = lost[0]
        yield paid_unlike(
            ctx, "a task's own solution is paid under one seed and not under another",
            Probe((reset(task, seed=seed), *fact.ops, score())), solves(task, ctx.oracle(task) or ()),
            paid=("lost", "full"), full=full[task], works=False, part="T", **(SURE if usual else UNSURE),
            tasks=[item[0] for item in lost], expected=f"{full[task]:g}, as under seed 0",
            observed=f"{fact.full} under seed {seed}; {len(lost)} of {looked} pairs of a task and a seed",
            teaches="nothing in episodes that cannot be solved",
        )  # fmt: skip


@check("x.idle_under_seeds", "unsolvable", needs=("tasks",), value=49)
def idle_under_seeds(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an idle episode unpaid under one seed is unpaid under all seeds."""
    known = facts(ctx)
    if max([0.0, *(paid for fact in known.values() for paid in (fact.full, fact.floor) if paid)]) > TOP + 1e-9:
        raise ctx.not_checked("rewards go beyond 1: the best under a seed is unknown")
    ceiling = {task: fact.full if fact.full is not None and fact.full > 0 else TOP for task, fact in known.items()}
    poor = {task for task, fact in known.items() if fact.floor is not None and fact.floor < ceiling[task] - 1e-9}
    may_rest = bool(ctx.attribute("refusal_ok"))
    tasks = [task for task in ctx.sample_tasks(_IDLE) if task in poor and not (may_rest and not known[task].calls)]
    pairs = list(_pairs(tasks, _IDLE if ctx.about.count <= _MAX_TASKS else _IDLE // 2, most=_MAX_SEEDS))
    if not pairs:
        raise ctx.not_checked("no task pays less for nothing than for its solution")
    paid = [fact.floor for fact in play_tasks(ctx, pairs, plays="idle")]
    ctx.count_comparisons(len(pairs))
    free = [pair for pair, got in zip(pairs, paid, strict=True) if got is not None and got >= ceiling[pair[0]] - 1e-9]
    # Without a solution beside it, more than 1 shows that 1 was never the best.
    if free and max(item for item in paid if item is not None) <= TOP + 1e-9:
        task, seed = free[0]
        yield paid_unlike(
            ctx, "doing nothing is paid as much as solving the task, under some seeds",
            Probe((reset(task, seed=seed), score())), Probe((reset(task), score())), paid=("full", "less"),
            full=ceiling[task], works=False, part="T", tasks=list(dict.fromkeys(text for text, _ in free)),
            expected=f"less than {ceiling[task]:g}, as under seed 0",
            observed=f"{ceiling[task]:g} or more in {len(free)} of {len(pairs)} pairs of a task and a seed",
            teaches="to do nothing",
        )  # fmt: skip


def _pairs(tasks: Sequence[str], count: int, *, most: int) -> Iterator[tuple[str, int]]:
    """Up to so many pairs of a task and a seed: each task in its turn, under a seed that no other one has."""
    # Coprime to small numbers, so that a task meets odd seeds and even ones, and all that remains of a third.
    step = next(step for step in itertools.count(max(len(tasks), 1)) if math.gcd(step, 30) == 1)
    rounds = range(min(most, -(-count // len(tasks)))) if tasks else ()
    yield from [(task, 1 + place + turn * step) for turn in rounds for place, task in enumerate(tasks)][:count]


@check("semantic.oracle_max", "unsolvable", needs=("oracle", "tasks"), value=86)
def oracle_max(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each task's own solution works and earns the highest reward."""
    known = {task: fact for task, fact in facts(ctx).items() if fact.solution == "known"}
    if not known and all(fact.solution == "none" for fact in facts(ctx).values()):
        raise ctx.not_checked("no task has a solution")
    top = max([min(TOP, ctx.attribute("best", TOP)), *(fact.full for fact in known.values() if fact.full is not None)])
    other_fields = beyond(ctx)
    ctx.count_comparisons(len(ctx.tasks) + len(other_fields))
    known |= {task: fact for task, fact in other_fields.items() if fact.solution == "known"}
    # Where rewards exceed 1 the best is unknown, and only 0 is too little.
    enough = top - 1e-9 if top <= TOP else 0.0
    poor = [task for task, fact in known.items() if fact.full is None or fact.full < enough or fact.full <= 0]
    faults: dict[str, list[tuple[str, tuple[Op, ...], Record]]] = defaultdict(list)
    for task, ops, record in _replayed(ctx, poor):
        faults[_why(ops, record, top)].append((task, ops, record))
    usual = len(known) >= 4 and len(poor) <= len(known) / 4
    for said, found in faults.items():
        if said:
            yield _unpaid(ctx, said, found, top=top, usual=usual)
    yield from _broken_oracles(ctx)


def _replayed(ctx: AuditContext, tasks: Sequence[str]) -> list[tuple[str, tuple[Op, ...], Record]]:
    known = [(task, ops) for task in tasks[:40] if (ops := ctx.oracle(task)) is not None]
    records = ctx.play_all([solves(task, ops) for task, ops in known])
    return [(*pair, record) for pair, record in zip(known, records, strict=True)]


def _unpaid(
    ctx: AuditContext, said: str, found: Sequence[tuple[str, tuple[Op, ...], Record]], *, top: float, usual: bool
) -> Finding | None:
    """Returns a finding for an underpaid solution.

    A graded reward of more than a half may be the best there is, where others get no more and every step worked.
    """
    task, ops, record = found[0]
    seen, worked = record.at("score"), said.startswith("is not paid")
    errors = [(op, result) for op, result in zip(ops, record.seen[1:], strict=False) if result.is_error]
    first_error = next((f"{op.name or op.do}: {result.raised or result.value}" for op, result in errors), "none")
    nearly = bool(ctx.attribute("graded")) and (number(seen) or 0.0) >= top / 2 and worked and not usual
    return ctx.finding(
        f"the task's own solution {said}", solves(task, ops), relation="pays_less", marks=("score",), data=top,
        minimise=0, part="S" if "crashes in" in said else "T" if "is refused" in said else "V",
        **(UNSURE if nearly else SURE), tasks=[task for task, _, _ in found], expected=f"a reward of {top:g}",
        observed={"score": seen.value if seen.fine else seen.raised, "first error": first_error[:500]},
        teaches="nothing: right work is punished, and the gradient comes from wrong work",
        where=next((result.where for result in record.seen if result.how == "crashed"), ""),
    )  # fmt: skip


def _why(ops: Sequence[Op], record: Record, top: float) -> str:
    seen = record.at("score")
    paid = number(seen)
    if paid is not None and not paid < top - 1e-9:
        return ""
    for op, result in zip(ops, record.seen[1:], strict=False):
        if result.how == "crashed":
            return f"crashes in {op.name or op.do} ({result.raised.partition(':')[0]})"
        if result.is_error:
            return f"is refused by {op.name or op.do}"
    if seen.how:
        return f"ends in a score that {'never comes' if seen.how == 'hung' else 'crashes'}"
    return "gets no verdict" if paid is None else "is not paid in full"


def _broken_oracles(ctx: AuditContext) -> Iterator[Finding | None]:
    broken = [task for task, fact in facts(ctx).items() if fact.solution == "broken"]
    if broken:
        first = ctx.play(Op("oracle", name=broken[0], mark="oracle")).at("oracle")
        yield ctx.finding(
            "the solution of a task cannot be had: oracle() raises",
            Probe((Op("oracle", name=broken[0], mark="oracle"),)), marks=("oracle",), part="T", tasks=broken,
            relation="breaks" if relations.breakage(first) else "shows", data=relations.breakage(first) or None,
            expected="a list of calls, or None", observed=first.raised, where=first.where,
        ) if first.how else None  # fmt: skip
    lacking = [task for task, fact in facts(ctx).items() if fact.solution == "none"]
    if lacking:
        yield ctx.finding(
            "tasks have no solution, so it is unknown whether they can be solved", part="T", severity="note",
            at_most="hint", tasks=lacking, expected="a solution of each task",
            observed=f"{len(lacking)} of {len(ctx.tasks)} have none",
        )  # fmt: skip


@check("semantic.floor_gap", "unsolvable", needs=("tasks",), value=28)
def floor_gap(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that doing nothing, or saying nothing, is not paid like solving."""
    idle = {task: fact.floor for task, fact in _known(ctx).items()}
    ctx.count_comparisons(len(idle))
    yield from _for_nothing(ctx, "doing nothing", (), paid=idle)
    tasks = [task for task in ctx.sample_tasks(20) if not _is_full(ctx, task, idle[task])]
    for said, text in (("an empty answer", ""), ("the word 'done' alone", "Done.")) if "answer" in ctx.offers else ():
        records = ctx.play_all([solves(task, (answer(text),)) for task in tasks])
        ctx.count_comparisons(len(tasks))
        paid = {task: number(record.at("score")) for task, record in zip(tasks, records, strict=True)}
        yield from _for_nothing(ctx, said, (answer(text),), paid=paid)


def _for_nothing(
    ctx: AuditContext, said: str, ops: tuple[Op, ...], *, paid: dict[str, float | None]
) -> Iterator[Finding | None]:
    found = [task for task, got in paid.items() if _is_full(ctx, task, got)]
    if ctx.attribute("refusal_ok"):  # No action is right where the solution itself makes no call.
        found = [task for task in found if _known(ctx)[task].calls]
    for task in found[:1]:
        yield ctx.finding(
            f"{said} is paid as much as solving the task", solves(task, ops), relation="pays", marks=("score",),
            data=_ceiling(ctx, task), part="V", tasks=found, expected=f"less than {_ceiling(ctx, task):g}",
            observed=paid[task], teaches="to do nothing",
        )  # fmt: skip


def _known(ctx: AuditContext) -> dict[str, Fact]:
    return facts(ctx) | beyond(ctx)


def _is_full(ctx: AuditContext, task: str, got: float | None) -> bool:
    return got is not None and got > 0 and got >= _ceiling(ctx, task) - 1e-9


def _ceiling(ctx: AuditContext, task: str) -> float:
    """Returns the full reward: that of the solution, if positive."""
    full = _known(ctx)[task].full
    return full if full is not None and full > 0 else TOP


@check("x.budget", "unsolvable", needs=("oracle", "tasks"), value=85)
def budget(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the solution fits into the number of calls that an episode allows."""
    allowed = ctx.attribute("budget")
    if not isinstance(allowed, int):
        raise ctx.not_checked("no budget of calls is declared")
    over = [task for task, fact in facts(ctx).items() if fact.calls > allowed]
    ctx.count_comparisons(sum(fact.solution == "known" for fact in facts(ctx).values()))
    if over:
        yield show(
            ctx, "the solution takes more calls than an episode allows", longer_than_allowed,
            Probe((Op("oracle", name=over[0], mark="oracle"),)), marks=("oracle",), data=allowed, part="C", tasks=over,
            expected=f"at most {allowed} calls", observed=f"{facts(ctx)[over[0]].calls} calls",
            teaches="to give up halfway", minimise=40,
        )  # fmt: skip


@relation
def longer_than_allowed(records: Sequence[Record], evidence: Evidence) -> bool:
    """The oracle at the mark has more calls than `data`."""
    ops: Any = records[0].at(evidence.marks[0]).value
    return is_list(ops) and sum(1 for op in ops if is_dict(op) and op.get("do") == "call") > int(evidence.data)


@check("x.task_set", "unsolvable", value=29)
def task_set(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that tasks exist, that each has a whole prompt, and that equal prompts want the same."""
    tasks = ctx.sample_tasks(20)
    ctx.count_comparisons(1 + len(tasks))
    if not ctx.tasks:
        yield ctx.finding(
            "the subject has no tasks", part="T", expected="at least one task", observed="tasks() is empty"
        )
        return
    hides = "hidden" in ctx.offers
    looks = [name for name in ("prompt", *_eyes(ctx)[:1], "hidden") if name in ctx.offers]
    read = ("first", "prompt") if "prompt" in ctx.offers else ("first",)
    probes = [
        Probe((reset(task, mark="first"), *(Op(look, name="" if look in _EYES else task, mark=look) for look in looks)))
        for task in tasks
    ]
    by_sight: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for task, probe, record in zip(tasks, probes, ctx.play_all(probes), strict=True):
        # A case of a scorer need not tell it what was asked.
        if ctx.about.kind != "scorer" and says_nothing([record], Evidence("", read)):
            yield show(
                ctx, "a task says nothing to the agent", says_nothing, probe, marks=read, part="T", expected="a prompt",
                observed=record.at(read[-1]).value, teaches="to guess", minimise=40,
            )  # fmt: skip
            continue
        sight = repr([record.at(mark).content() for mark in (*read, *_eyes(ctx)[:1])])
        truth = repr(record.at("hidden").content()) if hides else repr(ctx.oracle(task))
        by_sight[sight].append((task, truth))
    for alike in by_sight.values():
        paid = [pair for pair in alike if (facts(ctx)[pair[0]].full or 0.0) > 0]
        if len({truth for _, truth in paid}) > 1:
            yield _contradiction(ctx, paid)


_EYES = ("digest", "state")


def _eyes(ctx: AuditContext) -> list[str]:
    return [name for name in _EYES if name in ctx.offers]


@relation
def says_nothing(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the op at each mark gave an empty result."""
    seen = [records[0].at(mark) for mark in evidence.marks]
    return all(one.fine and (one.value in (None, {}, []) or not str(one.value).strip()) for one in seen)


def _contradiction(ctx: AuditContext, alike: Sequence[tuple[str, str]]) -> Finding | None:
    """Two of them, of which one's solution reads the same in the other, and is not paid there."""
    first, *other_tasks = [task for task, _ in alike]
    own_ops = ctx.oracle(first) or ()
    # Where the world cannot be seen, it may hold what tells them apart.
    is_sure = bool(_eyes(ctx)) and len(own_ops) > 1
    marked = tuple(op.marked(f"said {place}") for place, op in enumerate(own_ops))
    marks = ("score", *(op.mark for op in marked))
    for other_task in other_tasks if own_ops else ():
        probes = (solves(other_task, marked), solves(first, marked), solves(other_task, ctx.oracle(other_task) or ()))
        if contradicts(ctx.play_all(probes), Evidence("", marks, None, ctx.volatile)):
            return show(
                ctx, "two tasks look the same to the agent and want different things", contradicts, *probes,
                marks=marks, part="T", **(SURE if is_sure else UNSURE), tasks=[task for task, _ in alike],
                expected="the goal follows from the prompt and the world",
                observed=[truth[:300] for _, truth in alike][:2], teaches="to guess",
            )  # fmt: skip
    return None


@relation
def contradicts(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a solution reads the same in both tasks and is paid only in its own."""
    abroad, home, _ = records
    mark, *said = evidence.marks
    lost, *paid = (number(record.at(mark)) for record in records)
    worked = not any(seen.is_error for seen in abroad.seen[1:-1])
    alike = all(same(abroad.at(text), home.at(text), evidence.volatile) for text in said)
    return worked and alike and lost is not None and all(got is not None and lost < got - 1e-9 for got in paid)
