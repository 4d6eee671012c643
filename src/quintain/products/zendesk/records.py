"""Pages that are generated from declared resources: users, organizations, and the settings of the admin center."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, cast

import msgspec

from quintain.resources.web import Exchange, Refuse, ResourceSpec, Routes
from quintain.resources.web.rows import find, shape

from . import actions
from . import screens as ui
from . import tables as tb
from .account import Desk, listed, record
from .business import COLUMNS, POLICIES, RESOURCES, SCHEDULES
from .conditions import CUSTOM_FIELD, FIELDS
from .misc import ARTICLES
from .people import GROUPS, ORGANIZATIONS, USERS
from .screens import Faults, FormField, PageTable, Pairs, Sent, pick
from .sla import METRICS
from .wire import API
from .workspace import tickets_table

ROUTES = Routes()
route = ROUTES.route
RULES = "/admin/objects-rules/rules"
SETTINGS: dict[str, ResourceSpec] = {
    {POLICIES.path: "slas", SCHEDULES.path: "schedules"}.get(one.path, one.path.rpartition("/")[2]): one
    for one in (*RESOURCES, GROUPS, ARTICLES)
}
_USER = ("name", "email", "role", "phone", "external_id", "alias", "time_zone", "suspended", "details", "notes", "tags")
_ORGANIZATION = ("name", "domain_names", "external_id", "group_id", "shared_tickets", "details", "notes", "tags")
_AREAS = ("body", "details", "notes", "signature", "description", "agent_description")
_LINES: dict[str, tuple[str, ...]] = {
    "conditions": ("field", "operator", "value"), "filter": ("field", "operator", "value"),
    "actions": ("field", "value"), "policy_metrics": ("priority", "metric", "target", "business_hours"),
    "intervals": ("start_time", "end_time"), "custom_field_options": ("name", "value"),
}  # fmt: skip
"""Columns of the settings that are lists of lines; conditions have two such lists, `all` and `any`."""
_LINE = re.compile(rf"({'|'.join(_LINES)})-(all|any|)-(\d{{1,3}})-(\w+)", re.ASCII)
"""Name of a field of a line: setting, list, number and column."""
_OPERATORS = sorted({one for known in (*FIELDS.values(), CUSTOM_FIELD) for one in known.operators + known.more})
_CHOICES: dict[str, Pairs] = {
    "role": [("end-user", "End user"), ("agent", "Agent"), ("admin", "Administrator")],
    "operator": [(one, one.replace("_", " ")) for one in _OPERATORS],
    "priority": [(one, one.capitalize()) for one in tb.PRIORITIES],
    "metric": [(one, one.replace("_", " ").capitalize()) for one in METRICS],
    "business_hours": [("true", "Business hours"), ("false", "Calendar hours")],
}  # fmt: skip


class RecordKind(NamedTuple):
    """Kind of records that pages list and edit.

    Attributes:
        spec: Their resource.
        path: Path of the list.
        names: Fields in the form; all that requests set if none are named.
    """

    spec: ResourceSpec
    path: str
    names: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Name of one."""
        return self.spec.name.replace("_", " ").capitalize().replace("Sla", "SLA")

    @property
    def api(self) -> str:
        """Path of the list in the API."""
        return self.spec.path.removeprefix("/api/v2/")


def _kind(exchange: Exchange) -> RecordKind:
    parts = exchange.request.path.strip("/").split("/")
    if parts[1] == "users":
        return RecordKind(USERS, "/agent/users", _USER)
    if parts[1] == "organizations":
        return RecordKind(ORGANIZATIONS, "/agent/organizations", _ORGANIZATION)
    if parts[3] not in SETTINGS:
        raise Refuse(404, {"error": "RecordNotFound", "description": "Not found"})
    return RecordKind(SETTINGS[parts[3]], f"{RULES}/{parts[3]}")


def _name(row: tb.Json) -> str:
    return str(row.get("title") or row.get("name") or row.get("agent_label") or row["id"])


# -- forms from declarations


def fields_of(world: Desk, kind: RecordKind, row: tb.Json, *, blank: int = 1) -> list[FormField]:
    """Returns the fields of a record, with `blank` empty lines below each list of lines."""
    found: list[FormField] = []
    columns, needed = shape(kind.spec.row), kind.spec.required or kind.spec.row.needed
    for name in kind.names or kind.spec.row.settable:
        value, label = row.get(name), name.removesuffix("_id").replace("_", " ").capitalize()
        if name in _LINES:
            found += _lines(kind, name, value, blank=blank)
        elif name == "execution":
            found += _output(record(value))
        elif name == "group_id":
            groups = ui.options(world, "SELECT id, name FROM zd_agent_groups WHERE deleted = 0 ORDER BY name")
            found.append(pick(name, label, value, options=[("", "-"), *groups]))
        elif name == "role":
            found.append(pick(name, label, value or "end-user", options=_CHOICES[name]))
        elif name in columns.bools:
            found.append(FormField(name, label, value, "checkbox"))
        elif name in columns.json and not isinstance(value, dict):
            found.append(FormField(name, label, " ".join(map(str, listed(value))), "words"))
        elif name not in columns.json and not name.startswith("raw_"):
            form = "area" if name in _AREAS else "number" if name in columns.numbers else "text"
            found.append(FormField(name, label, value, form, required=name in needed))
    if kind.spec is USERS:
        organization = find(world.db, tb.Organization, row.get("organization_id"))
        found.insert(3, FormField("organization", "Organization", organization.name if organization else ""))
    return found


def _lines(kind: RecordKind, name: str, value: Any, *, blank: int) -> list[FormField]:
    """Returns one field for each column of each line."""
    fields = [one for one, about in FIELDS.items() if kind.spec.name[0] in about.kinds]
    fields = [*actions.ACTIONS.get(kind.spec.name, ())] if name == "actions" else fields
    choices = _CHOICES | {"field": [(one, one.replace("_", " ")) for one in fields]}
    found: list[FormField] = []
    for part in ("all", "any") if name in {"conditions", "filter"} else ("",):
        lines = [record(one) for one in listed(record(value).get(part) if part else value)]
        for number, line in enumerate([*lines, *({} for _ in range(blank))], 1):
            about = " ".join(filter(None, (name.replace("_", " ").capitalize(), part, str(number))))
            for column in _LINES[name]:
                held = line.get(column)
                text = held if isinstance(held, str) else "" if held is None else msgspec.json.encode(held).decode()
                key, label = f"{name}-{part}-{number}-{column}", f"{about}: {column.replace('_', ' ')}"
                known = pick(key, label, text, options=[("", "-"), *choices.get(column, ())])
                found.append(known if column in choices else FormField(key, label, text))
    return found


def _output(value: tb.Json) -> list[FormField]:
    names = ("created", "updated", "status", "priority", "requester", "assignee", "nice_id")
    shown = [one["id"] for one in value.get("columns", [])]
    sorts, orders = [(one, COLUMNS[one]) for one in names], [("asc", "Ascending"), ("desc", "Descending")]
    return [
        FormField("output-columns", "Columns", shown, "choices", (*COLUMNS.items(),)),
        pick("output-sort_by", "Sort by", value.get("sort_by") or "created", options=sorts),
        pick("output-sort_order", "Order", value.get("sort_order") or "desc", options=orders),
    ]


def wanted_of(fields: list[FormField], sent: Sent) -> tb.Json:
    """Returns the changes that the form of a record asks for, as the API takes them."""
    found, kinds = ui.changed(fields, sent), {one.name: one.kind for one in fields}
    output = {one.name[7:]: one.taken(sent) for one in fields if one.name in found and one.name.startswith("output-")}
    for name in [*found]:
        if "-" in name:
            del found[name]
        elif kinds[name] == "words":
            found[name] = found[name].split()
        elif kinds[name] == "number":
            found[name] = found[name] or None
    for name in {one.partition("-")[0] for one in sent if _LINE.fullmatch(one)}:
        lines = _sent_lines(name, sent)
        if lines != _sent_lines(name, {one.name: [one.shown] for one in fields}):
            found[name] = lines
    found |= {"output": output} if output else {}
    return found | ({"organization": {"name": found["organization"]}} if "organization" in found else {})


def _sent_lines(name: str, sent: Sent) -> Any:
    """Returns the lines that a form sent; those whose first field is empty are left out."""
    lines: dict[tuple[str, int], tb.Json] = {}
    for key in sent:
        match = _LINE.fullmatch(key)
        if match and match[1] == name:
            lines.setdefault((match[2], int(match[3])), {})[match[4]] = _value(ui.text_of(sent, key))
    full = [(part, line) for (part, _), line in sorted(lines.items()) if line.get(_LINES[name][0])]
    if name not in {"conditions", "filter"}:
        return [line for _, line in full]
    return {part: [line for other, line in full if other == part] for part in ("all", "any")}


def _value(text: str) -> Any:
    """Returns the value of a field of a line: JSON where it is a list, a number or a truth value."""
    try:
        found = msgspec.json.decode(text or '""')
    except msgspec.DecodeError:
        return text
    return cast(Any, found) if isinstance(found, list | bool | int) else text


# -- pages


@route("GET", "/admin", who="agent")
def center(world: Desk, exchange: Exchange) -> Any:
    """Lists the settings."""
    named = {name: f"{RecordKind(spec, '').title}s" for name, spec in SETTINGS.items()}
    rows: list[Any] = [(name, [(title, f"{RULES}/{name}")]) for name, title in named.items()]
    return ui.show(world, exchange, "list", title="Admin Center", tables=[PageTable("Settings", [("Name", "")], rows)])


@route("GET", "/agent/users", "/agent/organizations", f"{RULES}/{{name}}", who="agent")
def records(world: Desk, exchange: Exchange) -> Any:
    """Lists the records of a kind."""
    kind = _kind(exchange)
    query = {"role": exchange.query.get("role", "end-user")} if kind.spec is USERS else {}
    page = exchange.query.get("page", "1")
    found = ui.api(world, exchange, f"GET {kind.api}", page=page, per_page=world.look.rows, **query)
    more = [one for one in ("email", "position", "active") if one in (kind.names or kind.spec.row.settable)]
    rows: list[Any] = []
    for row in found[kind.spec.many]:
        cells = ["-" if row[one] is None else str(row[one]) for one in more]
        rows.append((row["id"], [(_name(row), f"{kind.path}/{row['id']}"), *cells]))
    heads = [(one.capitalize(), "") for one in ("name", *more)]
    table = PageTable(f"{kind.title}s", heads, rows, ui.around(exchange, found))
    return ui.show(world, exchange, "list", title=table.caption, tables=[table], add=f"Add {kind.title.lower()}")


@route("GET", "/agent/users/new", "/agent/organizations/new", f"{RULES}/{{name}}/new", who="agent")
@route("GET", "/agent/users/{id}", "/agent/organizations/{id}", f"{RULES}/{{name}}/{{id}}", who="agent")
def edit(world: Desk, exchange: Exchange, errors: Faults | None = None) -> Any:
    """Shows the form of a record, or of a new one, which may be the copy of another."""
    kind, key, sent = _kind(exchange), exchange.request.path.rpartition("/")[2], ui.sent_by(exchange)
    is_new = key == "new"
    row = _row(world, exchange, kind, key=exchange.query.get("copy", "")[:18] if is_new else key)
    numbers = [int(match[3]) for one in sent if (match := _LINE.fullmatch(one))]
    fields = fields_of(world, kind, row, blank=max(1, max(numbers, default=0) + (ui.text_of(sent, "act") == "line")))
    has_lines = any(_LINE.fullmatch(one.name) for one in fields)
    can_delete = not is_new and "delete" in kind.spec.verbs
    buttons = [
        ("act", "save", "Save"),
        *[("act", "line", "Add a line")] * has_lines,
        *[("act", "delete", "Delete")] * can_delete,
    ]
    links = [(f"{kind.path}/new?copy={key}", "Clone", "")] if not is_new and kind.path.startswith(RULES) else []
    tables: list[PageTable] = []
    if not is_new and kind.spec in (USERS, ORGANIZATIONS):
        path = f"{kind.api}/{key}/tickets" + "/requested" * (kind.spec is USERS)
        page = exchange.query.get("page", "1")
        asked = ui.api(world, exchange, f"GET {path}", per_page=world.look.rows, include="users", page=page)
        tables = [tickets_table(exchange, "Tickets", asked)]
        links = [(f"/agent/tickets/new?requester={row.get('email') or ''}", "New ticket", "")]
    title = f"New {kind.title.lower()}" if is_new else _name(row)
    return ui.show(world, exchange, "edit", title=title, fields=ui.filled(fields, sent), buttons=buttons, errors=errors,
                   links=links, tables=tables)  # fmt: skip


def _row(world: Desk, exchange: Exchange, kind: RecordKind, *, key: str) -> tb.Json:
    found: tb.Json = ui.api(world, exchange, f"GET {kind.api}/{key}") if key.isdecimal() else {}
    return record(found.get(kind.spec.name)) or _blank(kind.spec.row)


def _blank(row: Any) -> tb.Json:
    """Returns the values with which a record begins."""
    fields = msgspec.structs.fields(row)
    known = {one.name: one.default for one in fields if one.default is not msgspec.NODEFAULT}
    return known | {one.name: one.default_factory() for one in fields if callable(one.default_factory)}


@route("POST", "/agent/users/new", "/agent/organizations/new", f"{RULES}/{{name}}/new", who="agent")
@route("POST", "/agent/users/{id}", "/agent/organizations/{id}", f"{RULES}/{{name}}/{{id}}", who="agent")
def save(world: Desk, exchange: Exchange) -> Any:
    """Saves, adds or deletes a record, or adds an empty line to its form."""
    kind, key, sent = _kind(exchange), exchange.request.path.rpartition("/")[2], ui.sent_by(exchange)
    act = ui.text_of(sent, "act")
    if act == "delete" and (key == "new" or "delete" not in kind.spec.verbs):
        raise API.missing()

    def write() -> Any:
        if act == "delete":
            return ui.api(world, exchange, f"DELETE {kind.api}/{key}")
        body = {kind.spec.name: wanted_of(fields_of(world, kind, _row(world, exchange, kind, key=key)), sent)}
        call = f"POST {kind.api}" if key == "new" else f"PUT {kind.api}/{key}"
        return ui.api(world, exchange, call, body=body)[kind.spec.name]

    if act == "line":
        return edit(world, exchange)
    errors, made = ui.tried(world, exchange, write)
    if errors:
        return edit(world, exchange, errors)
    return ui.see(kind.path) if act == "delete" else ui.see(f"{kind.path}/{made['id']}", saved="1")
