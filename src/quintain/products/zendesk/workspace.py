"""Pages of the agent workspace: views, tickets, acts on several tickets, and search."""

from __future__ import annotations

from typing import Any, NamedTuple

from quintain.resources.web import Exchange, Refuse, Routes
from quintain.resources.web.rows import count, find, marks, select

from . import tables as tb
from .account import Desk, listed, record
from .business import COLUMNS, VIEWS, listing_of
from .screens import (
    ROWS,
    STATUSES,
    Field,
    Given,
    Pairs,
    Table,
    api,
    around,
    changed,
    filled,
    given,
    here,
    one_of,
    options,
    pick,
    see,
    show,
    tried,
    when,
)

ROUTES = Routes()
route = ROUTES.route
_AGENTS = "SELECT id, name FROM zd_users WHERE role IN ('agent', 'admin') AND active = 1 ORDER BY name, id"
_GROUPS = "SELECT id, name FROM zd_agent_groups WHERE deleted = 0 ORDER BY name, id"
_MACROS = "SELECT id, title FROM zd_macros WHERE active = 1 ORDER BY position, id"
_STATUSES = 'SELECT id, agent_label, status_category, "default" FROM zd_custom_statuses WHERE active = 1 ORDER BY id'
_KEYS = {"created": "created_at", "updated": "updated_at", "due_date": "due_at", "nice_id": "id"}
_TIMES = {"created", "updated", "due_date"}
_NAMES = {"requester": "users", "assignee": "users", "submitter": "users", "group": "groups",
          "organization": "organizations"}  # fmt: skip
_PRIORITIES = [("", "-"), *((one, one.capitalize()) for one in tb.PRIORITIES)]
_TYPES = [("", "-"), *((one, one.capitalize()) for one in tb.TYPES)]
_NEXT = [("", "Stay on ticket"), ("next", "Next ticket in view"), ("close", "Close ticket")]
_KINDS = {"checkbox": "checkbox", "textarea": "area", "integer": "number", "date": "date"}
"""Kinds of fields of a form by the types of ticket fields; the others are text."""


# -- lists


def tickets_table(
    exchange: Exchange, caption: str, found: tb.Json, *, columns: Pairs = (), key: str = "tickets"
) -> Table:
    """Returns a table of tickets that the API listed with the people and groups in it."""
    columns = columns or [(one, COLUMNS[one]) for one in ("nice_id", "subject", "status", "requester", "updated")]
    names = {
        name: {row["id"]: row["name"] for row in found.get(name, ())} for name in ("users", "groups", "organizations")
    }
    has_slas = any(record(row.get("slas")).get("policy_metrics") for row in found[key])
    rows: list[tuple[Any, list[Any]]] = []
    for row in found[key]:
        cells: list[Any] = [_badge(row)] if has_slas else []
        for column, _ in columns:
            cells.append(_cell(row, column, names))
        rows.append((row["id"], cells))
    heads = [(title, _sorting(exchange, column)) for column, title in columns]
    return Table(caption, [("SLA", ""), *heads] if has_slas else heads, rows, around(exchange, found))


def _sorting(exchange: Exchange, column: str) -> str:
    down = exchange.query.get("sort_by") == column and exchange.query.get("sort_order") == "asc"
    return here(exchange, sort_by=column, sort_order="desc" if down else "asc", page="")


def _cell(row: tb.Json, column: str, names: dict[str, dict[int, str]]) -> Any:
    value = row.get(_KEYS.get(column, column), row.get(f"{column}_id"))
    if column in _TIMES:
        return when(value)
    if column in _NAMES:
        return names[_NAMES[column]].get(value, "-")
    if column.isdecimal():
        value = next((one["value"] for one in row["custom_fields"] if str(one["id"]) == column), None)
    if column == "subject":
        return (value or "(no subject)", f"/agent/tickets/{row['id']}")
    return STATUSES.get(value, value) if column == "status" else "-" if value is None else str(value).capitalize()


def _badge(row: tb.Json) -> str:
    found = record(row.get("slas")).get("policy_metrics") or []
    return _left(found[0])[0] if found else ""


def _left(metric: tb.Json) -> tuple[str, bool]:
    """Returns what is left of a target as a badge shows it, and True if it has passed."""
    unit = next(one for one in ("days", "hours", "minutes") if one in metric)
    if metric["stage"] == "paused":
        return "Paused", False
    return f"{metric[unit]}{unit[0]}", metric[unit] < 0


@route("GET", "/agent/home", who="agent")
def dashboard(world: Desk, exchange: Exchange) -> Any:
    """Shows the caller's own tickets, and those that he wrote to last."""
    more = {"per_page": ROWS, "include": "users,groups,slas"}
    mine = api(world, exchange, "GET", path=f"users/{exchange.caller.id}/tickets/assigned", **more)
    last = api(world, exchange, "GET", path="tickets/recent", **more)
    tables = [
        tickets_table(exchange, "Assigned to you", mine),
        tickets_table(exchange, "Recently updated by you", last),
    ]
    return show(world, exchange, "list", title="Home", tables=[one._replace(heads=_plain(one.heads)) for one in tables])


def _plain(heads: Pairs) -> Pairs:
    return [(title, "") for title, _ in heads]


@route("GET", "/agent/filters", who="agent")
def first_view(world: Desk, exchange: Exchange) -> Any:
    """Sends to the first view."""
    found = api(world, exchange, "GET", path="views/active", per_page=1)["views"]
    return see(f"/agent/filters/{found[0]['id']}" if found else "/agent/home")


@route("GET", "/agent/filters/{id}", who="agent")
def view(world: Desk, exchange: Exchange) -> Any:
    """Shows the tickets of a view."""
    one = VIEWS.need(world, exchange, exchange.id)
    query = {name: exchange.query[name] for name in ("page", "sort_by", "sort_order") if exchange.query.get(name)}
    include = "users,groups,organizations" + (",slas" if count(world.db, tb.SlaPolicy) else "")
    found = api(world, exchange, "GET", path=f"views/{one.id}/tickets", per_page=ROWS, include=include, **query)
    columns = [("nice_id", "ID"), ("status", "Status")]
    columns += [(column["id"], column["title"]) for column in one.execution.get("columns", [])]
    table = tickets_table(exchange, one.title, found, columns=[*dict(columns).items()])
    rows = [(key, [_in_view(cell, one.id) for cell in cells]) for key, cells in table.rows]
    views = select(world.db, tb.TicketView, "active = 1 ORDER BY position, id")
    links = [(f"/agent/filters/{other.id}", other.title, _number(world, exchange, other)) for other in views]
    table = table._replace(rows=rows, select="ticket")
    return show(world, exchange, "list", title=one.title, tables=[table], links=links)


def _in_view(cell: Any, view_id: int) -> Any:
    return (cell[0], f"{cell[1]}?view={view_id}") if isinstance(cell, tuple) else cell


def _number(world: Desk, exchange: Exchange, view: Any) -> int:
    listing = listing_of(world, exchange, view)
    return count(world.db, tb.Ticket, listing.where, *listing.values)


@route("GET", "/agent/search/1", who="agent")
def search(world: Desk, exchange: Exchange) -> Any:
    """Shows what fulfils a query, one kind at a time."""
    text, kind = exchange.query.get("q", ""), exchange.query.get("type", "ticket")
    kind = kind if kind in {"ticket", "user", "organization"} else "ticket"
    page = exchange.query.get("page", "1")
    found: tb.Json = {"results": []}
    faults: dict[str, str] = {}
    if text.strip():
        query = {"query": f"{text} type:{kind}", "per_page": ROWS, "page": page}
        faults = tried(world, exchange, lambda: found.update(api(world, exchange, "GET", path="search", **query)))
    table = Table(f"{kind.capitalize()}s", [("Name", "")], [], around(exchange, found))
    if kind == "ticket":
        ids = {row["requester_id"] for row in found["results"]}
        users = options(world, f"SELECT id, name FROM zd_users WHERE id IN ({marks(ids)})", *ids)
        found["users"] = [{"id": int(key), "name": name} for key, name in users]
        table = tickets_table(exchange, "Tickets", found, key="results")
        table = table._replace(heads=_plain(table.heads))
    else:
        table = table._replace(
            rows=[(row["id"], [(row["name"], f"/agent/{kind}s/{row['id']}")]) for row in found["results"]]
        )
    tabs = [
        (here(exchange, type=one, page=""), f"{one.capitalize()}s", "") for one in ("ticket", "user", "organization")
    ]
    return show(world, exchange, "list", title="Search", tables=[table], links=tabs, query=text, errors=faults)


# -- a ticket


class Draft(NamedTuple):
    """What the form of a ticket holds before it is saved.

    Attributes:
        fields: Its properties.
        subject: Its subject.
        text: Text of the comment.
        public: True for a public reply.
        status: Status that it is submitted with if no other is chosen.
    """

    fields: list[Field]
    subject: Field
    text: str = ""
    public: bool = True
    status: str = "new"


def _people(world: Desk, ids: list[int]) -> dict[int, str]:
    sql = f"SELECT id, coalesce(email, id) FROM zd_users WHERE id IN ({marks(ids)})"
    known = {int(key): name for key, name in options(world, sql, *ids)}
    return {one: known[one] for one in ids if one in known}


def properties(world: Desk, ticket: tb.Json) -> list[Field]:
    """Returns the properties of a ticket as fields, with the names of the API."""
    people = [_people(world, ticket.get(name) or []) for name in ("email_cc_ids", "follower_ids")]
    requester = _people(world, [ticket["requester_id"]] if ticket.get("requester_id") else [])
    fields = [
        Field("requester", "Requester", next(iter(requester.values()), ""), required=True),
        pick("group_id", "Group", ticket.get("group_id"), [("", "-"), *options(world, _GROUPS)]),
        pick("assignee_id", "Assignee", ticket.get("assignee_id"), [("", "-"), *options(world, _AGENTS)]),
        Field("email_ccs", "CCs", ", ".join(people[0].values())),
        Field("followers", "Followers", ", ".join(people[1].values())),
        Field("tags", "Tags", " ".join(ticket.get("tags") or [])),
        pick("type", "Type", ticket.get("type"), _TYPES),
        Field("problem_id", "Linked problem", ticket.get("problem_id"), "number"),
        Field("due_at", "Due date", (ticket.get("due_at") or "")[:10], "date"),
        pick("priority", "Priority", ticket.get("priority"), _PRIORITIES),
    ]
    for name, label, table in (("ticket_form_id", "Form", "zd_ticket_forms"), ("brand_id", "Brand", "zd_brands")):
        known = options(world, f"SELECT id, name FROM {table} WHERE active = 1 ORDER BY id")
        if len(known) > 1:
            fields.append(pick(name, label, ticket.get(name), known))
    values = {one["id"]: one["value"] for one in ticket.get("custom_fields") or ()}
    return fields + [custom(one, values.get(one.id)) for one in custom_fields(world)]


def custom_fields(world: Desk, where: str = "1") -> list[Any]:
    """Returns the custom fields of tickets."""
    return select(world.db, tb.TicketField, f"active = 1 AND removable = 1 AND {where} ORDER BY position, id")


def custom(field: Any, value: Any) -> Field:
    """Returns a custom field of a ticket as a field of a form."""
    name, choices = f"custom_{field.id}", [(one["value"], one["name"]) for one in field.custom_field_options]
    if field.type == "multiselect":
        return Field(name, field.title, listed(value), "choices", choices)
    if choices:
        return pick(name, field.title, value, [("", "-"), *choices])
    return Field(name, field.title, value, _KINDS.get(field.type, "text"))


def wanted_of(fields: list[Field], sent: Given, ticket: tb.Json) -> tb.Json:
    """Returns the changes that a form asks for, as the API takes them."""
    wanted = changed(fields, sent)
    custom_values = [
        {"id": int(name[7:]), "value": wanted.pop(name)} for name in [*wanted] if name.startswith("custom_")
    ]
    if custom_values:
        wanted["custom_fields"] = custom_values
    if "tags" in wanted:
        wanted["tags"] = wanted["tags"].split()
    if "requester" in wanted:
        wanted["requester"] = {"email": wanted["requester"]}
    for field, name in ((one, one.name) for one in fields if one.name in {"email_ccs", "followers"} & {*wanted}):
        before, now = ({*text.replace(",", " ").split()} for text in (field.shown, wanted[name]))
        acts = [(one, "delete") for one in sorted(before - now)] + [(one, "put") for one in sorted(now - before)]
        wanted[name] = [{"user_email": one, "action": act} for one, act in acts]
    return wanted


def _draft(world: Desk, exchange: Exchange, ticket: tb.Json, *, sent: Given) -> Draft:
    """Returns the form of a ticket with what was typed, and above that the changes of the macro that is applied."""
    base = properties(world, ticket)
    subject = Field("subject", "Subject", ticket.get("subject"))
    public, text = (
        one_of(sent, "public") != "0" if "public" in sent else ticket.get("is_public", True),
        one_of(sent, "comment"),
    )
    made = Draft(filled(base, sent), filled([subject], sent)[0], text, public, ticket.get("status", "new"))
    if not one_of(sent, "macro").isdecimal():
        return made
    path = f"macros/{one_of(sent, 'macro')}/apply"
    preview = api(world, exchange, "GET", path=f"tickets/{ticket['id']}/{path}" if ticket.get("id") else path)[
        "result"
    ]["ticket"]
    said = record(preview.pop("comment", None))
    values = [{"id": int(key), "value": value} for key, value in record(preview.pop("custom", None)).items()]
    after = (
        ticket
        | {name: value for name, value in preview.items() if name != "id"}
        | ({"custom_fields": values} if values else {})
    )
    now = properties(world, after)
    fields = [new if new.shown != old.shown else mine for old, new, mine in zip(base, now, made.fields, strict=True)]
    title = made.subject._replace(value=after["subject"]) if "subject" in preview else made.subject
    text = "\n".join(one for one in (text, said.get("body", "")) if one)
    return Draft(fields, title, text, said.get("public", public), after.get("status", "new"))


def _submits(world: Desk, status: str, custom_id: Any, *, was: str) -> list[tuple[str, str, str]]:
    """Returns names, values and texts of the buttons that submit a ticket, the present status first."""
    found: list[tuple[str, str, str]] = []
    for number, label, category, is_default in world.db.execute(_STATUSES):
        if category == "new" and was != "new":
            continue
        one = ("status", category, label) if is_default else ("custom_status_id", str(number), label)
        is_first = category == status and (is_default or number == custom_id)
        found = [one, *found] if is_first else [*found, one]
    return found


def _page(world: Desk, exchange: Exchange, ticket: tb.Json, *, sent: Given, **more: Any) -> Any:
    draft = _draft(world, exchange, ticket, sent=sent)
    foot = [
        pick("macro", "Macro", one_of(sent, "macro"), [("", "-"), *options(world, _MACROS)]),
        pick("then", "After submitting", one_of(sent, "then"), _NEXT),
    ]
    buttons = _submits(world, draft.status, ticket.get("custom_status_id"), was=ticket.get("status", "new"))
    shared = {"ticket": ticket, "draft": draft, "foot": foot, "buttons": buttons, "comments": [], "events": None,
              "view": one_of(sent, "view"), "slas": [], "about": None, "recent": [], "pages": ("", "")}  # fmt: skip
    return show(world, exchange, "ticket", **(shared | more))


@route("GET", "/agent/tickets/{id}", who="agent")
def ticket(world: Desk, exchange: Exchange) -> Any:
    """Shows a ticket; `macro` in the address applies a macro to the form, and other names fill it in."""
    return _show(world, exchange, sent=given(exchange))


def _show(world: Desk, exchange: Exchange, *, sent: Given, errors: dict[str, str] | None = None) -> Any:
    found = api(world, exchange, "GET", path=f"tickets/{exchange.id}", include="slas")["ticket"]
    query = {"include": "users", "page": exchange.query.get("page", "1")}
    said = api(world, exchange, "GET", path=f"tickets/{exchange.id}/comments", **query)
    names = {row["id"]: row["name"] for row in said["users"]}
    comments = [shown_comment(row, names) for row in said["comments"]]
    events = _events(world, exchange) if "events" in exchange.query else None
    requester = world.user(found["requester_id"])
    assert requester is not None, "users are never removed from their table"
    recent = "SELECT id, coalesce(subject, '-') FROM zd_tickets WHERE requester_id = ? AND deleted = 0 AND id <> ? ORDER BY id DESC LIMIT 5"
    return _page(
        world, exchange, found, sent=sent, errors=errors or {},
        title=f"#{found['id']} {found['subject'] or ''}", comments=comments, events=events,
        slas=[(one["metric"].replace("_", " ").capitalize(), *_left(one)) for one in found["slas"]["policy_metrics"]],
        about=requester, organization=find(world.db, tb.Organization, requester.organization_id),
        recent=options(world, recent, requester.id, found["id"]), pages=around(exchange, said),
        notice="Saved" if "saved" in exchange.query else "The ticket is closed." if found["status"] == "closed" else "",
    )  # fmt: skip


def shown_comment(row: tb.Json, names: dict[int, str]) -> tb.Json:
    """Returns a comment as a page shows it: its text, which is never taken as HTML."""
    files = [(one["content_url"], one["file_name"]) for one in row["attachments"]]
    return {"author": names.get(row["author_id"], "-"), "at": when(row["created_at"]), "public": row["public"],
            "body": row["plain_body"], "files": files}  # fmt: skip


def _events(world: Desk, exchange: Exchange) -> Table:
    rows: list[tuple[Any, list[Any]]] = []
    for audit in api(world, exchange, "GET", path=f"tickets/{exchange.id}/audits")["audits"]:
        user = world.user(audit["author_id"])
        for event in audit["events"]:
            what = {"Change": "{field_name}: {previous_value} to {value}", "Create": "{field_name}: {value}",
                    "Notification": "{subject}"}.get(event["type"], "")  # fmt: skip
            cells = [when(audit["created_at"]), user.name if user else "System", event["type"], what.format_map(event)]
            rows.append((event["id"], cells))
    return Table("Events", _plain([("Time", ""), ("By", ""), ("Event", ""), ("Details", "")]), rows)


def comment_of(world: Desk, exchange: Exchange, sent: Given) -> tb.Json:
    """Returns the comment of a form, whose files are uploaded."""
    tokens: list[str] = []
    for one in sent.get("file", []):
        if isinstance(one, tuple) and one[0]:
            tokens.append(
                api(world, exchange, "POST", path="uploads", body=one[2], kind=one[1], filename=one[0])["upload"][
                    "token"
                ]
            )
    text = one_of(sent, "comment")
    if not text.strip() and not tokens:
        return {}
    public = {"public": one_of(sent, "public") != "0"} if "public" in sent else {}
    return {"comment": {"body": text, **public, **({"uploads": tokens} if tokens else {})}}


def _submitted(world: Desk, exchange: Exchange, sent: Given, *, ticket: tb.Json) -> tb.Json:
    """Returns what the form of a ticket asks for, as the API takes it."""
    fields = [*properties(world, ticket), Field("subject", "Subject", ticket.get("subject"))]
    wanted = wanted_of(fields, sent, ticket) | comment_of(world, exchange, sent)
    for name in ("status", "custom_status_id"):
        if (value := one_of(sent, name)) and value != str(ticket.get(name)):
            wanted[name] = value
    if (macro := one_of(sent, "macro")).isdecimal():
        wanted["macro_ids"] = [int(macro)]
    return wanted


@route("POST", "/agent/tickets/{id}", who="agent")
def save(world: Desk, exchange: Exchange) -> Any:
    """Saves what the form of a ticket changed, unless somebody else changed the ticket since it was shown."""
    sent, path = given(exchange), f"tickets/{exchange.id}"
    before = api(world, exchange, "GET", path=path)["ticket"]
    then = _following(world, exchange, sent)

    def act() -> None:
        wanted = _submitted(world, exchange, sent, ticket=before)
        if stamp := one_of(sent, "updated_stamp"):
            wanted |= {"safe_update": True, "updated_stamp": stamp}
        api(world, exchange, "PUT", path=path, body={"ticket": wanted})

    if not (errors := tried(world, exchange, act)):
        return then
    # After a conflict the form shows the ticket as it is now, and keeps the comment.
    kept = {"comment", "public"} if exchange.status == 409 else {*sent} - {"macro"}
    return _show(world, exchange, sent={name: sent[name] for name in kept & {*sent}}, errors=errors)


def _following(world: Desk, exchange: Exchange, sent: Given) -> Any:
    """Returns the answer that leads to the page after a saved ticket."""
    then, number = one_of(sent, "then"), one_of(sent, "view")
    view_page = f"/agent/filters/{number}" if number.isdecimal() else "/agent/home"
    if then == "next" and number.isdecimal():
        listing = listing_of(world, exchange, VIEWS.need(world, exchange, int(number)))
        sql = f"SELECT id FROM zd_tickets WHERE {listing.where} {listing.sorting()}"
        ids = [one for (one,) in world.db.execute(sql, *listing.values)]
        after = ids[ids.index(exchange.id) + 1 :] if exchange.id in ids else ids
        return see(f"/agent/tickets/{after[0]}", view=number) if after else see(view_page)
    return see(view_page) if then else see(f"/agent/tickets/{exchange.id}", view=number, saved="1")


def _new(world: Desk, exchange: Exchange, *, sent: Given, errors: dict[str, str] | None = None) -> Any:
    source = one_of(sent, "source")
    blank: tb.Json = {"id": 0, "status": "new", "is_public": True}
    if source.isdecimal():
        old = api(world, exchange, "GET", path=f"tickets/{source}")["ticket"]
        blank |= {name: old[name] for name in ("subject", "requester_id", "tags")}
    return _page(world, exchange, blank, sent=sent, errors=errors or {}, title="New ticket", source=source)


@route("GET", "/agent/tickets/new", who="agent")
def new_ticket(world: Desk, exchange: Exchange) -> Any:
    """Shows the form of a new ticket, which may follow up a closed one."""
    return _new(world, exchange, sent=given(exchange))


@route("POST", "/agent/tickets/new", who="agent")
def create(world: Desk, exchange: Exchange) -> Any:
    """Creates a ticket."""
    sent, made = given(exchange), dict[str, Any]()

    def act() -> None:
        wanted = _submitted(world, exchange, sent, ticket={"status": "new"})
        if (source := one_of(sent, "source")).isdecimal():
            wanted["via_followup_source_id"] = int(source)
        made.update(api(world, exchange, "POST", path="tickets", body={"ticket": wanted})["ticket"])

    if errors := tried(world, exchange, act):
        return _new(world, exchange, sent=sent, errors=errors)
    return see(f"/agent/tickets/{made['id']}", saved="1")


# -- acts on one ticket or several


_ACTS = {"edit": "Edit", "merge": "Merge", "spam": "Mark as spam", "delete": "Delete"}


def _act_fields(world: Desk, act: str, ids: list[str]) -> list[Field]:
    if act == "edit":
        names = {"group_id", "assignee_id", "type", "priority"}
        fields = [one for one in properties(world, {}) if one.name in names]
        fields = [one._replace(options=[("", "(no change)"), *one.options[1:]]) for one in fields]
        statuses = [("", "(no change)"), *((one, STATUSES[one]) for one in tb.STATUSES[1:5])]
        return [
            pick("status", "Status", "", statuses), *fields, Field("additional_tags", "Add tags"),
            Field("remove_tags", "Remove tags"), Field("comment", "Comment", "", "area"),
            Field("public", "Public reply", False, "checkbox"),
        ]  # fmt: skip
    if act != "merge":
        return []
    sql = f"""SELECT id, '#' || id || ' ' || coalesce(subject, '') FROM zd_tickets WHERE deleted = 0
        AND id NOT IN ({marks(ids)}) AND status NOT IN ('solved', 'closed') AND requester_id IN
        (SELECT requester_id FROM zd_tickets WHERE id IN ({marks(ids)})) ORDER BY id DESC LIMIT 20"""
    return [
        pick("target", "Open tickets of the requester", "", [("", "-"), *options(world, sql, *ids, *ids)]),
        Field("number", "Or number of a ticket", "", "number"),
        Field("target_comment", "Comment on the ticket that stays", "", "area"),
        Field("target_comment_is_public", "Requester can see the comment on the ticket that stays", False, "checkbox"),
        Field("source_comment", "Comment on the ticket that is closed", "", "area"),
        Field(
            "source_comment_is_public", "Requester can see the comment on the ticket that is closed", False, "checkbox"
        ),
    ]


def _chosen(sent: Given) -> tuple[str, list[str]]:
    act = one_of(sent, "act")
    ids = [one for one in sent.get("ids", []) if isinstance(one, str) and one.isdecimal() and len(one) < 19]
    if act not in _ACTS or not ids:
        raise Refuse(404, {"error": "RecordNotFound", "description": "No tickets are selected"})
    return act, ids


@route("GET", "/agent/bulk", who="agent")
def ask(world: Desk, exchange: Exchange) -> Any:
    """Shows the form of an act on the tickets that the address names."""
    return _ask(world, exchange, given(exchange), errors={})


def _ask(world: Desk, exchange: Exchange, sent: Given, *, errors: dict[str, str]) -> Any:
    act, ids = _chosen(sent)
    title = f"{_ACTS[act]}: " + ", ".join(f"#{one}" for one in ids)
    fields = [*(Field("ids", "", one, "hidden") for one in ids), Field("act", "", act, "hidden")]
    fields += filled(_act_fields(world, act, ids), sent)
    return show(world, exchange, "edit", title=title, fields=fields, buttons=[("", "", _ACTS[act])], errors=errors)


@route("POST", "/agent/bulk", who="agent")
def perform(world: Desk, exchange: Exchange) -> Any:
    """Performs an act on one ticket, or starts the job of an act on several."""
    sent = given(exchange)
    act, ids = _chosen(sent)
    errors = tried(world, exchange, lambda: _perform(world, exchange, act, ids=ids, sent=sent))
    if errors:
        return _ask(world, exchange, sent, errors=errors)
    target = one_of(sent, "number") or one_of(sent, "target")
    return see(f"/agent/tickets/{target}" if act == "merge" else "/agent/filters", saved="1" if act == "merge" else "")


def _perform(world: Desk, exchange: Exchange, act: str, *, ids: list[str], sent: Given) -> None:
    values = changed(_act_fields(world, act, ids), sent)
    if act == "spam":
        for one in ids:
            api(world, exchange, "PUT", path=f"tickets/{one}/mark_as_spam")
    elif act == "delete" and len(ids) == 1:
        api(world, exchange, "DELETE", path=f"tickets/{ids[0]}")
    elif act == "delete":
        api(world, exchange, "DELETE", path="tickets/destroy_many", ids=",".join(ids))
    elif act == "merge":
        target = values.pop("number", "") or values.get("target", "")
        if not target.isdecimal():
            raise Refuse(422, {"description": "Choose a ticket to merge into"})
        body = {"ids": [int(one) for one in ids], **{name: value for name, value in values.items() if name != "target"}}
        api(world, exchange, "POST", path=f"tickets/{target}/merge", body=body)
    else:
        public = values.pop("public", False)
        if "comment" in values:
            values["comment"] = {"body": values["comment"], "public": public}
        values |= {name: values[name].split() for name in ("additional_tags", "remove_tags") if name in values}
        api(world, exchange, "PUT", path="tickets/update_many", body={"ticket": values}, ids=",".join(ids))
