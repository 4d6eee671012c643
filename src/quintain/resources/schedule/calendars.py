"""`Calendar`: when a business is open, and how much of its time lies between two moments.

It is open exactly when a clock on its wall shows an opening hour. Where daylight saving time makes the clock jump, that
alone decides: an opening at 02:30 that the clock skips is at 03:00, and an hour that comes twice is open twice.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from quintain import codec
from quintain.errors import UsageError

from . import zones
from .hours import SECOND, WEEKDAYS, Hours, Span, clock_time, date_of, day_of, spans, weekdays

_DAY = 86_400


class Day(msgspec.Struct, frozen=True):
    """A date that is not like its weekday: a holiday, half a holiday, an extra day.

    Attributes:
        name: Such as "Christmas".
        hours: The intervals that begin on this date; none when it is closed.
    """

    name: str = ""
    hours: tuple[str, ...] = ()


class Calendar(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Business hours. Moments are seconds since 1970-01-01 UTC, as in the world's clock, to the microsecond.

    Attributes:
        zone: IANA name of the time zone.
        hours: The intervals that begin on each weekday: `{"mon-thu": ("09:00-12:30", "13:30-18:00"), "fri": ...}`.
            "22:00-06:00" ends on the next day; "00:00-24:00" is the whole day. Days without an entry are closed.
        dates: Single dates that differ: `{"2026-12-25": Day("Christmas")}`. An interval that began the day before
            still ends when it ends.

    Raises:
        UsageError: A zone, weekday, interval or date is invalid; or a weekday has two entries.
    """

    zone: str = "UTC"
    hours: dict[str, tuple[str, ...]] = {}
    dates: dict[str, Day] = {}

    def __post_init__(self) -> None:
        if self.hours or self.dates or self.zone != "UTC":  # The default, which worlds often hold, needs no check.
            _ = self._compiled

    def is_open(self, at: float) -> bool:
        """True during the opening hours."""
        return self._compiled.is_open(_exact(at) + zones.offset(self.zone, at) * SECOND)

    def next_open(self, at: float) -> float:
        """Returns the first moment from `at` on at which it is open: `at` itself when it is.

        Raises:
            UsageError: It never opens again.
        """
        return self._first(at, self._compiled.opens, never=self._never_opens, verb="opens")

    def next_close(self, at: float) -> float:
        """Returns the first moment from `at` on at which it is closed: `at` itself when it is.

        Raises:
            UsageError: It never closes again.
        """
        return self._first(at, self._compiled.closes, never=self._never_closes, verb="closes")

    def add(self, at: float, seconds: float) -> float:
        """Returns the first moment with so many open seconds between `at` and it.

        What ends with the working day ends at its close, not at the next opening; 0 seconds end at once.

        Raises:
            UsageError: `seconds` is negative or not finite, or so much open time does not come before the year 9999.
        """
        if not 0 <= seconds < float("inf"):
            raise UsageError(f"a calendar adds 0 or more seconds, got {seconds}")
        zones.offset(self.zone, at)
        zones.offset(self.zone, at + seconds)  # no sooner than that
        left = _exact(seconds)
        if not left:
            return float(at)
        for low, high, offset in self._walls(at):
            before = self._compiled.before(low)
            found = self._compiled.before(high) - before
            if found >= left:
                return (self._compiled.reach(before + left, low, high) - offset) / SECOND
            left -= found
            if self._never_opens(high):
                break
        raise UsageError(f"{seconds} open seconds never come after {at}: this calendar does not open again")

    def between(self, start: float, end: float) -> float:
        """Returns the open seconds from `start` to `end`; negative if `end` is the earlier one."""
        if end < start:
            return -self.between(end, start)
        total, last = 0, _exact(end)
        zones.offset(self.zone, end)
        for low, high, offset in self._walls(start):
            stop = min(high, last + offset)
            total += self._compiled.before(stop) - self._compiled.before(low)
            if stop == last + offset:
                break
        return total / SECOND

    def local(self, at: float) -> dt.datetime:
        """Returns the date and time that a clock on the wall shows."""
        zones.offset(self.zone, at)
        return dt.datetime.fromtimestamp(at, zones.zone(self.zone))

    def moment(self, text: str) -> float:
        """Returns the moment at which a wall clock shows "2026-12-25 09:00".

        Of a time that comes twice it is the first one; a time that is skipped is as long after the gap's end as it
        would be after its beginning (RFC 5545, 3.3.5).

        Raises:
            UsageError: The text does not have this form.
        """
        date, _, time = text.partition(" ")
        return zones.instant(self.zone, day_of(date), clock_time(time))

    def is_business_day(self, at: float) -> bool:
        """True if it opens on the date of `at`."""
        return self.opens_on(_day(self.local(at)))

    def special(self, at: float) -> Day | None:
        """Returns the special day on the date of `at`; None if the date is like its weekday."""
        return self.dates.get(self.local(at).date().isoformat())

    def opens_on(self, day: int) -> bool:
        """True if it opens on a day, counted from 1970-01-01."""
        return bool(self._compiled.begins(day))

    @functools.cached_property
    def _compiled(self) -> Hours:
        return _compile(codec.dumps((self.zone, self.hours, self.dates)))

    def _walls(self, at: float) -> Iterator[tuple[int, int, int]]:
        """Yields the times of the wall clock from `at` on, in pieces without jumps: (first, last, offset)."""
        first = _exact(at)
        for start, end, offset in zones.stretches(self.zone, at):
            shift = offset * SECOND
            yield (first if start == at else _exact(start)) + shift, _exact(end) + shift, shift

    def _first(self, at: float, find: Callable[[int, int], int], *, never: Callable[[int], bool], verb: str) -> float:
        for low, high, offset in self._walls(at):
            found = find(low, high)
            if found < high:
                return float(at) if found == low and low - offset == _exact(at) else (found - offset) / SECOND
            if never(high):
                break
        raise UsageError(f"this calendar never {verb} after {at}")

    def _never_opens(self, wall: int) -> bool:
        return not self._compiled.weekly and wall > (self._compiled.last_special + 1) * _DAY * SECOND

    def _never_closes(self, wall: int) -> bool:
        always = self._compiled.weekly == 7 * _DAY * SECOND
        return always and wall > (self._compiled.last_special + 1) * _DAY * SECOND


@functools.lru_cache(maxsize=256)
def _compile(data: bytes) -> Hours:
    zone, hours, dates = codec.loads(data, tuple[str, dict[str, tuple[str, ...]], dict[str, Day]])
    zones.zone(zone)
    week: list[Any] = [None] * 7
    for text, intervals in hours.items():
        for day in weekdays(text):
            if week[day] is not None:
                raise UsageError(f"hours: {WEEKDAYS[day]!r} is in two entries, one of them {text!r}")
            week[day] = spans(intervals, f"hours of {text!r}")
    special: dict[int, tuple[Span, ...]] = {}
    for date, one in dates.items():
        special[day_of(date)] = spans(one.hours, f"date {date!r}")
    return Hours([begins or () for begins in week], special)


def _exact(seconds: float) -> int:
    return round(seconds * SECOND)


def _day(moment: dt.datetime) -> int:
    return (moment.date() - date_of(0)).days
