"""The colleagues' calendars. Usable alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Annotated, Any, Literal

import msgspec

import quintain as qn
from quintain.authoring import by_content
from quintain.environments.faults import served

from . import times

HALF_HOUR = 1800.0

Minutes = Annotated[int, msgspec.Meta(ge=15, le=240)]
Address = Annotated[str, msgspec.Meta(max_length=254)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]
Span = tuple[float, float]
"""Begin and end, seconds since 1970."""


class Office(msgspec.Struct, kw_only=True):
    """Working hours of a colleague, Monday to Friday."""

    zone: str
    opens: int = 9
    closes: int = 18


class Meeting(msgspec.Struct, kw_only=True):
    """Time that is taken in a colleague's calendar."""

    rep: str
    attendee: str | None = None
    """E-mail address of the guest; None for what is internal."""
    start: str
    minutes: int
    title: str
    status: Literal["booked", "cancelled"] = "booked"

    @property
    def span(self) -> Span:
        begin = times.parse(self.start)
        return begin, begin + self.minutes * 60


class Calendar(qn.State):
    """Offices and meetings by id."""

    offices: qn.Table[Office]
    meetings: qn.Table[Meeting]

    @qn.tool
    @served
    def free_slots(self, rep_id: str, day: str, minutes: Minutes) -> dict[str, Any]:
        """List when a colleague could begin a meeting on a day, on the hour or half hour.

        Args:
            rep_id: Id of the colleague (R-).
            day: The day on the colleague's clock, such as 2025-03-11.
            minutes: Length of the meeting.
        """
        office = self._office(rep_id)
        begins = free(office, times.parse_date(day), (minutes, self._taken(rep_id)))
        shown = [f"{times.stamp(at)} ({times.local(at, office.zone):%H:%M})" for at in begins if at > self.clock.now]
        return {"rep": rep_id, "zone": office.zone, "hours": f"{office.opens}-{office.closes}", "free": shown}

    @qn.tool
    @served
    def agenda(self, rep_id: str, day: str) -> list[dict[str, Any]]:
        """List a colleague's meetings of a day.

        Args:
            rep_id: Id of the colleague (R-).
            day: The day on the colleague's clock, such as 2025-03-11.
        """
        office, wanted = self._office(rep_id), times.parse_date(day)
        found = [
            {"id": key} | msgspec.structs.asdict(row)
            for key, row in self.meetings.items()
            if row.rep == rep_id and times.local(row.span[0], office.zone).date() == wanted
        ]
        return sorted(found, key=lambda entry: (entry["start"], entry["id"]))

    @qn.tool
    @served
    def appointments(self, attendee: str) -> list[dict[str, Any]]:
        """List all appointments with a guest from outside.

        Args:
            attendee: The guest's e-mail address.
        """
        wanted = attendee.strip().casefold()
        rows = [(key, row) for key, row in self.meetings.items() if (row.attendee or "").casefold() == wanted]
        return [{"id": key} | msgspec.structs.asdict(row) for key, row in sorted(rows, key=lambda pair: pair[1].start)]

    @qn.tool
    @served
    def book(self, rep_id: str, attendee: Address, start: str, minutes: Minutes, title: Words) -> str:
        """Put a meeting into a colleague's calendar.

        Args:
            rep_id: Id of the colleague (R-).
            attendee: The guest's e-mail address.
            start: When, such as 2025-03-11T14:30Z or 2025-03-11T14:30+01:00.
            minutes: Length.
            title: What it is about.
        """
        self._office(rep_id)
        begin = self._possible(rep_id, (start, minutes), None)
        key = self.new_id("E-")
        self.meetings[key] = Meeting(
            rep=rep_id, attendee=attendee, start=times.stamp(begin), minutes=minutes, title=title
        )
        return f"booked {key}: {times.describe(begin)}"

    @qn.tool
    @served
    def move(self, meeting_id: str, start: str) -> str:
        """Move a meeting to another time, with the same colleague and length.

        Args:
            meeting_id: Id of the meeting (E-).
            start: The new time, such as 2025-03-11T14:30Z or 2025-03-11T14:30+01:00.
        """
        meeting = self._booked(meeting_id)
        begin = self._possible(meeting.rep, (start, meeting.minutes), meeting_id)
        meeting.start = times.stamp(begin)
        self.meetings[meeting_id] = meeting
        return f"moved {meeting_id} to {times.describe(begin)}"

    @qn.tool
    @served
    def cancel(self, meeting_id: str) -> str:
        """Cancel a meeting.

        Args:
            meeting_id: Id of the meeting (E-).
        """
        meeting = self._booked(meeting_id)
        meeting.status = "cancelled"
        self.meetings[meeting_id] = meeting
        return f"cancelled {meeting_id}"

    def _office(self, rep_id: str) -> Office:
        office = self.offices.get(rep_id)
        if office is None:
            raise qn.ToolError(f"there is no calendar of {rep_id!r}")
        return office

    def _booked(self, meeting_id: str) -> Meeting:
        meeting = self.meetings.get(meeting_id)
        if meeting is None or meeting.status != "booked":
            raise qn.ToolError(f"{meeting_id!r} is no booked meeting")
        return meeting

    def _possible(self, rep_id: str, wish: tuple[str, int], moving: str | None) -> float:
        start, minutes = wish
        begin = times.parse(start)
        if begin <= self.clock.now:
            raise qn.ToolError(f"{start} is past; it is {times.stamp(self.clock.now)}")
        if clash(self._taken(rep_id, but=moving), begin, minutes):
            raise qn.ToolError(f"{rep_id} has another meeting at {times.stamp(begin)}")
        return begin

    def _taken(self, rep_id: str, but: str | None = None) -> list[Span]:
        return [span for key, span in booked(self.meetings).get(rep_id, []) if key != but]


@by_content(100)
def booked(meetings: qn.Table[Meeting]) -> dict[str, list[tuple[str, Span]]]:
    """Returns by colleague the booked meetings and their spans; made once for equal tables."""
    found: dict[str, list[tuple[str, Span]]] = {}
    for key, row in meetings.items():
        if row.status == "booked":
            found.setdefault(row.rep, []).append((key, row.span))
    return found


def taken(meetings: Iterable[tuple[str, Meeting]], rep_id: str) -> Iterator[Span]:
    """Spans in which a colleague is busy."""
    return (row.span for _, row in meetings if row.rep == rep_id and row.status == "booked")


def clash(spans: Iterable[Span], begin: float, minutes: int) -> bool:
    """True if a meeting overlaps a span; touching is fine."""
    return any(begin < until and since < begin + minutes * 60 for since, until in spans)


def free(office: Office, day: date, wish: tuple[int, list[Span]]) -> list[float]:
    """Returns the half hours of an office day at which a meeting fits between the spans."""
    minutes, spans = wish
    if day.weekday() >= 5:
        return []
    hours = [office.opens + step / 2 for step in range(2 * (office.closes - office.opens))]
    begins = [times.moment(day, hour, office.zone) for hour in hours if hour * 60 + minutes <= office.closes * 60]
    return [begin for begin in begins if not clash(spans, begin, minutes)]
