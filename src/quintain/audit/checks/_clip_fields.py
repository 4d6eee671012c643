"""Checks calls with several fields: each field is paid by itself, or all of them together."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Record, number
from quintain.audit.kernel.registry import relation

TASKS = 4
"""Tasks of which calls are shortened."""
PAIRS = 6
"""Pairs of fields that are left out of one call."""


@check("x.half_filled", "reward_clipping", needs=("oracle", "tasks", "tools"), value=66)
def half_filled(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that two fields whose loss alone costs nothing also cost nothing together; else the reward is rounded."""
    reported: set[str] = set()
    for task in ctx.sample_tasks(TASKS):
        full = ctx.solution_score(task)
        ops = ctx.oracle(task) or ()
        for place, first, second, calls in _pairs(ctx, ops) if full else ():
            name = ops[place].name
            if name in reported:
                continue
            ctx.count_comparisons()
            probes = [solves(task, (*ops[:place], spoilt, *ops[place + 1 :])) for spoilt in calls]
            whole = solves(task, ops)
            if not rounds([*ctx.play_all(probes), ctx.play_probe(whole)], Evidence("")):
                continue
            reported.add(name)
            yield ctx.finding(
                f"{name} is paid in full without the right {first} or {second}, not without both: it is rounded",
                *probes,
                whole,
                relation=f"{__name__}:rounds",
                marks=("score",),
                minimise=0,
                part="V",
                expected="less for each field that is missing",
                observed=f"{full:g} without either",
                teaches="to leave out work that rounding pays for",
            )


@relation
def rounds(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if scores 1, 2 and 4 are equal, score 3 is lower, and no call was refused."""
    if any(seen.is_error for record in records for seen in record.seen):
        return False
    scores = [number(record.at("score")) for record in records]
    if None in scores:
        return False
    first, second, both, whole = (score for score in scores if score is not None)
    return min(first, second) >= whole - 1e-9 and both < whole - 1e-9


def _pairs(ctx: AuditContext, ops: Sequence[Op]) -> Iterator[tuple[int, str, str, tuple[Op, Op, Op]]]:
    """Places of calls with two fields that are left out or hold another choice: in one, in the other, in both."""
    tools = {tool.name: tool for tool in ctx.about.tools}
    for place, op in enumerate(ops):
        tool = tools.get(op.name)
        if op.do != "call" or tool is None or not is_dict(op.value):
            continue
        gone = {name: None for name in op.value if name not in tool.required}
        other_fields = {name: _other_choice(tool.properties.get(name), value) for name, value in op.value.items()}
        for spoilt in ({name: item for name, item in other_fields.items() if item is not None}, gone):
            for first, second in itertools.islice(itertools.combinations(spoilt, 2), PAIRS):
                calls = [
                    _spoilt(op, {name: spoilt[name] for name in names})
                    for names in ((first,), (second,), (first, second))
                ]
                yield place, first, second, (calls[0], calls[1], calls[2])


def _other_choice(schema: Any, value: Any) -> Any:
    """Another one of a closed choice; None where there is none."""
    forms: list[Any] = [schema, *(schema.get("anyOf") or ())] if is_dict(schema) else []
    choices: list[Any] = [option for form in forms if is_dict(form) for option in form.get("enum") or ()]
    return next((choice for choice in choices if choice is not None and choice != value), None)


def _spoilt(op: Op, fields: dict[str, Any]) -> Op:
    kept = {name: fields.get(name, value) for name, value in op.value.items()}
    return msgspec.structs.replace(op, value={name: value for name, value in kept.items() if value is not None})
