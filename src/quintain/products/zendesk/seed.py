"""A fresh account: its admin, token, group, fields and the business rules that every account begins with."""

from __future__ import annotations

import functools
from typing import Any, TypeVar, overload

from quintain.resources.database import Database
from quintain.resources.web import TABLES as WEB_TABLES
from quintain.resources.web.rows import select

from . import tables as tb
from .account import channel
from .business import execution
from .commit import commit
from .people import create_user, join
from .world import Zendesk

ADMIN = "admin@acme.example"
TOKEN = "acme-api-token"  # noqa: S105 (of an account that exists nowhere else)
BEGIN = 1_767_603_600.0
"""Time at which an account begins by default: Monday 2026-01-05, 09:00 UTC."""

Account = TypeVar("Account", bound=Zendesk)

_BODY = "Ticket #{{ticket.id}} ({{ticket.title}}): {{ticket.latest_comment}}"


def _all(text: str, any: str = "") -> tb.Json:
    """Returns conditions that are given as words: field, operator and value, such as `status is_not solved`."""
    parts = {"all": text.split(", "), "any": any.split(", ") if any else []}
    found = {part: [[*one.split(" "), None] for one in some] for part, some in parts.items()}
    return {part: [{"field": f, "operator": o, "value": v} for f, o, v, *_ in some] for part, some in found.items()}


def _mail(to: str, subject: str, field: str = "notification_user") -> list[tb.Json]:
    return [{"field": field, "value": [to, subject, _BODY]}]


_CREATE, _CHANGE = "update_type is Create", "update_type is Change"
_PUBLIC = f"{_CREATE}, status is_not solved, ticket_is_public is public"
_OTHER = "assignee_id is_not current_user"
Rules = tuple[tuple[str, tb.Json, list[tb.Json], bool], ...]
TRIGGERS: Rules = (
    ("Notify requester and CCs of received request", _all(f"{_PUBLIC}, role is end_user"),
     _mail("requester_and_ccs", "[Request received]"), True),
    ("Notify requester and CCs of comment update", _all(f"{_CHANGE}, comment_is_public is requester_can_see_comment"),
     _mail("requester_and_ccs", "[{{ticket.account}}] Re: {{ticket.title}}"), True),
    ("Notify requester of new proactive ticket", _all(f"{_PUBLIC}, role is agent, requester_role is end_user"),
     _mail("requester_id", "{{ticket.title}}"), True),
    ("Notify assignee of comment update",
     _all(f"{_CHANGE}, comment_is_public is not_relevant, {_OTHER}, assignee_id is_not requester_id, "
          "assignee_id not_changed, status not_value_previous solved"),
     _mail("assignee_id", "Re: {{ticket.title}}"), True),
    ("Notify assignee of assignment", _all(f"assignee_id changed, {_OTHER}"),
     _mail("assignee_id", "Assignment: {{ticket.title}}"), True),
    ("Notify assignee of reopened ticket", _all(f"{_OTHER}, status value_previous solved, status is_not closed"),
     _mail("assignee_id", "Reopened: {{ticket.title}}"), True),
    ("Notify group of assignment",
     _all("group_id is_not , assignee_id is ", any="group_id changed, assignee_id changed"),
     _mail("group_id", "Group assignment: {{ticket.title}}", "notification_group"), True),
    ("Notify all agents of received request", _all(_CREATE), _mail("all_agents", "[Ticket] {{ticket.title}}"), True),
    ("Auto-assign to first email responding agent",
     _all(f"{_CHANGE}, current_via_id is 4, assignee_id is , role is_not end_user"),
     [{"field": "assignee_id", "value": "current_user"}], False),
)  # fmt: skip
AUTOMATIONS: Rules = (
    ("Close ticket 4 days after status is set to solved", _all("status is solved, SOLVED greater_than 96"),
     [{"field": "status", "value": "closed"}], True),
    ("Pending notification 24 hours", _all("PENDING is 24"), _mail("requester_id", "Waiting for you: {{ticket.title}}"),
     False),
    ("Pending notification 5 days", _all("PENDING is 120"), _mail("requester_id", "Still waiting: {{ticket.title}}"),
     False),
    ("Request customer satisfaction rating", _all("SOLVED is 24, satisfaction_score is unoffered"),
     [{"field": "satisfaction_score", "value": "offered"}, *_mail("requester_id", "How would you rate the support?")],
     False),
)  # fmt: skip
VIEWS = {
    "Your unsolved tickets": _all("status less_than solved, assignee_id is current_user"),
    "Unassigned tickets": _all("status less_than solved, assignee_id is "),
    "All unsolved tickets": _all("status less_than solved"),
    "Recently updated tickets": _all("status less_than closed, updated_at less_than 168"),
    "New tickets in your groups": _all("status is new, group_id is current_groups"),
    "Pending tickets": _all("status is pending"),
    "Recently solved tickets": _all("status is solved, SOLVED less_than 168"),
}
MACROS: dict[str, dict[str, str]] = {
    "Close and redirect to topics": {
        "status": "solved", "comment_value": "Please see our help center, {{ticket.requester.first_name}}."},
    "Take it!": {"status": "open", "assignee_id": "current_user"},
    "Customer not responding": {
        "status": "pending", "comment_value": "We have not heard from you about #{{ticket.id}}."},
}  # fmt: skip


def empty() -> Database:
    """Returns a database with the tables of a product, without rows."""
    return Database(*WEB_TABLES, *tb.TABLES)


@overload
def account(*, begin: float = BEGIN, subdomain: str = "acme", token: str = TOKEN) -> Zendesk: ...
@overload
def account(kind: type[Account], *, begin: float = BEGIN, subdomain: str = "acme", token: str = TOKEN) -> Account: ...
def account(kind: type[Any] = Zendesk, *, begin: float = BEGIN, subdomain: str = "acme", token: str = TOKEN) -> Any:
    """Returns a fresh account of a kind such as `ZendeskPages`, with one admin, whose e-mail is `ADMIN`."""
    world = kind(db=_schema().fork(), subdomain=subdomain)
    world.clock.advance(begin)
    with world.db.transaction():
        _fill(world, token)
    world.arm()
    return world


@functools.cache
def _schema() -> Database:
    return empty()


def _put(world: Zendesk, kind: Any, /, **fields: Any) -> Any:
    """Inserts a row, with its title as it was written."""
    more = {"raw_title": fields["title"]} if "raw_title" in kind.__struct_fields__ else {}
    return world.put(kind, **more, **fields)


def _fill(world: Zendesk, token: str) -> None:
    _put(world, tb.Token, value=token, scopes="read write")
    _put(world, tb.Brand, name="Acme", subdomain=world.subdomain, default=True)
    _put(world, tb.AgentGroup, name="Support", default=True)
    create_user(world, {"name": "Ada Admin", "email": ADMIN, "role": "admin", "verified": True})
    for name in ("new", "open", "pending", "hold", "solved"):
        label = "On-hold" if name == "hold" else name.capitalize()
        _put(world, tb.CustomStatus, status_category=name, agent_label=label, end_user_label=label, default=True)
    fields = [
        _put(world, tb.TicketField, type=kind, title=title, title_in_portal=title, position=position, removable=False,
             required=kind in {"subject", "description"}).id
        for position, (kind, title) in enumerate(_SYSTEM_FIELDS)
    ]  # fmt: skip
    name = "Default Ticket Form"
    _put(world, tb.TicketForm, name=name, display_name=name, default=True, ticket_field_ids=fields)
    category = _put(world, tb.TriggerCategory, name="Initial Category", position=1)
    kinds: Any = ((tb.Trigger, TRIGGERS, {"category_id": str(category.id)}), (tb.Automation, AUTOMATIONS, {}))
    for kind, rules, more in kinds:
        for position, (title, conditions, actions, active) in enumerate(rules, 1):
            about = {"title": title, "conditions": conditions, "actions": actions, "position": position}
            _put(world, kind, active=active, **about, **more)
    for position, (title, conditions) in enumerate(VIEWS.items(), 1):
        _put(world, tb.TicketView, title=title, conditions=conditions, position=position, execution=execution({}))
    for title, values in MACROS.items():
        _put(world, tb.Macro, title=title, actions=[{"field": f, "value": v} for f, v in values.items()])
    world.later(3600.0 - world.clock.now % 3600.0, "sweep", key="sweep")


_SYSTEM_FIELDS = (("subject", "Subject"), ("description", "Description"), ("status", "Status"), ("tickettype", "Type"),
                  ("priority", "Priority"), ("group", "Group"), ("assignee", "Assignee"))  # fmt: skip


def populate(world: Zendesk, *, agents: int = 3, customers: int = 5, tickets: int = 10) -> None:
    """Adds agents, customers and their tickets, for tests and demonstrations."""
    with world.db.transaction():
        group = select(world.db, tb.AgentGroup, "1 LIMIT 1")[0]
        second = _put(world, tb.AgentGroup, name="Level 2")
        for number in range(1, agents + 1):
            about = {"name": f"Agent {number}", "email": f"agent{number}@acme.example", "role": "agent"}
            user = create_user(world, {**about, "verified": True})
            if number % 2 == 0:
                join(world, user.id, second.id)
        people = [
            create_user(world, {"name": f"Customer {n}", "email": f"customer{n}@mail.example"})
            for n in range(1, customers + 1)
        ]
        for number in range(tickets):
            wanted = {
                "subject": f"Question {number + 1}", "comment": {"body": f"The printer {number + 1} does not print."},
                "priority": tb.PRIORITIES[number % 4], "group_id": group.id,
            }  # fmt: skip
            commit(world, people[number % len(people)], None, wanted=wanted, via=channel("web"))
    world.arm()
