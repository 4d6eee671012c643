"""Everybody else: the records around a task, in the state in which CRMs are found."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

import quintain as qn

from . import policy, pools, times
from .calendar import Calendar, Meeting, Office
from .crm import Crm
from .draft import Person, SalesDraft
from .mail import Habit, Incoming, Mail, Outgoing
from .records import STAGES, Account, Activity, Contact, Lead, Member, Opportunity
from .state import FRESH, PREFIXES, Sales

_KINDS: tuple[Literal["call", "note", "email"], ...] = ("call", "note", "email")
CONTACTS = {"easy": 30, "medium": 70, "hard": 120}
"""People around the task, by level."""


def world(draft: SalesDraft, key: bytes) -> Sales:
    """The start state: the rows of a draft, a crowd around them, and what is due to happen."""
    full = draft.twin(key)
    _populate(full)
    state = Sales(
        crm=Crm(
            accounts=_table(full, Account, "crm.accounts"),
            contacts=_table(full, Contact, "crm.contacts"),
            leads=_table(full, Lead, "crm.leads"),
            opportunities=_table(full, Opportunity, "crm.opportunities"),
            activities=_table(full, Activity, "crm.activities"),
            team=_table(full, Member, "crm.team"),
        ),
        mail=Mail(
            outbox=_table(full, Outgoing, "mail.outbox"),
            inbox=_table(full, Incoming, "mail.inbox"),
            habits=_table(full, Habit, "mail.habits"),
        ),
        calendar=Calendar(
            offices=_table(full, Office, "calendar.offices"), meetings=_table(full, Meeting, "calendar.meetings")
        ),
    )
    state.shared.counters |= dict.fromkeys(PREFIXES, FRESH)
    state.clock.now = draft.start
    _expect(full, state)
    return state


def _table(draft: SalesDraft, row: type[Any], name: str) -> qn.Table[Any]:
    return qn.Table(row, draft.rows.get(name, {}))


def _expect(draft: SalesDraft, state: Sales) -> None:
    """Set the timers: letters that will leave, letters that will arrive."""
    outbox: dict[str, Outgoing] = draft.rows.get("mail.outbox", {})
    for key, letter in outbox.items():
        if letter.status == "scheduled":
            state.clock.at(times.parse(letter.at), state.mail.leave, key=key)
    for at, arriving in draft.arrivals:
        state.clock.at(at, state.mail.deliver, **arriving)


def _populate(draft: SalesDraft) -> None:
    rng = draft.rng
    settled: dict[str, Meeting] = draft.rows.get("calendar.meetings", {})
    planned = {meeting.rep for meeting in settled.values()}
    for rep_id in draft.rows["calendar.offices"]:
        if rep_id not in planned:
            draft.busy(rep_id)
    accounts: list[tuple[str, Account]] = []
    for n in range(CONTACTS[draft.level]):
        if n % 2 == 0 or not accounts:
            accounts.append(_account(draft))
        person = _contact(draft, rng.choice(accounts))
        if rng.below(14) == 0:
            _lookalike(draft, person, rng.choice(accounts))
        if rng.below(3) == 0:
            _lead(draft, person)
        if rng.below(4) == 0:
            _deal(draft, person)
        for _ in range(rng.below(3)):
            draft.note(person.id, rng.choice(pools.CHATTER), 1 + rng.below(400), kind=rng.choice(_KINDS))
        if person.row.email and not person.row.opted_out and rng.below(4) == 0:
            _letter(draft, person.row.email)


def _account(draft: SalesDraft) -> tuple[str, Account]:
    rng, country = draft.rng, draft.rng.choice(policy.COUNTRIES)
    return draft.account(
        country=rng.choice((country.name, country.name, *country.spellings, None)),
        employees=rng.choice((None, 12, 35, 48, 80, 150, 420, 800, 999, 1000, 2500, 18000)),
        industry=rng.choice((*pools.INDUSTRY, None)),
        owner=rng.choice((None, draft.rep())),
    )


def _contact(draft: SalesDraft, account: tuple[str, Account]) -> Person:
    """Adds a contact with the gaps and typing errors of manual entry."""
    rng = draft.rng
    person = draft.person(account)
    row = person.row
    row.name = pools.scruffy(rng, row.name)
    blank = rng.below(1 << 12)
    # Bits of one draw: missing phone 1/4, zone 1/4, e-mail 1/16, opt-out 1/16.
    row.phone = None if blank & 3 == 0 else row.phone
    row.zone = None if blank >> 2 & 3 == 0 else row.zone
    row.email = None if blank >> 4 & 15 == 0 else pools.scruffy(rng, row.email or "").strip()
    row.opted_out = draft.ago(rng.below(300)) if blank >> 8 & 15 == 0 else None
    row.title = rng.choice((row.title, None))
    return person


def _lookalike(draft: SalesDraft, person: Person, account: tuple[str, Account]) -> None:
    """Adds a person of the same name, or a duplicate of the person."""
    if draft.rng.below(2):
        draft.person(account, name=person.row.name, title=None)
    else:
        draft.add(msgspec.structs.replace(person.row, phone=None, created=draft.ago(10)[:10]))


def _lead(draft: SalesDraft, person: Person) -> None:
    rng = draft.rng
    row = Lead(
        contact=person.id,
        account=person.account_id,
        source=rng.choice(pools.SOURCE),
        status=rng.choice(("new", "new", "working", "nurture")),
        budget_eur=rng.choice((None, 0, 5_000, 9_500, 10_000, 25_000, 60_000)),
        months=rng.choice((None, 1, 3, 6, 9, 12)),
        created=draft.ago(rng.below(90))[:10],
        updated=draft.ago(rng.below(30)),
    )
    draft.add(row)


def _deal(draft: SalesDraft, person: Person) -> None:
    deal_id, _ = draft.deal(person, draft.rng.choice(STAGES))
    draft.note(deal_id, draft.rng.choice(pools.CHATTER), 1 + draft.rng.below(120), kind="call")


def _letter(draft: SalesDraft, address: str) -> None:
    if draft.rng.below(5) == 0:
        draft.letter(address, 1 + draft.rng.below(12), "scheduled")
    else:
        draft.letter(address, -1 - draft.rng.below(60))
    if draft.rng.below(4) == 0:
        at = draft.ago(draft.rng.below(30))
        text = draft.rng.choice(("Thanks, got it.", "Please send the recording.", "I am on leave.", "Who is this?"))
        draft.add(Incoming(sender=address, subject="Re: Tessera", body=text, at=at, read=draft.rng.below(3) > 0))
