"""A task is the same task under every seed: what solves it under one solves it under the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from quintain.audit.check import check
from quintain.audit.finding import Finding
from quintain.audit.lab import Lab
from quintain.audit.probe import Op, Probe, ask, reset, score

from ._reward_facts import beyond, facts

_SEEDS = (1, 2, 7)
_TASKS = 12
_FEW = 24
"""Where there are no more tasks, all are tried, under two seeds."""
_PART = 6


@check("x.solved_under_seeds", "unsolvable", needs=("oracle", "tasks"), value=64)
def solved_under_seeds(lab: Lab) -> Iterator[Finding | None]:
    """What solves a task under one seed solves it under others."""
    full = {task: fact.full for task, fact in facts(lab).items() if fact.full is not None and fact.full > 0}
    if max(full.values(), default=0.0) > 1.0 + 1e-9:
        raise lab.none("rewards go beyond 1: nobody knows what the best is under a seed")
    few = len(lab.about.tasks) <= _FEW
    full |= {task: fact.full for task, fact in (beyond(lab) if few else {}).items() if fact.full is not None}
    tasks, seeds = (lab.about.tasks, _SEEDS[:2]) if few else (lab.some(_TASKS), _SEEDS)
    pairs = [(task, seed) for task in tasks if full.get(task, 0.0) > 0 for seed in seeds]
    if not pairs:
        raise lab.none("no solution is paid under the first seed")
    lost: list[tuple[str, int, tuple[Op, ...], float | None]] = []
    looked = 0
    for (task, seed), one in zip(pairs, _played(lab, pairs), strict=True):
        if not one["known"]:
            continue
        looked += 1
        enough = full[task] / 2 if lab.attribute("graded") else full[task]
        if one["paid"] is None or one["paid"] < enough - 1e-9:
            lost.append((task, seed, tuple(msgspec.convert(one["ops"], list[Op])), one["paid"]))
    lab.looking(looked)
    # A solution that fails under most seeds was written for one of them; so was the reward that differs everywhere.
    usual = len(lost) <= looked / 3
    if lost:
        task, seed, ops, paid = lost[0]
        yield lab.finding(
            "a task's own solution is paid under one seed and not under another",
            Probe((reset(task, seed=seed), *ops, score())),
            Probe((reset(task), *(lab.oracle(task) or ()), score())),
            relation="quintain.audit.checks._reward_claims:loses_by_seed",
            marks=("score",),
            data=full[task],
            minimise=0,
            part="T",
            severity="error" if usual else "warning",
            at_most="proven" if usual else "likely",
            tasks=[one[0] for one in lost],
            expected=f"{full[task]:g}, as under seed 0",
            observed=f"{paid} under seed {seed}; {len(lost)} of {looked} pairs of a task and a seed",
            teaches="nothing in episodes that nobody can solve",
        )


def _played(lab: Lab, pairs: list[tuple[str, int]]) -> list[Any]:
    parts = [pairs[start : start + _PART] for start in range(0, len(pairs), _PART)]
    played = "quintain.audit.checks._reward_facts:seeded"
    probes = [Probe((ask(played, [list(one) for one in part]),)) for part in parts]
    found: list[Any] = []
    for part, record in zip(parts, lab.play_all(probes), strict=True):
        seen = record.at("ask")
        found += seen.value if seen.fine else [{"known": False} for _ in part]
    return found
