"""Checks rows with empty columns: work reported as done on them must be done.

A call of a solution is made on many rows of the table of which it names one. What it always does to a row that is
whole, such as to set a field to 0, it must do to one in which another field is empty, or say something else of it.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, ask, reset, state
from quintain.audit.kernel.registry import probe_function, relation

from ._data_tables import Row, column, columns
from ._reward_related import families
from ._reward_runs import Solution, solve
from ._same_walks import kinds

HERE = f"{__name__}:"
TASKS, SECONDS = 4, 7200
"""Tasks whose solutions' calls are made on other rows, and seconds that pass afterwards, where they can."""
WHOLE, GAPS = 6, 2
"""Rows on which the work must be seen to be done, and rows with a gap on which it is not."""
TRIED = 60
"""Rows on which a call is made, those with gaps and those without in turn."""
_SWEPT_S = 2.5


class SkippedRows(msgspec.Struct, frozen=True):
    """An effect that rows with an empty column do not get.

    Attributes:
        key: Column that names the rows.
        empty: Column that has the gaps.
        field: Column that becomes `value` in the rows without gaps.
        whole, gaps: Names of rows of either kind.
    """

    table: str
    key: str
    empty: str
    field: str
    value: Any
    whole: tuple[Any, ...]
    gaps: tuple[Any, ...]


@relation
def left_undone(records: Sequence[Record], evidence: Evidence) -> bool:
    """A field becomes one value in each row that is whole, and stays in each with a gap; all are answered alike."""
    left = msgspec.convert(evidence.data["left"], SkippedRows)
    names = (*left.whole, *left.gaps)
    answers: set[str] = set()
    for name, record in zip(names, records, strict=True):
        seen = record.at("call")
        before, after = (_row(record.at(mark), left, name) for mark in ("was", "look"))
        if seen.is_error or before is None or after is None or before.get(left.field) == left.value:
            return False
        is_gap = before.get(left.empty) is None
        stays = after.get(left.field) == before.get(left.field)
        if is_gap is not (name in left.gaps) or stays is not is_gap or (not is_gap and after[left.field] != left.value):
            return False
        answers.add(_bare(seen, name))
    return len(answers) == 1


def _row(seen: OpResult, left: SkippedRows, name: Any) -> Row | None:
    rows = _rows(seen.value, left.table)
    return next((row for row in rows if row.get(left.key) == name), None)


def _rows(world: Any, table: str) -> list[Row]:
    """The rows of a table; those of a dict have their key in "(key)"."""
    there: Any = world.get(table) if is_dict(world) else None
    if is_dict(there):
        return [{"(key)": key, **row} for key, row in there.items() if is_dict(row)]
    return [row for row in there if is_dict(row)] if is_list(there) else []


def _bare(seen: OpResult, name: Any) -> str:
    """An answer without the name of the row."""
    return json.dumps(seen.value, sort_keys=True, default=str).replace(str(name), "\0")


# --- the check ---


@check("x.gaps_are_no_excuse", "silent_default", needs=("oracle", "state", "tools", "tasks"), value=22)
def gaps(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a call treats rows with empty columns like others, or reports that it does not."""
    reported: set[str] = set()
    asked = list(dict.fromkeys((*kinds(ctx, TASKS), *ctx.sample_tasks(TASKS))))[:TASKS]
    every = [cell for solution in solve(ctx, asked) for cell in _cells(ctx, solution)]
    cells = list({cell[1].name: cell for cell in reversed(every)}.values())  # Each tool in one task.
    if not cells:
        raise NotChecked("no call of a solution names a row of a table")
    given = [msgspec.to_builtins({"task": task, "op": op, "name": name, "table": table, "after": _after(ctx)})
             for task, op, name, table in cells]  # fmt: skip
    records = ctx.play_all([Probe((ask(f"{HERE}sweep", item, mark="left"),)) for item in given])
    for (task, op, name, _), record in zip(cells, records, strict=True):
        found: Any = record.at("left").value if record.at("left").fine else None
        ctx.count_comparisons(found["looked"] if found else 0)
        for item in found["left"] if found and op.name not in reported else ():
            finding = _undone(ctx, task, op, name=name, left=msgspec.convert(item, SkippedRows))
            reported |= {op.name} if finding is not None else set()
            yield finding


def _after(ctx: AuditContext) -> tuple[Op, ...]:
    return (Op("advance", value=SECONDS),) if "advance" in ctx.offers else ()


def _cells(ctx: AuditContext, solution: Solution) -> Iterator[tuple[str, Op, str, str]]:
    """Calls of a solution, each of another tool, and the argument that names a row of a table."""
    known = families(ctx, solution)
    calls = {op.name: op for op in solution.ops if op.do == "call" and op.name not in ctx.discovery.readers}
    for op in calls.values():
        named = [name for name, value in op.value.items() if str(value) in known]
        if len(named) == 1 and len(known[str(op.value[named[0]])].related) >= WHOLE:
            yield solution.task, op, named[0], known[str(op.value[named[0]])].table


def _undone(ctx: AuditContext, task: str, op: Op, *, name: str, left: SkippedRows) -> Finding | None:
    probes = [
        Probe((reset(task), state(mark="was"), _on(op, name, item).marked("call"), *_after(ctx), state(mark="look")))
        for item in (*left.whole, *left.gaps)
    ]
    return ctx.finding(
        f"{op.name} is said to be done on {left.table} without {left.empty}, and leaves {left.field} as it was",
        *probes,
        relation=f"{HERE}left_undone",
        marks=("was", "call", "look"),
        data={"left": msgspec.to_builtins(left)},
        minimise=0,
        expected=f"{left.field} = {left.value!r}, or an error",
        observed={"done": list(left.whole), "not done, and answered alike": list(left.gaps)},
        teaches="that work was done which was not",
    )


def _on(op: Op, name: str, row: Any) -> Op:
    return msgspec.structs.replace(op, value={**op.value, name: row})


# --- inside the subject's process ---


@probe_function
def sweep(player: Player, on: str, value: Any) -> Any:
    """Returns the rows with gaps that a call skips: {"looked": rows, "left": a `Left` for each}."""
    op, after = msgspec.convert(value["op"], Op), msgspec.convert(value["after"], list[Op])
    player.do(reset(value["task"], on=on))
    rows = _rows(player.do(state(on=on)).value, value["table"])
    own = op.value[value["name"]]
    key = next((name for name in columns(rows) if own in column(rows, name)), "(key)")
    empty = [name for name in columns(rows) if 0 < sum(cell is None for cell in column(rows, name)) < len(rows) / 2]
    has_gap = [any(row.get(name) is None for name in empty) for row in rows]
    sides = [[row for row, gap in zip(rows, has_gap, strict=True) if gap is side] for side in (True, False)]
    chosen = [row for pair in itertools.zip_longest(*sides) for row in pair if row is not None][:TRIED]
    tried: list[tuple[Row, Row, str]] = []
    until = time.monotonic() + _SWEPT_S
    for row in chosen if empty else ():
        if time.monotonic() > until:
            break
        player.do(reset(value["task"], on=on))
        seen = player.do(_on(op, value["name"], row.get(key)).moved(on))
        for step in after:
            player.do(step.moved(on))
        there = _rows(player.do(state(on=on)).value, value["table"])
        found = next((item for item in there if item.get(key) == row.get(key)), None)
        if not seen.is_error and found is not None:
            tried.append((row, found, _bare(seen, row.get(key))))
    left = [item for name in empty for item in _left(tried, name, value["table"], key=key)]
    return {"looked": len(tried), "left": msgspec.to_builtins(left)}


def _left(tried: Sequence[tuple[Row, Row, str]], empty: str, table: str, *, key: str) -> Iterator[SkippedRows]:
    """Fields that always become one value where a column is filled, and never do where it is empty."""
    whole = [item for item in tried if item[0].get(empty) is not None]
    gaps_ = [item for item in tried if item[0].get(empty) is None]
    answers = {answer for _, _, answer in tried}
    for field in columns([row for row, _, _ in whole]) if len(answers) == 1 else ():
        values = {repr(after.get(field)): after.get(field) for _, after, _ in whole}
        if field in (key, empty) or len(values) != 1:
            continue
        [value] = values.values()
        done = [row[key] for row, _, _ in whole if row.get(field) != value]
        not_done = [row[key] for row, after, _ in gaps_ if value != row.get(field) == after.get(field)]
        wanted = [row for row, _, _ in gaps_ if row.get(field) != value]
        if len(done) >= WHOLE and GAPS <= len(not_done) == len(wanted):
            yield SkippedRows(table, key, empty, field, value, tuple(done[:WHOLE]), tuple(not_done[:GAPS]))
