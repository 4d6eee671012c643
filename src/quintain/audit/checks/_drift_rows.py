"""Checks lists against the world that they show: order, length, filters, pages, and completeness.

A row of an answer often has only an id and a title; the state has the rest of it. The two are joined by the id, so that
"newest first" can be seen where no time is shown, and "of this status" where no status is.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.facts.variations import Variation, tables_of
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record
from quintain.audit.kernel.registry import relation

from ._drift_words import promised_order, rows_of

HERE = f"{__name__}:"
_TIME = re.compile(
    r"date|time|created|updated|_at$|^at$|^on$|^ts$|when|added|^day$|^start|sent|posted|due", re.IGNORECASE
)
_AMOUNT = re.compile(r"price|amount|total|cost|score|cents|value|balance|seats|size|rating", re.IGNORECASE)
_ABOUT_TIME = re.compile(r"recent|newest|latest|oldest|earliest|chronolog", re.IGNORECASE)
LIMITS = re.compile(r"^(limit|max_results|max_rows|max_items|top|top_k|k|page_size|per_page|first_n)$")
_LEAST = re.compile(r"at least|minimum|or more|no (fewer|less) than|not below", re.IGNORECASE)
_UP_TO = re.compile(r"at most|maximum|or (less|fewer)|no more than|not above|up to", re.IGNORECASE)
_ALL = ("", "any", "all", "*", "none", "everything")


def joined(
    value: Any, tables: Mapping[str, list[dict[str, Any]]], *, stored: bool = False
) -> list[dict[str, Any]] | None:
    """Returns the rows of an answer with their entries in the state, or None for rows of several tables.

    A field that both have is that of the answer, or with `stored` that of the state.
    """
    rows = rows_of(value)
    if not rows:
        return None if rows is None else []
    shown = {name for row in rows[:1] if is_dict(row) for name in row}
    # Ids count from one in many tables: rows are of the one that has most of their fields.
    for entries in sorted(tables.values(), key=lambda entries: -len(shown & entries[0].keys())):
        found = entries_of(rows, entries)
        if found is not None:
            pairs = [(entry, row if is_dict(row) else {}) for entry, row in zip(found, rows, strict=True)]
            return [{**row, **entry} if stored else {**entry, **row} for entry, row in pairs]
    return [row for row in rows if is_dict(row)] if all(map(is_dict, rows)) else None


def entries_of(rows: Sequence[Any], entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Returns the entries of a table that rows show, by their ids, or None if they show others."""
    for field in _ids(rows, entries):
        keys = [row.get(field) if is_dict(row) else row for row in rows]
        if len({*map(str, keys)}) < len(keys):
            continue
        by_id = {entry.get(field): entry for entry in entries if isinstance(entry.get(field), str | int)}
        if len(by_id) == len(entries) and all(key in by_id for key in keys):
            return [by_id[key] for key in keys]
    return None


def _ids(rows: Sequence[Any], entries: Sequence[dict[str, Any]]) -> list[str]:
    """Fields by which rows may be known: those that both have, "id" first; of plain texts any field of the table."""
    if all(isinstance(row, str | int) for row in rows):
        return list(entries[0])[:3]
    if not all(map(is_dict, rows)):
        return []
    both = [name for name in entries[0] if all(isinstance(row.get(name), str | int) for row in rows)]
    return sorted(both, key=lambda name: (name != "id", not name.endswith("id")))[:3]


# --- relations ---


@relation
def unsorted(records: Sequence[Record], evidence: Evidence) -> bool:
    """The rows are not in the promised order by the field, and not all alike."""
    record = records[0]
    rows = joined(record.at("call").value, tables_of(record.at("world").value))
    return rows is not None and breaks_order(rows, evidence.data["field"], evidence.data["order"])


def breaks_order(rows: Sequence[dict[str, Any]], field: str, order: str) -> bool:
    """True if a row stands before one that it should follow."""
    values: list[Any] = [row.get(field) for row in rows]
    if any(value is None for value in values) or len({type(value).__name__ for value in values}) != 1:
        return False
    pairs: list[tuple[Any, Any]] = list(itertools.pairwise(values))
    return any((first < second) if order == "descending" else (first > second) for first, second in pairs)


@relation
def outside(records: Sequence[Record], evidence: Evidence) -> bool:
    """The answer has a row that the parameter leaves out."""
    record, how, name = records[0], evidence.data["how"], evidence.data["name"]
    op = next(op for op in record.ops if op.mark == "call")
    rows = joined(record.at("call").value, tables_of(record.at("world").value))
    if rows is None or name not in op.value or record.at("call").is_error:
        return False
    return bool(_outside(rows, evidence.data["field"], how, value=op.value[name]))


def _outside(rows: Sequence[dict[str, Any]], field: str, how: str, *, value: Any) -> list[Any]:
    found: list[Any] = []
    for row in rows:
        there = row.get(field)
        if how == "least" and is_number(there) and is_number(value) and there < value:
            found.append(there)
        if how == "most" and is_number(there) and is_number(value) and there > value:
            found.append(there)
        if how == "equal" and _is_another(there, value):
            found.append(there)
    return found


def _is_another(there: Any, value: Any) -> bool:
    """True if a field differs from the requested value, ignoring case and substrings."""
    if isinstance(there, str) and isinstance(value, str):
        first, second = there.strip().casefold(), value.strip().casefold()
        return bool(first) and second not in first and first not in second
    return type(there) is type(value) and not is_list(there) and not is_dict(there) and there != value


@relation
def too_many(records: Sequence[Record], evidence: Evidence) -> bool:
    """The answer has more rows than the parameter allows."""
    op = next(op for op in records[0].ops if op.mark == "call")
    rows = rows_of(records[0].at("call").value)
    limit = op.value.get(evidence.data)
    return rows is not None and is_number(limit) and limit >= 0 and len(rows) > limit


# --- the checks ---


def readings(ctx: AuditContext) -> list[Variation]:
    """Lists that tools gave and that changed nothing, the longest first."""
    found = [
        variation
        for variation in ctx.variations.all
        if variation.kind in ("good", "legal")
        and variation.works
        and not variation.changes
        and rows_of(variation.seen.value) is not None
    ]
    if not found:
        raise NotChecked("no tool gives a list")
    return sorted(found, key=lambda variation: -len(rows_of(variation.seen.value) or ()))


@check("x.lists_are_in_order", "action_drift", needs=("tools", "call", "tasks"), value=86)
def ordered_lists(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that rows have the order that the description promises, by their data in the world.

    Proven, though the promise is prose, because the rows contradict it by each time, or amount, that can be compared.
    Excuses: a further field by which they are in order, rows that are all alike, values missing in some rows.
    """
    reported: set[str] = set()
    for variation in readings(ctx):
        wanted = promised_order(variation.tool.description)
        if wanted is None or variation.tool.name in reported or ctx.contract(variation.tool.name).order:
            continue  # x.contracts_hold checks a declared order.
        rows = joined(variation.seen.value, variation.base_state.tables) or []
        about = _TIME if _ABOUT_TIME.search(variation.tool.description) else _AMOUNT
        fields = [name for name in rows[0] if _comparable(rows, name)] if len(rows) > 1 else []
        fields = [name for name in fields if about.search(name) or (about is _TIME and is_time(rows[0][name]))]
        ctx.count_comparisons()
        if not fields or not all(breaks_order(rows, name, wanted) for name in fields):
            continue
        reported.add(variation.tool.name)
        yield ctx.finding(
            f"{variation.tool.name} promises {wanted} order, but its rows are not so by {fields[0]}",
            _seeing(variation),
            relation=f"{HERE}unsorted",
            marks=("call",),
            data={"field": fields[0], "order": wanted},
            minimise=0,
            part="H",
            expected=f"{wanted} {fields[0]}",
            observed=[row.get(fields[0]) for row in rows[:12]],
            teaches="to take the first row for the wanted one when it is another",
        )


def _comparable(rows: Sequence[dict[str, Any]], name: str) -> bool:
    values = [row.get(name) for row in rows]
    if len({*map(str, values)}) < 2:
        return False  # All rows are of one day: no order to see.
    if all(map(is_number, values)):
        return True
    return all(isinstance(value, str) and re.match(r"\d{4}-\d\d|\d\d:\d\d", value) for value in values)


def is_time(value: Any) -> bool:
    """True for a text with a date, and for seconds since 1970 of a time from 2001 on."""
    return 1e9 <= value < 1e10 if is_number(value) else isinstance(value, str) and value[4:5] == "-"


def _seeing(variation: Variation) -> Probe:
    """Returns a probe of the call after a look at its world; the world is absent where it cannot be seen."""
    return Probe((*variation.base_state.head, Op("state", mark="world"), variation.op.marked("call")))


@check("x.filters_filter", "action_drift", needs=("tools", "call", "tasks"), value=86)
def filters(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a list has only rows that match its parameters, and no more than they allow."""
    reported: set[tuple[str, str]] = set()
    for variation in readings(ctx):
        rows = joined(variation.seen.value, variation.base_state.tables)
        for name, value in variation.arguments.items():
            if (variation.tool.name, name) in reported or name in ctx.contract(variation.tool.name).filters:
                continue
            ctx.count_comparisons()
            found = _filtered(ctx, variation, name, value=value, rows=rows)
            if found is not None:
                reported.add((variation.tool.name, name))
                yield found


def _filtered(
    ctx: AuditContext, variation: Variation, name: str, *, value: Any, rows: list[dict[str, Any]] | None
) -> Finding | None:
    schema: Any = variation.tool.properties.get(name)
    count = len(rows_of(variation.seen.value) or ())
    if LIMITS.match(name) and is_number(value) and 0 <= value < count:
        title = f"{variation.tool.name} gives more rows than its {name}"
        return _wrong(ctx, variation, title, relation="too_many", data=name, observed={name: value, "rows": count})
    found = _meaning(variation, name, schema, rows=rows or [])
    if found is None or not rows:
        return None
    field, how = found
    if how == "equal" and (
        not isinstance(value, str) or value.casefold() in _ALL or not _always(variation, name, field)
    ):
        return None
    wrong = _outside(rows, field, how, value=value)
    if not wrong:
        return None
    title = f"{variation.tool.name} gives rows that its {name} leaves out"
    data = {"field": field, "how": how, "name": name}
    return _wrong(ctx, variation, title, relation="outside", data=data, observed={name: value, field: wrong[:6]})


def _meaning(variation: Variation, name: str, schema: Any, *, rows: Sequence[dict[str, Any]]) -> tuple[str, str] | None:
    """The field of the rows that a parameter is about, and how."""
    if not rows or not is_dict(schema):
        return None
    text = f"{schema.get('description') or ''} {variation.tool.description}"
    stem = re.sub(r"^(min|max)(imum)?_|_(min|max)$", "", name)
    fields = [field for field in rows[0] if field in (name, stem)]
    if not fields:
        return None
    if is_number(variation.arguments[name]):
        if re.match(r"min", name) or (_LEAST.search(text) and not _UP_TO.search(text)):
            return fields[0], "least"
        if re.match(r"max", name) or (_UP_TO.search(text) and not _LEAST.search(text)):
            return fields[0], "most"
        return None
    return (fields[0], "equal") if name == fields[0] else None


def _always(variation: Variation, name: str, field: str) -> bool:
    """True if the parameter's value is among the field's values in the world or in its enum."""
    schema = variation.tool.properties[name]
    value = variation.arguments[name]
    there = {
        candidate
        for column, values in variation.base_state.columns.items()
        if column.endswith(f"/{field}")
        for candidate in values
    }
    return value in there or value in (schema.get("enum") or ())


def _wrong(
    ctx: AuditContext, variation: Variation, title: str, *, relation: str, data: Any, observed: Any
) -> Finding | None:
    return ctx.finding(
        title,
        _seeing(variation),
        relation=f"{HERE}{relation}",
        marks=("call",),
        data=data,
        minimise=0,
        expected=f"what the parameter asks for: {variation.arguments}",
        observed=observed,
        teaches="that query parameters do not matter",
    )
