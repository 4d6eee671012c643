"""S: the account as a world, with tools made from the product's routes."""

from __future__ import annotations

import base64
import functools
from typing import Any, ClassVar, Literal, cast

import msgspec
import xxhash

import quintain as qn
from quintain.products import zendesk
from quintain.products.zendesk import tables as tb
from quintain.resources.web import HttpRequest, HttpResponse, request, route_tools
from quintain.resources.web.browser import Browser, BrowserTools
from quintain.resources.web.rates import Forced
from quintain.resources.web.rows import select

from .company import DAWN, SIZES, base
from .words import MEASURED, Shares

_V2 = "/api/v2"
TOOLS: dict[str, tuple[str, ...]] = {
    "search": ("GET", f"{_V2}/search"),
    "show_ticket": ("GET", f"{_V2}/tickets/{{id}}"),
    "show_tickets": ("GET", f"{_V2}/tickets/show_many", "Shows up to 100 tickets, by ids=1,2,3."),
    "list_comments": ("GET", f"{_V2}/tickets/{{id}}/comments"),
    "create_ticket": ("POST", f"{_V2}/tickets"),
    "update_ticket": ("PUT", f"{_V2}/tickets/{{id}}"),
    "update_tickets": ("PUT", f"{_V2}/tickets/update_many",
                       "Starts a job that changes up to 100 tickets, by ids=1,2,3, in the same way."),
    "merge_tickets": ("POST", f"{_V2}/tickets/{{id}}/merge"),
    "mark_as_spam": ("PUT", f"{_V2}/tickets/{{id}}/mark_as_spam"),
    "show_job": ("GET", f"{_V2}/job_statuses/{{job}}"),
    "show_user": ("GET", f"{_V2}/users/{{id}}", "Shows a user."),
    "search_users": ("GET", f"{_V2}/users/search"),
    "update_user": ("PUT", f"{_V2}/users/{{id}}", "Changes a user."),
    "show_organization": ("GET", f"{_V2}/organizations/{{id}}", "Shows the firm of a user."),
    "list_groups": ("GET", f"{_V2}/groups", "Lists the groups of agents."),
    "list_fields": ("GET", f"{_V2}/ticket_fields", "Lists the fields of tickets, with the options of custom ones."),
    "search_articles": ("GET", f"{_V2}/help_center/articles/search"),
    "list_views": ("GET", f"{_V2}/views", "Lists the views."),
    "view_tickets": ("GET", f"{_V2}/views/{{id}}/tickets"),
    "list_metric_events": ("GET", f"{_V2}/incremental/ticket_metric_events",
                           "Lists events of the metrics of tickets since start_time, in seconds since 1970."),
    "create_view": ("POST", f"{_V2}/views", "Creates a view."),
    "create_macro": ("POST", f"{_V2}/macros", "Creates a macro."),
    "create_trigger": ("POST", f"{_V2}/triggers", "Creates a trigger."),
    "create_automation": ("POST", f"{_V2}/automations", "Creates an automation."),
    "create_sla_policy": ("POST", f"{_V2}/slas/policies", "Creates an SLA policy."),
}  # fmt: skip
"""Name of each tool to the method, path and description of its route."""
_CREDENTIALS = "Basic " + base64.b64encode(f"{zendesk.ADMIN}/token:{zendesk.TOKEN}".encode()).decode()
_REMEMBERED = 200 * 16
HOST = "acme.zendesk.localhost"
"""Host of the account."""
CALL_S = 20.0
"""Seconds of the world that a call takes."""
_Desk: Any = route_tools(
    zendesk.Zendesk.product.routes, TOOLS, host=HOST, base=zendesk.Zendesk
)  # fmt: skip


class Helpdesk(_Desk, kw_only=True):  # type: ignore[misc, call-arg]
    """The company's account.

    Attributes:
        last_answers: Digests of the latest answers with their requests, 16 letters each.
        is_fresh: False if the last answer was one of them.
        rates: Share of the tickets without a type, as the measured desks have it.
        graded: True, since each further thing that is done right is paid.
    """

    graded: ClassVar[bool] = True
    rates: ClassVar[dict[str, float]] = {"missing zd_tickets.type": 0.30}

    last_answers: str = ""
    is_fresh: bool = True

    @qn.tool
    def http(self, method: Literal["GET", "POST", "PUT", "DELETE"], path: str, body: str = "") -> str:
        """Send any other request to the API.

        Args:
            method: Method of the request.
            path: Path with query, such as /api/v2/macros.json?per_page=10.
            body: JSON of the request.
        """
        if not path.startswith("/"):
            raise qn.ToolError(f"the path begins with a slash, such as /api/v2/macros.json, got {path[:80]!r}")
        headers = {"authorization": self.authorization, "content-type": "application/json"}
        response = self.respond(request(method, f"http://{HOST}{path}", body.encode(), headers=headers))
        return f"{response.status}\n{response.body.decode(errors='replace')}"

    def inject(self, fault: str) -> None:
        """Makes the next request fail: with "429" the product refuses it for too many requests.

        Raises:
            ValueError: The fault is another one.
        """
        if fault != "429":
            raise ValueError(f"unknown fault {fault!r}; known: 429")
        self.throttle.forced.append(Forced(1, retry_after=1))

    def respond(self, asked: HttpRequest) -> HttpResponse:
        """Handles one request, and remembers the answer."""
        response = zendesk.Zendesk.respond(cast(zendesk.Zendesk, self), asked)
        key = xxhash.xxh3_64_hexdigest(f"{asked.method} {asked.path} {asked.query}".encode() + response.body)
        self.is_fresh = key not in self.last_answers
        self.last_answers = self.last_answers[-_REMEMBERED:] + key
        return response


class HelpdeskPages(BrowserTools, Helpdesk, kw_only=True):
    """The company's account with a browser, for agents that work in its pages."""

    browser: Browser = msgspec.field(default_factory=Browser)


def account(level: str, kind: type[Helpdesk] = Helpdesk, shares: Shares = MEASURED) -> Helpdesk:
    """Returns the company with the number of tickets of a level, at the end of the base."""
    found = kind(
        db=base(level, shares).fork(), tickets=SIZES[level], last_id=40_000_000_000_000, step_s=CALL_S,
        indexed_at=_dawn(level, shares), authorization=_CREDENTIALS,
    )  # fmt: skip
    found.clock.now = DAWN
    return found


@functools.cache
def _dawn(level: str, shares: Shares) -> str:
    return str(base(level, shares).execute("SELECT max(updated_at) FROM zd_tickets")[0][0])


@functools.cache
def numbers() -> dict[str, dict[str, int]]:
    """Returns the identifiers of groups and custom fields, which all accounts share, by the names that tasks use."""
    db = base("easy")
    return {
        "group": {one.name: one.id for one in select(db, tb.AgentGroup)},
        "field": {one.title: one.id for one in select(db, tb.TicketField, "removable = 1")},
    }
