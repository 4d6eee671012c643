"""Writes and the reads that may show them: which calls, with which arguments, in which order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence
from quintain.audit.kernel.probe import Op, OpResult, Record, call, reset, state
from quintain.audit.kernel.registry import relation

from ._same_scripts import bare, seems_to_read
from ._same_splits import apart, read, steady

HERE = "quintain.audit.checks._same_reads:"
"""Module prefix of the relations below."""
PER_TOOL = 3
"""Calls of one reader after one write."""
_QUERY = re.compile(r"(^|_)(q|query|text|search|term|keyword|keywords|phrase|filter|name)$")


class Pair(msgspec.Struct, frozen=True):
    """A write, what comes before it, and the reads around it."""

    task: str
    before: tuple[Op, ...]
    write: Op
    reads: tuple[Op, ...]


def writes(ctx: AuditContext, most: int, *, each: int = 2) -> list[KnownCall]:
    """Calls that write, of each tool a few: those that changed the state, and those of tools that do not read."""
    found: dict[str, list[KnownCall]] = {}
    for known_call in ctx.discovery.calls:
        if seems_to_read(ctx, known_call.op.name):
            continue
        of_tool = found.setdefault(known_call.op.name, [])
        if len(of_tool) < each:
            of_tool.append(known_call)
    rows = [of_tool[place : place + 1] for place in range(each) for of_tool in found.values()]
    return [base_call for row in rows for base_call in row][:most]


def around(ctx: AuditContext, write: KnownCall, most: int) -> Pair:
    """Returns the reads that may show a write: known ones, and those with arguments from the write."""
    found: dict[str, Op] = {}
    for op in _interleaved(ctx, write, _rows(ctx, write)):
        found.setdefault(f"{op.name} {op.value!r}", op)
    return Pair(write.task, tuple(map(bare, write.before)), bare(write.op), tuple(found.values())[:most])


def _rows(ctx: AuditContext, write: KnownCall) -> list[dict[str, Any]]:
    """Rows of the world that a write changes, as they are in the beginning."""
    places = dict.fromkeys(tuple(path.split("/")[:2]) for path in write.changed or () if path.count("/") > 1)
    world = ctx.once(("start", write.task), lambda own: _start(own, write.task)) if places else None
    tables = world if is_dict(world) else {}
    return [row for name, key in places if (row := _row(tables.get(name), key)) is not None]


def _start(ctx: AuditContext, task: str) -> Any:
    return ctx.play(reset(task), state(mark="state")).at("state").value


def _row(table: Any, key: str) -> dict[str, Any] | None:
    """The row of a table under this key, or that has it in one of its fields."""
    if is_dict(table):
        return item if is_dict(item := table.get(key)) else None
    rows = [element for element in table if is_dict(element)] if is_list(table) else []
    return next((row for row in rows if key in map(str, row.values())), None)


def _interleaved(ctx: AuditContext, write: KnownCall, touched: Sequence[dict[str, Any]]) -> Iterator[Op]:
    """Reader after reader, each with its best arguments first, then each with the next."""
    tools = [tool for tool in ctx.about.tools if seems_to_read(ctx, tool.name) and tool.name != write.op.name]
    rows = [list(_calls(ctx, tool, write, rows=touched)) for tool in tools]
    for place in range(PER_TOOL):
        for row in rows:
            yield from row[place : place + 1]


def _calls(ctx: AuditContext, tool: ToolSpec, write: KnownCall, *, rows: Sequence[dict[str, Any]]) -> Iterator[Op]:
    """Arguments that name what was written, or are of a row that it changed; then those known to work."""
    given = names(write)
    near = {name: value for name in tool.properties if (value := _value_for(tool, name, given)) is not None}
    known = sorted(ctx.discovery.of(tool.name), key=lambda known_call: known_call.task != write.task)
    base: dict[str, Any] = known[0].op.value if known else {}
    wanted = {**{name: value for name, value in base.items() if name in tool.required}, **near}
    if near and all(name in wanted for name in tool.required):
        yield call(tool.name, wanted)
    if not tool.required:
        yield call(tool.name, {})
    if not near.keys() >= set(tool.required):
        filled = [{name: _of_row(tool, name, row) for name in tool.required} for row in rows]
        yield from [call(tool.name, item) for item in filled if None not in item.values()][:1]
    yield from (bare(base_call.op) for base_call in known)


def _of_row(tool: ToolSpec, name: str, row: dict[str, Any]) -> Any:
    """A row's field of a parameter's name; or the choice with which a field begins, as a moment does with its day."""
    schema = tool.properties[name]
    if name in row and fits(row[name], schema, tool.parameters):
        return row[name]
    choices = [option for option in schema.get("enum") or () if isinstance(option, str) and len(option) > 3]
    return next((choice for choice in choices if any(str(value).startswith(choice) for value in row.values())), None)


def names(write: KnownCall) -> dict[str, Any]:
    """Scalars that the write says or is answered, by the field's name."""
    found: dict[str, Any] = {}

    def take(value: Any, name: str) -> None:
        if is_dict(value):
            for key, item in value.items():
                take(item, key)
        elif is_list(value):
            for element in value[:3]:
                take(element, name)
        elif isinstance(value, str | int) and not isinstance(value, bool):
            found.setdefault(name, value)

    take(write.op.value, "")
    take(read(write.seen.value), "")
    return found


def _value_for(tool: ToolSpec, name: str, given: dict[str, Any]) -> Any:
    """Returns a value for a parameter from the data of a write."""
    schema = tool.properties[name]
    if _QUERY.search(name.lower()):
        texts = [value for key, value in given.items() if isinstance(value, str) and not key.endswith("id")]
        words = [word for text in texts for word in text.split() if len(word) > 3]
        return given.get(name) or next(iter(words), None)
    tail = name.rpartition("_")[2]
    for key in (name, *(["id"] if tail == "id" else []), *(text for text in given if text.endswith(f"_{tail}"))):
        if key in given and fits(given[key], schema, tool.parameters):
            return given[key]
    return None


# --- relations ---


@relation
def stale(records: Sequence[Record], evidence: Evidence) -> bool:
    """With a read before the write, the read after it gives what it gave before; without, it gives something else.

    Marks: the read before, the write, the read after. The second probe has no read before. Both writes worked.
    """
    warm, cold = records[:2]
    before, write, after = evidence.marks
    if not steady(records[1:], after, evidence.volatile) or any(record.at(write).is_error for record in records):
        return False
    old, new = warm.at(before), warm.at(after)
    if not tells(next(op for op in warm.ops if op.mark == after), new):
        return False
    return seen(old) and not apart(old, new, evidence.volatile) and apart(new, cold.at(after), evidence.volatile)


@relation
def moved(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if reads before and after a write, in either order, end in one world and two answers.

    Marks: the write, the read that differs, the state at the end.
    """
    warm, control = records[:2]
    write, after, world = evidence.marks
    if not steady(records[1:], after, evidence.volatile) or any(
        record.at(write).is_error or not record.at(world).fine for record in records
    ):
        return False
    if any(apart(warm.at(mark), control.at(mark), evidence.volatile) for mark in (write, world)):
        return False
    return apart(warm.at(after), control.at(after), evidence.volatile)


@relation
def late(records: Sequence[Record], evidence: Evidence) -> bool:
    """A read gives the old answer right after a write, and another one when only time has passed.

    Marks: the answer without the write, the write, the read right after it, the read later. The second probe is the
    same without the waiting, and its later read still gives the old answer: it is time that counts, not the reads.
    """
    waited, hurried = records
    before, write, soon, later = evidence.marks
    if any(record.at(write).is_error for record in records):
        return False
    old = waited.at(before)
    still = (waited.at(soon), hurried.at(later))
    return (
        seen(old)
        and all(not apart(old, result, evidence.volatile) for result in still)
        and apart(old, waited.at(later), evidence.volatile)
    )


@relation
def mistaken(records: Sequence[Record], evidence: Evidence) -> bool:
    """A read gives what another read gave before it, and not what it gives by itself; the worlds are the same.

    Marks: the other read (in the first probe alone), the read, and where there is one the state at the end.
    """
    mixed, alone = records[:2]
    first, second, *world = evidence.marks
    if not steady(records[1:], second, evidence.volatile) or any(
        apart(mixed.at(mark), alone.at(mark), evidence.volatile) for mark in world
    ):
        return False
    right, left = mixed.at(first), mixed.at(second)
    if any(not each.fine or each.is_error for each in (right, left)):
        return False
    return not apart(right, left, evidence.volatile) and apart(left, alone.at(second), evidence.volatile)


def tells(op: Op, answer: OpResult) -> bool:
    """True if an op answers, or refuses because of its arguments; an ended episode refuses everything."""
    words = [str(argument) for argument in op.value.values() if argument not in ("", None)] if is_dict(op.value) else []
    return not answer.is_error or any(word in f"{answer.value} {answer.raised}" for word in words)


def seen(result: OpResult) -> bool:
    """True if an op ran to an end and was available."""
    return result.how not in ("hung", "absent")
