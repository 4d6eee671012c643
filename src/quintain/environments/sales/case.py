"""A task while it is being written: what is asked, and how one would do it.

A family puts into a `Case` whatever matters; the crowd around it is drawn only when an episode begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from quintain.authoring import Level

from . import calendar, goals, policy, times
from .calendar import Meeting, Office
from .crowd import world
from .draft import Person, SalesDraft
from .goals import Booked, Mailed, Truth
from .mail import Outgoing
from .state import Sales

_WRITES = {
    "crm_update_account": ("crm.accounts", "account_id"),
    "crm_update_contact": ("crm.contacts", "contact_id"),
    "crm_update_lead": ("crm.leads", "lead_id"),
    "crm_update_opportunity": ("crm.opportunities", "opportunity_id"),
    "crm_set_stage": ("crm.opportunities", "opportunity_id"),
    "crm_decide_lead": ("crm.leads", "lead_id"),
}
"""Tool to the table it writes and the argument that names the record."""


class Case(SalesDraft):
    """Task in the making.

    Attributes:
        now: The time that the solution has reached.
        informed_at: The time from which the agent can have all it needs to know.
        focus: Records that the job is about.
        never: Addresses that no e-mail may reach.
    """

    def __init__(self, key: bytes, level: Level) -> None:
        super().__init__(key, level)
        self.now = self.informed_at = self.start
        self.focus: list[str] = []
        self.never: list[str] = []
        self._cancelled: set[str] = set()

    @property
    def hard(self) -> bool:
        return self.level == "hard"

    @property
    def easy(self) -> bool:
        return self.level == "easy"

    def look(self, *record_ids: str) -> None:
        """Read records and their history."""
        for record_id in record_ids:
            self.play("crm_get", record_id=record_id)
            self.play("crm_history", record_id=record_id)

    def put(self, tool: str, key: str, **facts: Any) -> None:
        """Write fields of a record with a tool, and ask for it."""
        table, argument = _WRITES[tool]
        self.play(tool, **{argument: key}, **facts)
        for name, value in facts.items():
            self.goals.append(goals.Field(table=table, key=key, field=name.removesuffix("_id"), value=value))

    def assign(self, record_id: str, rep_id: str) -> None:
        """Give a lead to a colleague, and ask for it."""
        self.play("crm_assign_owner", record_id=record_id, rep_id=rep_id)
        self.goals.append(goals.Field(table="crm.leads", key=record_id, field="owner", value=rep_id))

    def log(self, about: str | tuple[str, ...], text: str, mentions: tuple[str, ...] = ()) -> None:
        """Note it on a record, or on one of several, and ask for it."""
        places = (about,) if isinstance(about, str) else about
        self.play("crm_log", record_id=places[0], kind="note", text=text)
        self.goals.append(goals.Note(about=places, mentions=mentions))

    def inform(self, rep_id: str, text: str, mentions: tuple[str, ...]) -> None:
        """Write to a colleague, and ask for it."""
        email = self.member(rep_id).email
        self.play("mail_send", to=email, subject="From the sales desk", body=text)
        self.goals.append(Mailed(to=email, mentions=mentions, earliest=self.start, latest=self.now + 7 * times.DAY))

    def mail(self, who: Person, text: str, *, after: float = 0.0, confirms: Booked | None = None) -> float:
        """Write to a contact at the first moment the policy allows, and ask for it; returns that moment."""
        outbox: dict[str, Outgoing] = self.rows.get("mail.outbox", {})
        known = [
            times.parse(row.at)
            for key, row in outbox.items()
            if row.to.casefold() == who.email and key not in self._cancelled
        ]
        at = policy.first_chance(max(self.now, after), who.zone, known)
        body = f"Dear {who.first},\n\n{text}\n\nBest regards,\nthe Tessera desk"
        letter = {"to": who.email, "subject": "Tessera", "body": body}
        if at > self.now:
            self.play("mail_schedule", **letter, at=times.stamp(at))
        else:
            self.play("mail_send", **letter)
        day = times.moment(times.local(at, who.zone).date(), 0, who.zone)
        earliest, latest = (day if after else self.start), (day + times.DAY if after else at + 4 * times.DAY)
        self.goals.append(
            Mailed(to=who.email, mentions=(who.first,), earliest=earliest, latest=latest, confirms=confirms)
        )
        return at

    def cancel(self, mail_id: str) -> None:
        """Cancel a scheduled letter, and ask for it."""
        self.play("mail_cancel", mail_id=mail_id)
        self._cancelled.add(mail_id)
        self.goals.append(goals.Field(table="mail.outbox", key=mail_id, field="status", value="cancelled"))

    def opt_out(self, who: Person) -> None:
        """Mark an opt-out, and ask for it."""
        self.play("crm_mark_opt_out", contact_id=who.id)
        self.goals.append(goals.Filled(table="crm.contacts", key=who.id, field="opted_out"))

    def slots(self, rep_id: str, who: Person, day: date) -> list[float]:
        """Returns when a demo can begin on a day of the colleague's, by both calendars and the policy."""
        office: Office = self.rows["calendar.offices"][rep_id]
        meetings: dict[str, Meeting] = self.rows.get("calendar.meetings", {})
        spans = list(calendar.taken(meetings.items(), rep_id))
        begins = calendar.free(office, day, (policy.DEMO_MINUTES, spans))
        soonest = self.now + policy.NOTICE_H * times.HOUR
        return [b for b in begins if b >= soonest and policy.may_meet(b, policy.DEMO_MINUTES, who.zone)]

    def book(self, rep_id: str, who: Person, windows: Sequence[calendar.Span], *, moving: str | None = None) -> None:
        """Find the first time in the windows that suits everybody, take it, and ask for any such time."""
        office: Office = self.rows["calendar.offices"][rep_id]
        for since, until in windows:
            day = times.local(since, office.zone).date()
            self.play("calendar_free_slots", rep_id=rep_id, day=day.isoformat(), minutes=policy.DEMO_MINUTES)
            fitting = [b for b in self.slots(rep_id, who, day) if since <= b <= until - policy.DEMO_MINUTES * 60]
            if fitting:
                break
        else:
            raise ValueError("no time in these windows suits both calendars; the family must choose others")
        start = times.stamp(fitting[0])
        if moving:
            self.play("calendar_move", meeting_id=moving, start=start)
        else:
            meeting = {"attendee": who.email, "start": start, "minutes": policy.DEMO_MINUTES, "title": "Tessera demo"}
            self.play("calendar_book", rep_id=rep_id, **meeting)
        goal = Booked(
            rep=rep_id,
            attendee=who.email,
            zone=who.zone,
            windows=tuple(windows),
            earliest=self.informed_at + policy.NOTICE_H * times.HOUR,
            meeting=moving,
        )
        self.goals.append(goal)
        clock = f"{times.local(fitting[0], who.zone):%H:%M}"
        day_name = times.long_date(times.local(fitting[0], who.zone).date())
        self.mail(who, f"Our demo is on {day_name} at {clock} your time.", confirms=goal)

    def offer(self, rep_id: str, who: Person) -> tuple[str, list[calendar.Span]] | None:
        """Returns days on which a contact can meet a colleague, in the contact's words; None if no day fits."""
        office: Office = self.rows["calendar.offices"][rep_id]
        today = times.local(self.now, office.zone).date()
        days = [today + timedelta(days=ahead) for ahead in range(3, 15)]
        possible = [day for day in days if self.slots(rep_id, who, day)]
        if not possible:
            return None
        chosen = self.rng.choice(possible)
        begin = self.rng.choice(self.slots(rep_id, who, chosen))
        clock = times.local(begin, who.zone)
        since, until = max(policy.MEET_FROM, clock.hour - 1), min(policy.MEET_TO, clock.hour + 2)
        other = clock.date() - timedelta(days=1)
        offered = [clock.date()] if self.easy or other.weekday() > 4 else [other, clock.date()]
        words = " or ".join(times.long_date(day) for day in offered)
        spans = [(times.moment(day, since, who.zone), times.moment(day, until, who.zone)) for day in offered]
        return f"{words}, between {since}:00 and {until}:00", spans

    def guest(self, rep_id: str) -> tuple[Person, tuple[str, list[calendar.Span]]]:
        """A contact who could meet a colleague, and when; mostly of another region from the medium level on."""
        home = self.member(rep_id).region
        while True:
            country = self.rng.choice(policy.COUNTRIES)
            if (country.region == home) != self.easy and self.rng.below(8):
                continue
            trial = self.twin(self.rng.bits().to_bytes(8, "little"))
            company = trial.account(country=country.name if self.easy else self.rng.choice(country.spellings))
            who = trial.person(company) if self.easy else trial.person(company, zone=None)
            if offer := self.offer(rep_id, who):
                # The trial is kept; its random numbers were its own.
                self.rows, self.numbers, self.names, self.firms = trial.rows, trial.numbers, trial.names, trial.firms
                return who, offer

    def wait_until(self, at: float) -> None:
        """Let time pass, a bit longer than to that moment."""
        self.informed_at = at
        while self.now <= at:
            hours = min(72.0, max(0.25, (at - self.now) // 900 / 4 + 0.25))
            self.play("wait", hours=hours)
            self.now += hours * times.HOUR

    @property
    def prompt(self) -> str:
        return f"{self.request}\n\n(It is {times.describe(self.start)}.)"

    def world(self) -> Sales:
        return world(self, self.key + b"/crowd")

    def truth(self) -> Truth:
        return Truth(focus=tuple(self.focus), goals=tuple(self.goals), never=tuple(self.never))
