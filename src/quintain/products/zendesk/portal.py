"""Pages of the customer: requests and their ratings."""

from __future__ import annotations

from typing import Any

from quintain.resources.web import Exchange, Routes

from . import screens as ui
from .account import Desk
from .screens import Faults, FormField, PageTable, text_of
from .workspace import comment_of, custom, custom_fields, shown_comment, wanted_of

ROUTES = Routes()
route = ROUTES.route
_LISTS = {"": "All requests", "new,open,pending,hold": "Open requests", "solved,closed": "Solved requests"}
_FILE = FormField("file", "Attachment", kind="file")


@route("GET", "/hc", "/hc/requests", who="end")
def requests(world: Desk, exchange: Exchange) -> Any:
    """Lists the caller's requests."""
    query = {name: exchange.query.get(name, default) for name, default in (("status", ""), ("page", "1"))}
    query |= {"sort_by": "updated_at", "sort_order": "desc"}
    found = ui.api(world, exchange, "GET requests", per_page=world.look.rows, **query)
    rows: list[Any] = [
        (row["id"], [f"#{row['id']}", (row["subject"] or "(no subject)", f"/hc/requests/{row['id']}"),
                     ui.when(row["created_at"]), ui.when(row["updated_at"]), ui.STATUSES[row["status"]]])
        for row in found["requests"]
    ]  # fmt: skip
    heads = [(title, "") for title in ("Id", "Subject", "Created", "Last activity", "Status")]
    links = [(ui.here(exchange, status=one, page=""), title, "") for one, title in _LISTS.items()]
    table = PageTable("My requests", heads, rows, ui.around(exchange, found))
    return ui.show(world, exchange, "list", title="My requests", tables=[table], links=links)


def _fields(world: Desk) -> list[FormField]:
    own = [custom(one, None)._replace(label=one.title_in_portal or one.title, required=one.required_in_portal)
           for one in custom_fields(world, "visible_in_portal = 1 AND editable_in_portal = 1")]  # fmt: skip
    return [FormField("subject", "Subject", required=True), *own]


@route("GET", "/hc/requests/new", who="end")
def new_request(world: Desk, exchange: Exchange, errors: Faults | None = None) -> Any:
    """Shows the form of a new request."""
    comment = FormField("comment", "Description", kind="area", required=True)
    fields = [*ui.filled([*_fields(world), comment], ui.sent_by(exchange)), _FILE]
    return ui.show(world, exchange, "edit", title="Submit a request", fields=fields, files=True, errors=errors,
                   buttons=[("", "", "Submit")])  # fmt: skip


@route("POST", "/hc/requests/new", who="end")
def create(world: Desk, exchange: Exchange) -> Any:
    """Creates a request."""
    sent = ui.sent_by(exchange)

    def act() -> Any:
        wanted = wanted_of(_fields(world), sent) | comment_of(world, exchange, sent)
        return ui.api(world, exchange, "POST requests", body={"request": wanted})["request"]

    errors, made = ui.tried(world, exchange, act)
    return new_request(world, exchange, errors) if errors else ui.see(f"/hc/requests/{made['id']}", saved="1")


@route("GET", "/hc/requests/{id}", who="end")
def request(world: Desk, exchange: Exchange, errors: Faults | None = None) -> Any:
    """Shows a request with its public comments."""
    found = ui.api(world, exchange, f"GET requests/{exchange.params[0]}")["request"]
    said = ui.api(world, exchange, f"GET requests/{exchange.params[0]}/comments")["comments"]
    people = {one: user.name for one in {row["author_id"] for row in said} if (user := world.user(one)) is not None}
    links = [("/hc/requests", "My requests", "")]
    links += [(f"/hc/satisfaction/{exchange.params[0]}", "Rate the support", "")] if found["status"] == "solved" else []
    fields = [*ui.filled([FormField("comment", "Add to the conversation", kind="area")], ui.sent_by(exchange)), _FILE]
    return ui.show(
        world, exchange, "edit", title=f"#{found['id']} {found['subject'] or ''}", form="Reply", fields=fields,
        buttons=[("", "", "Submit"), *[("solved", "1", "Mark as solved")] * (not found["solved"])], errors=errors,
        comments=[shown_comment(row, people) for row in said], links=links, files=True,
        notice=f"Status: {ui.STATUSES[found['status']]}",
    )  # fmt: skip


@route("POST", "/hc/requests/{id}", who="end")
def reply(world: Desk, exchange: Exchange) -> Any:
    """Adds a comment to a request, or marks it as solved; the reply to a closed one becomes a new request."""
    sent = ui.sent_by(exchange)

    def act() -> Any:
        body = comment_of(world, exchange, sent) | ({"solved": True} if text_of(sent, "solved") else {})
        return ui.api(world, exchange, f"PUT requests/{exchange.params[0]}", body={"request": body})["request"]

    errors, made = ui.tried(world, exchange, act)
    return request(world, exchange, errors) if errors else ui.see(f"/hc/requests/{made['id']}", saved="1")


@route("GET", "/hc/satisfaction/{id}", who="end")
def survey(world: Desk, exchange: Exchange, errors: Faults | None = None) -> Any:
    """Shows the survey of a request."""
    found = ui.api(world, exchange, f"GET requests/{exchange.params[0]}")["request"]
    blank = [FormField("comment", "Comment", kind="area"), FormField("reason", "Reason")]
    fields = ui.filled(blank, ui.sent_by(exchange))
    buttons = [("score", "good", "Good, I'm satisfied"), ("score", "bad", "Bad, I'm unsatisfied")]
    title = f"How would you rate the support for #{found['id']}?"
    return ui.show(world, exchange, "edit", title=title, fields=fields, buttons=buttons, errors=errors)


@route("POST", "/hc/satisfaction/{id}", who="end")
def rate(world: Desk, exchange: Exchange) -> Any:
    """Takes a rating."""
    sent = ui.sent_by(exchange)
    body = {name: text for name in ("score", "comment", "reason") if (text := text_of(sent, name))}
    call = f"POST tickets/{exchange.params[0]}/satisfaction_rating"
    errors, _ = ui.tried(world, exchange, lambda: ui.api(world, exchange, call, body={"satisfaction_rating": body}))
    return survey(world, exchange, errors) if errors else ui.see(f"/hc/requests/{exchange.params[0]}", saved="1")
