"""Variations of calls that work: one parameter differs at a time, from the same base state.

The discovery finds a few calls. The effect of an argument shows only when it changes: to other rows of the same table,
to the bounds of the schema, to each value of an enum, to names of things that do not exist.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, call, reset

from .cuts import TIME, numbers
from .data import is_alike, is_dict, is_list, is_number, tabled
from .discovery import KnownCall, goes_back, sees
from .generate import fits, valid

if TYPE_CHECKING:
    from quintain.audit.kernel.context import AuditContext

MAX_BASE_CALLS = 2  # good calls of a tool that are varied
MAX_FORM_CALLS = 2  # further good calls, each with a text of a new form: a number, or a text that begins with a sign
MAX_OTHER_ROWS = 4  # other rows whose fields are all given at once
MAX_OTHER_VALUES = 6  # other values that a parameter is set to
MAX_SHOWN = 4  # times of the good answer that a time is set to; numbers, with the next ones, for a left out number
MAX_TOOLS = 40  # tools that are varied; of more, so many are sampled evenly
MAX_DRAWN_CALLS = 40  # calls that are drawn for a tool without a known call


class BaseState(msgspec.Struct, frozen=True, dict=True):
    """State in which a good call is made, as tables; `world` is None if it is not visible.

    `columns` holds the values of each field by "table/field"; keys of a dict of rows stand under "table/#", and those
    of a dict of other values of one kind, and texts of a list of texts, under "table/##".
    """

    task: str
    before: tuple[Op, ...]
    world: Any
    columns: dict[str, list[Any]]
    tables: dict[str, list[dict[str, Any]]]

    @property
    def head(self) -> tuple[Op, ...]:
        return (reset(self.task), *self.before)

    @functools.cached_property
    def texts(self) -> frozenset[str]:
        return frozenset(str(one) for values in self.columns.values() for one in values)


class Variation(msgspec.Struct, frozen=True):
    """Call that differs from a good one in the parameter `name`; the good call itself has none.

    Attributes:
        kind: "good"; "legal": fits the schema; "unknown": names something that does not exist; "illegal": does not fit;
            "taken": would duplicate another row.
    """

    tool: ToolSpec
    base_state: BaseState
    good: dict[str, Any]
    op: Op
    name: str
    kind: str
    seen: OpResult
    changes: dict[str, list[Any]] | None  # state changes by path, as [before, after]; None if the state is not visible

    @property
    def works(self) -> bool:
        return not self.seen.is_error

    @property
    def arguments(self) -> dict[str, Any]:
        given: dict[str, Any] = self.op.value
        return given

    @property
    def made(self) -> frozenset[str]:
        """Returns the keys of the rows that the call added."""
        return frozenset(path.rpartition("/")[2] for path, (old, _) in (self.changes or {}).items() if old is None)

    def probe(self, *after: Op, looks: bool = False) -> Probe:
        """Returns a probe of the call ("call") with looks before ("was", "world") and after ("look")."""
        first = (Op("changes", mark="was"), Op("state", mark="world")) if looks else ()
        last = (Op("changes", mark="look"),) if looks else ()
        return Probe((*self.base_state.head, *first, self.op.marked("call"), *last, *after))


class Variations(msgspec.Struct, frozen=True):
    """All variations that were played."""

    all: tuple[Variation, ...]

    def of(self, tool: str) -> tuple[Variation, ...]:
        return tuple(one for one in self.all if one.tool.name == tool)


def vary(ctx: AuditContext) -> Variations:
    tools = ctx.about.tools[:: -(-len(ctx.about.tools) // MAX_TOOLS)] if ctx.about.tools else ()
    known = {tool.name: _bases(ctx.discovery.of(tool.name)) for tool in tools}
    known |= _searched(ctx, [tool for tool in tools if not known[tool.name]])
    pairs = [(tool, one) for tool in tools for one in known[tool.name]]
    states = _moments(ctx, [(one.task, one.before) for _, one in pairs])
    bases = [(tool, states[f"{one.task} {one.before}"], one) for tool, one in pairs]
    plans = [(tool, state, one, list(_variants(tool, one, state, ctx=ctx))) for tool, state, one in bases]
    probes = [
        _swept(ctx, state, [op for _, _, op in variants], looks=one.writes is not False)
        for _, state, one, variants in plans
    ]
    found: list[Variation] = []
    for (tool, state, base, variants), record in zip(plans, ctx.play_all(probes), strict=True):
        for place, (name, kind, op) in enumerate(variants):
            seen = record.at(f"call {place}")
            found.append(Variation(tool, state, base.op.value, op, name, kind, seen, _changes(record, place)))
    return Variations(tuple(found))


def _bases(known: Sequence[KnownCall]) -> list[KnownCall]:
    """Returns good calls with few ops before them, the richest answers first."""
    ranked = sorted(known, key=lambda one: (len(one.before), -min(len(str(one.seen.value)), 2000)))
    chosen: list[KnownCall] = []
    for one in ranked:
        is_new = all(one.op.value != other.op.value for other in chosen)
        chosen += [one] if len(chosen) < MAX_BASE_CALLS and is_new else []
    for one in ranked:
        is_new = bool(_forms(one) - {form for other in chosen for form in _forms(other)})
        chosen += [one] if len(chosen) < MAX_BASE_CALLS + MAX_FORM_CALLS and is_new else []
    return chosen


def _forms(known: KnownCall) -> set[tuple[str, str]]:
    """Returns (parameter, form) for arguments that are a number as text or begin with a sign."""
    texts = {name: one for name, one in known.op.value.items() if isinstance(one, str) and one}
    numbers = {(name, "number") for name, one in texts.items() if re.fullmatch(r"-?\d+(\.\d+)?", one)}
    return numbers | {(name, one[0]) for name, one in texts.items() if re.match(r"[^\w\s-]", one)}


def _moments(ctx: AuditContext, places: Sequence[tuple[str, tuple[Op, ...]]]) -> dict[str, BaseState]:
    starts = {f"{task} {before}": (task, before) for task, before in places}
    look = (Op("state", mark="world"),) if sees(ctx) else ()
    records = ctx.play_all([Probe((reset(task), *before, *look)) for task, before in starts.values()])
    found: dict[str, BaseState] = {}
    known: dict[int, dict[str, list[Any]]] = {}  # columns by the identity of their table, which most states share
    for (key, (task, before)), record in zip(starts.items(), records, strict=True):
        world = tabled(record.at("world").value) if look else None
        columns: dict[str, list[Any]] = {}
        for table, rows in world.items() if is_dict(world) else ():
            if id(rows) not in known:
                known[id(rows)] = _columns(rows)
            columns |= {f"{table}/{field}": values for field, values in known[id(rows)].items()}
        found[key] = BaseState(task, before, world, columns, tables_of(world))
    return found


def _columns(rows: Any) -> dict[str, list[Any]]:
    """Returns the values of each field of a table; keys of a dict of rows stand under "#", other names under "##"."""
    named = is_dict(rows) and rows and all(map(is_dict, rows.values()))
    entries: list[Any] = list(rows.values()) if named else rows if is_list(rows) else []
    found: dict[str, dict[Any, None]] = {"#": dict.fromkeys(rows)} if named else {}
    is_names = is_dict(rows) and not named and is_alike(rows)
    is_names = is_names or (is_list(rows) and bool(rows) and all(isinstance(one, str) for one in rows))
    found |= {"##": dict.fromkeys(rows)} if is_names else {}
    for field, value in (item for row in entries if is_dict(row) for item in row.items()):
        if isinstance(value, str) or is_number(value):
            found.setdefault(field, {}).setdefault(value, None)
    return {field: list(values) for field, values in found.items()}


def tables_of(world: Any) -> dict[str, list[dict[str, Any]]]:
    """Returns the tables of a state: lists of rows, and dicts of rows by key."""
    found: dict[str, list[dict[str, Any]]] = {}
    for table, rows in world.items() if is_dict(world) else ():
        entries: list[Any] = list(rows.values()) if is_dict(rows) else rows if is_list(rows) else []
        if entries and all(map(is_dict, entries)):
            found[table] = entries
    return found


# --- calls of tools of which none is known ---


def _searched(ctx: AuditContext, tools: Sequence[ToolSpec]) -> dict[str, list[KnownCall]]:
    """Draws calls of tools without a known call, with values like their descriptions' examples."""
    task = ctx.tasks[0] if ctx.tasks else ""
    if not task or not tools:
        return {}
    base_state = next(iter(_moments(ctx, [(task, ())]).values()))
    drawn = [_drawn(ctx, tool, base_state) for tool in tools]
    records = ctx.play_all([_swept(ctx, base_state, ops, looks=True) for ops in drawn])
    found: dict[str, list[KnownCall]] = {}
    for tool, ops, record in zip(tools, drawn, records, strict=True):
        seen = [(place, op, record.at(f"call {place}")) for place, op in enumerate(ops)]
        good = [(op, one, tuple(_changes(record, place) or ())) for place, op, one in seen if not one.is_error]
        found[tool.name] = _bases([KnownCall(task, (), op, one, changed) for op, one, changed in good])
    return found


def _drawn(ctx: AuditContext, tool: ToolSpec, base_state: BaseState) -> list[Op]:
    """Returns calls of a tool with valid arguments, which often look like the examples in its descriptions."""
    likely = {name: _like_example(schema, base_state) for name, schema in tool.properties.items()}
    drawn: dict[str, Op] = {}
    for _ in range(MAX_DRAWN_CALLS):
        given = valid(tool, ctx.discovery.values, ctx.rng)
        for name in given:
            if likely.get(name) and ctx.rng.random() < 0.8:
                given[name] = ctx.rng.choice(likely[name])
        drawn[str(given)] = call(tool.name, given)
    return list(drawn.values())


_EXAMPLE = re.compile(r"(?:such as|e\.?g\.?,?|for example,?|like) [`'\"]?([\w.@:/+-]+\w)", re.IGNORECASE)


def example_of(schema: Any) -> str:
    """Returns the value that a parameter's description gives as an example; empty without one."""
    if not is_dict(schema):
        return ""
    if schema.get("examples"):
        return str(schema["examples"][0])
    found = _EXAMPLE.search(str(schema.get("description") or ""))
    return found[1] if found else ""


def shape(text: str) -> str:
    """Returns a text with each digit as 9 and each letter as its case."""
    return re.sub(r"[a-z]", "a", re.sub(r"[A-Z]", "A", re.sub(r"\d", "9", text)))


def _like_example(schema: Any, base_state: BaseState) -> list[Any]:
    example = example_of(schema)
    if not any(letter.isdigit() for letter in example):
        return []
    texts = [one for values in base_state.columns.values() for one in values[:40] if isinstance(one, str)]
    return [one for one in texts if shape(one) == shape(example) and one != example]


# --- variants ---


def _variants(
    tool: ToolSpec, base: KnownCall, base_state: BaseState, *, ctx: AuditContext
) -> Iterator[tuple[str, str, Op]]:
    given: dict[str, Any] = base.op.value
    yield "", "good", base.op
    for name, schema in tool.properties.items():
        if not is_dict(schema):
            continue
        for kind, value in _values(schema, name, base, base_state=base_state, ctx=ctx):
            if name in given and value == given[name] and type(value) is type(given[name]):
                continue
            yield name, kind, call(tool.name, {**given, name: value})
        if name in given:
            kind = "illegal" if name in tool.required else "legal"
            yield name, kind, call(tool.name, {key: one for key, one in given.items() if key != name})
    if base.writes:
        yield from (("", "taken", call(tool.name, {**given, **row})) for row in _taken(tool, given, base_state))


def _taken(tool: ToolSpec, given: dict[str, Any], base_state: BaseState) -> Iterator[dict[str, Any]]:
    """Yields fields of other rows for which the tool has parameters, such as a place or a time."""
    found: dict[str, dict[str, Any]] = {}
    names = [name for name in tool.properties if name in given]
    for rows in base_state.tables.values():
        for row in rows:
            like = {name: row[name] for name in names if name in row}
            other = any(one != given[name] for name, one in like.items())
            if len(like) > 1 and other and fits({**given, **like}, tool.parameters, tool.parameters):
                found[str(like)] = like
    step = max(1, len(found) // MAX_OTHER_ROWS)
    yield from list(found.values())[::step][:MAX_OTHER_ROWS]


NOWHERE = ("no such thing 7f3a", "no other thing 81c4")


def _values(
    schema: dict[str, Any], name: str, base: KnownCall, *, base_state: BaseState, ctx: AuditContext
) -> Iterator[tuple[str, Any]]:
    given: dict[str, Any] = base.op.value
    kinds = schema.get("type")
    kinds = kinds if is_list(kinds) else [kinds]
    if schema.get("enum") or "boolean" in kinds:
        yield from (("legal", one) for one in (schema.get("enum") or (True, False))[:10])
        yield from (("illegal", one) for one in NOWHERE if schema.get("enum"))
    elif "integer" in kinds or "number" in kinds:
        yield from _numbers(schema, given.get(name), shown=() if name in given else numbers(base.seen.value))
        yield from (("unknown", one) for one in missing_number(given.get(name), name, base_state) if fits(one, schema))
    elif "string" in kinds:
        yield from _texts(schema, name, base, base_state=base_state, ctx=ctx)


def _numbers(schema: dict[str, Any], value: Any, *, shown: Sequence[int]) -> Iterator[tuple[str, Any]]:
    low, high = schema.get("minimum"), schema.get("maximum")
    near = [value - 1, value + 1, value * 2] if is_number(value) else []
    near += [one + more for one in shown[-MAX_SHOWN:] for more in (0, 1)]
    tried = [low, high, 0, 1, 2, 3, 7, 10, 60, 100, 1000, 1001, 10001, *near]
    tried += [low + 1] if is_number(low) else []
    yield from (("legal", one) for one in dict.fromkeys(one for one in tried if is_number(one)) if fits(one, schema))
    yield from [("illegal", low - 1)] if is_number(low) else ()
    yield from [("illegal", high + 1)] if is_number(high) else ()


def missing_number(value: Any, name: str, base_state: BaseState) -> list[int]:
    """Returns an id that no row has. Empty unless the value is an id in a table that the parameter is named after."""
    stem = re.sub(r"_?(id|number|no)$", "", name)
    for column, values in base_state.columns.items():
        table, _, field = column.rpartition("/")
        is_its = field in ("id", "#") and (stem != name or stem in re.split(r"[._]", table.removesuffix("s")))
        if is_its and value in values and all(isinstance(one, int) for one in values) and len(values) >= 3:
            return [max(values) + 59264]
    return []


def _texts(
    schema: dict[str, Any], name: str, base: KnownCall, *, base_state: BaseState, ctx: AuditContext
) -> Iterator[tuple[str, Any]]:
    value = base.op.value.get(name)
    shown = TIME.findall(str(base.seen.value)) if TIME.fullmatch(str(value)) else []
    like = dict.fromkeys([*others(value, name, base_state, ctx=ctx)[:MAX_OTHER_VALUES], *shown[:MAX_SHOWN]])
    yield from (("legal", one) for one in like if fits(one, schema))
    if isinstance(value, str) and value:
        yield from (("unknown", one) for one in strangers(value, base_state, known=ctx.discovery.values.strings()))
    yield "unknown", NOWHERE[0]
    yield "legal", ""
    most = schema.get("maxLength")
    if isinstance(most, int) and most < 10_000:
        yield "legal", "x" * most
        yield "illegal", "x" * (most + 1)


def others(value: Any, name: str, base_state: BaseState, *, ctx: AuditContext) -> list[Any]:
    """Returns other values of the column that a value stands in, spread evenly."""
    columns = [one for one in base_state.columns.values() if value in one]
    columns.sort(key=len, reverse=True)
    rest = [one for one in (columns[0] if columns else ctx.discovery.values.of(name)) if one != value]
    step = max(1, len(rest) // MAX_OTHER_VALUES)
    return rest[::step]


def strangers(value: str, base_state: BaseState, *, known: Sequence[str] = ()) -> list[str]:
    """Returns names of the same form that do not exist in the state; longer ones if the state is not visible."""
    if not any(letter.isdigit() for letter in value):
        return [f"{value[:-1]}qzx"]
    there = base_state.texts
    if value not in there:
        *_, last = re.finditer(r"\d+", value)
        value = f"{value[: last.end()]}59264{value[last.end() :]}"
    tables = (str.maketrans("0123456789", "7036925814"), str.maketrans("0123456789", "1470369258"))
    tried = [value.translate(table) for table in tables]
    return [one for one in dict.fromkeys(tried) if one not in there and one not in known and one != value][:2]


# --- playing ---


def _swept(ctx: AuditContext, base_state: BaseState, ops: Sequence[Op], *, looks: bool) -> Probe:
    """Returns a probe with each op from the same base state, by restoring it or on an instance each."""
    is_seen, can_go_back = looks and sees(ctx), goes_back(ctx)
    played: list[Op] = []
    for place, op in enumerate(ops):
        on = "a" if can_go_back else f"s{place}"
        if place == 0 or not can_go_back:
            played += [one.moved(on) for one in base_state.head]
            played += [Op("changes", mark="was", on=on)] if is_seen and place == 0 else []
            played += [Op("snapshot", name="here")] if can_go_back else []
        if looks and can_go_back:
            played += [Op("restore", name="here")]
        played.append(op.marked(f"call {place}").moved(on))
        played += [Op("changes", mark=f"look {place}", on=on)] if is_seen else []
    return Probe(tuple(played))


def _changes(record: Record, place: int) -> dict[str, list[Any]] | None:
    if not any(op.mark == "was" for op in record.ops):
        return None
    return changed(record.at("was").value, record.at(f"look {place}").value)


def changed(was: Any, look: Any) -> dict[str, list[Any]] | None:
    """Returns the changes between two looks, each given as differences from the start state, by path."""
    if not (is_dict(was) and is_dict(look)):
        return None
    found: dict[str, list[Any]] = {}
    for path in dict.fromkeys((*was, *look)):
        one, other = was.get(path), look.get(path)
        if one != other:
            start: Any = (one or other or [None])[0]
            found[path] = [one[1] if one else start, other[1] if other else start]
    return found
