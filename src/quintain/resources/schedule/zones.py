"""Time zones, the same on every machine: the data of the `tzdata` package, never the machine's own.

A zone is a list of stretches of time in which the distance to UTC is constant. Inside one, a clock on the wall runs as
UTC does.
"""

from __future__ import annotations

import datetime as dt
import difflib
import functools
import importlib.resources
import importlib.util
import math
from collections.abc import Iterator
from typing import NamedTuple
from zoneinfo import ZoneInfo

from quintain.errors import UsageError

DAY = 86_400
_PROBE = DAY // 2
"""No zone ever changed twice within so many seconds."""
EARLIEST = dt.datetime(1, 1, 3, tzinfo=dt.UTC).timestamp()
LATEST = dt.datetime(9999, 1, 1, tzinfo=dt.UTC).timestamp()
"""Latest time of a date in every zone."""


class Stretch(NamedTuple):
    """A time of constant offset."""

    start: float
    """Seconds since epoch."""
    end: float
    """The first moment behind it."""
    offset: int
    """Seconds to add to UTC for what a clock on the wall shows."""


@functools.lru_cache(maxsize=256)
def zone(name: str) -> ZoneInfo:
    """Returns the zone of an IANA name.

    Raises:
        ImportError: `tzdata` is not installed.
        UsageError: The zone does not exist; the message suggests similar names.
    """
    if importlib.util.find_spec("tzdata") is None:
        raise ImportError("time zones need tzdata: pip install 'quintain[schedule]'")
    if name not in names():
        close = ", ".join(difflib.get_close_matches(name, sorted(names()), n=3)) or "Europe/Berlin and others"
        raise UsageError(f"time zone {name!r} does not exist; there is {close}")
    with importlib.resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@functools.cache
def names() -> frozenset[str]:
    """Returns all IANA names."""
    return frozenset(importlib.resources.files("tzdata").joinpath("zones").read_text().split())


def offset(name: str, at: float) -> int:
    """Returns seconds to add to UTC at this moment.

    Raises:
        UsageError: The moment is outside the years that a date can have.
    """
    if not EARLIEST <= at < LATEST:
        raise UsageError(f"{at} is not a moment between the years 1 and 9998, in seconds since 1970")
    found, changes = _offsets(name, math.floor(at) // DAY)
    for change, after in changes:
        if change <= at:
            found = after
    return found


@functools.lru_cache(maxsize=4096)
def _offsets(name: str, day: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """The offset at the beginning of a day of UTC, counted from 1970-01-01, and the changes within it."""
    begin = day * DAY
    changes = _changes(name, _year(begin))
    return _offset(zone(name), begin), tuple(one for one in changes if begin < one[0] < begin + DAY)


def stretches(name: str, at: float) -> Iterator[Stretch]:
    """Yields the stretches from `at` on, one after the other until the end of dates; none is longer than a year."""
    low, now = at, offset(name, at)
    for year in range(_year(at), _LAST_YEAR + 1):
        for change, after in _changes(name, year):
            if change <= at:
                continue
            if change > low:
                yield Stretch(low, change, now)
            low, now = change, after
        yield Stretch(low, _new_year(year + 1), now)
        low = _new_year(year + 1)


def instant(name: str, day: int, seconds: int) -> float:
    """Returns the moment at which a wall clock shows `seconds` after midnight of a day, counted from 1970-01-01.

    As RFC 5545 (3.3.5) has it: a time that comes twice is the first one, and one that is skipped is taken with the
    offset before the gap, so it falls as long after the gap's end as it would after its beginning.
    """
    wall = _EPOCH + dt.timedelta(days=day, seconds=seconds)
    return float(day * DAY + seconds - _seconds(wall.replace(tzinfo=zone(name))))


def _offset(info: ZoneInfo, at: int) -> int:
    return _seconds((_EPOCH + dt.timedelta(seconds=at)).replace(tzinfo=dt.UTC).astimezone(info))


def _seconds(moment: dt.datetime) -> int:
    found = moment.utcoffset()
    assert found is not None, "a zone of tzdata always has an offset"
    return found.days * DAY + found.seconds


@functools.lru_cache(maxsize=4096)
def _changes(name: str, year: int) -> tuple[tuple[int, int], ...]:
    """(moment, offset from then on) for each change of a UTC year."""
    info, found = zone(name), list[tuple[int, int]]()
    here, end = max(_new_year(year), int(EARLIEST) + 1), _new_year(year + 1)
    now = _offset(info, here - 1)
    for there in (*range(here, end, _PROBE), end - 1):
        after = _offset(info, there)
        if after != now:
            low, high = max(there - _PROBE, here - 1), there
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(info, middle) == now else (low, middle)
            found.append((high, after))
            now = after
    return tuple(found)


_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a clock on the wall has no zone)
_LAST_YEAR = 9998


def _year(at: float) -> int:
    return (_EPOCH + dt.timedelta(seconds=math.floor(at))).year


def _new_year(year: int) -> int:
    return (dt.date(year, 1, 1).toordinal() - 719_163) * DAY
