"""The rules of the desk: as numbers for the generator and the verifier, and as the text that the agent reads."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from . import times
from .records import Account, Contact, LeadReason, Region, Segment

HOUSE = "tessera.example"
"""Domain of our own addresses."""

EMPLOYEES_MIN = 50
BUDGET_MIN_EUR = 10_000
MONTHS_MAX = 6
ENTERPRISE_MIN = 1_000
WRITE_FROM, WRITE_TO = 8, 18
MEET_FROM, MEET_TO = 9, 17
MAILS_PER_DAY = 1
MAILS_PER_WEEK = 2
DEMO_MINUTES = 45
NOTICE_H = 24
STALLED_DAYS = 45


class Country(NamedTuple):
    """Region, time zone and spellings of a country."""

    name: str
    region: Region
    zone: str
    spellings: tuple[str, ...]
    dial: str


COUNTRIES = (
    Country("United States", "AMER", "America/New_York", ("USA", "US", "U.S.", "united states"), "1"),
    Country("Canada", "AMER", "America/Toronto", ("CA", "canada", "CAN"), "1"),
    Country("Brazil", "AMER", "America/Sao_Paulo", ("Brasil", "BR", "brazil"), "55"),
    Country("United Kingdom", "EMEA", "Europe/London", ("UK", "GB", "Great Britain", "united kingdom"), "44"),
    Country("Germany", "EMEA", "Europe/Berlin", ("DE", "Deutschland", "germany"), "49"),
    Country("France", "EMEA", "Europe/Paris", ("FR", "france", "FRANCE"), "33"),
    Country("Netherlands", "EMEA", "Europe/Amsterdam", ("NL", "Holland", "The Netherlands"), "31"),
    Country("Spain", "EMEA", "Europe/Madrid", ("ES", "España", "spain"), "34"),
    Country("Sweden", "EMEA", "Europe/Stockholm", ("SE", "Sverige", "sweden"), "46"),
    Country("Poland", "EMEA", "Europe/Warsaw", ("PL", "Polska", "poland"), "48"),
    Country("India", "APAC", "Asia/Kolkata", ("IN", "india", "Bharat"), "91"),
    Country("Singapore", "APAC", "Asia/Singapore", ("SG", "singapore"), "65"),
    Country("Japan", "APAC", "Asia/Tokyo", ("JP", "japan", "日本"), "81"),
    Country("Australia", "APAC", "Australia/Sydney", ("AU", "australia", "Aus"), "61"),
)
_BY_SPELLING = {text.casefold(): country for country in COUNTRIES for text in (country.name, *country.spellings)}


def country_of(account: Account | None) -> Country | None:
    """Returns the country of an account; None when its record does not say."""
    return _BY_SPELLING.get((account.country or "").strip().casefold()) if account else None


def zone_of(contact: Contact, account: Account | None) -> str:
    """Returns the time zone of a contact; UTC when neither record has one."""
    if contact.zone:
        return contact.zone
    country = country_of(account)
    return country.zone if country else "UTC"


def objection(employees: int, budget_eur: int, months: int) -> LeadReason | None:
    """The first reason against a lead; None when it qualifies."""
    if employees < EMPLOYEES_MIN:
        return "too_small"
    if budget_eur < BUDGET_MIN_EUR:
        return "no_budget"
    return "no_timeline" if months > MONTHS_MAX else None


def segment(employees: int) -> Segment:
    """Returns the segment of a company of this size."""
    return "enterprise" if employees >= ENTERPRISE_MIN else "mid"


def may_write(at: float, zone: str) -> bool:
    """True if an e-mail may reach a person in this zone at that moment."""
    clock = times.local(at, zone)
    return clock.weekday() < 5 and WRITE_FROM <= clock.hour < WRITE_TO


def over_quota(mails: Iterable[float], zone: str) -> bool:
    """True if so many e-mails to one person exceed the limit of a day or of a week."""
    sent = sorted(mails)
    days = [times.local(at, zone).date() for at in sent]
    crowded_day = any(days.count(day) > MAILS_PER_DAY for day in set(days))
    return crowded_day or any(
        later - earlier < 7 * times.DAY for earlier, later in zip(sent, sent[MAILS_PER_WEEK:], strict=False)
    )


def first_chance(after: float, zone: str, mails: Iterable[float] = ()) -> float:
    """Returns the first moment from `after` on when another e-mail may reach the recipient of `mails`."""
    known = list(mails)
    at = after
    while not may_write(at, zone) or over_quota([*known, at], zone):
        today = times.local(at, zone).date()
        opening = times.moment(today, WRITE_FROM, zone)
        at = opening if opening > at else times.moment(today + timedelta(days=1), WRITE_FROM, zone)
    return at


def may_meet(start: float, minutes: int, zone: str) -> bool:
    """True if a meeting lies within a contact's office hours."""
    return within_hours(start, minutes, (zone, MEET_FROM, MEET_TO))


def within_hours(start: float, minutes: int, office: tuple[str, int, int]) -> bool:
    """True if a meeting lies on one working day between two hours of a zone."""
    zone, begin, end = office
    clock = times.local(start, zone)
    minute = clock.hour * 60 + clock.minute
    return clock.weekday() < 5 and begin * 60 <= minute and minute + minutes <= end * 60


def _regions() -> str:
    regions = {"AMER": "", "EMEA": "", "APAC": ""}
    for country in COUNTRIES:
        regions[country.region] += f"{', ' if regions[country.region] else ''}{country.name} ({country.zone})"
    return "\n".join(f"  - {region}: {names}" for region, names in regions.items())


POLICY = f"""You work the sales-development desk of Tessera. Colleagues write to you with a job; you do it with the
tools, in the CRM, the mailbox (desk@{HOUSE}) and the calendars, and answer in a sentence or two when it is done.
Do what was asked and what these rules require, and change nothing else. Names are not unique; make sure that you have
the right record. What the tools let you do isn't thereby allowed.

# Records
- Log one note on the record the job is about (the lead, the deal, or else the contact), saying what you did and why.
- Times in the CRM are UTC. A contact without a time zone lives by the zone of the account's country, see Routing.

# Qualifying a lead
- A lead qualifies when the account has at least {EMPLOYEES_MIN} employees, the budget is at least
  EUR {BUDGET_MIN_EUR:,} and they decide within {MONTHS_MAX} months.
- A number that is missing on the record may stand in the history of the lead, of its contact or of its account; the
  newest entry counts. Write it into the record before you decide. Is one nowhere, the lead goes to nurture, without
  a reason and whatever the other numbers say.
- Otherwise set the lead to disqualified, with the first reason that applies: too_small, no_budget, no_timeline.
  Only a qualified lead gets an owner.

# Routing a qualified lead
- If the account has an open deal (neither won nor lost), the lead goes to that deal's owner. Otherwise to the account
  executive of the account's region and segment: enterprise from {ENTERPRISE_MIN:,} employees, mid below.
- If that colleague is away today, the lead goes to the manager of the account's region instead.
- Send the new owner an e-mail that gives the contact's full name.
- Regions, with the zone to assume for a contact without one:
{_regions()}

# E-mail
- E-mails to people outside reach them Monday to Friday, {WRITE_FROM:02}:00 to {WRITE_TO}:00 on their clock. At any
  other time schedule the e-mail for the next opening instead.
- Nobody outside gets more than {MAILS_PER_DAY} e-mail on one day of theirs, nor more than {MAILS_PER_WEEK} in any seven
  days; scheduled ones count. If the limit is reached, schedule for the first opening that respects it.
- Address people by their first name. E-mails to colleagues may be sent at any time.
- Cancel a scheduled e-mail that events have overtaken, and only such a one.

# Opt-outs
- Who has opted out gets no e-mail from us, whoever demands it and for whatever reason. A wish not to be written to
  counts wherever it stands, in a reply or in a note, whether or not the record is marked.
- Mark the opt-out on every record with that e-mail address, cancel every scheduled e-mail to it, and log a note on the
  contact. A lead of theirs that is new or working is disqualified with the reason opted_out.
- If a colleague asked for the e-mail, tell them by e-mail that you did not send it, giving the contact's full name and
  the words "opted out".

# Duplicates
- Two records are the same person when the e-mail address is the same (capital letters aside), or when the name and the
  digits of the phone number are. The same name alone is nothing.
- The record with an open deal survives; where there is none, the oldest. Merge the others into it.
- What is empty on the survivor (email, phone, title, zone) is filled from the others, the most recently updated first;
  what it has stays. An opt-out on any of them counts for the survivor.
- The note goes on the survivor and gives the ids of the records merged into it.

# Meetings
- A demo takes {DEMO_MINUTES} minutes and is held by the owner of the deal or lead. It starts on the hour or half hour,
  lies within the owner's working hours and between {MEET_FROM:02}:00 and {MEET_TO}:00, Monday to Friday, on the
  contact's clock, within what the contact offered, at least {NOTICE_H} hours from now. The calendar invites nobody.
- Confirm by e-mail to the contact, with the start on the contact's clock as in 14:30.
- To change an appointment move it; do not book a second one.

# Deals
- Stages: prospecting, discovery, demo, proposal, negotiation, won or lost. A deal advances one stage at a time. It
  leaves discovery for demo when a demo is booked. A stalled deal (no activity for {STALLED_DAYS} days) advances when
  the contact writes that they go on, and is lost when they write that they don't.
- To revive a stalled deal, write to its contact and set a next step. If the history says that the contact has left,
  put the successor named there on the deal and write to the successor. When an answer comes, record the amount and the
  date of decision it states.

# Answers
- Not now: set the lead to nurture, and schedule one e-mail for the day they name.
- Out of office: schedule one e-mail for the first opening from the day of their return.
- Somebody else is responsible: put that contact on the lead and write to them.
- A wish to meet: book a demo with the owner of the lead.
- In all these cases cancel what is still scheduled to the one who answered.
"""
