"""Tables. The fields of a row stand in the order in which the API shows them; a hidden field is for the rules alone."""

from __future__ import annotations

import functools
import re
from typing import Annotated, Any, ClassVar

import msgspec

from quintain.resources.database import Indexed
from quintain.resources.web.rows import WebRow, declared

Json = dict[str, Any]
Number = Annotated[int, Indexed()]
MaybeNumber = Annotated[int | None, Indexed()]
Text = Annotated[str, Indexed()]

UNKNOWN: Any = msgspec.field(default_factory=lambda: {"calendar": None, "business": None})

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
    user_fields: Json = {}
    deleted: bool = False


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
    custom: Json = {}
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


# -- tables that rules read by column alone: see `declared` for the marks


_table = functools.partial(declared, base=ZdRow)
_STAMPS = "created_at updated_at"
_RULE = "title!+ active:bool+=true updated_at created_at default:bool"
_CONDITIONS = 'conditions:json+={"all":[],"any":[]}'
_FILTER = 'filter:json+={"all":[],"any":[]}'
_FIELD = "title!+ raw_title+ description+ raw_description+ position:int+ active:bool+=true"

# fmt: off
Identity = _table("Identity", "Further address of a user.", f"""
    user_id:int!+# type+=email value!+# verified:bool+ primary:bool {_STAMPS}""")
Token = _table("Token", "API token of the account, or OAuth token of a user.", """
    value!# user_id:int? scopes client expires:float?""")
Organization = _table("Organization", "Firm of customers that users belong to.", f"""
    name!+ shared_tickets:bool+ shared_comments:bool+ external_id?+ {_STAMPS} domain_names:texts+ details?+ notes?+
    group_id:int?+ tags:texts+ organization_fields:json+""")
AgentGroup = _table("AgentGroup", "Group of agents.", f"""
    is_public:bool+=true name!+ description+ default:bool+ deleted:bool {_STAMPS}""")
GroupMembership = _table("GroupMembership", "Agent in a group.", f"""
    user_id:int!+# group_id:int!+# default:bool+ {_STAMPS}""")
OrganizationMembership = _table("OrganizationMembership", "User in an organization.", f"""
    user_id:int!+# organization_id:int!+# default:bool+=true {_STAMPS}""")
MetricEvent = _table("MetricEvent", "Event of a metric, as the incremental export shows it.", """
    ticket_id:int! metric! instance_id:int! type! time! more:json-""")
Trigger = _table("Trigger", "Rule that runs on each update of a ticket.", f"""
    {_RULE} actions:dicts+ {_CONDITIONS} description?+ position:int+ raw_title+ category_id?+""")
TriggerCategory = _table("TriggerCategory", "Category of triggers.", f"name!+ position:int+ {_STAMPS}")
Automation = _table("Automation", "Rule that runs every hour.", f"""
    {_RULE} actions:dicts+ {_CONDITIONS} description?+- position:int+ raw_title+""")
Macro = _table("Macro", "Prepared changes that an agent applies.", f"""
    {_RULE} position:int+=10000 description?+ actions:dicts+ restriction:json?+ raw_title+""")
TicketView = _table("TicketView", "List of tickets that fulfil conditions.", f"""
    {_RULE} position:int+ description?+ execution:json+ {_CONDITIONS} restriction:json?+ raw_title+""")
SlaPolicy = _table("SlaPolicy", "Targets for tickets that fulfil a filter.", f"""
    title!+ description?+ position:int+ {_FILTER} policy_metrics:dicts!+ {_STAMPS}""")
Schedule = _table("Schedule", "Business hours in minutes from Sunday 00:00; the first schedule is the default.", f"""
    name!+ time_zone!+ intervals:dicts+ {_STAMPS}""")
Holiday = _table("Holiday", "Days on which a schedule is closed.", "name! start_date! end_date! schedule_id:int!#-")
TicketField = _table("TicketField", "Field of tickets.", f"""
    type+=text {_FIELD} required:bool+ collapsed_for_agents:bool+ regexp_for_validation?+ title_in_portal+
    raw_title_in_portal+ visible_in_portal:bool+ editable_in_portal:bool+ required_in_portal:bool+ tag?+ {_STAMPS}
    removable:bool=true key?+ agent_description?+ custom_field_options:dicts+""")
_OWN_FIELD = f"type+=text {_FIELD} key!+# system:bool regexp_for_validation?+ {_STAMPS} custom_field_options:dicts+"
UserField = _table("UserField", "Field of users.", _OWN_FIELD)
OrganizationField = _table("OrganizationField", "Field of organizations.", _OWN_FIELD)
TicketForm = _table("TicketForm", "Selection of ticket fields.", f"""
    name!+ display_name+ position:int+ active:bool+=true end_user_visible:bool+=true default:bool+
    ticket_field_ids:ints+ agent_conditions:dicts+ end_user_conditions:dicts+ {_STAMPS}""")
CustomStatus = _table("CustomStatus", "Status that agents see, in one of the categories of status.", f"""
    status_category!+ agent_label!+ end_user_label+ description+ active:bool+=true default:bool {_STAMPS}""")
Brand = _table("Brand", "Brand under which a customer meets the account.", f"""
    name!+ subdomain+ active:bool+=true default:bool {_STAMPS}""")
Webhook = _table("Webhook", "Address that rules notify. Its identifier in answers is `ulid`.", """
    name!+ description?+ status+=active subscriptions:texts+ created_at created_by+ updated_at endpoint!+
    http_method+=POST request_format+=json authentication:json?+ ulid+#- secret+-""")
WebhookCall = _table("WebhookCall", "Delivery of a webhook, with its attempts and what was sent.", """
    ulid!# webhook_id:int!# body! status=pending attempts:dicts created_at""")
SatisfactionRating = _table("SatisfactionRating", "Customer's rating of a ticket.", f"""
    assignee_id:int? group_id:int? requester_id:int! ticket_id:int!# score! comment? reason? reason_id:int?
    {_STAMPS}""")
SuspendedTicket = _table("SuspendedTicket", "Message that did not become a ticket.", f"""
    author:json subject? content cause cause_id:int? message_id? ticket_id:int? recipient? brand_id:int? via:json
    {_STAMPS}""")
StoredFile = _table("StoredFile", "Attachment; it belongs to an upload until a comment takes it.", """
    token!# upload# file_name content_type=application/octet-stream data:bytes expires:float?""")
Mail = _table("Mail", "Mail that a rule sent.", "ticket_id:int! to! subject! body! created_at")
Article = _table("Article", "Article of the help center.", f"""
    title!+ body+ locale+=en-us author_id:int?+ draft:bool+ section_id:int?+ label_names:texts+ {_STAMPS}""")
# fmt: on

TABLES: tuple[type[WebRow], ...] = tuple(ZdRow.__subclasses__())
"""All tables, in the order in which they stand here."""
