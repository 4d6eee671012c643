"""Checks numbers of list entries: a number counted from 1, as described, acts on the entry at that place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, parsed
from quintain.audit.facts.generate import valid
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._reward_acts import only_reads

HERE = f"{__name__}:"
TASKS, MOMENTS, LOOKS = 2, 8, 4
"""Tasks, moments of each, and calls by which each moment is looked at."""
_COUNTED = re.compile(
    r"\b(?:(?:from|at|with|first is) (0|1|zero|one)\b(?! (?:to|through|and|or|up)\b)|(0|1|zero|one)[- ]based\b)",
    re.IGNORECASE,
)


@check("x.numbers_name_places", "action_drift", needs=("tools", "call", "tasks", "oracle"), value=79, reads_prose=True)
def numbers_name_places(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an index, counted from 0 or 1 as declared, names the list entry at that place."""
    numbered = [(tool, *found) for tool in ctx.about.tools for found in _numbered(tool)]
    numbered = [item for item in numbered if not only_reads(ctx, call(item[0].name))]
    looks = _looks(ctx)
    if not numbered or not looks:
        raise NotChecked("no tool says from where it counts entries that are shown")
    for tool, name, base in numbered:
        data = {"name": name, "base": base}
        for record in ctx.play_all(list(_moments(ctx, _op(ctx, tool, name=name, base=base), looks))):
            ctx.count_comparisons()
            if not names_another([record], Evidence("", data=data)):
                continue
            yield ctx.finding(
                f"{tool.name} says that its {name} counts from {base}, and takes another entry than the first for it",
                Probe(record.ops),
                relation=f"{HERE}names_another",
                marks=("call",),
                data=data,
                minimise=0,
                part="S",
                expected="that the first entry is gone, or another one",
                observed=record.at("call").value,
                teaches="to name the entry before the intended one",
            )
            break


def _numbered(tool: ToolSpec) -> Iterator[tuple[str, int]]:
    for name, schema in tool.properties.items():
        text = str(schema.get("description") or "") if is_dict(schema) else ""
        found = _COUNTED.search(text)
        if found and schema.get("type") == "integer":
            yield name, int((found[1] or found[2]).lower() in ("1", "one"))


def _looks(ctx: AuditContext) -> list[Op]:
    """Calls that show what there is: those that need no argument, and known ones."""
    bare = [call(tool.name) for tool in ctx.about.tools if not tool.required and only_reads(ctx, call(tool.name))]
    known = [known_call.op for known_call in ctx.discovery.reads() if only_reads(ctx, known_call.op)]
    return list({f"{op.name} {op.value}": op.marked("") for op in (*bare, *known)}.values())[:LOOKS]


def _op(ctx: AuditContext, tool: ToolSpec, *, name: str, base: int) -> Op:
    known = next((known_call.op.value for known_call in ctx.discovery.of(tool.name)), None)
    given: dict[str, Any] = known or valid(tool, ctx.discovery.values, ctx.rng)
    return call(tool.name, {**given, name: base}, mark="call")


def _moments(ctx: AuditContext, op: Op, looks: Sequence[Op]) -> Iterator[Probe]:
    """The call at many moments of a solution, the latest first, with a look before and after."""
    before = [step.marked(f"before {place}") for place, step in enumerate(looks)]
    after = [step.marked(f"after {place}") for place, step in enumerate(looks)]
    for task in ctx.sample_tasks(TASKS):
        ops = [step for step in ctx.oracle(task) or () if step.do == "call"]
        for end in range(len(ops), max(0, len(ops) - MOMENTS), -1):
            yield Probe((reset(task), *ops[:end], *before, op, *after))


@relation
def names_another(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a call with the number of the first entry acts on another entry of the shown lists."""
    record, base = records[0], evidence.data["base"]
    if record.at("call").is_error:
        return False
    concerned: list[bool] = []
    for op in record.ops:
        if not op.mark.startswith("before "):
            continue
        seen = [record.at(mark) for mark in (op.mark, f"after {op.mark.removeprefix('before ')}")]
        if all(result.fine for result in seen):
            concerned += _concerned(parsed(seen[0].value), parsed(seen[1].value), base)
    return bool(concerned) and not any(concerned)


def _concerned(before: Any, after: Any, base: int) -> Iterator[bool]:
    """For each list of which one entry is gone, or another one: whether it is the first, or says that it is meant."""
    if is_dict(before) and is_dict(after):
        for key in before:
            yield from _concerned(before[key], after.get(key), base)
    if not is_list(before) or not is_list(after) or before == after:
        return
    if len(after) == len(before):
        places = [place for place, (first, second) in enumerate(zip(before, after, strict=True)) if first != second]
        alike = len(places) == 1
    else:
        places = [place for place in range(len(before)) if [*before[:place], *before[place + 1 :]] == after]
        alike = bool(places)
    if alike:
        yield 0 in places or any(_says(before[place], base) for place in places)


def _says(entry: Any, number: int) -> bool:
    """True if an entry contains the number itself."""
    return is_dict(entry) and any(value == number and not isinstance(value, bool) for value in entry.values())
