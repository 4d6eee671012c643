"""Goals of the sales desk: effects in the world, each of which can say why it is missing.

A goal looks at the cause, never at a flag alone: the letter that went to the right address, the meeting that fits both
calendars. It accepts any wording and any valid time where the task leaves them open.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Any

import msgspec

import quintain as qn
from quintain.authoring import Checklist, FieldChange, FieldGoal, TaskGoal

from . import policy, times
from .calendar import HALF_HOUR, Meeting, booked, clash
from .state import Sales

LETTER_MIN = 20
"""Characters that a letter has at least."""


class Field(FieldGoal, frozen=True, kw_only=True):
    """A field has a value; spelling of phone numbers, capital letters and spaces do not count."""

    value: str | int

    def missing(self, world: Sales, _: Sales) -> str:
        found = getattr(table(world, self.table)[self.key], self.field)
        if _alike(self.field, found) == _alike(self.field, self.value):
            return ""
        return f"{self.key}.{self.field} should be {self.value!r}, is {found!r}"


class Filled(FieldGoal, frozen=True, kw_only=True):
    """A field was given words of its own."""

    was: str = ""

    def missing(self, world: Sales, _: Sales) -> str:
        found = getattr(table(world, self.table)[self.key], self.field) or ""
        return "" if found.strip() and found != self.was else f"{self.key}.{self.field} was not set anew"


class Merged(TaskGoal, frozen=True, kw_only=True):
    """A contact was merged, directly or by way of others, into the right survivor."""

    survivor: str
    duplicate: str

    def missing(self, world: Sales, _: Sales) -> str:
        into = self._root(world)
        return "" if into == self.survivor else f"{self.duplicate} should be merged into {self.survivor}, not {into}"

    def allows(self, change: FieldChange) -> bool:
        if change.table == "crm.contacts":
            return bool(change.key == self.duplicate)
        # What hung on the duplicate moves with it.
        return change.field in {"contact", "about"} and change.before == self.duplicate

    def _root(self, world: Sales) -> str | None:
        into = world.crm.contacts[self.duplicate].merged_into
        while into and (further := world.crm.contacts[into].merged_into):
            into = further
        return into


class Note(TaskGoal, frozen=True, kw_only=True):
    """An entry was logged about one of some records."""

    about: tuple[str, ...]
    mentions: tuple[str, ...] = ()

    def missing(self, world: Sales, _: Sales) -> str:
        reason = f"no note on {' or '.join(self.about)}"
        for key in world.fresh("N-"):
            entry = world.crm.activities[key]
            if entry.about in self.about and len(entry.text.strip()) >= 10:
                if not (lacking := _lacking(entry.text, self.mentions)):
                    return ""
                reason = f"the note on {entry.about} does not mention {lacking}"
        return reason


class Booked(TaskGoal, frozen=True, kw_only=True):
    """A meeting stands in a colleague's calendar where both sides can and the policy allows."""

    rep: str
    attendee: str
    zone: str
    """Time zone of the guest."""
    windows: tuple[tuple[float, float], ...]
    """Times that the guest offered; the meeting lies wholly within one of them."""
    earliest: float
    meeting: str | None = None
    """The appointment to be moved; None when a new one is to be booked."""

    def missing(self, world: Sales, _: Sales) -> str:
        return self.start(world)[1]

    def allows(self, change: FieldChange) -> bool:
        return (change.table, change.key, change.field) == ("calendar.meetings", self.meeting, "start")

    def start(self, world: Sales) -> tuple[float | None, str]:
        """Returns the begin of the meeting; None and the reason when no valid one exists."""
        reason = f"no appointment of {self.rep} with {self.attendee}"
        for key in [self.meeting] if self.meeting else world.fresh("E-"):
            meeting = world.calendar.meetings[key]
            if meeting.status == "booked" and self._theirs(meeting):
                if not (flaw := self._flaw(world, key, meeting)):
                    return meeting.span[0], ""
                reason = f"{key} {flaw}"
        return None, reason

    def _theirs(self, meeting: Meeting) -> bool:
        return meeting.rep == self.rep and (meeting.attendee or "").casefold() == self.attendee.casefold()

    def _flaw(self, world: Sales, key: str, meeting: Meeting) -> str:
        begin, until = meeting.span
        office = world.calendar.offices[self.rep]
        others = [span for other, span in booked(world.calendar.meetings).get(self.rep, []) if other != key]
        flaws = {
            "has the wrong length": meeting.minutes != policy.DEMO_MINUTES,
            "does not begin on the half hour": begin % HALF_HOUR != 0,
            "comes at too short notice": begin < self.earliest,
            "is not within what the contact offered": not any(a <= begin and until <= b for a, b in self.windows),
            "is outside the contact's hours": not policy.may_meet(begin, meeting.minutes, self.zone),
            "is outside the owner's hours": not policy.within_hours(
                begin, meeting.minutes, (office.zone, office.opens, office.closes)
            ),
            "overlaps another meeting": clash(others, begin, meeting.minutes),
        }
        return next((name for name, true in flaws.items() if true), "")


class Mailed(TaskGoal, frozen=True, kw_only=True):
    """A letter of ours went, or is about to go, to an address."""

    to: str
    mentions: tuple[str, ...]
    earliest: float
    latest: float
    confirms: Booked | None = None
    """The appointment whose start it must give on the reader's clock."""

    def missing(self, world: Sales, _: Sales) -> str:
        reason = f"no e-mail to {self.to}"
        for key in world.fresh("M-"):
            letter = world.mail.outbox[key]
            if letter.status == "cancelled" or letter.to.casefold() != self.to.casefold():
                continue
            if not self.earliest <= (at := times.parse(letter.at)) <= self.latest:
                reason = f"{key} reaches {self.to} at the wrong time, {times.stamp(at)}"
            elif lacking := _lacking(text := f"{letter.subject}\n{letter.body}", [*self.mentions, *self._start(world)]):
                reason = f"{key} to {self.to} does not mention {lacking}"
            elif len(letter.body.strip()) < LETTER_MIN:
                reason = f"{key} to {self.to} says next to nothing"
            elif self._flooded(text):
                reason = f"{key} to {self.to} leaves open when to meet"
            else:
                return ""
        return reason

    def _flooded(self, text: str) -> bool:
        """A letter that confirms an appointment by naming every time there is."""
        return self.confirms is not None and len(set(re.findall(r"[0-9]{1,2}:[0-9]{2}", text))) > 4

    def _start(self, world: Sales) -> Iterator[str]:
        if self.confirms:
            start, _ = self.confirms.start(world)
            yield spoken(start, self.confirms.zone) if start else "the time of a valid appointment"


Goal = Field | Filled | Merged | Note | Booked | Mailed


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """Truth of a task, for the verifier.

    Attributes:
        focus: Records that the job is about; reading one of them is being informed.
        goals: The effects asked for; none of them holds at the start.
        never: Addresses that no e-mail may reach, whatever their records say.
    """

    focus: tuple[str, ...]
    goals: tuple[Goal, ...]
    never: tuple[str, ...] = ()


def content(world: Sales) -> Hashable:
    """Returns a key of everything that goals look at."""
    crm = world.crm
    tables = (crm.accounts, crm.contacts, crm.leads, crm.opportunities, crm.activities, world.mail.outbox)
    return *(table.content_key() for table in tables), world.calendar.meetings.content_key()


CHECKLIST: Checklist[Sales] = Checklist(content=content)
"""Evaluates the goals of the tasks, for all criteria."""


def table(world: Sales, name: str) -> qn.Table[Any]:
    """The table named like "crm.leads"."""
    part, _, field = name.partition(".")
    found: qn.Table[Any] = getattr(getattr(world, part), field)
    return found


def spoken(at: float, zone: str) -> str:
    """A time as people write it, with bars between: "14:30|2:30 pm|..."."""
    clock = times.local(at, zone)
    hour, half = clock.hour % 12 or 12, "am" if clock.hour < 12 else "pm"
    short = [f"{hour}:{clock.minute:02}"] + [f"{hour}"] * (clock.minute == 0)
    forms = [f"{text}{gap}{mark}" for text in short for gap in ("", " ") for mark in (half, f"{half[0]}.m.")]
    return "|".join([f"{clock.hour:02}:{clock.minute:02}", f"{clock.hour}:{clock.minute:02}", *forms])


def _lacking(text: str, mentions: tuple[str, ...] | list[str]) -> str:
    """The first of the wanted words that a text lacks; bars stand between alternatives."""
    read = " ".join(text.casefold().split())
    for wanted in mentions:
        words = [re.escape(" ".join(word.casefold().split())) for word in wanted.split("|")]
        if not re.search(rf"(?<![0-9])(?:{'|'.join(words)})", read):
            return wanted.partition("|")[0]
    return ""


def _alike(field: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if field == "phone":
        return "".join(letter for letter in value if letter.isdecimal())
    return " ".join(value.casefold().split())
