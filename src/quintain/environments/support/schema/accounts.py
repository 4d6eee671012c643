"""Tables of accounts: accounts, logins, locks, and devices."""

from __future__ import annotations

from typing import Annotated, Literal

from quintain.resources.database import References, Unique

from .people import Customer
from .row import Day, Moment, Row

Region = Literal["eu-west", "eu-north", "us-east"]
Component = Literal["login", "sync", "video", "alerts", "billing"]
LockReason = Literal["failed_logins", "unpaid", "takeover"]


class Account(Row, kw_only=True):
    """Access to our services, owned by one customer."""

    customer_id: Annotated[int, References(Customer)]
    status: Literal["active", "locked", "closed"] = "active"
    region: Region
    two_factor: bool = False
    password_reset_sent: Moment | None = None
    created: Moment


class AccountMember(Row, kw_only=True):
    """Further user of an account."""

    account_id: Annotated[int, References(Account)]
    customer_id: Annotated[int, References(Customer)]
    role: Literal["admin", "user"]


class Login(Row, kw_only=True):
    """An attempt to log in."""

    account_id: Annotated[int, References(Account)]
    at: Moment
    country: str
    address: str
    result: Literal["ok", "wrong_password", "wrong_code", "locked"]


class Lock(Row, kw_only=True):
    """Lock of an account, with its reason."""

    account_id: Annotated[int, References(Account)]
    reason: LockReason
    at: Moment
    lifted: Moment | None = None


class Session(Row, kw_only=True):
    """Login session, open or ended."""

    account_id: Annotated[int, References(Account)]
    started: Moment
    country: str
    agent: str
    ended: Moment | None = None


class Device(Row, kw_only=True):
    """A sensor or camera that reports to an account."""

    account_id: Annotated[int, References(Account)]
    model: str
    serial: Annotated[str, Unique()]
    firmware: str
    is_online: bool = True
    last_seen: Moment | None = None
    warranty_until: Day | None = None


TABLES = (Account, AccountMember, Login, Lock, Session, Device)
