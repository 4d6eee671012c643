"""The five fields of a crontab line: minute, hour, day of the month, month, day of the week.

Each is `*`, a number, a range `a-b`, a list of these, or any with a step `/n`; months and weekdays may be named. As
POSIX has it, a day fits when either of its two fields does, if both are restricted; otherwise both must fit.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from quintain.errors import UsageError

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (  # name, least, greatest, names
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("day of the week", 0, 7, _WEEKDAYS),
)
_PART = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?")


class Line(NamedTuple):
    """Content of a cron expression."""

    times: tuple[int, ...]
    """Seconds after midnight, ascending."""
    days: frozenset[int]
    """Days of the month, from 1."""
    months: frozenset[int]
    """Numbers of months, from 1."""
    weekdays: frozenset[int]
    """0 for Monday."""
    either: bool
    """True if one of `days` and `weekdays` is enough."""

    def fits(self, month: int, day: int, weekday: int) -> bool:
        """True if the expression includes a date."""
        if month not in self.months:
            return False
        if self.either:
            return day in self.days or weekday in self.weekdays
        return day in self.days and weekday in self.weekdays


@functools.lru_cache(maxsize=1024)
def parse(expression: str) -> Line:
    """Reads an expression such as "*/15 8-17 * * mon-fri".

    Raises:
        UsageError: It has no five fields, or one of them asks for what there is not.
    """
    texts = expression.split()
    if len(texts) != len(_FIELDS):
        names = ", ".join(name for name, *_ in _FIELDS)
        raise UsageError(f"cron {expression!r} has {len(texts)} fields; it takes 5: {names}")
    minutes, hours, days, months, weekdays = (_field(expression, text, place) for place, text in enumerate(texts))
    return Line(
        times=tuple(sorted((hour * 60 + minute) * 60 for hour in hours for minute in minutes)),
        days=days,
        months=months,
        weekdays=frozenset((day - 1) % 7 for day in weekdays),
        either=not texts[2].startswith("*") and not texts[4].startswith("*"),
    )


def _field(expression: str, text: str, place: int) -> frozenset[int]:
    name, least, greatest, _ = _FIELDS[place]
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise UsageError(f"cron {expression!r}: {part!r} is not a {name}")
        star, first, last, step = match.groups()
        low = least if star else _value(expression, first, place)
        high = greatest if star or (step and not last) else _value(expression, last or first, place)
        if low > high or (step and not int(step)):
            raise UsageError(f"cron {expression!r}: {part!r} is an empty {name}; it takes {least}-{greatest}")
        found.update(range(low, high + 1, int(step or 1)))
    return frozenset(found)


def _value(expression: str, text: str, place: int) -> int:
    name, least, greatest, names = _FIELDS[place]
    value = names.index(text.lower()) + least if text.lower() in names else int(text) if text.isdecimal() else -1
    if not least <= value <= greatest:
        more = f" or {names[0]}-{names[-1]}" if names else ""
        raise UsageError(f"cron {expression!r}: {text!r} is not a {name}; it takes {least}-{greatest}{more}")
    return value
