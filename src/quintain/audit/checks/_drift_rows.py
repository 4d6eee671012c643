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
from quintain.audit.kernel.probe import Op, Probe, Record, call
from quintain.audit.kernel.registry import relation

from ._drift_words import promised_order, rows_of

HERE = f"{__name__}:"
_TIME = re.compile(
    r"date|time|created|updated|_at$|^at$|^on$|^ts$|when|added|^day$|^start|sent|posted|due", re.IGNORECASE
)
_AMOUNT = re.compile(r"price|amount|total|cost|score|cents|value|balance|seats|size|rating", re.IGNORECASE)
_ABOUT_TIME = re.compile(r"recent|newest|latest|oldest|earliest|chronolog", re.IGNORECASE)
LIMITS = re.compile(r"^(limit|max_results|max_rows|max_items|top|top_k|k|page_size|per_page|first_n)$")
OFFSETS = re.compile(r"^(offset|skip|start_at|from_index)$")
_LEAST = re.compile(r"at least|minimum|or more|no (fewer|less) than|not below", re.IGNORECASE)
_UP_TO = re.compile(r"at most|maximum|or (less|fewer)|no more than|not above|up to", re.IGNORECASE)
_ALL = ("", "any", "all", "*", "none", "everything")
_PARTIAL = re.compile(r"more|next|total|found|count|cursor|truncat|remain|has_|page|omitted|of$", re.IGNORECASE)


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


@relation
def not_the_page(records: Sequence[Record], evidence: Evidence) -> bool:
    """A part of a list is not what the whole list has at that place."""
    record, data = records[0], evidence.data
    whole, part = rows_of(record.at("whole").value), rows_of(record.at("part").value)
    if whole is None or part is None or record.at("whole").is_error or record.at("part").is_error:
        return False
    if len(whole) >= data["most"]:  # The whole list may be cut itself.
        whole = whole[: data["most"]]
        return part != whole[data["skip"] :][: data["take"]] and data["skip"] + data["take"] <= len(whole)
    return part != whole[data["skip"] :][: data["take"]]


@relation
def leaves_out(records: Sequence[Record], evidence: Evidence) -> bool:
    """The list is not all rows of the table that have the value, without a sign that there are more."""
    record, data = records[0], evidence.data
    op = next(op for op in record.ops if op.mark == "call")
    seen = record.at("call")
    world = record.at("world").value
    got, wanted = _listed(seen.value, tables_of(world), op.value.get(data["name"]), data=data)
    if seen.is_error or got is None or _signals(seen.value) or not got < wanted:
        return False
    return not _is_unavailable(world, data, wanted - got, listed=got)


def _is_unavailable(world: Any, data: dict[str, Any], left: set[str], *, listed: set[str]) -> bool:
    """True if the rows left out have in common that they are used up, unlike the listed ones.

    A field of them is empty or 0, one field has reached another one, or another table refers to them.
    """
    entries = tables_of(world).get(data["table"], [])
    out = [row for row in entries if str(row[data["id"]]) in left]
    rest = [row for row in entries if str(row[data["id"]]) in listed] or [row for row in entries if row not in out]
    others = [rows for name, rows in tables_of(world).items() if name != data["table"]]
    named = {str(value) for rows in others for row in rows for value in row.values()}

    def signs(row: dict[str, Any]) -> set[str]:
        """Returns how a row is left: its fields that are set, counts that are not reached, and no reference to it."""
        counted = [(name, value) for name, value in row.items() if is_number(value)]
        unequal = {f"{one} {other}" for (one, low), (other, high) in itertools.combinations(counted, 2) if low != high}
        free = set[str]() if str(row[data["id"]]) in named else {"free"}
        return {name for name, value in row.items() if value} | unequal | free

    lacking = set[str]().union(*map(signs, out))
    return any(all(sign in signs(row) for row in rest) for sign in signs(rest[0]) - lacking) if rest else False


def _listed(
    value: Any, tables: Mapping[str, list[dict[str, Any]]], asked: Any, *, data: dict[str, Any]
) -> tuple[set[str] | None, set[str]]:
    """Ids that are listed, and those of the rows of the table that have the value."""
    entries = tables.get(data["table"], [])
    wanted = {str(row[data["id"]]) for row in entries if row.get(data["field"]) == asked and _passes(row, data)}
    rows = rows_of(value)
    if rows is None:
        return None, wanted
    return {str(row.get(data["id"]) if is_dict(row) else row) for row in rows}, wanted


def _passes(row: dict[str, Any], data: dict[str, Any]) -> bool:
    return all(str(row.get(name)) in values for name, values in data["kinds"].items())


def _kinds(tried: Sequence[Variation], table: str) -> dict[str, list[str]]:
    """Returns the values of the listed rows in fields with few values: a list may show open items only."""
    found: dict[str, set[str]] = {}
    for variation in tried:
        rows = joined(variation.seen.value, variation.base_state.tables) or []
        entries = variation.base_state.tables.get(table, [])
        for name in entries[0] if entries else ():
            values = [row.get(name) for row in entries]
            if not all(value is None or isinstance(value, str | bool) for value in values):
                continue
            if len({*map(str, values)}) <= max(2, len(entries) // 4):
                found.setdefault(name, set()).update(str(row[name]) for row in rows if name in row)
    return {name: sorted(values) for name, values in found.items()}


def _signals(value: Any) -> bool:
    return is_dict(value) and any(_PARTIAL.search(name) for name in value)


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


@check("x.pages_fit", "silent_default", needs=("tools", "call", "tasks"), value=83)
def pages(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a list with a limit or an offset is that part of the whole list."""
    reported: set[str] = set()
    for variation in readings(ctx):
        names = [(name, "take") for name in variation.tool.properties if LIMITS.match(name)]
        names += [(name, "skip") for name in variation.tool.properties if OFFSETS.match(name)]
        count = len(rows_of(variation.seen.value) or ())
        if not names or count < 3 or variation.tool.name in reported:
            continue
        reported.add(variation.tool.name)
        for name, what in names:
            yield _paged(ctx, variation, name, what=what)


def _paged(ctx: AuditContext, variation: Variation, name: str, *, what: str) -> Finding | None:
    limit = next(
        (property_schema for property_schema in variation.tool.properties if LIMITS.match(property_schema)), ""
    )
    schema: Any = variation.tool.properties.get(limit) or {}
    most = int(schema.get("maximum") or 50) if limit else 10_000
    plain = {
        key: value for key, value in variation.arguments.items() if not LIMITS.match(key) and not OFFSETS.match(key)
    }
    wide = {**plain, **({limit: most} if limit else {})}
    for count in (1, 2, 3, 5, 11):
        skip, take = (count, most - count) if what == "skip" else (0, count)
        part = {**wide, name: count}
        probe = Probe(
            (
                *variation.base_state.head,
                call(variation.tool.name, wide, mark="whole"),
                call(variation.tool.name, part, mark="part"),
            )
        )
        data = {"skip": skip, "take": take, "most": most}
        ctx.count_comparisons()
        record = ctx.play_probe(probe)
        if not_the_page([record], Evidence("", data=data)):
            return ctx.finding(
                f"{variation.tool.name} with {name}={count} does not give that part of the list",
                probe,
                relation=f"{HERE}not_the_page",
                marks=("whole", "part"),
                data=data,
                minimise=0,
                expected=(rows_of(record.at("whole").value) or [])[skip:][:take][:6],
                observed=(rows_of(record.at("part").value) or [])[:6],
                teaches="that some rows are not there",
            )
    return None


@check("x.lists_are_whole", "silent_default", needs=("tools", "call", "tasks", "state"), value=19)
def whole(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a list of related rows is complete for any argument."""
    found = readings(ctx)
    for tool in dict.fromkeys(variation.tool.name for variation in found):
        own_variations = [variation for variation in found if variation.tool.name == tool]
        if any(LIMITS.match(name) for name in own_variations[0].tool.properties):
            continue
        for name in own_variations[0].tool.required:
            finding = _short(ctx, own_variations, name)
            if finding is not None:
                yield finding
                break


def _short(ctx: AuditContext, own_variations: Sequence[Variation], name: str) -> Finding | None:
    """Returns a finding for a list that is too short where most lists of the tool have the right length."""
    tried = [candidate for candidate in own_variations if candidate.name in ("", name) and name in candidate.arguments]
    for table, rows in own_variations[0].base_state.tables.items():
        like = [row for row in rows[0] if row == name or row.endswith(f"_{name}") or name.endswith(f"_{row}")]
        kinds = _kinds(tried, table) if like else {}
        for field in like:
            for key in (
                identifier for identifier in _ids(rows, rows) if len({row[identifier] for row in rows}) == len(rows)
            ):
                data = {"name": name, "table": table, "field": field, "id": key, "kinds": kinds}
                sets = [
                    (
                        candidate,
                        *_listed(
                            candidate.seen.value, candidate.base_state.tables, candidate.arguments[name], data=data
                        ),
                    )
                    for candidate in tried
                ]
                exact = [
                    candidate
                    for candidate, got, wanted in sets
                    if got is not None and got == wanted and len(wanted) > 0
                ]
                short = [candidate for candidate, got, wanted in sets if got is not None and got < wanted]
                ctx.count_comparisons(len(sets))
                if len(exact) < 3 or not short or len(exact) < len(short):
                    continue
                evidence = Evidence("", data=data)
                for variation in short:
                    if leaves_out([ctx.play_probe(_seeing(variation))], evidence):
                        title = f"{variation.tool.name} leaves out rows of some {name}, and does not say so"
                        observed = {"rows": len(rows_of(variation.seen.value) or ())}
                        return _wrong(ctx, variation, title, relation="leaves_out", data=data, observed=observed)
    return None
