"""Checks that the rows that a task needs do not always stand at the head of a list.

The same list is requested in many tasks and seeds. The rows that the solution names stand at its head each time, though
no field that is shown or that the world has sorts the rows so: chance does not do that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.facts.variations import tables_of
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_rows import joined
from ._drift_words import rows_of, text_of
from ._leak_secrets import leaves

HERE = f"{__name__}:"
LISTS = 8
"""Lists that are looked at."""
TASKS, SEEDS = 6, (0, 1)
SURE = 8.0
"""Decimal places of the chance that the order is one."""
_ASKED = re.compile(r"\b(?:first|top|next|latest|newest|oldest|last|earliest|beginning|above)\b", re.IGNORECASE)


@relation
def at_one_end(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the solution's rows stand at one end of each list, by no field and not by chance."""
    field, end = evidence.data["field"], evidence.data["end"]
    sure, orders, plain = 0.0, set[tuple[str, bool]](), True
    for place, record in enumerate(records):
        rows = rows_of(record.at("list").value) or []
        found = _placed(rows, field, record.at("oracle").value)
        if found is None:
            continue
        keys, needed = found
        if {*(keys[: len(needed)] if end == "first" else keys[-len(needed) :])} != needed:
            return False
        sure += math.log10(math.comb(len(keys), len(needed)))
        world = record.at("world")
        own_value = _sorted_by(joined(record.at("list").value, tables_of(world.value if world.fine else None)) or rows)
        orders = own_value if not place else orders & own_value
        plain = plain and not _ASKED.search(text_of(record.at("prompt")))
    return sure >= evidence.data["sure"] and not orders and plain


def _placed(rows: Sequence[Any], field: str, oracle: Any) -> tuple[list[str], set[str]] | None:
    """Keys of the rows, and those that the solution names; None where it names none, or all."""
    if not all(is_dict(row) and isinstance(row.get(field), str) for row in rows) or not is_list(oracle):
        return None
    keys = [row[field] for row in rows]
    named = {leaf for op in oracle for _, leaf in leaves(op.get("value")) if isinstance(leaf, str)}
    needed = {*keys} & named
    return (keys, needed) if needed and len(needed) < len(keys) == len({*keys}) else None


def _sorted_by(rows: Sequence[Any]) -> set[tuple[str, bool]]:
    """Fields by which rows stand in order, up or down."""
    found: set[tuple[str, bool]] = set()
    for name in rows[0] if rows and is_dict(rows[0]) else ():
        values = [row.get(name) for row in rows]
        if not (all(isinstance(value, str) for value in values) or all(map(is_number, values))):
            continue
        if len({*map(str, values)}) > 1:
            found |= {(name, down) for down in (False, True) if values == sorted(values, reverse=down)}
    return found


@check("x.order_tells_nothing", "leak", needs=("oracle", "call", "tools", "tasks"), value=27)
def order(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a row's place in a list does not reveal that the task needs it."""
    reads = [
        known_call for known_call in ctx.discovery.reads() if not known_call.before and rows_of(known_call.seen.value)
    ]
    ops = [
        op
        for op in {f"{known_call.op.name} {known_call.op.value}": known_call.op for known_call in reads}.values()
        if _is_general(ctx, op)
    ]
    tasks = [task for task in ctx.sample_tasks(TASKS) if ctx.oracle(task)]
    if not ops or len(tasks) < 2:
        raise ctx.not_checked("no list can be asked for in several tasks with a solution")
    for op in ops[:LISTS]:
        few = _probes(op, tasks[:3], SEEDS[:1])
        records = ctx.play_all(few)
        ctx.count_comparisons(len(few))
        for field, end in _candidates(records):
            data = {"field": field, "end": end, "sure": 0.5}
            if not at_one_end(records, Evidence("", data=data)):
                continue
            yield _finding(ctx, op, _probes(op, tasks, SEEDS), data={**data, "sure": SURE})
            break


def _is_general(ctx: AuditContext, op: Op) -> bool:
    """True if a call can be made in any task: its texts are empty, or choices of the schema."""
    tool = next((spec for spec in ctx.about.tools if spec.name == op.name), None)
    properties: dict[str, Any] = tool.properties if tool is not None else {}
    texts = {name: argument for name, argument in op.value.items() if isinstance(argument, str) and argument}
    offered: dict[str, Any] = {name: properties.get(name) for name in texts}
    return all(is_dict(schema) and texts[name] in (schema.get("enum") or ()) for name, schema in offered.items())


def _candidates(records: Sequence[Record]) -> list[tuple[str, str]]:
    rows = rows_of(records[0].at("list").value) or []
    first: Any = rows[0] if rows else None
    return [(name, end) for name in (first if is_dict(first) else ()) for end in ("first", "last")][:8]


def _probes(op: Op, tasks: Sequence[str], seeds: Sequence[int]) -> list[Probe]:
    return [
        Probe(
            (
                Op("oracle", name=task, mark="oracle"),
                reset(task, seed=seed, mark="prompt"),
                Op("state", mark="world"),
                call(op.name, op.value, mark="list"),
            )
        )
        for task in tasks
        for seed in seeds
    ]


def _finding(ctx: AuditContext, op: Op, probes: list[Probe], *, data: dict[str, Any]) -> Finding | None:
    records = ctx.play_all(probes)
    ctx.count_comparisons(len(probes))
    if not at_one_end(records, Evidence("", data=data)):
        return None
    shown = [str(row.get(data["field"])) for row in (rows_of(records[0].at("list").value) or [])[:5]]
    return ctx.finding(
        f"{op.name} shows {data['end']} what the task needs, in each task, and orders its rows by nothing else",
        *probes,
        relation=f"{HERE}at_one_end",
        marks=("oracle", "list"),
        data=data,
        minimise=0,
        part="T",
        expected="an order that does not depend on the solution",
        observed=shown,
        teaches="to take the row at that place for any task",
    )
