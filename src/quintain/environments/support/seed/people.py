"""The base: who there is, and what they have with us."""

from __future__ import annotations

from typing import Any

from quintain.environments.support.schema.accounts import Account, AccountMember, Device, Lock, Login, Session
from quintain.environments.support.schema.people import (
    Address,
    Agent,
    BusinessHours,
    Customer,
    CustomerIdentity,
    Group,
    Holiday,
    Organisation,
    SlaPolicy,
    SlaTarget,
)

from . import pools
from .sowing import Sowing, address, dawn_day, mailbox, name, scruffy

ORGANISATIONS = 60
CUSTOMERS = 640
HOLIDAYS = ("2025-04-18", "2025-04-21", "2025-05-01")
"""Good Friday, Easter Monday, Labour Day; sorted, as the rules of the desk read them."""
_TARGETS = {
    "standard": {"low": (960, 4800), "normal": (480, 2400), "high": (240, 960), "urgent": (60, 480)},
    "business": {"low": (480, 2400), "normal": (240, 960), "high": (120, 480), "urgent": (30, 240)},
}
"""Minutes of business hours to the first reply and to the solution."""


def staff(sowing: Sowing) -> None:
    """The desk itself: hours, promises, groups, colleagues."""
    weekdays = ["mon", "tue", "wed", "thu", "fri"]
    hours = {"zone": "Europe/Berlin", "opens": "08:00", "closes": "18:00"}
    office = sowing.add(BusinessHours, name="Office", days=weekdays, **hours)
    longer = sowing.add(
        BusinessHours, name="Business", days=[*weekdays, "sat"], **hours | {"opens": "06:00", "closes": "22:00"}
    )
    for day in HOLIDAYS:
        for row in (office, longer):
            sowing.add(Holiday, hours_id=row.id, day=day, name="holiday")
    for tier, hours_id in (("standard", office.id), ("business", longer.id)):
        policy = sowing.add(SlaPolicy, name=f"{tier} customers", tier=tier, hours_id=hours_id)
        for priority, (first, resolution) in _TARGETS[tier].items():
            facts: dict[str, Any] = {"first_reply_minutes": first, "resolution_minutes": resolution}
            sowing.add(SlaTarget, policy_id=policy.id, priority=priority, **facts)
    for title, handles in pools.GROUPS:
        group = sowing.add(Group, name=title, handles=handles)
        for n in range(5):
            who = name(sowing.rng)
            sowing.add(
                Agent,
                name=who,
                email=mailbox(who, "halden.example"),
                group_id=group.id,
                role="lead" if n == 0 else "agent",
                is_active=n < 4,
            )


def customers(sowing: Sowing) -> None:
    """Organisations and people, with duplicates and gaps."""
    rng = sowing.rng
    for _ in range(ORGANISATIONS):
        firm = f"{rng.choice(pools.FIRM)} {rng.choice(pools.TRADE)}"
        country = rng.choice(pools.COUNTRIES)
        sowing.add(
            Organisation,
            name=firm,
            domain=mailbox(firm, "example").replace("@", "."),
            tier=rng.choice(("standard", "business", "business")),
            country=country.code,
            vat_id=f"{country.code}{100000000 + rng.below(900000000)}" if rng.below(3) else None,
            notes=rng.choice((None, None, *pools.NOTES)),
        )
    for _ in range(CUSTOMERS):
        _customer(sowing)


def _customer(sowing: Sowing) -> None:
    rng = sowing.rng
    organisation = rng.choice(sowing.rows[Organisation]) if sowing.chance(4) else None
    codes = {country.code: country for country in pools.COUNTRIES}
    country = codes[organisation.country] if organisation else rng.choice(pools.COUNTRIES)
    who = name(rng)
    host = organisation.domain if organisation else rng.choice(pools.MAIL)
    row = sowing.add(
        Customer,
        name=who,
        email=mailbox(who, host) if rng.below(3) else mailbox(who, host).replace("@", f"{rng.below(90) + 10}@"),
        phone=f"+{30 + rng.below(20)} {100 + rng.below(900)} {1000000 + rng.below(9000000)}" if rng.below(3) else None,
        organisation_id=organisation.id if organisation else None,
        organisation_role=rng.choice(("admin", "member", "member", "member")) if organisation else None,
        language=country.language,
        country=country.code,
        zone=country.zone,
        created=sowing.ago(30 + rng.below(1400)),
        notes=rng.choice(pools.NOTES) if sowing.chance(12) else None,
    )
    scruffy(rng, row)
    if rng.below(8):
        sowing.add(Address, customer_id=row.id, label="home", name=row.name.strip(), **address(rng, country))
    if sowing.chance(9):
        sowing.add(Address, customer_id=row.id, label="old", name=row.name.strip(), **address(rng, country))
    if sowing.chance(7):
        other = mailbox(who, rng.choice(pools.MAIL))
        sowing.add(CustomerIdentity, customer_id=row.id, kind="email", value=other, is_verified=bool(rng.below(2)))
    if sowing.chance(25):  # a stale record of the same person, from an import
        sowing.add(
            Customer,
            name=row.name.strip(),
            email=row.email.casefold(),
            country=row.country,
            created="2021-02-01T03:00:00Z",
            notes="import 2021",
        )


def accounts(sowing: Sowing) -> None:
    """Accounts of those who were not merely imported, with logins, locks and devices."""
    for customer in sowing.rows[Customer]:
        if customer.notes != "import 2021" and sowing.rng.below(12):
            _account(sowing, customer)


def _account(sowing: Sowing, customer: Customer) -> None:
    rng = sowing.rng
    region = rng.choice(pools.REGIONS)
    row = sowing.add(
        Account, customer_id=customer.id, region=region, two_factor=bool(rng.below(2)), created=customer.created
    )
    for _ in range(1 + rng.below(5)):
        result = rng.choice(("ok", "ok", "ok", "ok", "wrong_password", "wrong_code"))
        facts = {"country": customer.country, "address": internet(sowing), "result": result}
        sowing.add(Login, account_id=row.id, at=sowing.ago(rng.below(120)), **facts)
    if sowing.chance(20):
        lifted = sowing.ago(rng.below(20))
        sowing.add(Lock, account_id=row.id, reason="failed_logins", at=sowing.ago(25), lifted=lifted)
    if sowing.chance(3):
        agent = rng.choice(("Android app", "iPhone app", "Firefox", "Chrome"))
        sowing.add(Session, account_id=row.id, started=sowing.ago(rng.below(40)), country=customer.country, agent=agent)
    if sowing.chance(10):
        other = rng.choice(sowing.rows[Customer])
        if other.id != customer.id:
            sowing.add(AccountMember, account_id=row.id, customer_id=other.id, role="user")
    for _ in range(rng.below(4)):
        device(sowing, row.id)


def device(sowing: Sowing, account_id: int) -> Device:
    """A device on an account."""
    rng = sowing.rng
    number = len(sowing.rows.get(Device, ())) + 1
    online = bool(rng.below(9))
    return sowing.add(
        Device,
        account_id=account_id,
        model=rng.choice(pools.DEVICES),
        serial=f"HD{2 * number + 300000}",
        firmware=rng.choice(pools.FIRMWARES),
        is_online=online,
        last_seen=None if sowing.chance(30) else sowing.ago(0 if online else rng.below(60)),
        warranty_until=dawn_day(rng.below(700) - 200).isoformat() if rng.below(5) else None,
    )


def internet(sowing: Sowing) -> str:
    """An address of the internet, from the ranges for documentation."""
    return f"203.0.113.{1 + sowing.rng.below(254)}"
