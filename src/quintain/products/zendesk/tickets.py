"""Tickets, their comments, audits, metrics, merges, and the customer's requests."""

from __future__ import annotations

import operator
from typing import Any

import msgspec

from quintain.resources.database.standing import known
from quintain.resources.web import Exchange, Listing, ResourceSpec, Routes
from quintain.resources.web.rows import as_shown, count, find, marks, select, shown, update
from quintain.resources.web.world import moment

from . import tables as tb
from .account import Desk, Invalid, channel, listed, whole_number
from .commit import Update, commit
from .people import GROUPS, ORGANIZATIONS, USERS
from .wire import API, Caller, only, take

ROUTES = Routes()
route = ROUTES.route
ALIVE = "deleted = 0"
SORTABLE = ("updated_at", "id", "status")
_SCOPES = {
    "groups": "group_id IN (SELECT group_id FROM zd_group_memberships m WHERE m.user_id = ?)",
    "organization": "organization_id = (SELECT organization_id FROM zd_users u WHERE u.id = ?)",
    "assigned": "assignee_id = ?",
    "requested": "requester_id = ?",
}


def actor(world: Desk, exchange: Exchange) -> tb.User:
    """Returns the caller as a user."""
    found = world.user(exchange.caller.id)
    assert found is not None, "a caller is a user"
    return found


# -- as answers show them


def show_tickets(world: Desk, exchange: Exchange, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sql = "SELECT id FROM zd_ticket_fields WHERE active = 1 AND removable = 1 ORDER BY position, id"
    fields = [(number, str(number)) for (number,) in known(world.db, sql)]
    return [_ticket(row, fields) for row in rows]


_KEYS = (
    "url", "id", "external_id", "via", "created_at", "updated_at", "generated_timestamp", "type", "subject",
    "raw_subject",
    "description", "priority", "status", "recipient", "requester_id", "submitter_id", "assignee_id", "organization_id",
    "group_id", "collaborator_ids", "follower_ids", "email_cc_ids", "forum_topic_id", "problem_id", "has_incidents",
    "is_public", "due_at", "tags", "custom_fields", "satisfaction_rating", "sharing_agreement_ids", "custom_status_id",
    "fields", "followup_ids", "ticket_form_id", "brand_id", "allow_channelback", "allow_attachments",
    "from_messaging_channel",
)  # fmt: skip
_DATES = ("assignee_updated_at", "requester_updated_at", "status_updated_at", "initially_assigned_at", "assigned_at",
          "solved_at", "latest_comment_added_at")  # fmt: skip
_values = operator.itemgetter(*_KEYS)
_CONSTANT: dict[str, Any] = {"forum_topic_id": None, "sharing_agreement_ids": [], "allow_channelback": False,
             "from_messaging_channel": False}  # fmt: skip


def _ticket(row: dict[str, Any], fields: list[tuple[int, str]]) -> dict[str, Any]:
    custom: dict[str, Any] = msgspec.json.decode(row["custom"]) if fields else {}
    row["custom_fields"] = row["fields"] = [{"id": number, "value": custom.get(key)} for number, key in fields]
    row["raw_subject"] = row["subject"]
    people = [msgspec.json.decode(row[name]) for name in ("follower_ids", "email_cc_ids") if bytes(row[name]) != b"[]"]
    row["collaborator_ids"] = sorted({one for some in people for one in some})
    row.update(_CONSTANT)
    return dict(zip(_KEYS, _values(row), strict=True))


def _scope(world: Desk, exchange: Exchange) -> tuple[str, tuple[Any, ...]]:
    caller: Caller = exchange.caller
    where, values = "1", tuple[Any, ...]()
    if caller.restriction in _SCOPES:
        where, values = _SCOPES[caller.restriction], (caller.id,)
    if "external_id" in exchange.query and not exchange.params:
        return f"{where} AND external_id = ?", (*values, exchange.query["external_id"])
    return where, values


class TicketSpec(ResourceSpec):
    """Lists of tickets with their sideloads, and writes that follow the rules of tickets."""

    def create(self, world: Any, exchange: Any, fields: dict[str, Any]) -> tb.Ticket:
        """Creates a ticket."""
        return make(world, actor(world, exchange), fields)[0]

    def update(self, world: Any, exchange: Any, row: Any, *, fields: dict[str, Any]) -> None:
        """Changes a ticket."""
        commit(world, actor(world, exchange), row, wanted=fields)

    def remove(self, world: Any, exchange: Any, row: Any) -> None:
        """Deletes a ticket; it can be restored."""
        update(world.db, row, deleted=True, deleted_at=world.now, deleted_by=exchange.caller.id)
        world.cancel(f"sla {row.id}")

    def answer_list(self, world: Any, exchange: Any, where: str = "1", *values: Any) -> Any:
        """Returns a page of tickets, and what `include` names."""
        found = super().answer_list(world, exchange, where, *values)
        sideload(world, exchange, found, rows=found["tickets"])
        return found


TICKETS = TicketSpec(
    name="ticket", row=tb.Ticket, path="/api/v2/tickets", style=API, write="agent", where=ALIVE, order=("id",),
    sort=SORTABLE,
    verbs=("list", "count", "show_many", "create_many", "update_many", "destroy_many"), show=show_tickets,
    scope=_scope,
    lists={"/api/v2/problems": "type = 'problem'", "/api/v2/organizations/{id}/tickets": "organization_id = ?",
           "/api/v2/users/{id}/tickets/requested": "requester_id = ?",
           "/api/v2/users/{id}/tickets/assigned": "assignee_id = ?",
           "/api/v2/users/{id}/tickets/ccd": "EXISTS (SELECT 1 FROM json_each(email_cc_ids) c WHERE c.value = ?)"},
)  # fmt: skip


def sideload(world: Desk, exchange: Exchange, body: dict[str, Any], *, rows: list[dict[str, Any]]) -> None:
    """Adds what `include` names: other records at the top, and measurements in each ticket."""
    wanted = {name.strip() for name in exchange.query.get("include", "").split(",")}
    kinds = (("users", USERS, ("requester_id", "submitter_id", "assignee_id")), ("groups", GROUPS, ("group_id",)),
             ("organizations", ORGANIZATIONS, ("organization_id",)))  # fmt: skip
    for name, spec, columns in kinds:
        if name in wanted:
            ids = {row[column] for row in rows for column in columns} - {None}
            found = shown(world.db, spec.row, f"id IN ({marks(ids)}) ORDER BY id", *sorted(ids))
            body[name] = spec.decorated(world, exchange, found)
    for row in rows:
        metric = metrics_of(world, exchange, "id = ?", row["id"])[0] if wanted & {"metric_sets", "dates"} else {}
        if "metric_sets" in wanted:
            row["metric_set"] = metric
        if "slas" in wanted:
            row["slas"] = {"policy_metrics": _policy_metrics(world, row["id"])}
        if "comment_count" in wanted:
            row["comment_count"] = count(world.db, tb.Comment, "ticket_id = ?", row["id"])
        if "incident_counts" in wanted:
            row["incident_count"] = count(world.db, tb.Ticket, "problem_id = ? AND deleted = 0", row["id"])
        if "dates" in wanted:
            row["dates"] = {name: metric[name] for name in _DATES}


def _policy_metrics(world: Desk, id: int) -> list[tb.Json]:
    metric = find(world.db, tb.Metric, id)
    found: list[tb.Json] = []
    for clock in metric.clocks if metric else []:
        if clock.target is None or clock.state == "done":
            continue
        left = int(((clock.breach_at or world.clock.now) - world.clock.now) // 60)
        unit, size = ("days", 1440) if abs(left) >= 2880 else ("hours", 60) if abs(left) >= 120 else ("minutes", 1)
        at = moment(clock.breach_at) if clock.breach_at is not None else None
        found.append({"breach_at": at, "stage": clock.state, "metric": clock.metric, unit: left // size})
    return found


def metrics_of(world: Desk, exchange: Exchange, where: str, *values: Any) -> list[dict[str, Any]]:
    """Returns measurements as answers show them."""
    rows = shown(world.db, tb.Metric, where, *values)
    return [{"url": f"{exchange.base}/api/v2/ticket_metrics/{row['id']}.json", **row} for row in rows]


def comments_shown(exchange: Exchange, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns comments with the addresses of their attachments."""
    for row in rows:
        row["attachments"] = based(exchange, row["attachments"])
    return rows


def based(exchange: Exchange, raw: msgspec.Raw) -> Any:
    """Returns JSON whose addresses begin with the host of the request."""
    text = bytes(raw)
    return msgspec.Raw(text.replace(b"{base}", exchange.base.encode())) if b"{base}" in text else raw


def audit_shown(
    world: Desk, exchange: Exchange, audit: tb.Audit, *, comments: dict[int, dict[str, Any]] | None = None
) -> tb.Json:
    """Returns an audit whose comments have their texts."""
    if comments is None:
        ids = [one["id"] for one in audit.events if one["type"] == "Comment"]
        rows = shown(world.db, tb.Comment, f"id IN ({marks(ids)})", *ids) if ids else []
        comments = {row["id"]: row for row in comments_shown(exchange, rows)}
    hidden = ("via", "created_at", "metadata")
    events = [
        {name: value for name, value in comments[one["id"]].items() if name not in hidden}
        if one["type"] == "Comment" and one["id"] in comments else one
        for one in audit.events
    ]  # fmt: skip
    return {
        "id": audit.id, "ticket_id": audit.ticket_id, "created_at": audit.created_at, "author_id": audit.author_id,
        "metadata": audit.metadata, "events": events, "via": audit.via,
    }  # fmt: skip


def need(world: Desk, exchange: Exchange, id: int | None = None) -> tb.Ticket:
    """Returns the ticket of the path, if it is one that the caller may see."""
    found: tb.Ticket = TICKETS.need(world, exchange, exchange.id if id is None else id)
    return found


def result(world: Desk, exchange: Exchange, made: Update) -> dict[str, Any]:
    """Returns the answer to a write."""
    rows = comments_shown(exchange, [] if made.comment is None else [as_shown(made.comment)])
    audit = audit_shown(world, exchange, made.audit, comments={row["id"]: row for row in rows})
    return {"ticket": TICKETS.of(world, exchange, made.ticket), "audit": audit}


# -- single tickets


@route("GET", "/api/v2/tickets/{id}", who="agent")
def show(world: Desk, exchange: Exchange) -> Any:
    """Shows a ticket."""
    if exchange.caller.restriction:
        need(world, exchange)
    body = {"ticket": TICKETS.one(world, exchange, exchange.id)}
    if "include" in exchange.query:
        sideload(world, exchange, body, rows=[body["ticket"]])
    return body


@route("POST", "/api/v2/tickets", who="agent", status=201)
def create(world: Desk, exchange: Exchange) -> Any:
    """Creates a ticket."""
    ticket, made = make(world, actor(world, exchange), exchange.part("ticket"))
    exchange.headers.append(("location", f"{exchange.base}/api/v2/tickets/{ticket.id}.json"))
    return result(world, exchange, made)


def make(world: Desk, who: tb.User, wanted: tb.Json) -> tuple[tb.Ticket, Update]:
    """Creates a ticket, which may follow up a closed one."""
    source = find(world.db, tb.Ticket, whole_number(wanted.get("via_followup_source_id")))
    if source is None:
        return commit(world, who, None, wanted=wanted)
    if source.status != "closed":
        raise Invalid("base", "Follow-up: the source ticket must be closed")
    origin = channel("api", "follow_up", ticket_id=source.id, subject=source.subject, channel="api")
    inherited = {"subject": source.subject, "requester_id": source.requester_id, "tags": source.tags}
    ticket, made = commit(world, who, None, wanted={**inherited, **wanted}, via=origin)
    update(world.db, source, followup_ids=[*source.followup_ids, ticket.id])
    return ticket, made


@route("PUT", "/api/v2/tickets/{id}", who="agent")
def change(world: Desk, exchange: Exchange) -> Any:
    """Changes a ticket."""
    caller = exchange.caller
    take(world, exchange, "ticket updates", limit=100, period_s=60)
    take(world, exchange, f"ticket {exchange.id} {caller.id}", limit=30, period_s=600)
    wanted, before = exchange.part("ticket"), need(world, exchange)
    _, made = commit(world, actor(world, exchange), before, wanted=wanted)
    return result(world, exchange, made)


@route("DELETE", "/api/v2/tickets/{id}", who="agent", status=204)
def delete(world: Desk, exchange: Exchange) -> None:
    """Deletes a ticket."""
    TICKETS.remove(world, exchange, need(world, exchange))


@route("GET", "/api/v2/deleted_tickets", who="agent")
def deleted(world: Desk, exchange: Exchange) -> Any:
    """Lists deleted tickets."""
    found = API.page(world, exchange, Listing(tb.Ticket, "deleted = 1"), key="rows", sortable=("id",))
    ids = [row["id"] for row in found.pop("rows")]
    sql = f"""SELECT t.id, t.subject, t.deleted_at, u.id, u.name FROM zd_tickets t LEFT JOIN zd_users u
        ON u.id = t.deleted_by WHERE t.id IN ({marks(ids)}) ORDER BY t.id"""
    rows = [{"id": number, "subject": subject, "deleted_at": at, "actor": {"id": by, "name": name},
             "previous_state": "open"} for number, subject, at, by, name in world.db.execute(sql, *ids)]  # fmt: skip
    return {"deleted_tickets": rows, **found}


@route("PUT", "/api/v2/deleted_tickets/{id}/restore", who="agent")
def restore(world: Desk, exchange: Exchange) -> Any:
    """Restores a deleted ticket."""
    found = find(world.db, tb.Ticket, exchange.id)
    if found is None or not found.deleted:
        raise API.missing()
    update(world.db, found, deleted=False, deleted_at=None, deleted_by=None)
    return {}


@route("GET", "/api/v2/tickets/{id}/comments", who="agent")
def comments(world: Desk, exchange: Exchange) -> Any:
    """Lists the comments of a ticket, oldest first."""
    ticket = need(world, exchange)
    down = exchange.query.get("sort_order", exchange.query.get("sort", "")).lower() in {"desc", "-created_at"}
    listing = Listing(tb.Comment, "ticket_id = ?", (ticket.id,), ("created_at",), descending=down)
    found = API.page(world, exchange, listing, key="comments", sortable=("created_at",))
    comments_shown(exchange, found["comments"])
    if "users" in exchange.query.get("include", ""):
        ids = {row["author_id"] for row in found["comments"]}
        rows = shown(world.db, tb.User, f"id IN ({marks(ids)}) ORDER BY id", *sorted(ids))
        found["users"] = USERS.decorated(world, exchange, rows)
    return found


@route("GET", "/api/v2/tickets/{id}/comments/count", who="agent")
def count_comments(world: Desk, exchange: Exchange) -> Any:
    """Counts the comments of a ticket."""
    found = count(world.db, tb.Comment, "ticket_id = ?", need(world, exchange).id)
    return {"count": {"value": found, "refreshed_at": world.now}}


@route("PUT", "/api/v2/tickets/{id}/comments/{id}/make_private", who="agent")
def make_private(world: Desk, exchange: Exchange) -> Any:
    """Makes a comment private."""
    found = only(world.db, tb.Comment, "id = ? AND ticket_id = ?", int(exchange.params[1]), need(world, exchange).id)
    update(world.db, found, public=False)
    return {}


@route("GET", "/api/v2/tickets/{id}/audits", who="agent")
def audits(world: Desk, exchange: Exchange) -> Any:
    """Lists the audits of a ticket, oldest first."""
    ticket = need(world, exchange)
    listing = Listing(tb.Audit, "ticket_id = ?", (ticket.id,), ("id",))
    found = API.page(world, exchange, listing, key="audits", sortable=("id",))
    ids = [row["id"] for row in found["audits"]]
    rows = comments_shown(exchange, shown(world.db, tb.Comment, "ticket_id = ?", ticket.id))
    texts = {row["id"]: row for row in rows}
    by_id = {one.id: one for one in select(world.db, tb.Audit, f"id IN ({marks(ids)})", *ids)}
    found["audits"] = [audit_shown(world, exchange, by_id[one], comments=texts) for one in ids]
    return found


@route("GET", "/api/v2/tickets/{id}/audits/{id}", who="agent")
def show_audit(world: Desk, exchange: Exchange) -> Any:
    """Shows an audit."""
    found = only(world.db, tb.Audit, "id = ? AND ticket_id = ?", int(exchange.params[1]), need(world, exchange).id)
    return {"audit": audit_shown(world, exchange, found)}


@route("GET", "/api/v2/tickets/{id}/metrics", who="agent")
def show_metrics(world: Desk, exchange: Exchange) -> Any:
    """Shows the measurements of a ticket."""
    return {"ticket_metric": metrics_of(world, exchange, "id = ?", need(world, exchange).id)[0]}


def _people(*names: str) -> Any:
    def people(world: Desk, exchange: Exchange) -> Any:
        ticket = need(world, exchange)
        ids = [one for name in names for one in getattr(ticket, name)]
        return USERS.answer_list(world, exchange, f"id IN ({marks(ids)})", *ids)

    return people


for _path, *_columns in (("collaborators", "email_cc_ids", "follower_ids"), ("email_ccs", "email_cc_ids"),
                         ("followers", "follower_ids")):  # fmt: skip
    ROUTES.add("GET", f"/api/v2/tickets/{{id}}/{_path}", _people(*_columns), who="agent")


@route("GET", "/api/v2/tickets/{id}/incidents", who="agent")
def incidents(world: Desk, exchange: Exchange) -> Any:
    """Lists the incidents of a problem."""
    return TICKETS.answer_list(world, exchange, "problem_id = ?", need(world, exchange).id)


@route("POST", "/api/v2/problems/autocomplete", who="agent", writes=False)
def autocomplete_problems(world: Desk, exchange: Exchange) -> Any:
    """Lists the problems whose subject holds a text."""
    text = str(exchange.query.get("text") or exchange.json.get("text") or "")
    return TICKETS.answer_list(world, exchange, "type = 'problem' AND instr(lower(subject), lower(?)) > 0", text)


@route("GET", "/api/v2/tickets/{id}/related", who="agent")
def related(world: Desk, exchange: Exchange) -> Any:
    """Shows what is linked with a ticket."""
    ticket = need(world, exchange)
    number = count(world.db, tb.Ticket, "problem_id = ? AND deleted = 0", ticket.id)
    source = ticket.via.get("source", {})
    from_ = [str(source["from"]["ticket_id"])] if source.get("rel") == "follow_up" else []
    return {"ticket_related": {"url": f"{exchange.base}/api/v2/tickets/{ticket.id}/related.json", "topic_id": None,
                               "jira_issue_ids": [], "followup_source_ids": from_, "from_archive": False,
                               "incidents": number, "twitter": None}}  # fmt: skip


@route("GET", "/api/v2/tickets/recent", who="agent")
def recent(world: Desk, exchange: Exchange) -> Any:
    """Lists the tickets that the caller wrote to last."""
    sql = "SELECT ticket_id FROM zd_audits WHERE author_id = ? GROUP BY ticket_id ORDER BY max(id) DESC LIMIT 5"
    ids = [one for (one,) in world.db.execute(sql, exchange.caller.id)]
    return TICKETS.answer_list(world, exchange, f"id IN ({marks(ids)})", *ids)


# -- tags


@route("GET", "/api/v2/tickets/{id}/tags", who="agent")
def show_tags(world: Desk, exchange: Exchange) -> Any:
    """Shows the tags of a ticket."""
    return {"tags": need(world, exchange).tags}


def _retag(name: str) -> Any:
    def retag(world: Desk, exchange: Exchange) -> Any:
        ticket = need(world, exchange)
        TICKETS.update(world, exchange, ticket, fields={name: exchange.json.get("tags") or []})
        return {"tags": ticket.tags}

    return retag


for _method, _name in (("POST", "tags"), ("PUT", "additional_tags"), ("DELETE", "remove_tags")):
    ROUTES.add(_method, "/api/v2/tickets/{id}/tags", _retag(_name), who="agent")


@route("GET", "/api/v2/tags", who="agent")
def tags(world: Desk, exchange: Exchange) -> Any:
    """Lists tags by the number of their tickets."""
    tables = "zd_tickets, json_each(tags) t"
    sql = f"SELECT t.value, count(*) FROM {tables} WHERE deleted = 0 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 100"
    found = [{"name": name, "count": number} for name, number in world.db.execute(sql)]
    return {"tags": found, "next_page": None, "previous_page": None, "count": len(found)}


@route("GET", "/api/v2/autocomplete/tags", who="agent")
def autocomplete_tags(world: Desk, exchange: Exchange) -> Any:
    """Lists the tags that begin with a text."""
    tables, begins = "zd_tickets, json_each(tags) t", "substr(t.value, 1, ?) = ?"
    sql = f"SELECT DISTINCT t.value FROM {tables} WHERE {begins} ORDER BY 1 LIMIT 20"
    text = exchange.query.get("name", "").lower()
    return {"tags": [name for (name,) in world.db.execute(sql, len(text), text)]}


# -- merge and spam


@route("POST", "/api/v2/tickets/{id}/merge", who="agent")
def merge(world: Desk, exchange: Exchange) -> Any:
    """Starts the job that merges tickets into this one."""
    target, given = need(world, exchange), exchange.json
    ids = listed(given.get("ids"))
    if not ids or not all(isinstance(one, int) for one in ids):
        raise API.attribute("ids must be a list of ticket ids")
    if target.status in {"solved", "closed"}:
        raise Invalid("status", "Status: a solved or closed ticket can't be a merge target")
    API.check_several(exchange, len(ids), "tickets")
    items = [{**given, "target": target.id, "ids": None, "id": one} for one in ids]
    return API.job(world, exchange, "merge tickets", items=items)


def merge_one(world: Desk, exchange: Exchange, source: tb.Ticket, *, item: tb.Json) -> None:
    """Merges one ticket into another."""
    who, target = actor(world, exchange), find(world.db, tb.Ticket, item["target"])
    if target is None or source.status == "closed" or source.id == target.id:
        raise Invalid("base", f"Ticket {item['id']} cannot be merged")
    private = not (source.is_public and target.is_public)
    public = [bool(item.get(f"{name}_comment_is_public")) and not private for name in ("target", "source")]
    said = select(world.db, tb.Comment, "ticket_id = ? ORDER BY id", source.id)
    files = [file for one in said for file in one.attachments]
    usual = f'Request #{source.id} "{source.subject}" was closed and merged into this request.'
    words = item.get("target_comment") or usual
    wanted: tb.Json = {"comment": {"body": words, "public": public[0]}}
    if public[0] and source.requester_id not in {target.requester_id, *target.email_cc_ids}:
        wanted["email_cc_ids"] = [*target.email_cc_ids, source.requester_id]
    via = channel("web", "merge", ticket_id=source.id, subject=source.subject)
    _, made = commit(world, who, target, wanted=wanted, via=via)
    if files:
        update(world.db, only(world.db, tb.Comment, "audit_id = ?", made.audit.id), attachments=files)
    usual = f'This request was closed and merged into request #{target.id} "{target.subject}".'
    words = item.get("source_comment") or usual
    via = channel("web", "merge", ticket_id=target.id, subject=target.subject)
    more = {"assignee_id": source.assignee_id or target.assignee_id or who.id, "status": "closed",
            "additional_tags": ["closed_by_merge"], "comment": {"body": words, "public": public[1]}}  # fmt: skip
    commit(world, who, source, wanted=more, via=via)


@route("PUT", "/api/v2/tickets/{id}/mark_as_spam", who="agent")
def mark_as_spam(world: Desk, exchange: Exchange) -> Any:
    """Deletes a ticket and suspends its requester."""
    ticket = need(world, exchange)
    requester = world.user(ticket.requester_id)
    if requester is not None and requester.role == "end-user":
        update(world.db, requester, suspended=True, updated_at=world.now)
    TICKETS.remove(world, exchange, ticket)
    return {}


TICKETS.mount(ROUTES)
