"""Checks lists against the world that they show, and tools against the contracts that they declare.

A row of an answer often has only an id and a title; the state has the rest of it. The two are joined by the id, so that
"newest first" can be seen where no time is shown, and "of this status" where no status is.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from quintain.audit.facts.contracts import covers, is_named, touches
from quintain.audit.facts.cuts import money
from quintain.audit.facts.data import is_dict, is_list, is_number, tabled
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import fits, valid
from quintain.audit.facts.variations import Variation, changed, tables_of
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset, same
from quintain.audit.kernel.registry import Relation, relation

from ._drift_told import called
from ._drift_words import promised_order, rows_of, show
from ._same_scripts import seems_to_read

_SORTS = re.compile(r"sort|order_by|ordering|direction|ascending|descending|reverse", re.IGNORECASE)
_WAS, _LOOK, _WORLD = Op("changes", mark="was"), Op("changes", mark="look"), Op("state", mark="world")
Tables = Mapping[str, list[dict[str, Any]]]


def _paths(record: Record, evidence: Evidence) -> list[str]:
    """Returns the paths that changed between two looks, without excused ones."""
    found = changed(record.at("was").value, record.at("look").value) or {}
    tops, fields = {*evidence.data["excused"], "<more>"}, {*evidence.volatile}
    if "shared" in tops and any(path.startswith("shared/timers") for path in found):
        return []  # A timer that fires changes what is not the tool's.
    return [path for path in found if path.partition("/")[0] not in tops and fields.isdisjoint(path.split("/"))]


def _beyond(record: Record, evidence: Evidence) -> list[str]:
    names = evidence.data["writes"]
    return [path for path in _paths(record, evidence) if not any(covers(name, path) for name in names)]


@relation
def writes_more(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if calls of a tool change something that it does not declare to write."""
    return bool(_beyond(records[0], evidence))


@relation
def reads_more(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a result that a repeated call does not change is changed by a write outside the declared reads."""
    record, names = records[0], evidence.data["reads"]
    first, again, after = (record.at(mark) for mark in ("first", "again", "after"))
    paths = _paths(record, evidence)
    if not paths or any(touches(name, path) for name in names for path in paths) or first.is_error or after.is_error:
        return False
    return same(first, again, evidence.volatile) and not same(again, after, evidence.volatile)


@relation
def unordered(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the rows of a list are not in the declared order."""
    seen = records[0].at("call")
    return not seen.is_error and is_unordered(seen.value, _tables(records[0]), evidence.data)


def _tables(record: Record) -> Tables:
    """Returns the tables of the state; none if it is not visible."""
    return tables_of(tabled(record.at("world").value)) if _WORLD in record.ops else {}


def is_unordered(value: Any, tables: Tables, order: str) -> bool:
    """True if rows break an order by what they show, and by what the state has of them."""
    ways = [joined(value, tables, stored=stored) or [] for stored in (False, True)]
    return all(any(_is_after(*pair, order) for pair in itertools.pairwise(rows)) for rows in ways)


def _is_after(first: dict[str, Any], second: dict[str, Any], order: str) -> bool:
    """True if a row belongs after the one that follows it; False if their values do not compare, as missing ones."""
    for term in order.split(", "):
        name = term.partition(" ")[0]
        low, high = (_keys(row.get(name)) for row in ((second, first) if term.endswith(" desc") else (first, second)))
        if [type(key) for key in low] != [type(key) for key in high] or not low:
            return False
        if low != high:
            return all(bool(one > other) for one, other in zip(low, high, strict=True))
    return False


def _keys(value: Any) -> list[Any]:
    """Returns keys by which a value is sorted: of text by alphabet, and with T9 before T10; none for "1 May" or "é".

    Text that is an amount of money ("$9 each") is sorted by the number.
    """
    if amount := money(value):
        return [amount[0]]
    if not isinstance(value, str) or not value.isascii() or re.match(r"\d(?!\d{3}-\d\d|\d:\d\d)", value):
        return []
    parts = re.findall(r"\d+|\D+", value.casefold())
    return [value, [(int(part), "") if part.isdigit() else (-1, part) for part in parts]]


@relation
def misfiltered(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a filter shows or hides the wrong rows, in the way that the evidence says."""
    return bool(_misfiltered(records[0], evidence.data)[0] == evidence.data["how"])


def _misfiltered(record: Record, data: dict[str, Any]) -> tuple[str, list[Any]]:
    """Returns how the list "call" breaks a filter, beside the list "whole" without it, and the rows that show it."""
    shown = None if record.at("call").is_error else rows_of(record.at("call").value)
    every = rows_of(record.at("whole").value) if data["optional"] and not record.at("whole").is_error else None
    if shown is None or not data["field"]:
        is_wider = shown is not None and every is not None and len(shown) > len(every)
        return ("shows more rows with {} than without", (shown or [])[:6]) if is_wider else ("", [])
    entries = _tables(record).get(data["table"], [])
    kept = entries_of(shown, entries) if entries else None
    if wrong := [row for row in kept or () if not _has(row, data)]:
        return "shows rows that {} leaves out", wrong[:6]
    # A list of fewer rows than the whole one is not cut by a limit.
    whole = entries_of(every, entries) if every is not None and kept is not None and len(shown) < len(every) else None
    hidden = [row for row in whole or () if _has(row, data) and row not in (kept or ())]
    return ("leaves out rows that {} asks for", hidden[:6]) if hidden else ("", [])


def _has(row: dict[str, Any], data: dict[str, Any]) -> bool:
    """True if the field of a row has the filter's value or holds it; the case of text is ignored."""
    there: Any = row
    for name in data["field"]:
        there = there.get(name) if is_dict(there) else None
    return _folded(data["value"]) in map(_folded, there if is_list(there) else [there])


def _folded(value: Any) -> Any:
    return value.strip().casefold() if isinstance(value, str) else value


@check("x.contracts_hold", "action_drift", needs=("tools", "call", "tasks"), value=61)
def contracts_hold(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that tools write, read, sort and filter as their contracts declare.

    Excuses: volatile fields, the framework's clock and counters, calls during which timers are set or fire, and what
    every call changes, such as a log of calls.
    """
    if not ctx.about.contracts:
        raise NotChecked("no tool has a contract")
    for name in [name for contract in ctx.about.contracts.values() for name in contract.names]:
        states = [state for state in ctx.discovery.states.values() if is_dict(state)]
        if states and not any(is_named(top, [name]) for state in states for top in state):
            raise NotChecked(f"a contract names {name}, which the state does not have")
    own = ("shared",) if ctx.about.kind == "environment" else ()
    excused = sorted({*ctx.discovery.background, *own})
    for tool, contract in ctx.about.contracts.items():
        if "state" in ctx.offers:
            if contract.writes is not None:
                yield _written(ctx, tool, {"writes": list(contract.writes), "excused": excused})
            if contract.reads is not None and seems_to_read(ctx, tool):
                reads = [*contract.reads, *(contract.writes or ())]
                yield _read(ctx, tool, {"reads": reads, "excused": excused})
        if contract.order:
            yield _ordered(ctx, tool, contract.order)
        for name in contract.filters:
            yield _declared_filter(ctx, tool, name, column=contract.filters[name] if is_dict(contract.filters) else "")


def _written(ctx: AuditContext, tool: str, data: dict[str, Any]) -> Finding | None:
    """Returns a finding for calls of a tool that change more than it declares; minimising leaves the culprit."""
    groups: dict[str, list[Op]] = {}
    for variation in ctx.variations.of(tool):
        groups.setdefault(str(variation.base_state.head), [*variation.base_state.head, _WAS]).append(variation.op)
    known = ctx.discovery.of(tool)[:6]
    lists = [*groups.values(), *([reset(one.task), *one.before, _WAS, one.op.marked("")] for one in known)]
    probes = [Probe((*ops, _LOOK)) for ops in lists]
    ctx.count_comparisons(len(probes))
    for probe, record in zip(probes, ctx.play_all(probes), strict=True):
        paths = _beyond(record, Evidence("", (), data, ctx.volatile))
        fields = {re.sub(r"/[^/]*/?", ".", path, count=1).strip(".") for path in paths}
        finding = show(
            ctx, f"{tool} declares to write {', '.join(data['writes']) or 'nothing'}, and writes elsewhere",
            writes_more, probe, marks=("was", "look"), data=data, expected=data["writes"], observed=sorted(fields),
            teaches="that a tool has effects that production's does not have", minimise=40,
        ) if paths else None  # fmt: skip
        if finding is not None:
            return finding
    return None


def _read(ctx: AuditContext, tool: str, data: dict[str, Any]) -> Finding | None:
    """Returns a finding for a result that a write outside of the declared reads changes."""
    known = {one.task: one.op for one in ctx.discovery.of(tool) if not one.before}
    writes = [one for one in ctx.discovery.writes() if one.task in known and one.op.name != tool][:12]
    reads = [[known[one.task].marked(mark) for mark in ("first", "again", "after")] for one in writes]
    probes = [
        Probe((reset(one.task), *one.before, *read[:2], _WAS, one.op.marked("write"), _LOOK, read[2]))
        for one, read in zip(writes, reads, strict=True)
    ]
    for one, probe, record in zip(writes, probes, ctx.play_all(probes), strict=True):
        ctx.count_comparisons()
        paths = changed(record.at("was").value, record.at("look").value) or {}
        # The clock and the random stream have no names, so a result may depend on them.
        is_later = any(path.startswith("shared/") and not path.startswith("shared/counters") for path in paths)
        if not is_later and reads_more([record], Evidence("", (), data, ctx.volatile)):
            return show(
                ctx, f"{tool} shows what {one.op.name} changed outside of all that {tool} declares to read", reads_more,
                probe, marks=("first", "again", "was", "look", "after"), data=data,
                expected={"reads": data["reads"], "result": record.at("again").value},
                observed={"changed": [*paths][:6], "result": record.at("after").value},
                teaches="results that depend on more than in production", minimise=40,
            )  # fmt: skip
    return None


def _lists(ctx: AuditContext, tool: str) -> list[Variation]:
    """Returns the calls that gave a list, the longest first."""
    found = [one for one in ctx.variations.of(tool) if one.works and one.kind in ("good", "legal")]
    return sorted(found, key=lambda one: -len(rows_of(one.seen.value) or ()))


def _ordered(ctx: AuditContext, tool: str, order: str) -> Finding | None:
    for variation in _lists(ctx, tool):
        value, tables = variation.seen.value, variation.base_state.tables
        ctx.count_comparisons()
        if any(map(_SORTS.search, variation.arguments)) or not is_unordered(value, tables, order):
            continue
        look = (_WORLD,) if "state" in ctx.offers else ()
        names = [term.partition(" ")[0] for term in order.split(", ")]
        return show(
            ctx, f"{tool} declares the order {order}, and its rows are not in it", unordered,
            Probe((*variation.base_state.head, *look, variation.op.marked("call"))), data=order, expected=order,
            observed=[[row.get(name) for name in names] for row in (joined(value, tables) or [])[:12]],
            teaches="to take the first row for the wanted one when it is another",
        )  # fmt: skip
    return None


def _declared_filter(ctx: AuditContext, tool: str, name: str, *, column: str) -> Finding | None:
    base = next(iter(_lists(ctx, tool)), None)
    for case, probe in _cases(ctx, base, name, column=column) if base is not None else ():
        ctx.count_comparisons()
        how, rows = _misfiltered(ctx.play_probe(probe), case)
        finding = show(
            ctx, f"{tool} {how.format(name)}", misfiltered, probe, marks=("whole", "call"), data=case | {"how": how},
            class_="silent_default", expected={name: case["value"]}, observed=rows,
            teaches="that query parameters do not matter",
        ) if how else None  # fmt: skip
        if finding is not None:
            return finding
    return None


def _cases(ctx: AuditContext, base: Variation, name: str, *, column: str) -> Iterator[tuple[dict[str, Any], Probe]]:
    """Yields a filter with a value of its column or of a known call, and a probe that gives it."""
    tool, tables = base.tool, base.base_state.tables
    table = max((top for top in tables if column.startswith(f"{top}.")), key=len, default="")
    if column and not table:
        return
    field = column[len(table) + 1 :].split(".") if column else []
    tried = [one.arguments[name] for one in ctx.variations.of(tool.name) if one.name == name and name in one.arguments]
    known = [row.get(field[0]) for row in tables[table]] if len(field) == 1 else tried
    items = [item for value in known for item in (value if is_list(value) else [value])]
    # None, an empty text and the default may stand for all rows.
    items = [item for item in items if item not in (None, "", tool.properties[name].get("default"))]
    values = [*{repr(item): item for item in items if fits(item, tool.properties[name], tool.parameters)}.values()]
    plain = {key: value for key, value in base.arguments.items() if key in tool.required and key != name}
    optional = name not in tool.required and (bool(column) or not tool.properties[name].get("default"))
    look = (_WORLD,) if column else ()
    for value in values[:: -(-len(values) // 6) or 1]:
        whole, part = call(tool.name, plain, mark="whole"), call(tool.name, {**plain, name: value}, mark="call")
        case = {"table": table, "field": field, "value": value, "optional": optional}
        yield case, Probe((*base.base_state.head, *look, whole, part))


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
        if (found := entries_of(rows, entries)) is not None:
            pairs = [(entry, row if is_dict(row) else {}) for entry, row in zip(found, rows, strict=True)]
            return [{**row, **entry} if stored else {**entry, **row} for entry, row in pairs]
    if all(isinstance(row, str) and re.match(r"\d{4}-\d\d-\d\d", row) for row in rows):
        return [{"date": " ".join(row.split()[:2])} for row in rows]
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


@relation
def outside(records: Sequence[Record], evidence: Evidence) -> bool:
    """The answer has a row that the parameter leaves out."""
    record, how, name = records[0], evidence.data["how"], evidence.data["name"]
    given, seen = called(record).value, record.at("call")
    rows = joined(seen.value, tables_of(tabled(record.at("world").value)))
    is_fit = rows is not None and name in given and not seen.is_error
    return is_fit and bool(_outside(rows or (), evidence.data["field"], how, value=given[name]))


def _outside(rows: Sequence[dict[str, Any]], field: str, how: str, *, value: Any) -> list[Any]:
    there = [row.get(field) for row in rows]
    if how == "equal":
        return [item for item in there if _is_another(item, value)]
    sign = 1 if how == "least" else -1
    return [item for item in there if is_number(item) and is_number(value) and sign * item < sign * value]


def _is_another(there: Any, value: Any) -> bool:
    """True if a field differs from the requested value, ignoring case and substrings."""
    if isinstance(there, str) and isinstance(value, str):
        first, second = there.strip().casefold(), value.strip().casefold()
        return bool(first) and second not in first and first not in second
    return type(there) is type(value) and not is_list(there) and not is_dict(there) and there != value


@relation
def too_many(records: Sequence[Record], evidence: Evidence) -> bool:
    """The answer has more rows than the parameter allows."""
    rows, limit = rows_of(records[0].at("call").value), called(records[0]).value.get(evidence.data)
    return rows is not None and is_number(limit) and 0 <= limit < len(rows)


def readings(ctx: AuditContext) -> list[Variation]:
    """Lists that tools gave and that changed nothing, the longest first."""
    legal = [one for one in ctx.variations.all if one.kind in ("good", "legal") and one.works and not one.changes]
    found = [(rows, one) for one in legal if (rows := rows_of(one.seen.value)) is not None]
    if not found:
        raise NotChecked("no tool gives a list")
    return [one for _, one in sorted(found, key=lambda pair: -len(pair[0]))]


@check("x.lists_are_in_order", "action_drift", needs=("tools", "call", "tasks"), value=57)
def ordered_lists(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that rows have the order that the description promises, by their data in the world.

    Proven, though the promise is prose, because the rows contradict it by each time, or amount, that can be compared.
    Excuses: a further field by which they are in order, rows that are all alike, values missing in some rows.
    """
    # x.contracts_hold checks a declared order.
    tools = {tool.name: tool for tool in ctx.about.tools if promised_order(tool.description)}
    tools = {name: tool for name, tool in tools.items() if not ctx.contract(name).order}
    worlds: dict[str, Tables] = {}
    for known in _promised(ctx, tools):
        tool, text = known.op.name, tools[known.op.name].description
        wanted = promised_order(text) or ""
        start = (reset(known.task), *known.before, _WORLD)
        if str(start) not in worlds:
            worlds[str(start)] = _tables(ctx.play(*start))
        tables = worlds[str(start)]
        rows = joined(known.seen.value, tables) or []
        about = _TIME if _ABOUT_TIME.search(text) else _AMOUNT
        fields = [name for name in rows[0] if _comparable(rows, name)] if len(rows) > 1 else []
        fields = [name for name in fields if about.search(name) or (about is _TIME and is_time(rows[0][name]))]
        orders = [f"{name} desc" if wanted == "descending" else name for name in fields]
        ctx.count_comparisons()
        if orders and all(is_unordered(known.seen.value, tables, order) for order in orders):
            yield show(
                ctx, f"{tool} promises {wanted} order, but its rows are not so by {fields[0]}", unordered,
                Probe((*start, known.op.marked("call"))), data=orders[0], part="H",
                expected=f"{wanted} {fields[0]}", observed=[row.get(fields[0]) for row in rows[:12]],
                teaches="to take the first row for the wanted one when it is another",
            )  # fmt: skip


def _promised(ctx: AuditContext, tools: Mapping[str, ToolSpec]) -> Iterator[KnownCall]:
    """Calls of tools that give rows: those that are known, then drawn ones, of which any id may stand for another."""
    if not tools:
        raise NotChecked("no tool promises an order")
    for name, tool in tools.items():
        known = [(one.base_state, one) for one in _lists(ctx, name)[:12]]
        yield from (KnownCall(base.task, base.before, one.op, one.seen, ()) for base, one in known)
        for task in ctx.sample_tasks(12):
            drawn = {str(item): item for item in (_drawn(ctx, tool) for _ in range(20))}
            ops = [call(name, item, mark=f"call {place}") for place, item in enumerate(drawn.values())]
            record = ctx.play(reset(task), *ops)
            seen = [(op.marked(""), record.at(op.mark)) for op in ops]
            yield from (KnownCall(task, (), *pair, ()) for pair in seen if len(rows_of(pair[1].value) or ()) > 1)


def _drawn(ctx: AuditContext, tool: ToolSpec) -> dict[str, Any]:
    arguments = valid(tool, ctx.discovery.values, ctx.rng, optional=0.1)
    for name, value in arguments.items():
        ids = [one for one in ctx.discovery.values.of("id") if type(one) is type(value)]
        if name.endswith("id") and ids and ctx.rng.random() < 0.7:
            arguments[name] = ctx.rng.choice(ids)
    return arguments


def _comparable(rows: Sequence[dict[str, Any]], name: str) -> bool:
    """True if the rows differ in a number, a time of one form, or an amount of one unit."""
    values = [row.get(name) for row in rows]
    are_times = all(isinstance(value, str) and re.match(r"\d{4}-\d\d|\d\d:\d\d", value) for value in values)
    units = {amount and amount[1] for amount in map(money, values)}
    return len({*map(str, values)}) > 1 and (are_times or len(units - {None}) == len(units) == 1)


def is_time(value: Any) -> bool:
    """True for a text with a date, and for seconds since 1970 of a time from 2001 on."""
    return 1e9 <= value < 1e10 if is_number(value) else isinstance(value, str) and value[4:5] == "-"


@check("x.filters_filter", "action_drift", needs=("tools", "call", "tasks"), value=66)
def filters(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a list has only rows that match its parameters, and no more than they allow."""
    for variation in readings(ctx):
        rows = joined(variation.seen.value, variation.base_state.tables)
        for name in [one for one in variation.arguments if one not in ctx.contract(variation.tool.name).filters]:
            ctx.count_comparisons()
            yield _filtered(ctx, variation, name, rows=rows or [])


def _filtered(ctx: AuditContext, variation: Variation, name: str, *, rows: list[dict[str, Any]]) -> Finding | None:
    tool, value = variation.tool.name, variation.arguments[name]
    count = len(rows_of(variation.seen.value) or ())
    if LIMITS.match(name) and is_number(value) and 0 <= value < count:
        shown: dict[str, Any] = {name: value, "rows": count}
        return _wrong(
            ctx, variation, f"{tool} gives more rows than its {name}", relation=too_many, data=name, observed=shown
        )
    field, how = _meaning(variation, name, rows=rows)
    wrong = _outside(rows, field, how, value=value) if field else []
    title = f"{tool} gives rows that its {name} leaves out"
    data, shown = {"field": field, "how": how, "name": name}, {name: value, field: wrong[:6]}
    return _wrong(ctx, variation, title, relation=outside, data=data, observed=shown) if wrong else None


def _meaning(variation: Variation, name: str, *, rows: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """The field of the rows that a parameter is about, and how; empty for none."""
    schema: Any = variation.tool.properties.get(name)
    stem = re.sub(r"^(min|max)(imum)?_|_(min|max)$", "", name)
    fields = [field for field in rows[0] if field in (name, stem)] if rows and is_dict(schema) else []
    if not fields:
        return "", ""
    value = variation.arguments[name]
    if is_number(value):
        text = f"{schema.get('description') or ''} {variation.tool.description}"
        least, most = (bool(pattern.search(text)) for pattern in (_LEAST, _UP_TO))
        is_least, is_most = name.startswith("min") or (least and not most), name.startswith("max") or most > least
        return (fields[0], "least" if is_least else "most") if is_least or is_most else ("", "")
    # The value must be among the field's values in the world or in its enum.
    columns = variation.base_state.columns.items()
    there = [item for column, values in columns if column.endswith(f"/{fields[0]}") for item in values]
    is_text = name == fields[0] and isinstance(value, str) and value.casefold() not in _ALL
    return (fields[0], "equal") if is_text and value in [*there, *(schema.get("enum") or ())] else ("", "")


def _wrong(ctx: AuditContext, variation: Variation, title: str, *, relation: Relation, **fields: Any) -> Finding | None:
    """Returns a finding for the call after a look at its world; the world is absent where it cannot be seen."""
    common = {"expected": f"what the parameter asks for: {variation.arguments}"}
    common |= {"teaches": "that query parameters do not matter"}
    probe = Probe((*variation.base_state.head, _WORLD, variation.op.marked("call")))
    return show(ctx, title, relation, probe, **common | fields)
