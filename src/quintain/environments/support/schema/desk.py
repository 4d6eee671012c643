"""The help desk: tickets and all that hangs on them, and the knowledge that it works from."""

from __future__ import annotations

from typing import Annotated, Literal

from quintain.resources.database import Indexed, References

from .accounts import Component, Region
from .people import Agent, Customer, Group, Organisation
from .row import Found, Moment, Row

Status = Literal["new", "open", "pending", "hold", "solved", "closed"]
Priority = Literal["low", "normal", "high", "urgent"]
Category = Literal[
    "login", "payment", "refund", "delivery", "address", "plan", "pricing", "outage", "security", "other"
]
Resolution = Literal["fixed", "refunded", "replaced", "credited", "informed", "declined", "duplicate"]
Metric = Literal["first_reply", "resolution"]


class Incident(Row, kw_only=True):
    """Trouble of our own, in one component and one region."""

    title: str
    component: Component
    region: Region
    status: Literal["investigating", "monitoring", "resolved"]
    started: Moment
    resolved: Moment | None = None
    public_text: str
    internal_text: str


class Ticket(Row, kw_only=True):
    """A customer's matter."""

    subject: str
    requester_id: Annotated[int, References(Customer)]
    organisation_id: Annotated[int | None, References(Organisation)] = None
    group_id: Annotated[int | None, References(Group)] = None
    assignee_id: Annotated[int | None, References(Agent)] = None
    status: Annotated[Status, Indexed()] = "new"
    priority: Priority = "normal"
    category: Category | None = None
    resolution: Resolution | None = None
    channel: Literal["email", "chat", "web", "phone"] = "email"
    incident_id: Annotated[int | None, References(Incident)] = None
    merged_into: Annotated[int | None, References("tickets")] = None
    created: Moment
    updated: Moment
    solved: Moment | None = None


class TicketTag(Row, kw_only=True):
    """A word by which tickets are found."""

    ticket_id: Annotated[int, References(Ticket)]
    tag: Found


class Comment(Row, kw_only=True):
    """A message in the thread of a ticket, or a note."""

    ticket_id: Annotated[int, References(Ticket)]
    author: Literal["customer", "agent", "system"]
    sender: str
    """Author: the address of a customer, the name of a colleague."""
    is_public: bool
    body: str
    at: Moment


class Attachment(Row, kw_only=True):
    """A file that came with a comment; its content is not kept here."""

    comment_id: Annotated[int, References(Comment)]
    name: str
    mime: str
    size_bytes: int


class TicketEvent(Row, kw_only=True):
    """A field of a ticket that changed, and by whom."""

    ticket_id: Annotated[int, References(Ticket)]
    at: Moment
    actor: Annotated[Literal["agent", "customer", "trigger", "automation"], Indexed()]
    field: str
    before: str | None = None
    after: str | None = None


class SlaClock(Row, kw_only=True):
    """One promise about one ticket."""

    ticket_id: Annotated[int, References(Ticket)]
    metric: Metric
    due: Annotated[Moment, Indexed()]
    left_minutes: int | None = None
    """Business minutes that were left when it was paused; None while it runs."""
    met: Moment | None = None
    is_breached: bool = False


class Trigger(Row, kw_only=True):
    """Automatic act of the desk when a ticket is made or updated."""

    name: str
    on: Literal["create", "update"]
    conditions: dict[str, str]
    actions: dict[str, str]
    is_active: bool = True


class Automation(Row, kw_only=True):
    """Automatic act of the desk, every full hour, on tickets that were idle for some hours."""

    name: str
    status: Status
    idle_hours: int
    actions: dict[str, str]
    is_active: bool = True


class Macro(Row, kw_only=True):
    """A prepared reply, with changes of fields."""

    name: str
    text: str
    actions: dict[str, str]


class View(Row, kw_only=True):
    """A stored question about tickets."""

    name: Found
    conditions: dict[str, list[str]]


class Rating(Row, kw_only=True):
    """Rating of our work by a customer."""

    ticket_id: Annotated[int, References(Ticket)]
    score: Literal["good", "bad"]
    comment: str | None = None
    at: Moment


class Verification(Row, kw_only=True):
    """An attempt to find out whether the one who writes on a ticket is that customer."""

    ticket_id: Annotated[int, References(Ticket)]
    customer_id: Annotated[int, References(Customer)]
    given: list[str]
    """Details that were compared with our records."""
    has_passed: bool
    at: Moment


class AuditEntry(Row, kw_only=True):
    """Act of an agent on a customer's belongings."""

    __table__ = "audit_log"
    at: Moment
    action: Found
    customer_id: Annotated[int | None, References(Customer)] = None
    record: str
    detail: str | None = None


class Mail(Row, kw_only=True):
    """Letters of the system to colleagues and customers."""

    at: Moment
    to: str
    subject: str


class Article(Row, kw_only=True):
    """A page of the knowledge base."""

    title: str
    section: Found
    audience: Literal["public", "internal"]
    body: str
    updated: Moment


class Script(Row, kw_only=True):
    """Prepared act of a person outside, after a cue. No tool shows it."""

    cue: Annotated[str, Indexed()]
    """Event that starts it, such as reply:1501 or claim:33."""
    delay_seconds: int
    does: str
    facts: dict[str, str | int | None]
    is_spent: bool = False


TABLES = (
    Incident,
    Ticket,
    TicketTag,
    Comment,
    Attachment,
    TicketEvent,
    SlaClock,
    Trigger,
    Automation,
    Macro,
    View,
    Rating,
    Verification,
    AuditEntry,
    Mail,
    Article,
    Script,
)
