"""Rows of the CRM. Times are text, in UTC; None stands for an empty field."""

from __future__ import annotations

from typing import Literal

import msgspec

Region = Literal["AMER", "EMEA", "APAC"]
Segment = Literal["mid", "enterprise"]
LeadStatus = Literal["new", "working", "qualified", "disqualified", "nurture"]
LeadReason = Literal["too_small", "no_budget", "no_timeline", "opted_out"]
Stage = Literal["prospecting", "discovery", "demo", "proposal", "negotiation", "won", "lost"]

STAGES: tuple[Stage, ...] = ("prospecting", "discovery", "demo", "proposal", "negotiation", "won", "lost")
OPEN_STAGES = STAGES[:5]


class Account(msgspec.Struct, kw_only=True):
    """Company that is or may become a customer."""

    name: str
    domain: str | None = None
    country: str | None = None
    employees: int | None = None
    industry: str | None = None
    owner: str | None = None
    updated: str


class Contact(msgspec.Struct, kw_only=True):
    """A record of a person; the same person may have several."""

    name: str
    account: str | None = None
    email: str | None = None
    phone: str | None = None
    title: str | None = None
    zone: str | None = None
    opted_out: str | None = None
    """Since when e-mail is refused."""
    merged_into: str | None = None
    created: str
    updated: str


class Lead(msgspec.Struct, kw_only=True):
    """Sign of interest, with its qualification."""

    contact: str
    account: str | None = None
    source: str
    status: LeadStatus = "new"
    reason: LeadReason | None = None
    budget_eur: int | None = None
    months: int | None = None
    """Months until they want to decide."""
    owner: str | None = None
    created: str
    updated: str


class Opportunity(msgspec.Struct, kw_only=True):
    """Deal with an account."""

    name: str
    account: str
    contact: str
    stage: Stage
    amount_eur: int | None = None
    close_date: str | None = None
    next_step: str = ""
    owner: str
    updated: str


class Activity(msgspec.Struct, kw_only=True):
    """Entry in the history of one record."""

    kind: Literal["call", "note", "email", "meeting"]
    about: str
    text: str
    at: str


class Member(msgspec.Struct, kw_only=True):
    """Colleague in the sales team."""

    name: str
    email: str
    role: Literal["account_executive", "manager"]
    region: Region
    segment: Segment | None = None
    """Segment of an account executive; None for a manager."""
    away_until: str | None = None
    """Last day of absence; None when at work."""


Record = Account | Contact | Lead | Opportunity
