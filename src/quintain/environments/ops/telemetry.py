"""Curves and log lines: pure functions of rows, the time and hashes, so that a world holds neither points nor lines."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from .description import FOLDER

MINUTE = 60.0
POINTS = 12
SETTLE_MINUTES = 2
"""Minutes that a curve takes back to its base after a repair."""


class Metric(msgspec.Struct, frozen=True):
    """A kind of curve: range of its base, relative noise and unit."""

    base: tuple[float, float]
    noise: float
    unit: str


class ShiftRow(msgspec.Struct):
    """A curve that leaves its base.

    Attributes:
        curve: "row/metric".
        to: Value that it goes to.
        at: When it begins, in seconds.
        minutes: Minutes that it takes.
        until: When it ends; 0 while it lasts.
        fault: Failure that causes it; empty for a decoy.
    """

    curve: str
    to: float
    at: float
    minutes: int
    until: float = 0.0
    fault: str = ""


class LogRow(msgspec.Struct):
    """A kind of log line that recurs.

    Attributes:
        per_minute: Lines per minute, on average.
        text: The line; "#" becomes a number.
        at: When it begins, in seconds; 0 for always.
        until: When it ends; 0 while it lasts.
        fault: Failure that causes it; empty for others.
    """

    service: str
    level: str
    per_minute: float
    text: str
    at: float = 0.0
    until: float = 0.0
    fault: str = ""


def stamp(at: float) -> str:
    """Returns a time as rows keep it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(at: str) -> float:
    """Returns the seconds of a time, the inverse of `stamp`."""
    return datetime.fromisoformat(at).timestamp()


@functools.cache
def metrics() -> dict[str, Metric]:
    """Returns the kinds of curves by name."""

    class Metrics(msgspec.Struct):
        metrics: dict[str, Metric]

    return msgspec.toml.decode((FOLDER / "production.toml").read_bytes(), type=Metrics).metrics


def chance(*names: object) -> float:
    """Returns a number in [0, 1) that depends on the names alone."""
    block = hashlib.blake2b("/".join(map(str, names)).encode(), digest_size=8).digest()
    return int.from_bytes(block, "little") / 2**64


def curve(row: str, metric: str, *, shifts: list[ShiftRow], now: float, minutes: int, salt: str) -> list[list[Any]]:
    """Returns the points of a curve up to now, oldest first, as [time, value]."""
    kind, step = metrics()[metric], max(1, minutes // POINTS)
    low, high = kind.base
    base = low + (high - low) * chance(salt, row, metric)
    own = [shift for shift in shifts if shift.curve == f"{row}/{metric}"]
    points: list[list[Any]] = []
    for ago in range(min(POINTS, minutes) - 1, -1, -1):
        minute = int(now // MINUTE) - ago * step
        at, value = minute * MINUTE, base
        for shift in own:
            value += (shift.to - base) * _share(shift, at)
        noise = 1 + kind.noise * (2 * chance(salt, row, metric, minute) - 1)
        points.append([stamp(at)[11:16], round(value * noise, 1)])
    return points


def _share(shift: ShiftRow, at: float) -> float:
    """Returns how far a shift is gone at a time, in [0, 1]."""
    end = shift.until or at
    reached = min(1.0, max(0.0, (min(at, end) - shift.at) / (MINUTE * max(1, shift.minutes))))
    back = max(0.0, (at - end) / (MINUTE * SETTLE_MINUTES)) if shift.until else 0.0
    return max(0.0, reached * (1 - back))


def log_lines(kinds: list[LogRow], *, now: float, minutes: int) -> Iterator[tuple[str, str, str, str]]:
    """Yields the lines of the last minutes, newest first, as (time, service, level, text)."""
    last = int(now // MINUTE)
    for minute in range(last, last - minutes, -1):
        found: list[tuple[str, str, str, str]] = []
        for kind in kinds:
            begin, end = minute * MINUTE, (minute + 1) * MINUTE
            if end <= kind.at or (kind.until and begin >= kind.until):
                continue
            salt = (kind.service, kind.text, minute)
            for line in range(int(kind.per_minute + chance(*salt))):
                at = begin + MINUTE * chance(*salt, line)
                if kind.at <= at <= now and not (kind.until and at >= kind.until):
                    found.append((stamp(at), kind.service, kind.level, _numbered(kind.text, (*salt, line))))
        yield from sorted(found, reverse=True)


def _numbered(text: str, salt: tuple[object, ...]) -> str:
    """Returns the text with a number for each "#"."""
    head, *rest = text.split("#")
    return head + "".join(f"{int(1000 * chance(*salt, place))}{part}" for place, part in enumerate(rest))
