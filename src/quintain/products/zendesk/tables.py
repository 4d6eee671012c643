"""Tables. The fields of a row stand in the order in which the API shows them; a hidden field is for the rules alone."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

import msgspec

from quintain.resources.database import Indexed
from quintain.resources.web.rows import WebRow

Json = dict[str, Any]
Number = Annotated[int, Indexed()]
MaybeNumber = Annotated[int | None, Indexed()]
Text = Annotated[str, Indexed()]
Fields = dict[str, Any]

UNKNOWN: Any = msgspec.field(default_factory=lambda: {"calendar": None, "business": None})
NO_CONDITIONS: Any = msgspec.field(default_factory=lambda: dict[str, Any](all=[], any=[]))

STATUSES = ("new", "open", "pending", "hold", "solved", "closed")
PRIORITIES = ("low", "normal", "high", "urgent")
TYPES = ("question", "incident", "problem", "task")


class ZdRow(WebRow, kw_only=True):
    """Base of all tables, which gives them names such as `zd_group_memberships`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
        plural = f"{name[:-1]}ies" if re.search(r"[^aeiou]y$", name) else f"{name}es" if name[-1] == "s" else f"{name}s"
        cls.__table__ = f"zd_{plural}"  # type: ignore[attr-defined]


class User(ZdRow, kw_only=True):
    """Person: end user, agent or admin."""

    hidden: ClassVar[tuple[str, ...]] = ("deleted",)

    name: str
    email: Annotated[str | None, Indexed()] = None
    created_at: str = ""
    updated_at: str = ""
    time_zone: str = "UTC"
    iana_time_zone: str = "Etc/UTC"
    phone: str | None = None
    shared_phone_number: bool | None = None
    photo: Json | None = None
    locale_id: int = 1
    locale: str = "en-US"
    organization_id: MaybeNumber = None
    role: Text = "end-user"
    verified: bool = False
    external_id: str | None = None
    tags: list[str] = []
    alias: str | None = None
    active: bool = True
    shared: bool = False
    shared_agent: bool = False
    last_login_at: str | None = None
    two_factor_auth_enabled: bool = False
    signature: str | None = None
    details: str | None = None
    notes: str | None = None
    role_type: int | None = None
    custom_role_id: int | None = None
    moderator: bool = False
    ticket_restriction: str | None = "requested"
    only_private_comments: bool = False
    restricted_agent: bool = True
    suspended: bool = False
    default_group_id: int | None = None
    report_csv: bool = False
    user_fields: Fields = {}
    deleted: bool = False


class Identity(ZdRow, kw_only=True):
    """Further address of a user."""

    user_id: Number
    type: str = "email"
    value: Text
    verified: bool = False
    primary: bool = False
    created_at: str = ""
    updated_at: str = ""


class Token(ZdRow, kw_only=True):
    """API token of the account, or OAuth token of a user."""

    value: Text
    user_id: int | None = None
    scopes: str = "read write"
    client: str = ""
    expires: float | None = None


class Organization(ZdRow, kw_only=True):
    """Firm of customers that users belong to."""

    name: str
    shared_tickets: bool = False
    shared_comments: bool = False
    external_id: str | None = None
    created_at: str = ""
    updated_at: str = ""
    domain_names: list[str] = []
    details: str | None = None
    notes: str | None = None
    group_id: int | None = None
    tags: list[str] = []
    organization_fields: Fields = {}


class AgentGroup(ZdRow, kw_only=True):
    """Group of agents."""

    is_public: bool = True
    name: str
    description: str = ""
    default: bool = False
    deleted: bool = False
    created_at: str = ""
    updated_at: str = ""


class GroupMembership(ZdRow, kw_only=True):
    """Agent in a group."""

    user_id: Number
    group_id: Number
    default: bool = False
    created_at: str = ""
    updated_at: str = ""


class OrganizationMembership(ZdRow, kw_only=True):
    """User in an organization."""

    user_id: Number
    organization_id: Number
    default: bool = True
    created_at: str = ""
    updated_at: str = ""


class Ticket(ZdRow, kw_only=True):
    """Ticket. `custom` holds the values of custom fields by their identifiers."""

    hidden: ClassVar[tuple[str, ...]] = ("deleted", "deleted_at", "deleted_by", "schedule_id")

    external_id: Annotated[str | None, Indexed()] = None
    via: Json = {}
    created_at: str = ""
    updated_at: Text = ""
    generated_timestamp: int = 0
    type: str | None = None
    subject: str | None = None
    description: str = ""
    priority: str | None = None
    status: Text = "new"
    recipient: str | None = None
    requester_id: Number
    submitter_id: int
    assignee_id: MaybeNumber = None
    organization_id: MaybeNumber = None
    group_id: int | None = None
    follower_ids: list[int] = []
    email_cc_ids: list[int] = []
    problem_id: MaybeNumber = None
    has_incidents: bool = False
    is_public: bool = True
    due_at: str | None = None
    tags: list[str] = []
    satisfaction_rating: Json = msgspec.field(default_factory=lambda: {"score": "unoffered"})
    custom_status_id: int | None = None
    followup_ids: list[int] = []
    ticket_form_id: int | None = None
    brand_id: int | None = None
    allow_attachments: bool = True
    custom: Fields = {}
    deleted: bool = False
    deleted_at: str | None = None
    deleted_by: int | None = None
    schedule_id: int | None = None


class Audit(ZdRow, kw_only=True):
    """One update of a ticket. A comment among the events is its identifier alone; its text is a `Comment`."""

    ticket_id: Number
    created_at: str
    author_id: int
    metadata: Json = {}
    events: list[Json] = []
    via: Json = {}


class Comment(ZdRow, kw_only=True):
    """Comment of a ticket; its identifier is that of its event."""

    hidden: ClassVar[tuple[str, ...]] = ("ticket_id", "by_agent")

    type: str = "Comment"
    author_id: int
    body: str
    html_body: str
    plain_body: str
    public: bool = True
    attachments: list[Json] = []
    audit_id: int = 0
    via: Json = {}
    created_at: str = ""
    metadata: Json = {}
    ticket_id: Number
    by_agent: bool = False


class SlaClock(msgspec.Struct):
    """Measurement of one metric of a ticket.

    Attributes:
        metric: Name in policies; `next_reply_time` and `first_reply_time` are `reply_time` in metric events.
        instance: From 1.
        state: active, paused or done.
        since: Start of the running stretch, in seconds since epoch.
        calendar_s: Seconds counted before it.
        business_s: The same in business hours.
        target: Minutes; None without a target.
        business_hours: True if the target counts business hours.
        policy_id: Policy that gave the target.
        breach_at: Moment of the breach while the clock runs; None if it does not come.
        breached: True after it.
    """

    metric: str
    instance: int
    state: str
    since: float
    calendar_s: float = 0.0
    business_s: float = 0.0
    target: int | None = None
    business_hours: bool = False
    policy_id: int | None = None
    breach_at: float | None = None
    breached: bool = False


class Metric(ZdRow, kw_only=True):
    """Measurements of a ticket, whose identifier it has.

    Attributes:
        counted: Seconds in each status: of the calendar, and of business hours.
        since: Start of the present status, in seconds since epoch.
        clocks: Clocks of the SLA, in the order of their start.
        next_breach: Moment of the first breach to come, as text.
    """

    hidden: ClassVar[tuple[str, ...]] = ("counted", "since", "clocks", "next_breach")

    ticket_id: int
    created_at: str = ""
    updated_at: str = ""
    group_stations: int = 0
    assignee_stations: int = 0
    reopens: int = 0
    replies: int = 0
    assignee_updated_at: str | None = None
    requester_updated_at: str | None = None
    status_updated_at: str | None = None
    initially_assigned_at: str | None = None
    assigned_at: str | None = None
    solved_at: str | None = None
    latest_comment_added_at: str | None = None
    reply_time_in_minutes: Json = UNKNOWN
    first_resolution_time_in_minutes: Json = UNKNOWN
    full_resolution_time_in_minutes: Json = UNKNOWN
    agent_wait_time_in_minutes: Json = UNKNOWN
    requester_wait_time_in_minutes: Json = UNKNOWN
    on_hold_time_in_minutes: Json = UNKNOWN
    counted: dict[str, list[float]] = {}
    since: float = 0.0
    clocks: list[SlaClock] = []
    next_breach: str | None = None


class MetricEvent(ZdRow, kw_only=True):
    """Event of a metric, as the incremental export shows it."""

    hidden: ClassVar[tuple[str, ...]] = ("more",)

    ticket_id: int
    metric: str
    instance_id: int
    type: str
    time: str
    more: Json = {}


class Rule(ZdRow, kw_only=True):
    """Base of business rules: conditions, actions and a position."""

    title: str
    active: bool = True
    updated_at: str = ""
    created_at: str = ""
    default: bool = False
    actions: list[Json] = []
    conditions: Json = NO_CONDITIONS
    description: str | None = None
    position: int = 0


class Trigger(Rule, kw_only=True):
    """Rule that runs on each update of a ticket."""

    raw_title: str = ""
    category_id: str | None = None


class TriggerCategory(ZdRow, kw_only=True):
    """Category of triggers."""

    name: str
    position: int = 0
    created_at: str = ""
    updated_at: str = ""


class Automation(Rule, kw_only=True):
    """Rule that runs every hour."""

    hidden: ClassVar[tuple[str, ...]] = ("description",)

    raw_title: str = ""


class Macro(ZdRow, kw_only=True):
    """Prepared changes that an agent applies."""

    title: str
    active: bool = True
    updated_at: str = ""
    created_at: str = ""
    default: bool = False
    position: int = 10000
    description: str | None = None
    actions: list[Json] = []
    restriction: Json | None = None
    raw_title: str = ""


class TicketView(ZdRow, kw_only=True):
    """List of tickets that fulfil conditions."""

    title: str
    active: bool = True
    updated_at: str = ""
    created_at: str = ""
    default: bool = False
    position: int = 0
    description: str | None = None
    execution: Json = {}
    conditions: Json = NO_CONDITIONS
    restriction: Json | None = None
    raw_title: str = ""


class SlaPolicy(ZdRow, kw_only=True):
    """Targets for tickets that fulfil a filter."""

    title: str
    description: str | None = None
    position: int = 0
    filter: Json = NO_CONDITIONS
    policy_metrics: list[Json] = []
    created_at: str = ""
    updated_at: str = ""


class Schedule(ZdRow, kw_only=True):
    """Business hours: intervals in minutes from Sunday 00:00 in a zone. The first schedule is the default."""

    name: str
    time_zone: str = "UTC"
    intervals: list[Json] = []
    created_at: str = ""
    updated_at: str = ""


class Holiday(ZdRow, kw_only=True):
    """Days on which a schedule is closed."""

    hidden: ClassVar[tuple[str, ...]] = ("schedule_id",)

    name: str
    start_date: str
    end_date: str
    schedule_id: Number


class CustomField(ZdRow, kw_only=True):
    """Base of custom fields."""

    type: str = "text"
    title: str
    raw_title: str = ""
    description: str = ""
    raw_description: str = ""
    position: int = 0
    active: bool = True


class TicketField(CustomField, kw_only=True):
    """Field of tickets."""

    required: bool = False
    collapsed_for_agents: bool = False
    regexp_for_validation: str | None = None
    title_in_portal: str = ""
    raw_title_in_portal: str = ""
    visible_in_portal: bool = False
    editable_in_portal: bool = False
    required_in_portal: bool = False
    tag: str | None = None
    created_at: str = ""
    updated_at: str = ""
    removable: bool = True
    key: str | None = None
    agent_description: str | None = None
    custom_field_options: list[Json] = []


class UserField(CustomField, kw_only=True):
    """Field of users."""

    key: Text
    system: bool = False
    regexp_for_validation: str | None = None
    created_at: str = ""
    updated_at: str = ""
    custom_field_options: list[Json] = []


class OrganizationField(UserField, kw_only=True):
    """Field of organizations."""


class TicketForm(ZdRow, kw_only=True):
    """Selection of ticket fields."""

    name: str
    display_name: str = ""
    position: int = 0
    active: bool = True
    end_user_visible: bool = True
    default: bool = False
    ticket_field_ids: list[int] = []
    agent_conditions: list[Json] = []
    end_user_conditions: list[Json] = []
    created_at: str = ""
    updated_at: str = ""


class CustomStatus(ZdRow, kw_only=True):
    """Status that agents see, in one of the categories of status."""

    status_category: str
    agent_label: str
    end_user_label: str = ""
    description: str = ""
    active: bool = True
    default: bool = False
    created_at: str = ""
    updated_at: str = ""


class Brand(ZdRow, kw_only=True):
    """Brand under which a customer meets the account."""

    name: str
    subdomain: str = ""
    active: bool = True
    default: bool = False
    created_at: str = ""
    updated_at: str = ""


class Webhook(ZdRow, kw_only=True):
    """Address that rules notify. Its identifier in answers is `ulid`."""

    hidden: ClassVar[tuple[str, ...]] = ("ulid", "secret")

    name: str
    description: str | None = None
    status: str = "active"
    subscriptions: list[str] = []
    created_at: str = ""
    created_by: str = ""
    updated_at: str = ""
    endpoint: str
    http_method: str = "POST"
    request_format: str = "json"
    authentication: Json | None = None
    ulid: Text = ""
    secret: str = ""


class WebhookCall(ZdRow, kw_only=True):
    """Delivery of a webhook, with its attempts and what was sent."""

    ulid: Text
    webhook_id: Number
    body: str
    status: str = "pending"
    attempts: list[Json] = []
    created_at: str = ""


class SatisfactionRating(ZdRow, kw_only=True):
    """Customer's rating of a ticket."""

    assignee_id: int | None
    group_id: int | None
    requester_id: int
    ticket_id: Number
    score: str
    comment: str | None = None
    reason: str | None = None
    reason_id: int | None = None
    created_at: str = ""
    updated_at: str = ""


class SuspendedTicket(ZdRow, kw_only=True):
    """Message that did not become a ticket."""

    author: Json = {}
    subject: str | None = None
    content: str = ""
    cause: str = ""
    cause_id: int | None = None
    message_id: str | None = None
    ticket_id: int | None = None
    recipient: str | None = None
    brand_id: int | None = None
    via: Json = {}
    created_at: str = ""
    updated_at: str = ""


class StoredFile(ZdRow, kw_only=True):
    """Attachment; it belongs to an upload until a comment takes it."""

    token: Text
    upload: Text = ""
    file_name: str = ""
    content_type: str = "application/octet-stream"
    data: bytes = b""
    expires: float | None = None


class Mail(ZdRow, kw_only=True):
    """Mail that a rule sent."""

    ticket_id: int
    to: str
    subject: str
    body: str
    created_at: str = ""


class Article(ZdRow, kw_only=True):
    """Article of the help center."""

    title: str
    body: str = ""
    locale: str = "en-us"
    author_id: int | None = None
    draft: bool = False
    section_id: int | None = None
    label_names: list[str] = []
    created_at: str = ""
    updated_at: str = ""


TABLES: tuple[type[WebRow], ...] = (
    User, Identity, Token, Organization, AgentGroup, GroupMembership, OrganizationMembership,
    Ticket, Audit, Comment, Metric, MetricEvent,
    Trigger, TriggerCategory, Automation, Macro, TicketView, SlaPolicy, Schedule, Holiday,
    TicketField, UserField, OrganizationField, TicketForm, CustomStatus, Brand,
    Webhook, WebhookCall, SatisfactionRating, SuspendedTicket, StoredFile, Mail, Article,
)  # fmt: skip
