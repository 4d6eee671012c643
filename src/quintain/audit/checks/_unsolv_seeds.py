"""Checks that a task is the same under every seed: its solution works, and an idle episode is unpaid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, ask, reset, score

from ._reward_facts import TOP, beyond, facts

_PAIRS = 36
"""Pairs of a task and a seed in which the solution is played, where not all tasks can be tried."""
_MAX_TASKS = 30
"""Number of tasks up to which all are tried, under three seeds each."""
_IDLE = 48
"""Pairs of a task and a seed in which nothing is done."""
_MAX_SEEDS = 12
"""Seeds of one task in which nothing is done."""
_PART = 6


@check("x.solved_under_seeds", "unsolvable", needs=("oracle", "tasks"), value=59)
def solved_under_seeds(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution of a task under one seed works under others."""
    full = {task: fact.full for task, fact in facts(ctx).items() if fact.full is not None and fact.full > 0}
    if max(full.values(), default=0.0) > 1.0 + 1e-9:
        raise ctx.not_checked("rewards go beyond 1: the best under a seed is unknown")
    few = len(ctx.about.tasks) <= _MAX_TASKS
    if few:
        full |= {task: fact.full for task, fact in beyond(ctx).items() if fact.full is not None}
        known = {task: ctx.solution_score(task) for task in ctx.about.tasks if task not in full}
        full |= {task: paid for task, paid in known.items() if paid is not None}
    tasks = [task for task in (ctx.about.tasks if few else ctx.sample_tasks(_PAIRS)) if full.get(task, 0.0) > 0]
    pairs = list(_pairs(tasks, max(_PAIRS, 3 * len(tasks)) if few else _PAIRS, most=3))
    if not pairs:
        raise ctx.not_checked("no solution is paid under the first seed")
    lost: list[tuple[str, int, tuple[Op, ...], float | None]] = []
    looked = 0
    for (task, seed), item in zip(pairs, _played(ctx, "seeded", pairs), strict=True):
        if not item["known"]:
            continue
        looked += 1
        enough = full[task] / 2 if ctx.attribute("graded") else full[task]
        if item["paid"] is None or item["paid"] < enough - 1e-9:
            lost.append((task, seed, tuple(msgspec.convert(item["ops"], list[Op])), item["paid"]))
    ctx.count_comparisons(looked)
    # A solution that fails under most seeds was written for one of them; so was the reward that differs everywhere.
    usual = len(lost) <= looked / 3
    if lost:
        task, seed, ops, paid = lost[0]
        yield ctx.finding(
            "a task's own solution is paid under one seed and not under another",
            Probe((reset(task, seed=seed), *ops, score())),
            Probe((reset(task), *(ctx.oracle(task) or ()), score())),
            relation="quintain.audit.checks._reward_claims:loses_by_seed",
            marks=("score",),
            data=full[task],
            minimise=0,
            part="T",
            severity="error" if usual else "warning",
            at_most="proven" if usual else "likely",
            tasks=[element[0] for element in lost],
            expected=f"{full[task]:g}, as under seed 0",
            observed=f"{paid} under seed {seed}; {len(lost)} of {looked} pairs of a task and a seed",
            teaches="nothing in episodes that cannot be solved",
        )


@check("x.idle_under_seeds", "unsolvable", needs=("tasks",), value=82)
def idle_under_seeds(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an idle episode unpaid under one seed is unpaid under all seeds."""
    known = facts(ctx)
    most = max([0.0, *(number for fact in known.values() for number in (fact.full, fact.floor) if number is not None)])
    if most > TOP + 1e-9:
        raise ctx.not_checked("rewards go beyond 1: the best under a seed is unknown")
    ceiling = {task: fact.full if fact.full is not None and fact.full > 0 else TOP for task, fact in known.items()}
    poor = {task for task, fact in known.items() if fact.floor is not None and fact.floor < ceiling[task] - 1e-9}
    may_rest = bool(ctx.attribute("refusal_ok"))
    tasks = [task for task in ctx.sample_tasks(_IDLE) if task in poor and not (may_rest and not known[task].calls)]
    pairs = list(_pairs(tasks, _IDLE if len(ctx.about.tasks) <= _MAX_TASKS else _IDLE // 2, most=_MAX_SEEDS))
    if not pairs:
        raise ctx.not_checked("no task pays less for nothing than for its solution")
    paid = [item["paid"] for item in _played(ctx, "rested", pairs)]
    ctx.count_comparisons(len(pairs))
    free = [pair for pair, got in zip(pairs, paid, strict=True) if got is not None and got >= ceiling[pair[0]] - 1e-9]
    # Without a solution beside it, more than 1 shows that 1 was never the best.
    if free and max(item for item in paid if item is not None) <= TOP + 1e-9:
        task, seed = free[0]
        yield ctx.finding(
            "doing nothing is paid as much as solving the task, under some seeds",
            Probe((reset(task, seed=seed), score())),
            Probe((reset(task), score())),
            relation="quintain.audit.checks._reward_claims:pays_by_seed",
            marks=("score",),
            data=ceiling[task],
            minimise=0,
            part="T",
            tasks=list(dict.fromkeys(text for text, _ in free)),
            expected=f"less than {ceiling[task]:g}, as under seed 0",
            observed=f"{ceiling[task]:g} or more in {len(free)} of {len(pairs)} pairs of a task and a seed",
            teaches="to do nothing",
        )


def _pairs(tasks: Sequence[str], count: int, *, most: int) -> Iterator[tuple[str, int]]:
    """Up to so many pairs of a task and a seed: each task in its turn, under a seed that no other one has."""
    # Coprime to small numbers, so that a task meets odd seeds and even ones, and all that remains of a third.
    step = next(step for step in itertools.count(max(len(tasks), 1)) if math.gcd(step, 30) == 1)
    rounds = range(min(most, -(-count // len(tasks)))) if tasks else ()
    every = [(task, 1 + place + turn * step) for turn in rounds for place, task in enumerate(tasks)]
    yield from every[:count]


def _played(ctx: AuditContext, how: str, pairs: Sequence[tuple[str, int]]) -> list[Any]:
    parts = [pairs[start : start + _PART] for start in range(0, len(pairs), _PART)]
    played = f"quintain.audit.checks._reward_facts:{how}"
    probes = [Probe((ask(played, [list(item) for item in part]),)) for part in parts]
    found: list[Any] = []
    for part, record in zip(parts, ctx.play_all(probes), strict=True):
        seen = record.at("ask")
        found += seen.value if seen.fine else [{"known": False, "paid": None} for _ in part]
    return found
