"""Part of a call left out: what is asked for in several fields is paid field by field, or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from quintain.audit.check import check
from quintain.audit.data import is_dict
from quintain.audit.finding import Evidence, Finding
from quintain.audit.lab import Lab, solves
from quintain.audit.probe import Op, Record, number

TASKS = 8
"""Tasks of which calls are shortened."""
PAIRS = 6
"""Pairs of fields that are left out of one call."""


@check("x.half_filled", "reward_clipping", needs=("oracle", "tasks", "tools"), value=67)
def half_filled(lab: Lab) -> Iterator[Finding | None]:
    """Fields that cost nothing when either is left out cost nothing when both are: else the reward is rounded."""
    told: set[str] = set()
    for task in lab.some(TASKS):
        full = lab.solved(task)
        ops = lab.oracle(task) or ()
        for place, one, other in _pairs(lab, ops) if full else ():
            name = ops[place].name
            if name in told:
                continue
            lab.looking()
            probes = [solves(task, _without(ops, place, gone)) for gone in ((one,), (other,), (one, other))]
            whole = solves(task, ops)
            if not rounds([*lab.play_all(probes), lab.play_probe(whole)], Evidence("")):
                continue
            told.add(name)
            yield lab.finding(
                f"{name} is paid in full without {one} and without {other}, and not without both: it is rounded",
                *probes,
                whole,
                relation=f"{__name__}:rounds",
                marks=("score",),
                minimise=0,
                part="V",
                expected="less for each field that is missing",
                observed=f"{full:g} without either",
                teaches="to leave out what still rounds up",
            )


def rounds(records: Sequence[Record], _evidence: Evidence) -> bool:
    """Of four scores the first, the second and the last are equal, and the third is less; no call was refused."""
    if any(seen.is_error for record in records for seen in record.seen):
        return False
    scores = [number(record.at("score")) for record in records]
    if None in scores:
        return False
    one, other, both, whole = (score for score in scores if score is not None)
    return min(one, other) >= whole - 1e-9 and both < whole - 1e-9


def _pairs(lab: Lab, ops: Sequence[Op]) -> Iterator[tuple[int, str, str]]:
    """Places of calls with two fields that the schema lets them leave out."""
    required = {tool.name: set(tool.required) for tool in lab.about.tools}
    for place, op in enumerate(ops):
        if op.do == "call" and is_dict(op.value) and op.name in required:
            fields = [name for name in op.value if name not in required[op.name]]
            for one, other in itertools.islice(itertools.combinations(fields, 2), PAIRS):
                yield place, one, other


def _without(ops: Sequence[Op], place: int, gone: Sequence[str]) -> tuple[Op, ...]:
    kept = {name: value for name, value in ops[place].value.items() if name not in gone}
    return (*ops[:place], msgspec.structs.replace(ops[place], value=kept), *ops[place + 1 :])
