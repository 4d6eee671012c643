"""The rows of a world while it is being written."""

from __future__ import annotations

import copy
from datetime import date, timedelta
from typing import Any, Literal, NamedTuple, Self

import msgspec

from quintain import authoring
from quintain.authoring import LEVELS, Level
from quintain.state import Rng

from . import policy, pools, times
from .calendar import Meeting, Office
from .mail import Habit, Incoming, Outgoing
from .records import Account, Activity, Contact, Lead, Member, Opportunity, Region, Segment, Stage

LETTERS: dict[type, tuple[str, str]] = {
    Account: ("crm.accounts", "A-"),
    Contact: ("crm.contacts", "C-"),
    Lead: ("crm.leads", "L-"),
    Opportunity: ("crm.opportunities", "O-"),
    Activity: ("crm.activities", "N-"),
    Member: ("crm.team", "R-"),
    Outgoing: ("mail.outbox", "M-"),
    Incoming: ("mail.inbox", "I-"),
    Meeting: ("calendar.meetings", "E-"),
}
"""Row type to its table and the letter of its ids."""

_OFFICES: dict[Region, tuple[str, ...]] = {
    "AMER": ("America/New_York", "America/Chicago", "America/Los_Angeles"),
    "EMEA": ("Europe/London", "Europe/Berlin", "Europe/Paris"),
    "APAC": ("Asia/Singapore", "Asia/Kolkata", "Australia/Sydney"),
}


_SHIFTS = (
    date(2025, 3, 3),
    date(2025, 3, 20),
    date(2025, 10, 16),
    date(2026, 3, 2),
    date(2026, 3, 19),
    date(2026, 10, 15),
)
"""Begins of weeks in which one continent after the other changes to summer time and back."""


class Person(NamedTuple):
    """Contact in the CRM, with the id of the record."""

    id: str
    row: Contact
    account_id: str
    account: Account

    @property
    def first(self) -> str:
        return self.row.name.split()[0].title()

    @property
    def email(self) -> str:
        """The address as people type it, whatever the record looks like."""
        return (self.row.email or "").casefold()

    @property
    def zone(self) -> str:
        return policy.zone_of(self.row, self.account)


class SalesDraft(authoring.Draft[Any]):
    """Rows by table. All that is random comes from the key, so equal keys make equal worlds."""

    def __init__(self, key: bytes, level: Level) -> None:
        super().__init__(key, level)
        self.rows: dict[str, dict[str, Any]] = {}
        self.arrivals: list[tuple[float, dict[str, str]]] = []
        self.numbers: pools.Deck[int] = pools.Deck(range(10_000, 90_000), self.rng)
        self.names: pools.Deck[int] = pools.Deck(range(len(pools.FIRST) * len(pools.LAST)), self.rng)
        self.firms: pools.Deck[int] = pools.Deck(range(len(pools.COMPANY) * len(pools.TRADE)), self.rng)
        day = date(2025, 1, 6) + timedelta(days=self.rng.below(700))
        if level == "hard" and self.rng.below(2):
            day = self.rng.choice(_SHIFTS) + timedelta(days=self.rng.below(12))
        day += timedelta(days=(7 - day.weekday()) if day.weekday() > 4 else 0)
        self.start = times.moment(day, 7 + self.rng.below(20) / 2, "UTC")
        self._hire()

    def twin(self, key: bytes) -> Self:
        """The same rows, to go on from with other random numbers and without touching this one."""
        twin = copy.copy(self)
        twin.rng = Rng(key=key)
        twin.rows = {table: dict(rows) for table, rows in self.rows.items()}
        twin.numbers, twin.names, twin.firms = copy.copy(self.numbers), copy.copy(self.names), copy.copy(self.firms)
        return twin

    def add(self, row: msgspec.Struct) -> str:
        """Put a row into its table under a new id."""
        table, letter = LETTERS[type(row)]
        key = f"{letter}{self.numbers.draw()}"
        self.rows.setdefault(table, {})[key] = row
        return key

    def ago(self, days: float) -> str:
        """A time so many days before the start, at some minute of its own."""
        return times.stamp(self.start - days * times.DAY - 60 * self.rng.below(300))

    def account(self, **fields: Any) -> tuple[str, Account]:
        """A company with a plain record, but for what is given."""
        first, trade = divmod(self.firms.draw(), len(pools.TRADE))
        name = f"{pools.COMPANY[first]} {pools.TRADE[trade]}"
        row = Account(
            name=name + self.rng.choice(pools.SUFFIX),
            domain=f"{name.replace(' ', '-').casefold()}.example",
            country=self.rng.choice(policy.COUNTRIES).name,
            employees=60 + self.rng.below(4000),
            industry=self.rng.choice(pools.INDUSTRY),
            updated=self.ago(20 + self.rng.below(300)),
        )
        row = msgspec.structs.replace(row, **fields)
        return self.add(row), row

    def person(self, account: tuple[str, Account] | None = None, **fields: Any) -> Person:
        """A contact at a company with a full record, but for what is given."""
        account_id, company = account or self.account()
        country = policy.country_of(company)
        name, email = self._name(company.domain or "mail.example")
        row = Contact(
            name=name,
            account=account_id,
            email=email,
            phone=pools.phone(self.rng, country.dial if country else "44"),
            title=self.rng.choice(pools.TITLE),
            zone=country.zone if country else None,
            created=self.ago(200 + self.rng.below(600))[:10],
            updated=self.ago(30 + self.rng.below(150)),
        )
        row = msgspec.structs.replace(row, **fields)
        return Person(self.add(row), row, account_id, company)

    def note(
        self, about: str, text: str, days: float, *, kind: Literal["call", "note", "email", "meeting"] = "note"
    ) -> str:
        """Adds an entry that was logged so many days ago."""
        return self.add(Activity(kind=kind, about=about, text=text, at=self.ago(days)))

    def deal(self, contact: Person, stage: Stage, **fields: Any) -> tuple[str, Opportunity]:
        """An opportunity with a contact's company."""
        row = Opportunity(
            name=f"{contact.account.name} - {self.rng.choice(('rollout', 'pilot', 'licences', 'renewal'))}",
            account=contact.account_id,
            contact=contact.id,
            stage=stage,
            amount_eur=1000 * (8 + self.rng.below(90)),
            close_date=times.stamp(self.start + (20 + self.rng.below(90)) * times.DAY)[:10],
            next_step=self.rng.choice(("call back", "", "send offer", "wait for their IT")),
            owner=self.rep(role="account_executive"),
            updated=self.ago(2 + self.rng.below(20)),
        )
        row = msgspec.structs.replace(row, **fields)
        return self.add(row), row

    def letter(self, to: str, days: float, status: Literal["sent", "scheduled"] = "sent") -> str:
        """A letter of ours, so many days after the start (before it, when negative)."""
        at = times.stamp(self.start + days * times.DAY)
        subject = self.rng.choice(pools.SUBJECTS)
        return self.add(
            Outgoing(to=to, subject=subject, body=f"{subject}. Best regards, Tessera", status=status, at=at)
        )

    def answers(self, who: Person, after_h: float, text: str) -> str:
        """Schedules a contact's answer to our next letter; returns the id of the answer."""
        key = f"I-{self.numbers.draw()}"
        body = f"{text}\n\n{who.row.name}"
        habit = Habit(message_id=key, delay_s=after_h * times.HOUR, subject="Re: your e-mail", body=body)
        self.rows.setdefault("mail.habits", {})[who.email] = habit
        return key

    def writes(self, who: Person, after_h: float, text: str) -> str:
        """Adds a letter to us, before the start when `after_h` is negative; returns the message's id."""
        body, at = f"{text}\n\n{who.row.name}", self.start + after_h * times.HOUR
        if after_h < 0:
            return self.add(Incoming(sender=who.email, subject="Re: Tessera", body=body, at=times.stamp(at)))
        key = f"I-{self.numbers.draw()}"
        self.arrivals.append((at, {"key": key, "sender": who.email, "subject": "Re: Tessera", "body": body}))
        return key

    def busy(self, rep_id: str) -> None:
        """Fill the calendar of a colleague for the next three weeks."""
        office: Office = self.rows["calendar.offices"][rep_id]
        today = times.local(self.start, office.zone).date()
        for ahead in range(1, 19):
            day = today + timedelta(days=ahead)
            for _ in range(1 + self.rng.below(2 + LEVELS.index(self.level)) if day.weekday() < 5 else 0):
                draw, length = divmod(self.rng.below(2 * 3 * len(pools.INTERNAL) * (office.closes - office.opens)), 3)
                half_hour, title = divmod(draw, len(pools.INTERNAL))
                start = times.moment(day, office.opens + half_hour / 2, office.zone)
                row = Meeting(
                    rep=rep_id, start=times.stamp(start), minutes=30 + 30 * length, title=pools.INTERNAL[title]
                )
                self.add(row)

    def rep(self, **wanted: Any) -> str:
        """Id of some colleague with these fields."""
        team = self.rows["crm.team"]
        fitting = [key for key, row in team.items() if all(getattr(row, k) == v for k, v in wanted.items())]
        return self.rng.choice(fitting)

    def member(self, rep_id: str) -> Member:
        """A colleague's record."""
        row: Member = self.rows["crm.team"][rep_id]
        return row

    def _hire(self) -> None:
        roles: tuple[tuple[Any, Segment | None], ...] = (
            ("account_executive", "mid"), ("account_executive", "enterprise"), ("manager", None))  # fmt: skip
        for region, zones in _OFFICES.items():
            for role, segment in roles:
                name, email = self._name(policy.HOUSE)
                key = self.add(Member(name=name, email=email, role=role, region=region, segment=segment))
                opens = 8 + self.rng.below(2)
                office = Office(zone=self.rng.choice(zones), opens=opens, closes=opens + 9)
                self.rows.setdefault("calendar.offices", {})[key] = office

    def _name(self, domain: str) -> tuple[str, str]:
        """Returns an unused name and its address."""
        drawn = divmod(self.names.draw(), len(pools.LAST))
        first, last = pools.FIRST[drawn[0]], pools.LAST[drawn[1]]
        address = f"{pools.ascii_of(first)}.{pools.ascii_of(last)}@{domain}"
        return f"{pools.written(first)} {pools.written(last)}", address
