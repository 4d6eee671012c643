"""Business rules and settings: triggers, automations, macros, views, SLA policies, schedules, fields, forms."""

from __future__ import annotations

from copy import copy
from datetime import date
from typing import Any

import msgspec
from msgspec.structs import astuple

from quintain.errors import UsageError
from quintain.resources.database.rows import table_name
from quintain.resources.web import Exchange, Listing, ResourceSpec, Routes
from quintain.resources.web.rows import as_shown, count, select, shown

from . import actions
from . import tables as tb
from .account import Desk, Invalid, listed, record
from .commit import Update
from .conditions import FIELDS, STATUSES_UPPER, faults, sql
from .sla import METRICS, Interval, hours_of
from .tickets import TICKETS, actor, need, sideload
from .wire import API, take

ROUTES = Routes()
route = ROUTES.route
ALL = ("list", "show", "create", "update", "delete")
COLUMNS = {"subject": "Subject", "requester": "Requester", "created": "Requested", "updated": "Updated",
    "group": "Group",
           "assignee": "Assignee", "status": "Status", "priority": "Priority", "type": "Type", "nice_id": "ID",
           "organization": "Organization", "submitter": "Submitter", "due_date": "Due date",
           "brand": "Brand"}  # fmt: skip
_DEFAULT = ("subject", "requester", "created", "updated", "group", "assignee")
_SORTS = {"created": "created_at", "updated": "updated_at", "requester": "requester_id", "assignee": "assignee_id",
          "group": "group_id", "nice_id": "id", "due_date": "due_at", "organization": "organization_id"}  # fmt: skip


def _clean(kind: str) -> Any:
    def clean(world: Desk, exchange: Exchange, fields: dict[str, Any], *, row: Any) -> dict[str, Any]:
        for part in ("all", "any"):
            if part in fields:
                fields["conditions"] = {**record(fields.get("conditions")), part: fields[part]}
        if "title" in fields:
            fields["raw_title"] = fields["title"]
        name, wrong = "filter" if kind == "sla" else "conditions", ""
        if kind != "macro" and (row is None or name in fields):
            fields[name] = {part: listed(record(fields.get(name)).get(part)) for part in ("all", "any")}
            wrong = faults(kind, fields[name])
        if kind in actions.ACTIONS and (row is None or "actions" in fields):
            wrong = wrong or actions.faults(kind, fields.get("actions"))
        if wrong:
            raise Invalid("base", wrong)
        if row is None and "position" not in fields and kind in _KINDS:
            fields["position"] = count(world.db, _KINDS[kind]) + 1
        return _MORE[kind](fields, row) if kind in _MORE else fields

    return clean


def _automation(fields: dict[str, Any], row: Any) -> dict[str, Any]:
    """Demands something that ends the automation: an action that makes a condition false."""
    conditions: tb.Json = fields.get("conditions") or (row.conditions if row else {})
    done: list[tb.Json] = fields.get("actions") or (row.actions if row else [])
    named = {one["field"].removesuffix("_business_hours") for one in conditions.get("all", [])}
    named |= {"status"} if named & {*STATUSES_UPPER} else set()
    ending = {one["field"] for one in done}
    tags = {"current_tags", "set_tags", "remove_tags"} & ending and "current_tags" in named
    at_an_hour = any(one.get("operator") == "is" for one in conditions.get("all", []) if one["field"] not in FIELDS or
                     FIELDS[one["field"]].kinds == "av")  # fmt: skip
    if not (named & ending or tags or at_an_hour):
        words = "An automation needs an action that makes one of its conditions false, or a time that is met once"
        raise Invalid("base", words)
    return fields


def execution(output: tb.Json) -> tb.Json:
    """Returns the columns and the order of a view from what a request says of them."""
    names = map(str, listed(output.get("columns")) or _DEFAULT)
    sort, order = output.get("sort_by") or "created", output.get("sort_order") or "desc"
    return {
        "group_by": output.get("group_by"), "group_order": output.get("group_order") or "desc",
        "sort_by": sort, "sort_order": order, "group": None, "sort": {"id": sort, "order": order},
        "columns": [{"id": name, "title": COLUMNS.get(name, name), "filterable": True, "sortable": True}
                    for name in names if name in COLUMNS or name.isdecimal()],
        "fields": [], "custom_fields": [],
    }  # fmt: skip


def _view(fields: dict[str, Any], row: Any) -> dict[str, Any]:
    output = record(fields.get("output"))
    known = dict(row.execution) if row else {}
    return {**fields, "execution": known | execution(output) if output or not known else known}


def _policy(fields: dict[str, Any], row: Any) -> dict[str, Any]:
    for one in map(record, listed(fields.get("policy_metrics"))):
        good = str(one.get("metric")) in METRICS and str(one.get("priority")) in tb.PRIORITIES
        if not good or not isinstance(one.get("target"), int) or one["target"] <= 0:
            words = "Policy metrics: need a priority, a metric and a target in minutes"
            raise Invalid("policy_metrics", words)
        one.setdefault("business_hours", False)
    return fields


_MORE: dict[str, Any] = {"automation": _automation, "view": _view, "sla": _policy}
_KINDS: tb.Json = {
    "trigger": tb.Trigger,
    "automation": tb.Automation,
    "view": tb.TicketView,
    "sla": tb.SlaPolicy,
}


def _sorted_rules(world: Desk, exchange: Exchange) -> tuple[str, tuple[Any, ...]]:
    active = exchange.query.get("active")
    if exchange.params or active not in {"true", "false"}:
        return "1", ()
    return "active = ?", (active == "true",)


def _personal(world: Desk, exchange: Exchange) -> tuple[str, tuple[Any, ...]]:
    where, values = _sorted_rules(world, exchange)
    kind, target = "json_extract(restriction, '$.type')", "json_extract(restriction, '$.id')"
    groups = "SELECT group_id FROM zd_group_memberships m WHERE m.user_id = ?"
    several = f"EXISTS (SELECT 1 FROM json_each(restriction, '$.ids') i WHERE i.value IN ({groups}))"
    shared = f"{kind} = 'Group' AND ({target} IN ({groups}) OR {several})"
    mine = f"(restriction IS NULL OR ({kind} = 'User' AND {target} = ?) OR ({shared}))"
    me = exchange.caller.id
    return f"{mine} AND {where}", (me, me, me, *values)


def _own(world: Desk, exchange: Exchange, row: Any, *, before: Any) -> None:
    """Lets agents write only what is theirs alone."""
    if exchange.caller.role != "admin":
        mine = {"type": "User", "id": exchange.caller.id}
        if row.restriction != mine or (before is not None and before.restriction != mine):
            raise API.forbidden()


def _show_categories(world: Desk, exchange: Exchange, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": str(row["id"]), **{k: v for k, v in row.items() if k not in {"id", "url"}}} for row in rows]


def _resource(name: str, row: Any, path: str, **more: Any) -> ResourceSpec:
    if name in {"trigger", "automation", "macro", "view"}:
        more["lists"] = {f"/api/v2/{path}/{last}": "active = 1" for last in ("active", "compact")}
    more = {"verbs": ALL, "order": ("position",)} | more
    return ResourceSpec(name=name, row=row, path=f"/api/v2/{path}", style=API, **more)


_RULES: dict[str, Any] = {"scope": _sorted_rules, "sort": ("position", "title")}
_PERSONAL: dict[str, Any] = {"scope": _personal, "after": _own, "write": "agent"}
TRIGGERS = _resource(
    "trigger", tb.Trigger, "triggers", clean=_clean("trigger"), verbs=(*ALL, "count", "show_many"), **_RULES
)
CATEGORIES = _resource("trigger_category", tb.TriggerCategory, "trigger_categories", plural="trigger_categories",
                   show=_show_categories)  # fmt: skip
AUTOMATIONS = _resource("automation", tb.Automation, "automations", clean=_clean("automation"), **_RULES)
MACROS = _resource("macro", tb.Macro, "macros", clean=_clean("macro"), verbs=(*ALL, "count"),
               sort=("position", "created_at", "updated_at"), **_PERSONAL)  # fmt: skip
VIEWS = _resource("view", tb.TicketView, "views", clean=_clean("view"), verbs=(*ALL, "count", "show_many"),
              sort=("position", "title", "created_at", "updated_at"), **_PERSONAL)  # fmt: skip
POLICIES = _resource(
    "sla_policy", tb.SlaPolicy, "slas/policies", plural="sla_policies", clean=_clean("sla"), read="admin"
)


def _clean_schedule(world: Desk, exchange: Exchange, fields: dict[str, Any], *, row: Any) -> dict[str, Any]:
    zone = fields.get("time_zone", row.time_zone if row else "UTC")
    try:
        intervals = msgspec.convert(fields.get("intervals", row.intervals if row else []), list[Interval])
        hours_of(zone, msgspec.json.encode(intervals).decode(), ())
    except (msgspec.ValidationError, UsageError) as error:
        raise Invalid("base", f"Schedule: {error}") from error
    fields["intervals"] = msgspec.to_builtins(intervals)
    return fields


def _clean_field(world: Desk, exchange: Exchange, fields: dict[str, Any], *, row: Any) -> dict[str, Any]:
    for name in ("title", "description", "title_in_portal"):
        if fields.get(name) and f"raw_{name}" not in fields:
            fields[f"raw_{name}"] = fields[name]
    if row is None:
        fields.setdefault("title_in_portal", fields.get("title", ""))
    options = fields.get("custom_field_options")
    if options is not None:
        fields["custom_field_options"] = [
            {"id": one.get("id") or world.new_number(), "name": one.get("name"), "raw_name": one.get("name"),
                "value": one.get("value")}
            for one in map(record, listed(options))
        ]  # fmt: skip
    return fields


SCHEDULES = _resource("schedule", tb.Schedule, "business_hours/schedules", read="admin", order=(), unique=("name",),
                  clean=_clean_schedule)  # fmt: skip
RESOURCES = (
    TRIGGERS, CATEGORIES, AUTOMATIONS, MACROS, VIEWS, POLICIES, SCHEDULES,
    _resource("ticket_form", tb.TicketForm, "ticket_forms", read="end", verbs=(*ALL, "show_many")),
    _resource("custom_status", tb.CustomStatus, "custom_statuses", plural="custom_statuses", verbs=ALL[:4], order=()),
    _resource("brand", tb.Brand, "brands", order=()),
    *(_resource(name, row, f"{name}s", verbs=(*ALL, "count"), clean=_clean_field, unique=unique)
      for name, row, unique in (("ticket_field", tb.TicketField, ()), ("user_field", tb.UserField, ("key",)),
                                ("organization_field", tb.OrganizationField, ("key",)))),
)  # fmt: skip
for _one in RESOURCES:
    _one.mount(ROUTES)


def _reorder(spec: ResourceSpec, key: str) -> Any:
    def reorder(world: Desk, exchange: Exchange) -> Any:
        ids = listed(exchange.json.get(key))
        if not all(isinstance(one, int) for one in ids):
            raise API.attribute(f"{key} must be a list of ids")
        known = [one.id for one in select(world.db, spec.row, "1 ORDER BY position, id")]
        if {*ids} - {*known}:
            raise API.missing()
        for position, one in enumerate([*ids, *(other for other in known if other not in ids)], 1):
            world.db.execute(f"UPDATE {table_name(spec.row)} SET position = ? WHERE id = ?", position, one)
        return spec.answer_list(world, exchange)

    return reorder


ROUTES.add("PUT", "/api/v2/triggers/reorder", _reorder(TRIGGERS, "trigger_ids"), who="admin")
ROUTES.add("PUT", "/api/v2/slas/policies/reorder", _reorder(POLICIES, "sla_policy_ids"), who="admin")


def _definitions(spec: ResourceSpec) -> None:
    def definitions(world: Desk, exchange: Exchange) -> Any:
        found = [
            {"group": "ticket", "title": one.title, "subject": name, "type": "list", "nullable": False,
                "repeatable": False,
             "operators": [{"value": op, "title": op.replace("_", " "), "terminal": op in {"changed", "not_changed"}}
                           for op in one.operators + (one.more if spec is TRIGGERS else ())], "values": []}
            for name, one in FIELDS.items() if spec.name[0] in one.kinds
        ]  # fmt: skip
        given: list[tb.Json] = [{"title": n.replace("_", " "), "subject": n, "type": "list", "group": "ticket",
                              "nullable": False, "values": []}
                             for n in actions.ACTIONS.get(spec.name, ())]  # fmt: skip
        return {"definitions": {"conditions_all": found, "conditions_any": found, "actions": given}}

    ROUTES.add("GET", f"{spec.path}/definitions", definitions, who="agent")


for _spec in (TRIGGERS, AUTOMATIONS, VIEWS, POLICIES):
    _definitions(_spec)


# -- holidays


@route("GET", "/api/v2/business_hours/schedules/{id}/holidays", who="admin")
def holidays(world: Desk, exchange: Exchange) -> Any:
    """Lists the holidays of a schedule."""
    SCHEDULES.need(world, exchange, exchange.id)
    return {"holidays": shown(world.db, tb.Holiday, "schedule_id = ? ORDER BY start_date, id", exchange.id)}


@route("POST", "/api/v2/business_hours/schedules/{id}/holidays", who="admin", status=201)
def add_holiday(world: Desk, exchange: Exchange) -> Any:
    """Adds a holiday to a schedule."""
    SCHEDULES.need(world, exchange, exchange.id)
    given = exchange.part("holiday")
    try:
        first, last = (date.fromisoformat(str(given.get(name))).isoformat() for name in ("start_date", "end_date"))
    except ValueError:
        raise Invalid("base", "Holiday: needs start_date and end_date") from None
    days = (date.fromisoformat(last) - date.fromisoformat(first)).days
    if not 0 <= days < 732 or not given.get("name"):
        raise Invalid("base", "Holiday: needs a name, and an end from its start to two years later")
    row = world.put(tb.Holiday, name=str(given["name"]), start_date=first, end_date=last, schedule_id=exchange.id)
    return {"holiday": as_shown(row)}


# -- macros


def _preview(world: Desk, exchange: Exchange, ticket: tb.Ticket, *, macro: Any) -> Any:
    """Returns the ticket as a macro would change it; nothing is saved."""
    made = Update(world, actor(world, exchange), copy(ticket), ticket, {"channel": "web"})
    actions.apply(made, macro.actions, {})
    pairs = zip(ticket.__struct_fields__, astuple(made.ticket), astuple(ticket), strict=True)
    changed = {name: now for name, now, then in pairs if now != then}
    said = {one["field"]: one.get("value") for one in macro.actions if one["field"].startswith("comment_")}
    comment: tb.Json = {}
    if value := said.get("comment_value") or said.get("comment_value_html"):
        text = actions.fill(made, str(listed(value)[-1]))
        comment = {"body": text, "html_body": text, "scoped_body": [["channel:all", text]],
                   "public": said.get("comment_mode_is_public", "true") in {"true", True}}  # fmt: skip
    url = f"{exchange.base}/api/v2/tickets/{ticket.id}.json"
    more = {"comment": comment} if comment else {}
    return {"result": {"ticket": {"id": ticket.id or None, "url": url, **changed, **more}, **more}}


@route("GET", "/api/v2/macros/{id}/apply", who="agent")
def apply_macro(world: Desk, exchange: Exchange) -> Any:
    """Shows what a macro changes in a new ticket."""
    me = actor(world, exchange)
    blank = tb.Ticket(id=0, requester_id=me.id, submitter_id=me.id)
    return _preview(world, exchange, blank, macro=MACROS.need(world, exchange, exchange.id))


@route("GET", "/api/v2/tickets/{id}/macros/{id}/apply", who="agent")
def apply_to_ticket(world: Desk, exchange: Exchange) -> Any:
    """Shows a ticket as a macro would change it."""
    return _preview(world, exchange, need(world, exchange), macro=MACROS.need(world, exchange, int(exchange.params[1])))


# -- views


def listing_of(world: Desk, exchange: Exchange, view: Any) -> Listing:
    """Returns the tickets of a view in its order, or in the one that the request names."""
    where, values = sql(view.conditions, actions.now_of(world, exchange.caller.id))
    scope, more = TICKETS.scope(world, exchange) if TICKETS.scope and exchange.caller.restriction else ("1", ())
    sort = str(exchange.query.get("sort_by") or view.execution.get("sort_by") or "created")
    down = str(exchange.query.get("sort_order") or view.execution.get("sort_order") or "desc").lower() == "desc"
    column = _SORTS.get(sort, sort if sort in {"status", "priority", "subject", "type"} else "created_at")
    order = (f"coalesce({column}, '')",)
    return Listing(tb.Ticket, f"deleted = 0 AND {where} AND {scope}", (*values, *more), order, down)


@route("GET", "/api/v2/views/{id}/tickets", who="agent", limit="view")
def view_tickets(world: Desk, exchange: Exchange) -> Any:
    """Lists the tickets of a view."""
    listing = listing_of(world, exchange, VIEWS.need(world, exchange, exchange.id))
    found = API.page(world, exchange, listing, key="tickets")
    found["tickets"] = TICKETS.decorated(world, exchange, found["tickets"])
    sideload(world, exchange, found, rows=found["tickets"])
    return found


@route("GET", "/api/v2/views/{id}/execute", "/api/v2/views/{id}/export", who="agent", limit="view")
def execute(world: Desk, exchange: Exchange) -> Any:
    """Shows a view as rows of its columns."""
    return _executed(world, exchange, VIEWS.need(world, exchange, exchange.id))


def _executed(world: Desk, exchange: Exchange, view: Any) -> Any:
    found = API.page(world, exchange, listing_of(world, exchange, view), key="rows")
    tickets = TICKETS.decorated(world, exchange, found["rows"])
    columns = view.execution.get("columns", [])
    names: dict[Any, str] = {"created": "created_at", "updated": "updated_at", "nice_id": "id", "due_date": "due_at"}
    rows: list[tb.Json] = []
    for ticket in tickets:
        brief = {name: ticket[name] for name in ("id", "subject", "status", "type", "priority", "url")}
        row: tb.Json = {"ticket_id": ticket["id"], "ticket": brief}
        for column in columns:
            name = str(names.get(column["id"], column["id"]))
            row[column["id"]] = ticket.get(name, ticket.get(f"{name}_id"))
        rows.append(row)
    shown_view = VIEWS.decorated(world, exchange, [as_shown(view)])[0]
    return {"columns": columns, "view": shown_view, **found, "rows": rows}


@route("POST", "/api/v2/views/preview", "/api/v2/views/preview/count", who="agent", writes=False)
def preview(world: Desk, exchange: Exchange) -> Any:
    """Shows the tickets of a view that does not exist."""
    take(world, exchange, f"preview {exchange.caller.id}", limit=5, period_s=60)
    given = _clean("view")(world, exchange, {"title": "Preview", **(exchange.part("view"))}, row=None)
    view = tb.TicketView(id=0, title="Preview", conditions=given["conditions"], execution=given["execution"])
    if exchange.request.path.removesuffix(".json").endswith("count"):
        return _counted(world, exchange, view)
    return _executed(world, exchange, view)


def _counted(world: Desk, exchange: Exchange, view: Any) -> tb.Json:
    """Returns the count of a view, which the first time it is asked is not known yet."""
    value = None
    if view.id in {0, *world.viewed}:
        listing = listing_of(world, exchange, view)
        value = count(world.counted(), tb.Ticket, listing.where, *listing.values)
    else:
        world.viewed = [*world.viewed[-99:], view.id]
    url, pretty = f"{exchange.base}/api/v2/views/{view.id}/count.json", "..." if value is None else str(value)
    about = {"url": url, "view_id": view.id, "value": value, "pretty": pretty, "fresh": value is not None}
    return {"view_count": about}


@route("GET", "/api/v2/views/{id}/count", who="agent")
def view_count(world: Desk, exchange: Exchange) -> Any:
    """Counts the tickets of a view."""
    return _counted(world, exchange, VIEWS.need(world, exchange, exchange.id))


@route("GET", "/api/v2/views/count_many", who="agent")
def view_counts(world: Desk, exchange: Exchange) -> Any:
    """Counts the tickets of several views."""
    views = [VIEWS.need(world, exchange, one) for one in API.many(exchange, noun="views")]
    return {"view_counts": [_counted(world, exchange, view)["view_count"] for view in views]}
