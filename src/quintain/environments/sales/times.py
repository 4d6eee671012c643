"""Time zones and times as text.

The rules are written out here: a world must not answer differently because a machine's time-zone database is newer.
They hold for the years 2007 to 2100 as the law stands today.
"""

from __future__ import annotations

import functools
import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import TypeVar

import quintain as qn

D = TypeVar("D", bound=date)

HOUR = 3600.0
DAY = 24 * HOUR

_ZONES: dict[str, tuple[float, str]] = {
    "America/Los_Angeles": (-8, "us"),
    "America/Denver": (-7, "us"),
    "America/Chicago": (-6, "us"),
    "America/New_York": (-5, "us"),
    "America/Toronto": (-5, "us"),
    "America/Sao_Paulo": (-3, ""),
    "UTC": (0, ""),
    "Europe/London": (0, "eu"),
    "Europe/Berlin": (1, "eu"),
    "Europe/Paris": (1, "eu"),
    "Europe/Amsterdam": (1, "eu"),
    "Europe/Madrid": (1, "eu"),
    "Europe/Stockholm": (1, "eu"),
    "Europe/Warsaw": (1, "eu"),
    "Asia/Kolkata": (5.5, ""),
    "Asia/Singapore": (8, ""),
    "Asia/Tokyo": (9, ""),
    "Australia/Sydney": (10, "au"),
}
"""Zone to its standard offset in hours and its rule for summer time."""

ZONES = tuple(_ZONES)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::00)?(?:Z|[+-][0-9]{2}:[0-9]{2})")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def offset(zone: str, at: float) -> float:
    """Seconds to add to UTC at the moment `at`."""
    hours, rule = _ZONES[zone]
    if rule:
        begin, end = _summer(rule, hours, datetime.fromtimestamp(at, UTC).year)
        # In the south, summer spans the turn of the year.
        summer = begin <= at < end if begin < end else not end <= at < begin
        hours += summer
    return hours * HOUR


def local(at: float, zone: str) -> datetime:
    """The moment `at` on a clock in `zone`."""
    return datetime.fromtimestamp(at, timezone(timedelta(seconds=offset(zone, at))))


def moment(day: date, hour: float, zone: str) -> float:
    """Returns when a clock in `zone` shows `hour` on `day`; undefined from midnight to one on days of change."""
    wall = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + hour * HOUR
    return wall - offset(zone, wall - offset(zone, wall))


def stamp(at: float) -> str:
    """UTC to the minute, as records keep it; sorts as text."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="minutes")[:16] + "Z"


def describe(at: float, zone: str = "UTC") -> str:
    """For people: "Tue 2025-03-11 10:00 UTC", or "Tue 2025-03-11 10:00 Europe/Berlin (UTC+01:00)"."""
    shown = local(at, zone).isoformat(" ", timespec="minutes")
    text = f"{WEEKDAYS[local(at, zone).weekday()]} {shown[:16]} {zone}"
    return text if zone == "UTC" else f"{text} (UTC{shown[16:]})"


def long_date(day: date) -> str:
    """For letters: "Tuesday, 11 March 2025"; the locale has no say in it."""
    name = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")[day.weekday()]
    return f"{name}, {day.day} {MONTHS[day.month - 1]} {day.year}"


def parse(text: str) -> float:
    """The moment that a text names.

    Raises:
        ToolError: No such form or no such time.
    """
    wrong = f"{text!r} is no time; write it like 2025-03-11T14:30Z or 2025-03-11T14:30+01:00"
    return _read(datetime, text, _MOMENT, wrong=wrong).timestamp()


def parse_date(text: str) -> date:
    """The day that a text names.

    Raises:
        ToolError: No such form or no such day.
    """
    return _read(date, text, _DATE, wrong=f"{text!r} is no date; write it like 2025-03-11")


def _read(kind: type[D], text: str, form: re.Pattern[str], *, wrong: str) -> D:
    if not form.fullmatch(text):
        raise qn.ToolError(wrong)
    try:
        found = kind.fromisoformat(text)
    except ValueError:
        raise qn.ToolError(wrong) from None
    if not 2010 <= found.year <= 2099:
        raise qn.ToolError(f"{text!r} is out of range; the calendar reaches from 2010 to 2099")
    return found


@functools.lru_cache(maxsize=256)
def _summer(rule: str, hours: float, year: int) -> tuple[float, float]:
    """Returns the begin and end of summer time in a year."""
    match rule:
        case "us":  # second Sunday of March to first Sunday of November, at 2 by the clock
            return _sunday(year, 3, 2) + (2 - hours) * HOUR, _sunday(year, 11, 1) + (1 - hours) * HOUR
        case "eu":  # last Sundays of March and October, at 1 UTC
            return _sunday(year, 4, 0) + HOUR, _sunday(year, 11, 0) + HOUR
        case _:  # first Sunday of October to first Sunday of April, at 2 standard time
            return _sunday(year, 10, 1) + (2 - hours) * HOUR, _sunday(year, 4, 1) + (2 - hours) * HOUR


def _sunday(year: int, month: int, number: int) -> float:
    """Midnight UTC of a month's n-th Sunday; the 0th is the last one of the month before."""
    first = date(year, month, 1)
    day = first + timedelta(days=(6 - first.weekday()) % 7 + 7 * (number - 1))
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
