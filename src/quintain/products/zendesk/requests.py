"""The customer's side: requests, and ratings of solved tickets."""

from __future__ import annotations

from typing import Any

import msgspec

from quintain.resources.web import Exchange, Listing, ResourceSpec, Routes
from quintain.resources.web.rows import find, marks, update

from .account import Desk, Invalid
from .commit import API as VIA_API
from .commit import Update, commit
from .tables import Comment, Json, Metric, SatisfactionRating, Ticket
from .tickets import ALIVE, SORTABLE, actor, comments_shown, make, show_tickets
from .wire import API

ROUTES = Routes()
route = ROUTES.route

# -- satisfaction


@route("POST", "/api/v2/tickets/{id}/satisfaction_rating", who="end", status=200)
def rate(world: Desk, exchange: Exchange) -> Any:
    """Takes the requester's rating of a solved ticket."""
    given, ticket = exchange.part("satisfaction_rating"), find(world.db, Ticket, exchange.id)
    if ticket is None or ticket.deleted or ticket.requester_id != exchange.caller.id:
        raise API.missing() if ticket is None or ticket.deleted else API.forbidden()
    score = given.get("score")
    if score not in {"good", "bad"}:
        raise Invalid("score", f"Score: {score} is not valid")
    metric = find(world.db, Metric, ticket.id)
    if ticket.status != "solved" and not (metric and metric.reopens):
        raise Invalid("base", "Satisfaction rating: the ticket is not solved")
    old = find(world.db, SatisfactionRating, ticket.satisfaction_rating.get("id"))
    about = {name: getattr(ticket, name) for name in ("assignee_id", "group_id", "requester_id")}
    row = old or world.put(SatisfactionRating, score=score, ticket_id=ticket.id, **about)
    fields = {"score": score, "comment": given.get("comment"), "updated_at": world.now,
              "reason": given.get("reason") if score == "bad" else None}  # fmt: skip
    update(world.db, row, **fields)
    rating = {"id": row.id, **{name: fields[name] for name in ("score", "comment", "reason")}}

    def rated(made: Update) -> None:
        made.ticket.satisfaction_rating = rating

    commit(world, actor(world, exchange), ticket, wanted={}, before_triggers=rated)
    url = f"{exchange.base}/api/v2/satisfaction_ratings/{row.id}.json"
    return {"satisfaction_rating": {"url": url, **msgspec.structs.asdict(row)}}


# -- the customer's side

_REQUEST_KEYS = ("url", "id", "status", "priority", "type", "subject", "description", "organization_id", "via",
    "custom_fields",
                 "requester_id", "collaborator_ids", "email_cc_ids", "is_public", "due_at", "created_at", "updated_at",
                 "recipient", "assignee_id", "ticket_form_id", "custom_status_id", "fields")  # fmt: skip


_SETTABLE = ("subject", "comment", "priority", "type", "custom_fields", "ticket_form_id", "collaborators", "due_at",
             "recipient")  # fmt: skip


def _show_requests(world: Desk, exchange: Exchange, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    tickets = show_tickets(world, exchange, rows)
    more = {"can_be_solved_by_me": False, "solved": None, "followup_source_id": None}
    found = [{name: row[name] for name in _REQUEST_KEYS} | more for row in tickets]
    return [{**row, "solved": row["status"] in {"solved", "closed"}} for row in found]


def _scope_requests(world: Desk, exchange: Exchange) -> tuple[str, tuple[Any, ...]]:
    mine = "(requester_id = ? OR EXISTS (SELECT 1 FROM json_each(email_cc_ids) c WHERE c.value = ?))"
    me = exchange.caller.id
    statuses = [word for word in exchange.query.get("status", "").split(",") if word]
    among = f"status IN ({marks(statuses)})" if statuses else "1"
    return f"is_public = 1 AND {mine} AND {among}", (me, me, *statuses)


REQUESTS = ResourceSpec(
    name="request", row=Ticket, path="/api/v2/requests", style=API, read="end", where=ALIVE, verbs=("list", "show"),
    sort=SORTABLE,
    show=_show_requests, scope=_scope_requests,
    lists={f"/api/v2/requests/{name}": f"status {word} ('solved', 'closed')"
           for name, word in (("open", "NOT IN"), ("solved", "IN"))},
)  # fmt: skip


@route("GET", "/api/v2/requests/search", who="end")
def search_requests(world: Desk, exchange: Exchange) -> Any:
    """Searches the caller's own requests."""
    from .search import parse, where

    text, values = where(world, exchange.caller, "ticket", terms=parse(exchange.query.get("query", "")))
    return REQUESTS.answer_list(world, exchange, text, *values)


@route("POST", "/api/v2/requests", who="end", status=201)
def create_request(world: Desk, exchange: Exchange) -> Any:
    """Creates a request of the caller."""
    given = exchange.part("request")
    wanted = {name: given[name] for name in _SETTABLE if name in given}
    ticket, _ = commit(world, actor(world, exchange), None, wanted=wanted, via=VIA_API)
    exchange.headers.append(("location", f"{exchange.base}/api/v2/requests/{ticket.id}.json"))
    return {"request": REQUESTS.one(world, exchange, ticket.id)}


@route("PUT", "/api/v2/requests/{id}", who="end")
def update_request(world: Desk, exchange: Exchange) -> Any:
    """Adds a comment to a request, or marks it as solved."""
    ticket, given = REQUESTS.need(world, exchange, exchange.id), exchange.part("request")
    wanted: Json = {"comment": given["comment"]} if given.get("comment") else {}
    if given.get("solved"):
        wanted["status"] = "solved"
    if ticket.status == "closed":
        ticket, _ = make(world, actor(world, exchange), {**wanted, "via_followup_source_id": ticket.id})
    else:
        commit(world, actor(world, exchange), ticket, wanted=wanted)
    return {"request": REQUESTS.one(world, exchange, ticket.id)}


@route("GET", "/api/v2/requests/{id}/comments", who="end")
def request_comments(world: Desk, exchange: Exchange) -> Any:
    """Lists the public comments of a request."""
    ticket = REQUESTS.need(world, exchange, exchange.id)
    listing = Listing(Comment, "ticket_id = ? AND public = 1", (ticket.id,), ("created_at",))
    found = API.page(world, exchange, listing, key="comments", sortable=("created_at",))
    keys = ("id", "type", "author_id", "body", "html_body", "plain_body", "public", "attachments", "created_at")
    base = f"{exchange.base}/api/v2/requests/{ticket.id}/comments"
    found["comments"] = [
        {"url": f"{base}/{row['id']}.json", "request_id": ticket.id, **{name: row[name] for name in keys}}
        for row in comments_shown(exchange, found["comments"])
    ]
    return found


REQUESTS.mount(ROUTES)
