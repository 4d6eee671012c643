"""Opening hours on a clock on the wall: no zones, no jumps, every day 86,400 seconds.

All times are whole microseconds, so sums are exact. Weeks repeat but for single dates, so the open time before any
moment is a product, a prefix sum over the week, and a prefix sum over the dates before it.
"""

from __future__ import annotations

import bisect
import datetime as dt
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from quintain.errors import UsageError

SECOND = 1_000_000
DAY = 86_400 * SECOND
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ORDINAL = dt.date(1970, 1, 1).toordinal()
_SPAN = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)")

Span = tuple[int, int]
"""Microseconds after midnight: it begins, and it ends before. The end may lie in the next day."""


def day_of(date: str) -> int:
    """Returns the days from 1970-01-01 to a date such as "2026-12-25".

    Raises:
        UsageError: The text is not a date.
    """
    try:
        return dt.date.fromisoformat(date).toordinal() - _ORDINAL
    except ValueError as error:
        raise UsageError(f"{date!r} is not a date such as '2026-12-25': {error}") from error


def date_of(day: int) -> dt.date:
    """Returns the date of a day, counted from 1970-01-01."""
    return dt.date.fromordinal(day + _ORDINAL)


def weekday_of(day: int) -> int:
    """0 for Monday."""
    return (day + 3) % 7


def weekdays(text: str) -> list[int]:
    """Returns the weekdays that "mon", "mon-fri" or "sat,sun" means.

    Raises:
        UsageError: It means none.
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if first not in WEEKDAYS or (dash and last not in WEEKDAYS):
            raise UsageError(f"{part.strip()!r} is not a weekday; those are {', '.join(WEEKDAYS)}, and 'mon-fri'")
        start, end = WEEKDAYS.index(first), WEEKDAYS.index(last or first)
        found += [day % 7 for day in range(start, end + 1 if end >= start else end + 8)]
    return found


def clock_time(text: str) -> int:
    """Returns the seconds after midnight of "HH:MM", from 00:00 to 23:59.

    Raises:
        UsageError: The text is not such a time.
    """
    match = re.fullmatch(r"(\d\d):(\d\d)", text)
    if not match or not (int(match[1]) < 24 and int(match[2]) < 60):
        raise UsageError(f"{text!r} is not a time from '00:00' to '23:59'")
    return int(match[1]) * 3600 + int(match[2]) * 60


def spans(texts: Iterable[str], where: str) -> tuple[Span, ...]:
    """Returns opening hours such as "09:00-17:30", "22:00-06:00" (until the next day) or "00:00-24:00".

    Raises:
        UsageError: An interval is malformed, empty, or overlaps another.
    """
    found: list[Span] = []
    for text in texts:
        match = _SPAN.fullmatch(text)
        parts = [int(part) for part in match.groups()] if match else [99] * 4
        start, end = ((hour * 60 + minute) * 60 * SECOND for hour, minute in (parts[:2], parts[2:]))
        if max(parts[1], parts[3]) > 59 or start >= DAY or end > DAY:
            raise UsageError(f"{where}: {text!r} is not an interval from '00:00-00:01' to '00:00-24:00'")
        if start == end:
            raise UsageError(f"{where}: {text!r} is empty; the whole day is '00:00-24:00'")
        found.append((start, end if end > start else end + DAY))
    found.sort()
    for (_, end), (start, _) in itertools.pairwise(found):
        if start < end:
            raise UsageError(f"{where}: the intervals {', '.join(texts)} overlap")
    return tuple(found)


class Hours:
    """Opening hours of a week and of single dates.

    Args:
        week: For each weekday, the spans that begin on it.
        dates: For single days, counted from 1970-01-01, the spans that begin on them instead.
    """

    def __init__(self, week: Sequence[Sequence[Span]], dates: Mapping[int, Sequence[Span]]) -> None:
        self._begins = [tuple(spans) for spans in week]
        self._dates = {day: tuple(spans) for day, spans in dates.items()}
        self._week = [_pieces(self._begins[day], self._begins[day - 1]) for day in range(7)]
        self._sums = [0, *itertools.accumulate(_length(self._week[weekday_of(day)]) for day in range(7))]
        # A date also changes the day after it, into which its last span may reach.
        self._special_days = sorted({day + more for day in self._dates for more in (0, 1)})
        self._special = {day: _pieces(self.begins(day), self.begins(day - 1)) for day in self._special_days}
        self._corrections = [0, *itertools.accumulate(self._correction(day) for day in self._special_days)]

    def begins(self, day: int) -> tuple[Span, ...]:
        """Returns the spans that begin on a day; none if it is not a business day."""
        return self._dates.get(day, self._begins[weekday_of(day)])

    def pieces(self, day: int) -> tuple[Span, ...]:
        """Returns the opening hours of a day: spans that end by its midnight, in order and apart."""
        return self._special.get(day, self._week[weekday_of(day)])

    def is_open(self, wall: int) -> bool:
        """True if the shop is open when the wall clock shows `wall` after 1970-01-01 00:00."""
        day, rest = divmod(wall, DAY)
        return any(start <= rest < end for start, end in self.pieces(day))

    def before(self, wall: int) -> int:
        """Returns the open time before `wall`, up to a constant."""
        day, rest = divmod(wall, DAY)
        return self._total(day) + sum(min(end, rest) - start for start, end in self.pieces(day) if start < rest)

    def reach(self, total: int, low: int, high: int) -> int:
        """Returns the first moment in [low, high] with `before(moment) >= total`; there must be one behind `low`."""
        day, last = low // DAY, high // DAY
        while day < last:  # to the last day that begins with less
            middle = (day + last + 1) // 2
            day, last = (middle, last) if self._total(middle) < total else (day, middle - 1)
        left = total - self._total(day)
        for start, end in self.pieces(day):
            if left <= end - start:
                return day * DAY + start + left
            left -= end - start
        raise AssertionError(f"{left} more is open on day {day} than its hours are long")

    def opens(self, wall: int, high: int) -> int:
        """Returns the first moment in [wall, high] at which it is open; `high` when there is none before."""
        day, rest = divmod(wall, DAY)
        for start, end in self.pieces(day):
            if rest < end:
                return min(day * DAY + max(start, rest), high)
        low, last, total = day + 1, high // DAY, self._total(day + 1)
        if self._total(last + 1) == total:
            return high
        while low < last:  # to the first day that ends with more
            middle = (low + last) // 2
            low, last = (low, middle) if self._total(middle + 1) > total else (middle + 1, last)
        return min(low * DAY + self.pieces(low)[0][0], high)

    def closes(self, wall: int, high: int) -> int:
        """Returns the first moment in [wall, high] at which it is closed; `high` when there is none before."""
        day, rest = divmod(wall, DAY)
        while day * DAY + rest < high:
            end = next((end for start, end in self.pieces(day) if start <= rest < end), rest)
            if end < DAY:
                return min(day * DAY + end, high)
            day, rest = self._first_not_full(day + 1, high // DAY), 0
        return high

    @property
    def weekly(self) -> int:
        """Returns the open time of a week without special dates."""
        return self._sums[7]

    @property
    def last_special(self) -> int:
        """Returns the last day that is not as its weekday is; -1 when all are."""
        return self._special_days[-1] if self._special_days else -1

    def _first_not_full(self, low: int, high: int) -> int:
        """Returns the first day in [low, high] that is not open all day; `high` if all before it are."""
        while low < high:
            middle = (low + high) // 2
            full = self._total(middle + 1) - self._total(low) == (middle + 1 - low) * DAY
            low, high = (middle + 1, high) if full else (low, middle)
        return low

    def _total(self, day: int) -> int:
        weeks, rest = divmod(day, 7)
        return weeks * self._sums[7] + self._sums[rest] + self._corrections[bisect.bisect_left(self._special_days, day)]

    def _correction(self, day: int) -> int:
        return _length(self._special[day]) - _length(self._week[weekday_of(day)])


def _length(pieces: Iterable[Span]) -> int:
    return sum(end - start for start, end in pieces)


def _pieces(today: Iterable[Span], yesterday: Iterable[Span]) -> tuple[Span, ...]:
    """Returns the open spans of the second of two days, in order and without overlap."""
    clipped = [(0, end - DAY) for _, end in yesterday if end > DAY]
    clipped += [(start, min(end, DAY)) for start, end in today]
    merged: list[Span] = []
    for start, end in sorted(clipped):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
