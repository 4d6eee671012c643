"""A diary with repeated events in local time; summer time moves them in UTC. Several ways to enter them are right."""

import datetime as dt
from typing import Annotated, Literal

import msgspec

import quintain as qn

Title = Annotated[str, msgspec.Meta(min_length=1, max_length=20)]
Day = Annotated[str, msgspec.Meta(pattern="^2026-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$", max_length=10)]
Time = Annotated[str, msgspec.Meta(pattern="^(0[6-9]|1[0-9]|2[01]):[0-5][0-9]$", max_length=5)]
Times = Annotated[int, msgspec.Meta(ge=1, le=12)]
Every = Literal["day", "week", "month"]
SUMMER, WINTER = dt.date(2026, 3, 29), dt.date(2026, 10, 25)


def date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise qn.ToolError(f"the calendar lacks the day {text}") from error


def utc(day: dt.date, time: str) -> str:
    """Returns a local time as UTC; the local clock is 2 hours ahead in summer, else 1."""
    moment = dt.datetime.combine(day, dt.time.fromisoformat(time))
    return f"{moment - dt.timedelta(hours=2 if SUMMER <= day < WINTER else 1):%Y-%m-%d %H:%M}"


def days(first: dt.date, every: str, times: int) -> list[dt.date]:
    """Returns the days of an event, those beyond the year left out; a month that lacks the day is passed over."""
    if every == "month":
        ends = {month: (dt.date(2026 + month // 12, month % 12 + 1, 1) - dt.timedelta(1)).day for month in range(1, 13)}
        months = [month for month in range(first.month, 13) if first.day <= ends[month]]
        return [first.replace(month=month) for month in months][:times]
    step = 1 if every == "day" else 7
    return [day for n in range(times) if (day := first + dt.timedelta(step * n)).year == first.year]


class Event(msgspec.Struct):
    id: str
    title: str
    time: str
    days: list[str]


class Entry(msgspec.Struct):
    event: str
    title: str
    local: str
    utc: str


class Diary(qn.State):
    events: list[Event]

    def entries(self) -> list[Entry]:
        found = [
            Entry(one.id, one.title, f"{day} {one.time}", utc(dt.date.fromisoformat(day), one.time))
            for one in self.events
            for day in one.days
        ]
        return sorted(found, key=lambda one: (one.utc, one.event))

    def _event(self, event: str) -> Event:
        for one in self.events:
            if one.id == event:
                return one
        raise qn.ToolError(f"no event {event!r}")

    @qn.tool
    def agenda(self, first: Day, last: Day) -> list[Entry]:
        """List what takes place in a range of days, the earliest first, in local time and in UTC.

        The local clock is 2 hours ahead of UTC from 2026-03-29 to 2026-10-24, both included, and 1 hour before and
        after, so an event that repeats at one local time has different times in UTC.

        Args:
            first: First local day, in 2026, such as 2026-03-09.
            last: Last local day; none is listed if it comes before the first.
        """
        low, high = date(first), date(last)
        return [one for one in self.entries() if low <= dt.date.fromisoformat(one.local[:10]) <= high]

    @qn.tool
    def add(self, title: Title, first: Day, time: Time, every: Every = "week", times: Times = 1) -> Event:
        """Add an event; returns it with its days. Events may overlap and have equal titles.

        Args:
            title: Its title, 1 to 20 characters.
            first: Its first local day.
            time: Local time of all its days, 06:00 to 21:59.
            every: How it repeats. Months that lack the day, such as a 31st, are passed over and not counted.
            times: How often it takes place, 1 to 12. It is refused if it would not end in 2026.
        """
        found = days(date(first), every, times)
        if len(found) < times:
            raise qn.ToolError("it would not end in 2026")
        self.events.append(Event(self.new_id("E"), title, time, [day.isoformat() for day in found]))
        return self.events[-1]

    @qn.tool
    def skip(self, event: str, day: Day) -> Event:
        """Cancel one day of an event; the others stay, and none is added at the end. Returns what is left.

        Args:
            event: Its id, such as E1.
            day: The local day.
        """
        one = self._event(event)
        if day not in one.days:
            raise qn.ToolError(f"{event} does not take place on {day}")
        one.days.remove(day)
        return one

    @qn.tool
    def remove(self, event: str) -> str:
        """Remove an event with all its days.

        Args:
            event: Its id, such as E1.
        """
        self.events.remove(self._event(event))
        return f"{event} is removed"


Call = tuple[str, dict[str, object]]
CHOIR = ["2026-03-12 18:00", "2026-03-19 18:00", "2026-03-26 18:00", "2026-04-02 17:00", "2026-04-09 17:00"]


def add(title: str, first: str, time: str, every: str, times: int) -> Call:
    return "add", {"title": title, "first": first, "time": time, "every": every, "times": times}


# Each: what is asked for, UTC times of the choir, title and UTC times of another event, a solution.
JOBS: list[tuple[str, list[str], str, list[str], list[Call]]] = [
    ("Add 'Yoga' on the four Mondays 2026-03-16, 23, 30 and 2026-04-06 at 18:00 local time.", CHOIR, "Yoga",
     ["2026-03-16 17:00", "2026-03-23 17:00", "2026-03-30 16:00", "2026-04-06 16:00"],
     [add("Yoga", "2026-03-16", "18:00", "week", 4)]),
    ("Add 'Call' with a partner abroad, at 15:00 UTC on the Wednesdays 2026-03-18, 25, 2026-04-01 and 08.", CHOIR,
     "Call", ["2026-03-18 15:00", "2026-03-25 15:00", "2026-04-01 15:00", "2026-04-08 15:00"],
     [add("Call", "2026-03-18", "16:00", "week", 2), add("Call", "2026-04-01", "17:00", "week", 2)]),
    ("The choir does not meet on 2026-03-26; the other days stay.", CHOIR[:2] + CHOIR[3:], "", [],
     [("skip", {"event": "E1", "day": "2026-03-26"})]),
    ("The choir's last evening, 2026-04-09, is a day later, on 2026-04-10, at the same local time.",
     [*CHOIR[:4], "2026-04-10 17:00"], "", [],
     [("skip", {"event": "E1", "day": "2026-04-09"}), add("Choir", "2026-04-10", "19:00", "day", 1)]),
    ("Add 'Rent' at 08:00 local time on the 31st of each month that has one, from January to May 2026.", CHOIR, "Rent",
     ["2026-01-31 07:00", "2026-03-31 06:00", "2026-05-31 06:00"], [add("Rent", "2026-01-31", "08:00", "month", 3)]),
    ("Replace the choir by 'Band', on the same five days at 20:00 local time.", [], "Band",
     ["2026-03-12 19:00", "2026-03-19 19:00", "2026-03-26 19:00", "2026-04-02 18:00", "2026-04-09 18:00"],
     [("remove", {"event": "E1"}), add("Band", "2026-03-12", "20:00", "week", 5)]),
]  # fmt: skip
RULE = (
    "The diary holds 'Choir', E1, five Thursdays from 2026-03-12 at 19:00 local time. You are judged by the titles and "
    "times of all that takes place at the end, in UTC, to the letter; what is not asked for stays. Whether it is one "
    "repeated event or several ones does not count."
)


def diary() -> Diary:
    made = Diary(events=[])
    made.add("Choir", "2026-03-12", "19:00", "week", 5)
    return made


def tasks(split: str) -> list[qn.Task[Diary]]:
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} {RULE}",
            start=diary(),
            truth=sorted([f"{time} Choir" for time in choir] + [f"{time} {title}" for time in times]),
            solution=tuple(calls),
        )
        for n, (prompt, choir, title, times, calls) in enumerate(JOBS, 1)
    ]


@qn.reward
def as_asked(view: qn.EpisodeView[Diary]) -> qn.Score:
    found = sorted(f"{one.utc} {one.title}" for one in view.state.entries())
    return qn.Score(float(found == view.task.truth), f"found {found}")


env = qn.Environment(
    "diary", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Diary, splits=("test",)
)
