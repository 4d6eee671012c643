"""Calendar of people in several time zones: the tools refuse conflicts and times outside of working hours."""

import datetime as dt
from typing import Annotated

import msgspec
from msgspec import Meta

import quintain as qn
from quintain.state import Rng
from quintain.task import Call

OFFSETS = {"Ada": 1, "Bo": 2, "Chen": 4, "Dina": 3, "Eli": -4}
"""Hours that each person's local time is ahead of UTC, all week."""
MONDAY = dt.date(2026, 5, 4)
WEEK = [MONDAY + dt.timedelta(days=n) for n in range(5)]
QUARTER = dt.timedelta(minutes=15)
TITLES = ("Budget", "Hiring", "Launch", "Audit prep", "Retro", "Pricing")
People = Annotated[list[str], Meta(min_length=1, max_length=5)]
Length = Annotated[int, Meta(ge=15, le=120, multiple_of=15)]


class Meeting(msgspec.Struct, order=True):
    start: dt.datetime
    title: str
    people: list[str]
    minutes: int

    @property
    def end(self) -> dt.datetime:
        return self.start + dt.timedelta(minutes=self.minutes)


class Office(qn.State):
    meetings: dict[str, Meeting] = {}

    @qn.tool
    def people(self) -> dict[str, str]:
        """List the people and their time zones, which hold all week. They work from 09:00 to 17:00 local time."""
        return {name: f"UTC{hours:+d}" for name, hours in OFFSETS.items()}

    @qn.tool
    def agenda(self, day: dt.date) -> list[dict[str, object]]:
        """List the meetings that begin on a day, by UTC, the earliest first. Times are in UTC.

        Args:
            day: A day such as 2026-05-04; for days without meetings the list is empty.
        """
        found = [(one.start, key, one) for key, one in self.meetings.items() if one.start.date() == day]
        return [{"id": key, **msgspec.structs.asdict(one)} for _, key, one in sorted(found)]

    @qn.tool
    def find_times(self, people: People, day: dt.date, minutes: Length) -> list[dt.datetime]:
        """List the earliest five starts, in UTC, at which everybody is free and within working hours.

        Args:
            people: Names.
            day: Day by UTC, from 2026-05-04 to 2026-05-08.
            minutes: Length of the meeting, a multiple of 15 up to 120.
        """
        if day not in WEEK:
            raise qn.ToolError(f"{day} is not in the calendar; days: {WEEK[0]} to {WEEK[-1]}")
        return self.free(self._known(people), day, minutes)[:5]

    @qn.tool
    def book(
        self,
        title: Annotated[str, Meta(min_length=1, max_length=60)],
        people: People,
        start: Annotated[dt.datetime, Meta(tz=True)],
        minutes: Length,
    ) -> str:
        """Book a meeting; returns its id. A conflict or a time outside of somebody's working hours is refused.

        Args:
            title: Title, at most 60 characters.
            people: Names; a name that is given twice counts once.
            start: Begin on a quarter of an hour, with an offset, such as 2026-05-04T09:15:00Z.
            minutes: Length, a multiple of 15 up to 120.
        """
        names = self._known(people)
        # The year is checked first: near the ends of the calendar a change of zone has no result.
        if start.year != MONDAY.year or (begin := start.astimezone(dt.UTC)).date() not in WEEK:
            raise qn.ToolError(f"{start.isoformat()} is not in the calendar; days: {WEEK[0]} to {WEEK[-1]}")
        if begin not in self.free(names, begin.date(), minutes):
            raise qn.ToolError(f"{minutes} minutes from {begin.isoformat()} do not suit {names}; see `find_times`")
        key = self.new_id("M")
        self.meetings[key] = Meeting(begin, title, names, minutes)
        return key

    @qn.tool
    def cancel(self, id: str) -> str:
        """Cancel a meeting.

        Args:
            id: Id of the meeting, from the agenda.
        """
        if id not in self.meetings:
            raise qn.ToolError(f"no meeting {id!r}; `agenda` shows the ids")
        return f"cancelled {self.meetings.pop(id).title}"

    def free(self, names: list[str], day: dt.date, minutes: int) -> list[dt.datetime]:
        """Returns each possible start on a day of UTC, the earliest first."""
        midnight, length = dt.datetime.combine(day, dt.time(), dt.UTC), dt.timedelta(minutes=minutes)
        opens = [midnight + dt.timedelta(hours=9 - OFFSETS[name]) for name in names]
        busy = [one for one in self.meetings.values() if set(one.people) & set(names)]
        starts = [midnight + n * QUARTER for n in range(96)]
        fits = [at for at in starts if max(opens) <= at and at + length <= min(opens) + dt.timedelta(hours=8)]
        return [at for at in fits if not any(one.start < at + length and at < one.end for one in busy)]

    def _known(self, people: list[str]) -> list[str]:
        if unknown := sorted(set(people) - OFFSETS.keys()):
            raise qn.ToolError(f"unknown people: {', '.join(unknown)}; known: {', '.join(OFFSETS)}")
        return sorted(set(people))


def busy_office(rng: Rng) -> Office:
    """Returns a week with three meetings on each day, where they fit."""
    office = Office()
    for number, day in enumerate(WEEK * 3):
        names, minutes = sorted(rng.sample(list(OFFSETS)[:4], 2)), 30 + 15 * rng.below(5)
        if starts := office.free(names, day, minutes):
            office.book(f"{rng.choice(TITLES)} {number + 1}", names, rng.choice(starts), minutes)
    return office


def make(split: str, number: int) -> qn.Task[Office]:
    rng = Rng(key=f"meeting_calendar/{split}/{number}".encode())
    office = busy_office(rng)
    later = office.copy()
    calls: list[Call] = []
    if number % 2:
        key = rng.choice(list(office.meetings))
        old = later.meetings[key]
        title, names, minutes = old.title, old.people, old.minutes
        later.cancel(key)
        calls.append(("cancel", {"id": key}))
        wish = (
            f"Cancel the meeting '{title}' of {old.start.date()} and book it again, with title, people and length kept,"
        )
    else:
        old, title, minutes = None, f"{TITLES[number // 2 % len(TITLES)]} {split}", 30 + 15 * rng.below(3)
        names = sorted(["Eli", "Ada"] if number % 4 else rng.sample(list(OFFSETS)[:4], 3))
        wish = f"Book '{title}' for {', '.join(names)}, {minutes} minutes long,"
    # A meeting that comes back to its old time would be a task for an agent that does nothing.
    firsts = [starts[0] for day in WEEK if (starts := later.free(names, day, minutes))]
    start = rng.choice([at for at in firsts if old is None or at != old.start])
    day = start.date()
    calls.append(("book", {"title": title, "people": names, "start": start.isoformat(), "minutes": minutes}))
    wanted = sorted([*later.meetings.values(), Meeting(start, title, names, minutes)])
    return qn.Task(
        id=f"{split}-{number}",
        prompt=f"{wish} at the earliest time of {day} (by UTC) that suits all of them. Leave all other meetings.",
        start=office,
        truth=msgspec.to_builtins(wanted),
        solution=(("find_times", {"people": names, "day": f"{day}", "minutes": minutes}), *calls),
    )


@qn.reward
def calendar_is_right(view: qn.EpisodeView[Office]) -> qn.Score:
    """Scores 1 if the meetings are those of the truth; ids do not count."""
    found = sorted(view.state.meetings.values())
    wanted = msgspec.convert(view.task.truth, list[Meeting])
    extra, missing = ([one.title for one in a if one not in b] for a, b in ((found, wanted), (wanted, found)))
    return qn.Score(float(found == wanted), f"extra {extra}, missing {missing}")


env = qn.Environment(
    "meeting_calendar",
    tasks=lambda split: qn.Tasks(12, lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(calendar_is_right),
    state=Office,
)
