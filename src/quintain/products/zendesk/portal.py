"""Pages of the customer: requests and their ratings."""

from __future__ import annotations

from typing import Any

from quintain.resources.web import Exchange, Routes

from .account import Desk, record
from .screens import (
    ROWS,
    STATUSES,
    Field,
    Given,
    Table,
    api,
    around,
    filled,
    given,
    here,
    one_of,
    see,
    show,
    tried,
    when,
)
from .workspace import comment_of, custom, custom_fields, shown_comment, wanted_of

ROUTES = Routes()
route = ROUTES.route
_LISTS = {"": "All requests", "open,new,pending,hold": "Open requests", "solved,closed": "Solved requests"}
_COMMENT = Field("comment", "Description", kind="area", required=True)
_FILE = Field("file", "Attachment", kind="file")


@route("GET", "/hc", "/hc/requests", who="end")
def requests(world: Desk, exchange: Exchange) -> Any:
    """Lists the caller's requests."""
    status = exchange.query.get("status", "")
    query = {"sort_by": "updated_at", "sort_order": "desc", "status": status, "page": exchange.query.get("page", "1")}
    found = api(world, exchange, "GET", path="requests", per_page=ROWS, **query)
    rows: list[tuple[Any, list[Any]]] = [
        (row["id"], [f"#{row['id']}", (row["subject"] or "(no subject)", f"/hc/requests/{row['id']}"), when(row["created_at"]),
                     when(row["updated_at"]), STATUSES[row["status"]]])
        for row in found["requests"]
    ]  # fmt: skip
    heads = [(title, "") for title in ("Id", "Subject", "Created", "Last activity", "Status")]
    links = [(here(exchange, status=one, page=""), title, "") for one, title in _LISTS.items()]
    table = Table("My requests", heads, rows, around(exchange, found))
    return show(world, exchange, "list", title="My requests", tables=[table], links=links)


def _fields(world: Desk) -> list[Field]:
    more = [custom(one, None)._replace(label=one.title_in_portal or one.title, required=one.required_in_portal)
            for one in custom_fields(world, "visible_in_portal = 1 AND editable_in_portal = 1")]  # fmt: skip
    return [Field("subject", "Subject", required=True), *more]


@route("GET", "/hc/requests/new", who="end")
def new_request(world: Desk, exchange: Exchange) -> Any:
    """Shows the form of a new request."""
    return _new(world, exchange, given(exchange), errors={})


def _new(world: Desk, exchange: Exchange, sent: Given, *, errors: dict[str, str]) -> Any:
    fields = [*filled([*_fields(world), _COMMENT], sent), _FILE]
    return show(world, exchange, "edit", title="Submit a request", fields=fields, files=True, errors=errors,
                buttons=[("", "", "Submit")])  # fmt: skip


@route("POST", "/hc/requests/new", who="end")
def create(world: Desk, exchange: Exchange) -> Any:
    """Creates a request."""
    sent, made = given(exchange), dict[str, Any]()

    def act() -> None:
        wanted = wanted_of(_fields(world), sent, {}) | comment_of(world, exchange, sent)
        made.update(api(world, exchange, "POST", path="requests", body={"request": wanted})["request"])

    if errors := tried(world, exchange, act):
        return _new(world, exchange, sent, errors=errors)
    return see(f"/hc/requests/{made['id']}", saved="1")


@route("GET", "/hc/requests/{id}", who="end")
def request(world: Desk, exchange: Exchange) -> Any:
    """Shows a request with its public comments."""
    return _show(world, exchange, sent={}, errors={})


def _show(world: Desk, exchange: Exchange, *, sent: Given, errors: dict[str, str]) -> Any:
    found = api(world, exchange, "GET", path=f"requests/{exchange.id}")["request"]
    said = api(world, exchange, "GET", path=f"requests/{exchange.id}/comments")["comments"]
    people = {one: user.name for one in {row["author_id"] for row in said} if (user := world.user(one)) is not None}
    buttons = [("", "", "Submit")] + ([] if found["solved"] else [("solved", "1", "Mark as solved")])
    links = [("/hc/requests", "My requests", "")]
    if found["status"] == "solved":
        links.append((f"/hc/satisfaction/{exchange.id}", "Rate the support", ""))
    fields = [*filled([_COMMENT._replace(label="Add to the conversation", required=False)], sent), _FILE]
    return show(world, exchange, "edit", title=f"#{found['id']} {found['subject'] or ''}", form="Reply", fields=fields,
                files=True, buttons=buttons, errors=errors, comments=[shown_comment(row, people) for row in said], links=links,
                notice=f"Status: {STATUSES[found['status']]}")  # fmt: skip


@route("POST", "/hc/requests/{id}", who="end")
def reply(world: Desk, exchange: Exchange) -> Any:
    """Adds a comment to a request, or marks it as solved; the reply to a closed one becomes a new request."""
    sent, made = given(exchange), dict[str, Any]()

    def act() -> None:
        body = {**comment_of(world, exchange, sent), **({"solved": True} if one_of(sent, "solved") else {})}
        made.update(api(world, exchange, "PUT", path=f"requests/{exchange.id}", body={"request": body})["request"])

    if errors := tried(world, exchange, act):
        return _show(world, exchange, sent=sent, errors=errors)
    return see(f"/hc/requests/{made['id']}", saved="1")


@route("GET", "/hc/satisfaction/{id}", who="end")
def survey(world: Desk, exchange: Exchange) -> Any:
    """Shows the survey of a request."""
    return _survey(world, exchange, given(exchange), errors={})


def _survey(world: Desk, exchange: Exchange, sent: Given, *, errors: dict[str, str]) -> Any:
    found = api(world, exchange, "GET", path=f"requests/{exchange.id}")["request"]
    fields = filled([Field("comment", "Comment", kind="area"), Field("reason", "Reason")], sent)
    return show(world, exchange, "edit", title=f"How would you rate the support for #{found['id']}?", fields=fields,
                buttons=[("score", "good", "Good, I'm satisfied"), ("score", "bad", "Bad, I'm unsatisfied")], errors=errors)  # fmt: skip


@route("POST", "/hc/satisfaction/{id}", who="end")
def rate(world: Desk, exchange: Exchange) -> Any:
    """Takes a rating."""
    sent = given(exchange)
    body = {"score": one_of(sent, "score")} | {n: text for n in ("comment", "reason") if (text := one_of(sent, n))}
    path = f"tickets/{exchange.id}/satisfaction_rating"
    act = {"satisfaction_rating": record(body)}
    if errors := tried(world, exchange, lambda: api(world, exchange, "POST", path=path, body=act)):
        return _survey(world, exchange, sent, errors=errors)
    return see(f"/hc/requests/{exchange.id}", saved="1")
