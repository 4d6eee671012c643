"""Recurrence of jobs: plain data, and the search for the next occurrence.

All but `Every` use the wall clock, in the zone of a calendar. A time that comes twice is taken once, the first time; a
time that is skipped is made up, as long after the gap's end as it would be after its beginning (RFC 5545, 3.3.5).
"""

from __future__ import annotations

import bisect
import calendar as months
import functools
import math
from typing import Literal

import msgspec

from quintain.errors import UsageError

from . import cron, zones
from .calendars import Calendar
from .hours import clock_time, date_of, weekday_of, weekdays

Closed = Literal["run", "skip", "next", "previous"]
"""On a day on which the calendar does not open: run all the same, skip the occurrence, or have it on the next or the
previous day on which it opens, once, however many fall on that day."""

_HORIZON = 40 * 366
"""Days to look ahead: the 29th of February falls on a given weekday at least every 40 years."""
_ROLLED = 366
"""Days by which an occurrence may move."""


class Every(msgspec.Struct, frozen=True, tag=True):
    """Every so many seconds: after the moment at which the job was added, or on the multiples since epoch.

    Attributes:
        seconds: Greater than 0.
        aligned: Whether on the multiples: 3,600 is then every full hour of UTC.
    """

    seconds: float
    aligned: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise UsageError(f"a job recurs every so many seconds, more than 0, got {self.seconds}")


class Daily(msgspec.Struct, frozen=True, tag=True):
    """Once a day. `Daily("09:00", "skip")` is every business day."""

    time: str = "00:00"
    closed: Closed = "run"

    def __post_init__(self) -> None:
        clock_time(self.time)


class Weekly(msgspec.Struct, frozen=True, tag=True):
    """On some weekdays: "mon", "mon-fri" or "tue,thu"."""

    days: str
    time: str = "00:00"
    closed: Closed = "run"

    def __post_init__(self) -> None:
        weekdays(self.days)
        clock_time(self.time)


class Monthly(msgspec.Struct, frozen=True, tag=True):
    """On one day of each month.

    Attributes:
        day: From 1, or from the end: -1 is the last day. A month that has no such day is left out.
        weekday: Only these are counted: `Monthly(2, weekday="tue")` is the second Tuesday, -1 the last one.
        time: Local.
        closed: What happens on days on which the calendar does not open.
    """

    day: int
    time: str = "00:00"
    weekday: str | None = None
    closed: Closed = "run"

    def __post_init__(self) -> None:
        most = 31 if self.weekday is None else 5
        if not 1 <= abs(self.day) <= most:
            raise UsageError(f"the day of a month is 1 to {most}, or -1 to -{most} from its end, got {self.day}")
        if self.weekday is not None and len(weekdays(self.weekday)) != 1:
            raise UsageError(f"{self.weekday!r} is more than one weekday")
        clock_time(self.time)


class Cron(msgspec.Struct, frozen=True, tag=True):
    """The five fields of a crontab line: minute, hour, day of the month, month, weekday."""

    expression: str
    closed: Closed = "run"

    def __post_init__(self) -> None:
        cron.parse(self.expression)


Rule = Every | Daily | Weekly | Monthly | Cron


def following(rule: Rule, calendar: Calendar, *, after: float, start: float) -> float | None:
    """Returns the first occurrence later than `after`; None when there is none for 40 years.

    Args:
        rule: What recurs.
        calendar: Whose zone and days count.
        after: Seconds since epoch.
        start: When the job was added.
    """
    if isinstance(rule, Every):
        base = 0.0 if rule.aligned else start
        count = math.floor((after - base) / rule.seconds)
        while (moment := base + count * rule.seconds) <= after:
            count += 1
        return moment
    today = (calendar.local(after).date() - date_of(0)).days
    # From yesterday on: a time of yesterday that was in a gap over midnight may still come.
    for day in range(today - 1, today + _HORIZON):
        if (due := _on(rule, calendar, day, after=after)) is not None:
            return due
    return None


def _on(rule: Daily | Weekly | Monthly | Cron, calendar: Calendar, day: int, *, after: float) -> float | None:
    if not _falls(rule, calendar, day):
        return None
    moments = _moments(rule, calendar.zone, day)
    place = bisect.bisect_right(moments, after)
    return moments[place] if place < len(moments) else None


@functools.lru_cache(maxsize=4096)
def _moments(rule: Daily | Weekly | Monthly | Cron, zone: str, day: int) -> tuple[float, ...]:
    times = cron.parse(rule.expression).times if isinstance(rule, Cron) else (clock_time(rule.time),)
    return tuple(sorted({zones.instant(zone, day, time) for time in times}))


def _falls(rule: Daily | Weekly | Monthly | Cron, calendar: Calendar, day: int) -> bool:
    if rule.closed == "run":
        return _asked(rule, day)
    if rule.closed == "skip" or not calendar.opens_on(day):
        return _asked(rule, day) and calendar.opens_on(day)
    if _asked(rule, day):
        return True
    # It also takes the occurrences of the closed days before it, or behind it.
    step = -1 if rule.closed == "next" else 1
    for other in range(day + step, day + step * _ROLLED, step):
        if calendar.opens_on(other):
            return False
        if _asked(rule, other):
            return True
    return False


@functools.lru_cache(maxsize=65_536)
def _asked(rule: Daily | Weekly | Monthly | Cron, day: int) -> bool:
    """True if a rule names a day, open or not."""
    match rule:
        case Daily():
            return True
        case Weekly():
            return weekday_of(day) in weekdays(rule.days)
        case Monthly():
            date, place = date_of(day), rule.day
            last = months.monthrange(date.year, date.month)[1]
            if rule.weekday is None:
                return date.day == (place if place > 0 else last + 1 + place)
            nth = (date.day - 1) // 7 + 1 if place > 0 else -((last - date.day) // 7 + 1)
            return weekday_of(day) in weekdays(rule.weekday) and nth == place
        case Cron():
            date = date_of(day)
            return cron.parse(rule.expression).fits(date.month, date.day, weekday_of(day))
