"""Pages of the agent workspace: views, tickets, acts on several tickets, and search."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

from quintain.resources.database.standing import known
from quintain.resources.web import Exchange, Refuse, Routes
from quintain.resources.web.rows import count, find, kept, marks, select
from quintain.resources.web.world import moment

from . import screens as ui
from . import tables as tb
from .account import Desk, Invalid, listed, record, seconds, whole_number
from .business import COLUMNS, VIEWS, listing_of
from .screens import Faults, FormField, PageTable, Sent, number_of, pick, text_of
from .sla import EVENT_METRICS, METRICS
from .wire import PER_PAGE, whole

ROUTES = Routes()
route = ROUTES.route
_AGENTS = "SELECT id, name FROM zd_users WHERE role IN ('agent', 'admin') AND active = 1 ORDER BY name, id"
_GROUPS = "SELECT id, name FROM zd_agent_groups WHERE deleted = 0 ORDER BY name, id"
_MACROS = "SELECT id, title FROM zd_macros WHERE active = 1 ORDER BY position, id"
_STATUSES = 'SELECT id, agent_label, status_category, "default" FROM zd_custom_statuses WHERE active = 1 ORDER BY id'
_RECENT = """SELECT id, coalesce(subject, '-') FROM zd_tickets
    WHERE requester_id = ? AND deleted = 0 AND id <> ? ORDER BY id DESC LIMIT 5"""
_TARGETS = """SELECT id, '#' || id || ' ' || coalesce(subject, '') FROM zd_tickets
    WHERE deleted = 0 AND status NOT IN ('solved', 'closed') AND id NOT IN ({ids})
    AND requester_id IN (SELECT requester_id FROM zd_tickets WHERE id IN ({ids})) ORDER BY id DESC LIMIT 20"""
_REPORT = """SELECT e.ticket_id, e.time, g.name FROM zd_metric_events e JOIN zd_tickets t ON t.id = e.ticket_id
    LEFT JOIN zd_agent_groups g ON g.id = t.group_id
    WHERE e.type = 'breach' AND e.metric = ? AND e.time >= ? AND e.time < ? ORDER BY e.time, e.id LIMIT ? OFFSET ?"""
_METRICS = [(one, one.replace("_", " ").capitalize()) for one in sorted({EVENT_METRICS.get(m, m) for m in METRICS})]
_KEYS = {"created": "created_at", "updated": "updated_at", "due_date": "due_at", "nice_id": "id"}
_NAMES = {"requester": "users", "assignee": "users", "submitter": "users", "group": "groups",
          "organization": "organizations"}  # fmt: skip
_PRIORITIES = [("", "-"), *((one, one.capitalize()) for one in tb.PRIORITIES)]
_TYPES = [("", "-"), *((one, one.capitalize()) for one in tb.TYPES)]
_NEXT = [("", "Stay on ticket"), ("next", "Next ticket in view"), ("close", "Close ticket")]
_KINDS = {"checkbox": "checkbox", "textarea": "area", "integer": "number", "date": "date"}
"""Kinds of fields of a form by the types of ticket fields; the others are text."""
_EVENTS = {"Change": "{field_name}: {previous_value} to {value}", "Create": "{field_name}: {value}",
           "Notification": "{subject}"}  # fmt: skip


# -- lists


def tickets_table(
    exchange: Exchange, caption: str, found: tb.Json, *, columns: Iterable[str] = (), key: str = "tickets"
) -> PageTable:
    """Returns a table of tickets that the API listed with the people and groups in it; one with columns is sorted."""
    names = {one: {row["id"]: row["name"] for row in found.get(one, ())} for one in {*_NAMES.values()}}
    shown = [*columns] or ["nice_id", "subject", "status", "requester", "updated"]
    now = (exchange.query.get("sort_by"), exchange.query.get("sort_order"))
    orders = {one: "desc" if now == (one, "asc") else "asc" for one in columns}
    heads = [(COLUMNS.get(one, one), ui.here(exchange, sort_by=one, sort_order=orders[one], page="") if columns else "")
             for one in shown]  # fmt: skip
    slas: list[list[tb.Json]] = [record(row.get("slas")).get("policy_metrics") or [] for row in found[key]]
    rows = [(row["id"], [_cell(row, one, names) for one in shown]) for row in found[key]]
    if any(slas):
        heads.append(("SLA", ""))
        for (_, cells), some in zip(rows, slas, strict=True):
            cells.append(_left(some[0])[0] if some else "")
    return PageTable(caption, heads, rows, ui.around(exchange, found))


def _cell(row: tb.Json, column: str, names: dict[str, dict[Any, str]]) -> Any:
    value: Any = row.get(_KEYS.get(column, column), row.get(f"{column}_id"))
    if column.isdecimal():
        value = next((one["value"] for one in row["custom_fields"] if str(one["id"]) == column), None)
    if column == "subject":
        return (value or "(no subject)", f"/agent/tickets/{row['id']}")
    if column in {"created", "updated", "due_date"}:
        return ui.when(value)
    if column in _NAMES:
        return names[_NAMES[column]].get(value, "-")
    return "-" if value is None else ui.STATUSES[value] if column == "status" else str(value).capitalize()


def _left(metric: tb.Json) -> tuple[str, bool]:
    """Returns the rest of an SLA target as a badge shows it, and True if it has passed."""
    unit = next(one for one in ("days", "hours", "minutes") if one in metric)
    return ("Paused", False) if metric["stage"] == "paused" else (f"{metric[unit]}{unit[0]}", metric[unit] < 0)


@route("GET", "/agent/home", who="agent")
def dashboard(world: Desk, exchange: Exchange) -> Any:
    """Shows the caller's own tickets, and those that he wrote to last."""
    query: tb.Json = {"per_page": world.look.rows, "include": "users,slas"}
    tables = [
        tickets_table(exchange, caption, ui.api(world, exchange, f"GET {path}", **query))
        for caption, path in (("Assigned to you", f"users/{exchange.caller.id}/tickets/assigned"),
                              ("Recently updated by you", "tickets/recent"))
    ]  # fmt: skip
    return ui.show(world, exchange, "list", title="Home", tables=tables)


@route("GET", "/agent/filters", who="agent")
def first_view(world: Desk, exchange: Exchange) -> Any:
    """Sends to the first view."""
    found = ui.api(world, exchange, "GET views/active", per_page=1)["views"]
    return ui.see(f"/agent/filters/{found[0]['id']}" if found else "/agent/home")


@route("GET", "/agent/filters/{id}", who="agent")
def view(world: Desk, exchange: Exchange) -> Any:
    """Shows the tickets of a view."""
    one = VIEWS.need(world, exchange, exchange.id)
    query = {name: exchange.query[name] for name in ("page", "sort_by", "sort_order") if exchange.query.get(name)}
    include = "users,groups,organizations" + (",slas" if count(world.db, tb.SlaPolicy) else "")
    found = ui.api(world, exchange, f"GET views/{one.id}/tickets", per_page=world.look.rows, include=include, **query)
    columns = dict.fromkeys(("nice_id", "status", *(column["id"] for column in one.execution.get("columns", []))))
    table = tickets_table(exchange, one.title, found, columns=columns)._replace(select="ticket")
    for _, cells in table.rows:
        cells[:] = [(cell[0], f"{cell[1]}?view={one.id}") if isinstance(cell, tuple) else cell for cell in cells]
    views = select(world.db, tb.TicketView, "active = 1 ORDER BY position, id")
    links = [(f"/agent/filters/{other.id}", other.title, _number(world, exchange, other)) for other in views]
    return ui.show(world, exchange, "list", title=one.title, tables=[table], links=links, view=one.id)


def _number(world: Desk, exchange: Exchange, view: Any) -> str:
    """Returns the number of a view's tickets, counted up to a thousand."""
    listing = listing_of(world, exchange, view)
    sql = f"SELECT count(*) FROM (SELECT 1 FROM zd_tickets WHERE {listing.where} LIMIT 1001)"
    number = world.counted().execute(sql, *listing.values)[0][0]
    return "1000+" if number > 1000 else str(number)


@route("GET", "/agent/search/1", who="agent")
def search(world: Desk, exchange: Exchange) -> Any:
    """Shows what fulfils a query, one kind at a time."""
    text, kinds = exchange.query.get("q", ""), ("ticket", "user", "organization")
    kind = exchange.query.get("type") if exchange.query.get("type") in kinds else "ticket"
    query, page = f"{text} type:{kind}", exchange.query.get("page", "1")
    ask = functools.partial(ui.api, world, exchange, "GET search", query=query, page=page, per_page=world.look.rows)
    errors, results = ui.tried(world, exchange, ask) if text.strip() else ({}, None)
    found: tb.Json = results or {"results": []}
    found["results"] = [row for row in found["results"] if row["result_type"] == kind]  # The text may name others.
    if kind == "ticket":
        ids = [row["requester_id"] for row in found["results"]]
        users = ui.options(world, f"SELECT id, name FROM zd_users WHERE id IN ({marks(ids)})", *ids)
        found["users"] = [{"id": int(key), "name": name} for key, name in users]
        table = tickets_table(exchange, "Tickets", found, key="results")
    else:
        rows: list[Any] = [(row["id"], [(row["name"], f"/agent/{kind}s/{row['id']}")]) for row in found["results"]]
        table = PageTable(f"{kind}s".capitalize(), [("Name", "")], rows, ui.around(exchange, found))
    links = [(ui.here(exchange, type=one, page=""), f"{one}s".capitalize(), "") for one in kinds]
    return ui.show(world, exchange, "list", title="Search", tables=[table], links=links, query=text, errors=errors)


@route("GET", "/agent/reports", who="agent")
def report(world: Desk, exchange: Exchange) -> Any:
    """Lists the breaches of a metric between two moments, each with the present group of its ticket."""
    edges = (("begin", "From (UTC)", moment(world.clock.now - 86_400)), ("end", "Until (UTC)", world.now))
    blank = [FormField(name, label, ui.when(at)) for name, label, at in edges]
    blank.append(pick("metric", "Metric", "reply_time", options=_METRICS))
    fields, page, size = ui.filled(blank, ui.sent_by(exchange)), whole(exchange, "page", 1, most=10**6), world.look.rows

    def ask() -> list[tuple[Any, ...]]:
        between = [_edge(one) for one in fields[:2]]
        return world.db.execute(_REPORT, fields[2].value, *between, size + 1, (page - 1) * size)

    errors, found = ui.tried(world, exchange, ask)
    rows = [(n, [ui.when(at), (f"#{n}", f"/agent/tickets/{n}"), group or "-"]) for n, at, group in (found or ())[:size]]
    pages = ui.around(exchange, {"previous_page": page > 1, "next_page": len(found or ()) > size})
    tables = [PageTable("Breaches", [(title, "") for title in ("Time", "Ticket", "Group")], rows, pages)]
    about: tb.Json = {"title": "Reporting", "fields": fields, "buttons": [("", "", "Show")], "method": "get"}
    return ui.show(world, exchange, "edit", tables=tables, errors=errors, **about)


def _edge(field: FormField) -> str:
    """Returns the moment that a field of a report names, perhaps in seconds since epoch, as exports do."""
    try:
        return moment(float(field.value) if str(field.value).isdecimal() else seconds(field.value))
    except (ValueError, OverflowError):
        raise Invalid(field.name, f"{field.label}: {field.value} is not a time such as 2026-01-05 09:00") from None


# -- a ticket


class Draft(NamedTuple):
    """Form of a ticket before it is saved.

    Attributes:
        fields: Its properties.
        subject: Its subject.
        text: Text of the comment.
        public: True for a public reply.
        status: Status of the first button.
    """

    fields: list[FormField]
    subject: FormField
    text: str
    public: bool
    status: str

    @property
    def comment(self) -> list[FormField]:
        """Text and file of the comment as fields."""
        return [FormField("comment", "Comment", self.text, "area"), FormField("file", "Attachment", kind="file")]


def _people(world: Desk, *ids: int | None) -> str:
    sql = f"SELECT id, coalesce(email, id) FROM zd_users WHERE id IN ({marks(ids)})"
    known = dict(ui.options(world, sql, *ids)) if ids else {}
    return ", ".join(known[str(one)] for one in ids if str(one) in known)


def properties(world: Desk, ticket: tb.Json) -> list[FormField]:
    """Returns the properties of a ticket as fields, with the names of the API."""
    fields = [
        FormField("requester", "Requester", _people(world, ticket.get("requester_id"))),
        pick("group_id", "Group", ticket.get("group_id"), options=[("", "-"), *ui.options(world, _GROUPS)]),
        pick("assignee_id", "Assignee", ticket.get("assignee_id"), options=[("", "-"), *ui.options(world, _AGENTS)]),
        FormField("email_ccs", "CCs", _people(world, *ticket.get("email_cc_ids") or ())),
        FormField("followers", "Followers", _people(world, *ticket.get("follower_ids") or ())),
        FormField("tags", "Tags", " ".join(ticket.get("tags") or ())),
        pick("type", "Type", ticket.get("type"), options=_TYPES),
        FormField("problem_id", "Linked problem", ticket.get("problem_id"), "number"),
        FormField("due_at", "Due date", (ticket.get("due_at") or "")[:10], "date"),
        pick("priority", "Priority", ticket.get("priority"), options=_PRIORITIES),
    ]
    for name, label, table in (("ticket_form_id", "Form", "zd_ticket_forms"), ("brand_id", "Brand", "zd_brands")):
        known = ui.options(world, f"SELECT id, name FROM {table} WHERE active = 1 ORDER BY id")
        fields += [pick(name, label, ticket.get(name), options=known)] if len(known) > 1 else []
    values = {one["id"]: one["value"] for one in ticket.get("custom_fields") or ()}
    return fields + [custom(one, values.get(one.id)) for one in custom_fields(world)]


def custom_fields(world: Desk, where: str = "1") -> list[Any]:
    """Returns the custom fields of tickets."""
    return kept(world.db, tb.TicketField, f"active = 1 AND removable = 1 AND {where} ORDER BY position, id")


def custom(field: Any, value: Any) -> FormField:
    """Returns a custom field of a ticket as a field of a form."""
    name, choices = f"custom_{field.id}", tuple((one["value"], one["name"]) for one in field.custom_field_options)
    if field.type == "multiselect":
        return FormField(name, field.title, listed(value), "choices", choices)
    known = pick(name, field.title, value, options=[("", "-"), *choices])
    return known if choices else FormField(name, field.title, value, _KINDS.get(field.type, "text"))


def wanted_of(fields: list[FormField], sent: Sent) -> tb.Json:
    """Returns the changes that a form asks for, as the API takes them."""
    wanted = ui.changed(fields, sent)
    names = [name for name in wanted if name.startswith("custom_") and name[7:].isdecimal()]
    if names:
        wanted["custom_fields"] = [{"id": int(name[7:]), "value": wanted.pop(name)} for name in names]
    if "tags" in wanted:
        wanted["tags"] = wanted["tags"].split()
    if "requester" in wanted:
        wanted["requester"] = {"email": wanted["requester"]}
    for field in fields:
        if field.name in {"email_ccs", "followers"} & {*wanted}:
            before, now = ({*text.replace(",", " ").split()} for text in (field.shown, wanted[field.name]))
            acts = [(one, "delete") for one in sorted(before - now)] + [(one, "put") for one in sorted(now - before)]
            wanted[field.name] = [{"user_email": one, "action": act} for one, act in acts]
    return wanted


def _draft(world: Desk, exchange: Exchange, ticket: tb.Json, *, sent: Sent) -> Draft:
    """Returns the form of a ticket with what was typed, and above that the changes of a macro."""
    base, subject = properties(world, ticket), FormField("subject", "Subject", ticket.get("subject"))
    text, macro = text_of(sent, "comment"), number_of(sent, "macro")
    public = text_of(sent, "public") != "0" if "public" in sent else bool(ticket["is_public"])
    made = Draft(ui.filled(base, sent), ui.filled([subject], sent)[0], text, public, ticket["status"])
    if macro is None:
        return made
    path = f"tickets/{ticket['id']}/" if ticket["id"] else ""
    after: tb.Json = ui.api(world, exchange, f"GET {path}macros/{macro}/apply")["result"]["ticket"]
    said = record(after.get("comment"))
    if "custom" in after:
        after["custom_fields"] = [{"id": int(key), "value": value} for key, value in after["custom"].items()]
    after = ticket | after
    pairs = zip(base, properties(world, after), made.fields, strict=True)
    fields = [new if new.shown != old.shown else mine for old, new, mine in pairs]
    title = made.subject if after.get("subject") == ticket.get("subject") else subject._replace(value=after["subject"])
    text = "\n".join(one for one in (text, said.get("body", "")) if one)
    return Draft(fields, title, text, said.get("public", public), after["status"])


def _submits(world: Desk, ticket: tb.Json, status: str) -> list[tuple[str, str, str]]:
    """Returns names, values and texts of the buttons that submit a ticket, the present status first."""
    found: list[tuple[str, str, str]] = []
    for number, label, category, is_default in known(world.db, _STATUSES):
        one = ("status", category, label) if is_default else ("custom_status_id", str(number), label)
        is_first = category == status and (is_default or number == ticket.get("custom_status_id"))
        if category != "new" or ticket["status"] == "new":
            found = [one, *found] if is_first else [*found, one]
    return found


def _page(world: Desk, exchange: Exchange, ticket: tb.Json, *, sent: Sent, **more: Any) -> Any:
    draft = _draft(world, exchange, ticket, sent=sent)
    foot = [
        pick("macro", "Macro", text_of(sent, "macro"), options=[("", "-"), *ui.options(world, _MACROS)]),
        pick("then", "After submitting", text_of(sent, "then"), options=_NEXT),
    ]
    shared: tb.Json = {"ticket": ticket, "draft": draft, "foot": foot, "buttons": _submits(world, ticket, draft.status),
              "view": text_of(sent, "view"), "source": "", "about": None}  # fmt: skip
    return ui.show(world, exchange, "ticket", **(shared | more))


@route("GET", "/agent/tickets/{id}", who="agent")
def ticket(world: Desk, exchange: Exchange, errors: Faults | None = None) -> Any:
    """Shows a ticket; `macro` in the address applies a macro to the form, and other names fill it in."""
    # After a conflict the form shows the ticket as it is now, and keeps the comment.
    sent = ui.sent_by(exchange)
    kept = {"comment", "public", "view"} if exchange.status == 409 else {*sent} - ({"macro"} if errors else set())
    sent = {name: values for name, values in sent.items() if name in kept}
    found = ui.api(world, exchange, f"GET tickets/{exchange.params[0]}", include="slas")["ticket"]
    page = exchange.query.get("page", "1")
    said = ui.api(world, exchange, f"GET tickets/{exchange.params[0]}/comments", include="users", page=page)
    names = {row["id"]: row["name"] for row in said["users"]}
    requester = world.user(found["requester_id"])
    assert requester is not None, "users are never removed from their table"
    return _page(
        world, exchange, found, sent=sent, errors=errors, title=f"#{found['id']} {found['subject'] or ''}",
        comments=[shown_comment(row, names) for row in said["comments"]], pages=ui.around(exchange, said),
        events=_events(world, exchange) if "events" in exchange.query else None, about=requester,
        slas=[(one["metric"].replace("_", " ").capitalize(), *_left(one)) for one in found["slas"]["policy_metrics"]],
        organization=find(world.db, tb.Organization, requester.organization_id),
        recent=ui.options(world, _RECENT, requester.id, found["id"]),
    )  # fmt: skip


def shown_comment(row: tb.Json, names: dict[int, str]) -> tb.Json:
    """Returns a comment as a page shows it: its text, which is never taken as HTML."""
    files = [(one["content_url"], one["file_name"]) for one in row["attachments"]]
    return {"author": names.get(row["author_id"], "-"), "at": ui.when(row["created_at"]), "public": row["public"],
            "body": row["plain_body"], "files": files}  # fmt: skip


def _events(world: Desk, exchange: Exchange) -> PageTable:
    rows: list[tuple[Any, list[Any]]] = []
    for audit in ui.api(world, exchange, f"GET tickets/{exchange.params[0]}/audits")["audits"]:
        user = world.user(audit["author_id"])
        about = [ui.when(audit["created_at"]), user.name if user else "System"]
        events = audit["events"]
        rows += [(one["id"], [*about, one["type"], _EVENTS.get(one["type"], "").format_map(one)]) for one in events]
    return PageTable("Events", [(title, "") for title in ("Time", "By", "Event", "Details")], rows)


def comment_of(world: Desk, exchange: Exchange, sent: Sent) -> tb.Json:
    """Returns the comment of a form, whose files are uploaded."""
    files: list[tuple[str, str, bytes]] = [one for one in sent.get("file", []) if not isinstance(one, str) and one[0]]
    send = functools.partial(ui.api, world, exchange, "POST uploads")
    tokens = [send(body=data, kind=kind, filename=name)["upload"]["token"] for name, kind, data in files]
    comment: tb.Json = {"body": text_of(sent, "comment")} | ({"uploads": tokens} if tokens else {})
    comment |= {"public": text_of(sent, "public") != "0"} if "public" in sent else {}
    return {"comment": comment} if comment["body"].strip() or tokens else {}


def _submitted(world: Desk, exchange: Exchange, sent: Sent, *, ticket: tb.Json) -> tb.Json:
    """Returns what the form of a ticket asks for, as the API takes it."""
    fields = [*properties(world, ticket), FormField("subject", "Subject", ticket.get("subject"))]
    wanted = wanted_of(fields, sent) | comment_of(world, exchange, sent)
    for name in ("status", "custom_status_id"):
        if (value := text_of(sent, name)) and value != str(ticket.get(name)):
            wanted[name] = value
    macro = number_of(sent, "macro")
    return wanted if macro is None else wanted | {"macro_ids": [macro]}


@route("POST", "/agent/tickets/{id}", who="agent")
def save(world: Desk, exchange: Exchange) -> Any:
    """Saves what the form of a ticket changed, unless somebody else changed the ticket since it was shown."""
    sent, path = ui.sent_by(exchange), f"tickets/{exchange.params[0]}"
    before = ui.api(world, exchange, f"GET {path}")["ticket"]
    following = _following(world, exchange, sent)

    def act() -> None:
        wanted = _submitted(world, exchange, sent, ticket=before)
        stamp = text_of(sent, "updated_stamp")
        wanted |= {"safe_update": True, "updated_stamp": stamp} if stamp else {}
        ui.api(world, exchange, f"PUT {path}", body={"ticket": wanted})

    errors, _ = ui.tried(world, exchange, act)
    return ticket(world, exchange, errors) if errors else following


def _following(world: Desk, exchange: Exchange, sent: Sent) -> Any:
    """Returns the answer that leads to the page after a saved ticket."""
    then, number = text_of(sent, "then"), number_of(sent, "view")
    page = "/agent/home" if number is None else f"/agent/filters/{number}"
    if then == "next" and number is not None:
        listing = listing_of(world, exchange, VIEWS.need(world, exchange, number))
        sql = f"SELECT id FROM zd_tickets WHERE {listing.where} {listing.sorting()}"
        ids = [one for (one,) in world.db.execute(sql, *listing.values)]
        after = ids[ids.index(exchange.id) + 1 :] if exchange.id in ids else ids
        return ui.see(f"/agent/tickets/{after[0]}", view=number, then=then) if after else ui.see(page)
    return ui.see(page) if then else ui.see(f"/agent/tickets/{exchange.params[0]}", view=number, saved="1")


@route("GET", "/agent/tickets/new", who="agent")
def new_ticket(world: Desk, exchange: Exchange, errors: Faults | None = None) -> Any:
    """Shows the form of a new ticket, which may follow up a closed one."""
    sent = ui.sent_by(exchange)
    source, blank = number_of(sent, "source"), {"id": 0, "status": "new", "is_public": True}
    if source is not None:
        old = ui.api(world, exchange, f"GET tickets/{source}")["ticket"]
        blank |= {name: old[name] for name in ("subject", "requester_id", "tags")}
    return _page(world, exchange, blank, sent=sent, errors=errors, title="New ticket", source=source or "")


@route("POST", "/agent/tickets/new", who="agent")
def create(world: Desk, exchange: Exchange) -> Any:
    """Creates a ticket."""
    sent = ui.sent_by(exchange)

    def act() -> Any:
        wanted = _submitted(world, exchange, sent, ticket={"status": "new"})
        source = number_of(sent, "source")
        wanted |= {} if source is None else {"via_followup_source_id": source}
        return ui.api(world, exchange, "POST tickets", body={"ticket": wanted})["ticket"]

    errors, made = ui.tried(world, exchange, act)
    return new_ticket(world, exchange, errors) if errors else ui.see(f"/agent/tickets/{made['id']}", saved="1")


# -- acts on one ticket or several


_ACTS = {"edit": "Edit", "merge": "Merge", "spam": "Mark as spam", "delete": "Delete"}


def _act_fields(world: Desk, act: str, ids: list[str]) -> list[FormField]:
    if act == "edit":
        keep, names = ("", "(no change)"), {"group_id", "assignee_id", "type", "priority"}
        statuses = [keep, *((one, ui.STATUSES[one]) for one in tb.STATUSES[1:5])]
        fields = [one._replace(options=(keep, *one.options[1:])) for one in properties(world, {}) if one.name in names]
        return [pick("status", "Status", "", options=statuses), *fields, FormField("additional_tags", "Add tags"),
                FormField("remove_tags", "Remove tags"), FormField("comment", "Comment", kind="area"),
                FormField("public", "Public reply", kind="checkbox")]  # fmt: skip
    if act != "merge":
        return []
    targets = ui.options(world, _TARGETS.format(ids=marks(ids)), *ids, *ids)
    fields = [pick("target", "Open tickets of the requester", "", options=[("", "-"), *targets]),
              FormField("number", "Or number of a ticket", kind="number")]  # fmt: skip
    for name, label in (("target", "ticket that stays"), ("source", "ticket that is closed")):
        fields.append(FormField(f"{name}_comment", f"Comment on the {label}", kind="area"))
        words = f"Requester can see the comment on the {label}"
        fields.append(FormField(f"{name}_comment_is_public", words, kind="checkbox"))
    return fields


@route("GET", "/agent/bulk", who="agent")
def ask(world: Desk, exchange: Exchange, errors: Faults | None = None) -> Any:
    """Shows the form of an act on the tickets that the address names."""
    sent = ui.sent_by(exchange)
    act, ids = _chosen(sent)
    title = f"{_ACTS[act]}: " + ", ".join(f"#{one}" for one in ids)
    fields = [*(FormField("ids", "", one, "hidden") for one in ids), FormField("act", "", act, "hidden")]
    fields += ui.filled(_act_fields(world, act, ids), sent)
    return ui.show(world, exchange, "edit", title=title, fields=fields, buttons=[("", "", _ACTS[act])], errors=errors)


def _chosen(sent: Sent) -> tuple[str, list[str]]:
    act, ids = text_of(sent, "act"), [one for one in sent.get("ids", []) if str(one).isdecimal() and len(one) < 19]
    if act not in _ACTS or not ids:
        raise Refuse(404, {"error": "RecordNotFound", "description": "No tickets are selected"})
    if len(ids) > PER_PAGE:
        raise Refuse(422, {"error": "TooManyValues", "description": f"At most {PER_PAGE} tickets"})
    return act, ids


@route("POST", "/agent/bulk", who="agent")
def perform(world: Desk, exchange: Exchange) -> Any:
    """Performs an act on one ticket, or starts the job of an act on several."""
    sent = ui.sent_by(exchange)
    act, ids = _chosen(sent)
    values = ui.changed(_act_fields(world, act, ids), sent)
    errors, target = ui.tried(world, exchange, lambda: _perform(world, exchange, act, ids=ids, values=values))
    if errors:
        return ask(world, exchange, errors)
    return ui.see(f"/agent/tickets/{target}", saved="1") if act == "merge" else ui.see("/agent/filters")


def _perform(world: Desk, exchange: Exchange, act: str, *, ids: list[str], values: tb.Json) -> str:
    target = str(values.pop("number", "") or values.get("target", ""))
    if act == "spam":
        for one in ids:
            ui.api(world, exchange, f"PUT tickets/{one}/mark_as_spam")
    elif act == "delete":
        several = {"ids": ",".join(ids)} if len(ids) > 1 else {}
        ui.api(world, exchange, f"DELETE tickets/{'destroy_many' if several else ids[0]}", **several)
    elif act == "merge":
        if whole_number(target) is None:
            raise Refuse(422, {"description": "Choose a ticket to merge into"})
        body = {name: value for name, value in values.items() if name != "target"}
        ui.api(world, exchange, f"POST tickets/{target}/merge", body={"ids": [int(one) for one in ids], **body})
    else:
        public = values.pop("public", False)
        values |= {"comment": {"body": values["comment"], "public": public}} if "comment" in values else {}
        values |= {name: values[name].split() for name in ("additional_tags", "remove_tags") if name in values}
        ui.api(world, exchange, "PUT tickets/update_many", body={"ticket": values}, ids=",".join(ids))
    return target
