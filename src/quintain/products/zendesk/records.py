"""Pages that are generated from declared resources: users, organizations, and the settings of the admin center."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from quintain.resources.web import Exchange, Refuse, ResourceSpec, Routes
from quintain.resources.web.rows import find, shape

from . import actions
from . import tables as tb
from .account import Desk, listed, record
from .business import COLUMNS, RESOURCES
from .conditions import FIELDS
from .people import GROUPS, ORGANIZATIONS, USERS
from .screens import (
    ROWS,
    Field,
    Given,
    Pairs,
    Table,
    api,
    around,
    changed,
    filled,
    given,
    one_of,
    options,
    pick,
    see,
    show,
    tried,
)
from .sla import METRICS
from .workspace import tickets_table

ROUTES = Routes()
route = ROUTES.route
_AREAS = ("details", "notes", "signature", "description", "agent_description")
_ROLES = [("end-user", "End user"), ("agent", "Agent"), ("admin", "Administrator")]
_USER = ("name", "email", "role", "phone", "external_id", "alias", "time_zone", "suspended", "details", "notes", "tags")
_ORGANIZATION = ("name", "domain_names", "external_id", "group_id", "shared_tickets", "details", "notes", "tags")
_LINES: dict[str, tuple[str, ...]] = {
    # Columns of the lines of settings that are lists of objects, or objects of such lists.
    "conditions": ("field", "operator", "value"), "filter": ("field", "operator", "value"),
    "actions": ("field", "value"), "policy_metrics": ("priority", "metric", "target", "business_hours"),
    "intervals": ("start_time", "end_time"), "custom_field_options": ("name", "value"),
}  # fmt: skip
_OPERATORS = sorted(
    {one for field in FIELDS.values() for one in field.operators + field.more} | {"present", "not_present"}
)
_LINE = re.compile(r"(\w+)-(\w*)-(\d+)-(\w+)")
SETTINGS: dict[str, ResourceSpec] = {
    one.path.removeprefix("/api/v2/").rpartition("/")[2]: one for one in (*RESOURCES, GROUPS)
} | {"slas": next(one for one in RESOURCES if one.row is tb.SlaPolicy)}
del SETTINGS["policies"]


class Page(NamedTuple):
    """Kind of records that pages edit.

    Attributes:
        spec: Resource that is edited.
        path: Path of the list.
        names: Fields in the form; all that requests set if none are named.
        query: Narrows the list.
    """

    spec: ResourceSpec
    path: str
    names: tuple[str, ...] = ()
    query: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """Name of one."""
        return self.spec.name.replace("_", " ").capitalize().replace("Sla", "SLA")


_PEOPLE = {
    "users": Page(USERS, "/agent/users", _USER, (("role", "end-user"),)),
    "organizations": Page(ORGANIZATIONS, "/agent/organizations", _ORGANIZATION),
}


def _page(exchange: Exchange) -> Page:
    parts = exchange.request.path.strip("/").split("/")
    if parts[0] == "agent":
        return _PEOPLE[parts[1]]
    spec = SETTINGS.get(parts[3])
    if spec is None:
        raise Refuse(404, {"error": "RecordNotFound", "description": "Not found"})
    return Page(spec, "/" + "/".join(parts[:4]))


# -- forms from declarations


def fields_of(world: Desk, page: Page, row: tb.Json, *, blank: int = 1) -> list[Field]:
    """Returns the fields of a record, with `blank` empty lines below each list of lines."""
    found: list[Field] = []
    columns = shape(page.spec.row)
    for name in page.names or page.spec.row.settable:
        value, label = row.get(name), name.removesuffix("_id").replace("_", " ").capitalize()
        if name in _LINES:
            found += _lines(page.spec.name, name, value, blank=blank)
        elif name == "execution":
            found += _execution(record(value))
        elif name == "role":
            found.append(pick(name, label, value or "end-user", _ROLES))
        elif name == "group_id":
            groups = options(world, "SELECT id, name FROM zd_agent_groups WHERE deleted = 0 ORDER BY name")
            found.append(pick(name, label, value, [("", "-"), *groups]))
        elif name in columns.bools:
            found.append(Field(name, label, value, "checkbox"))
        elif name in columns.json and not isinstance(value, dict):
            found.append(Field(name, label, " ".join(map(str, listed(value))), "words"))
        elif name not in columns.json and not name.startswith("raw_"):
            kind = "area" if name in _AREAS else "number" if name in columns.numbers else "text"
            found.append(Field(name, label, value, kind, required=name in (page.spec.required or page.spec.row.needed)))
    if page.spec is USERS:
        organization = find(world.db, tb.Organization, row.get("organization_id"))
        found.insert(3, Field("organization", "Organization", organization.name if organization else ""))
    return found


def _lines(kind: str, name: str, value: Any, *, blank: int) -> list[Field]:
    """Returns the fields of a list of lines: one field for each column of each line."""
    found: list[Field] = []
    parts = ("all", "any") if name in {"conditions", "filter"} else ("",)
    for part in parts:
        lines = [record(one) for one in listed(record(value).get(part) if part else value)]
        for number, line in enumerate([*lines, *({} for _ in range(blank))], 1):
            about = f"{name.replace('_', ' ').removesuffix('s').capitalize()} {part} {number}".replace("  ", " ")
            for column in _LINES[name]:
                found.append(_cell(kind, f"{name}-{part}-{number}-{column}", f"{about}: {column}", line.get(column)))
    return found


def _cell(kind: str, name: str, label: str, value: Any) -> Field:  # noqa: PLR0913 (reads as a row)
    list_name, column = name.partition("-")[0], name.rpartition("-")[2]
    known: dict[str, Pairs] = {
        "operator": [(one, one.replace("_", " ")) for one in _OPERATORS],
        "priority": [(one, one.capitalize()) for one in tb.PRIORITIES],
        "metric": [(one, one.replace("_", " ").capitalize()) for one in METRICS],
        "business_hours": [("true", "Business hours"), ("false", "Calendar hours")],
    }
    if column == "field":
        initial = {"trigger": "t", "automation": "a", "view": "v"}.get(kind, "s")
        names = (
            actions.ACTIONS.get(kind, ())
            if list_name == "actions"
            else [n for n, f in FIELDS.items() if initial in f.kinds]
        )
        known["field"] = [(one, one.replace("_", " ")) for one in names]
    text = value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
    return pick(name, label, text, [("", "-"), *known[column]]) if column in known else Field(name, label, text)


def _execution(value: tb.Json) -> list[Field]:
    columns = [one["id"] for one in value.get("columns", [])]
    sorts = [
        (one, COLUMNS[one]) for one in ("created", "updated", "status", "priority", "requester", "assignee", "nice_id")
    ]
    orders = [("asc", "Ascending"), ("desc", "Descending")]
    return [
        Field("output-columns", "Columns", columns, "choices", [*COLUMNS.items()]),
        pick("output-sort_by", "Sort by", value.get("sort_by") or "created", sorts),
        pick("output-sort_order", "Order", value.get("sort_order") or "desc", orders),
    ]


def sent_of(page: Page, fields: list[Field], sent: Given) -> tb.Json:
    """Returns the changes that the form of a record asks for, as the API takes them."""
    found: tb.Json = {}
    wanted = changed(fields, sent)
    kinds = {one.name: one.kind for one in fields}
    for name, value in wanted.items():
        if "-" not in name:
            found[name] = value.split() if kinds[name] == "words" else value
            found[name] = None if kinds[name] == "number" and value == "" else found[name]
    for name in {one.partition("-")[0] for one in sent if _LINE.fullmatch(one)}:
        lines = _sent_lines(name, sent)
        if lines != _sent_lines(name, {one.name: [one.shown] for one in fields}):
            found[name] = lines
    if any(name.startswith("output-") for name in wanted):
        found["output"] = {one.name[7:]: one.taken(sent) for one in fields if one.name.startswith("output-")}
    if "organization" in found:
        found["organization"] = {"name": found["organization"]}
    return found


def _sent_lines(name: str, sent: Given) -> Any:
    """Returns the lines that a form sent; those whose first field is empty are left out."""
    lines: dict[tuple[str, int], tb.Json] = {}
    for key in sent:
        match = _LINE.fullmatch(key)
        if match and match[1] == name:
            lines.setdefault((match[2], int(match[3])), {})[match[4]] = _value(one_of(sent, key))
    full = [(part, line) for (part, _), line in sorted(lines.items()) if line.get(_LINES[name][0]) not in {"", None}]
    if name in {"conditions", "filter"}:
        return {part: [line for other, line in full if other == part] for part in ("all", "any")}
    return [line for _, line in full]


def _value(text: str) -> Any:
    """Returns the value of a field of a line: JSON where it is a list, a number or a truth value."""
    if re.fullmatch(r"\[.*\]|true|false", text, re.DOTALL):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    return text


# -- pages


@route("GET", "/admin", who="agent")
def center(world: Desk, exchange: Exchange) -> Any:
    """Lists the settings."""
    rows = [(name, [(Page(spec, "").title, f"/admin/objects-rules/rules/{name}")]) for name, spec in SETTINGS.items()]
    return show(world, exchange, "list", title="Admin Center", tables=[Table("Settings", [("Name", "")], rows)])


@route("GET", "/agent/users", "/agent/organizations", "/admin/objects-rules/rules/{name}", who="agent")
def records(world: Desk, exchange: Exchange) -> Any:
    """Lists records."""
    page = _page(exchange)
    query = dict(page.query) | {"page": exchange.query.get("page", "1"), "per_page": ROWS}
    found = api(world, exchange, "GET", path=page.spec.path.removeprefix("/api/v2/"), **query)
    more = [one for one in ("email", "position", "active") if one in page.spec.row.__struct_fields__ and one != "active" or
            one in page.spec.row.settable]  # fmt: skip
    rows: list[tuple[Any, list[Any]]] = []
    for row in found[page.spec.many]:
        name = row.get("title") or row.get("name") or row.get("agent_label") or str(row["id"])
        cells: list[Any] = [(name, f"{page.path}/{row['id']}")]
        rows.append((row["id"], cells + ["-" if row[one] is None else str(row[one]) for one in more]))
    heads = [(one.capitalize(), "") for one in ("name", *more)]
    table = Table(f"{page.title}s", heads, rows, around(exchange, found))
    return show(world, exchange, "list", title=table.caption, tables=[table], add=f"Add {page.title.lower()}")


@route("GET", "/agent/users/new", "/agent/organizations/new", "/admin/objects-rules/rules/{name}/new", who="agent")
@route("GET", "/agent/users/{id}", "/agent/organizations/{id}", "/admin/objects-rules/rules/{name}/{id}", who="agent")
def edit(world: Desk, exchange: Exchange) -> Any:
    """Shows the form of a record, or of a new one, which may be the copy of another."""
    return _edit(world, exchange, sent={}, errors={})


def _row(world: Desk, exchange: Exchange, page: Page, key: str) -> tb.Json:
    if not key.isdecimal():
        return {"active": True}
    found = api(world, exchange, "GET", path=f"{page.spec.path.removeprefix('/api/v2/')}/{key}")
    row: tb.Json = found[page.spec.name]
    return row


def _edit(world: Desk, exchange: Exchange, *, sent: Given, errors: dict[str, str]) -> Any:
    page, key = _page(exchange), exchange.request.path.rpartition("/")[2]
    row = _row(world, exchange, page, key if key != "new" else exchange.query.get("copy", ""))
    numbers = [int(match[3]) for one in sent if (match := _LINE.fullmatch(one))]
    blank = 1 + (one_of(sent, "act") == "line") + (max(numbers, default=0) if key == "new" else 0)
    fields = filled(fields_of(world, page, row, blank=blank), sent) if sent else fields_of(world, page, row)
    fields = [one._replace(kind="text") if one.kind == "words" else one for one in fields]
    buttons = [("act", "save", "Save")]
    buttons += [("act", "line", "Add a line")] if any(_LINE.fullmatch(one.name) for one in fields) else []
    title = (
        f"New {page.title.lower()}"
        if key == "new"
        else str(row.get("title") or row.get("name") or row.get("agent_label"))
    )
    links: list[tuple[str, str, str]] = []
    tables: list[Table] = []
    if key != "new":
        buttons += [("act", "delete", "Delete")] if "delete" in page.spec.verbs else []
        links = [(f"{page.path}/new?copy={key}", "Clone", "")] if page.path.startswith("/admin") else []
    if key != "new" and page.spec in (USERS, ORGANIZATIONS):
        path = f"users/{key}/tickets/requested" if page.spec is USERS else f"organizations/{key}/tickets"
        listed_tickets = api(world, exchange, "GET", path=path, per_page=ROWS, include="users",
                             page=exchange.query.get("page", "1"))  # fmt: skip
        table = tickets_table(exchange, "Tickets", listed_tickets)
        tables = [table._replace(heads=[(text, "") for text, _ in table.heads])]
        links.append((f"/agent/tickets/new?requester={row.get('email') or ''}", "New ticket", ""))
    return show(world, exchange, "edit", title=title, fields=fields, buttons=buttons, errors=errors, links=links,
                tables=tables)  # fmt: skip


@route("POST", "/agent/users/new", "/agent/organizations/new", "/admin/objects-rules/rules/{name}/new", who="agent")
@route("POST", "/agent/users/{id}", "/agent/organizations/{id}", "/admin/objects-rules/rules/{name}/{id}", who="agent")
def save(world: Desk, exchange: Exchange) -> Any:
    """Saves, adds or deletes a record, or adds an empty line to its form."""
    page, key, sent = _page(exchange), exchange.request.path.rpartition("/")[2], given(exchange)
    act, path = one_of(sent, "act"), page.spec.path.removeprefix("/api/v2/")
    made: tb.Json = {"id": key}

    def write() -> None:
        if act == "delete" and key != "new":
            api(world, exchange, "DELETE", path=f"{path}/{key}")
            return
        row = {"active": True} if key == "new" else _row(world, exchange, page, key)
        body = {page.spec.name: sent_of(page, fields_of(world, page, row), sent)}
        method, target = ("POST", path) if key == "new" else ("PUT", f"{path}/{key}")
        made.update(api(world, exchange, method, path=target, body=body)[page.spec.name])

    errors = {} if act == "line" else tried(world, exchange, write)
    if errors or act == "line":
        return _edit(world, exchange, sent=sent, errors=errors)
    return see(page.path) if act == "delete" else see(f"{page.path}/{made['id']}", saved="1")
