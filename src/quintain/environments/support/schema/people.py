"""Tables of people: organisations, customers, agents, and business hours."""

from __future__ import annotations

from typing import Annotated, Literal

from quintain.resources.database import Indexed, References

from .row import Day, Found, Moment, Row

Tier = Literal["standard", "business"]


class BusinessHours(Row, kw_only=True):
    """Hours in which the clocks of service levels run."""

    __table__ = "business_hours"
    name: str
    zone: str
    opens: str
    closes: str
    days: list[str]


class Holiday(Row, kw_only=True):
    """A day on which those hours do not count."""

    hours_id: Annotated[int, References(BusinessHours)]
    day: Day
    name: str


class SlaPolicy(Row, kw_only=True):
    """Service level of a tier."""

    name: str
    tier: Tier
    hours_id: Annotated[int, References(BusinessHours)]


class SlaTarget(Row, kw_only=True):
    """Minutes of business hours that a ticket may wait, by priority."""

    policy_id: Annotated[int, References(SlaPolicy)]
    priority: Literal["low", "normal", "high", "urgent"]
    first_reply_minutes: int
    resolution_minutes: int


class Group(Row, kw_only=True):
    """Team of agents."""

    name: str
    handles: str


class Agent(Row, kw_only=True):
    """Colleague at the desk."""

    name: str
    email: str
    group_id: Annotated[int, References(Group)]
    role: Literal["agent", "lead", "bot"]
    is_active: bool = True


class Organisation(Row, kw_only=True):
    """A firm whose members write to us."""

    name: Found
    domain: Found
    tier: Tier
    country: str
    vat_id: str | None = None
    notes: str | None = None


class Customer(Row, kw_only=True):
    """Customer record; several may share an address, and a person may have several."""

    name: Found
    email: Annotated[str, Indexed()]
    phone: str | None = None
    organisation_id: Annotated[int | None, References(Organisation)] = None
    organisation_role: Literal["admin", "member"] | None = None
    language: str = "en"
    country: str
    zone: str | None = None
    created: Moment
    is_suspended: bool = False
    notes: str | None = None


class CustomerIdentity(Row, kw_only=True):
    """Another address or number of a customer."""

    __table__ = "customer_identities"
    customer_id: Annotated[int, References(Customer)]
    kind: Literal["email", "phone"]
    value: Annotated[str, Indexed()]
    is_verified: bool = False


class Address(Row, kw_only=True):
    """Present or former address of a customer."""

    customer_id: Annotated[int, References(Customer)]
    label: str
    name: str
    street: str
    postcode: Annotated[str, Indexed()]
    city: str
    country: str


TABLES = (
    BusinessHours,
    Holiday,
    SlaPolicy,
    SlaTarget,
    Group,
    Agent,
    Organisation,
    Customer,
    CustomerIdentity,
    Address,
)
