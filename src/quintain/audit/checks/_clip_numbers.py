"""Wrong numbers near a right one, and other spellings of the right one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

APPROXIMATE = re.compile(r"about|approx|within|tolerance|nearest|rough|estimat|±|\+/-|at least|at most|or so|around|%")
"""Words of a prompt after which a near number may be right."""

WHOLE = 1e6
"""Whole numbers below it are counts: a neighbour is another count, and no rounding of it."""
PRECISE = re.compile(r"decimal|digit|exact|to the cent")
"""Words of a prompt that says how exact a number is to be."""


class NearNumber(msgspec.Struct, frozen=True):
    """A number near the right one.

    Attributes:
        how: How it differs from the right one.
        is_plain: True if it is plainly not the right number.
    """

    how: str
    value: float
    is_plain: bool


def numeric(text: str) -> float | None:
    """The number that a text is, with nothing around it; None when it is none."""
    bare = text.strip().replace(",", "")
    return float(bare) if re.fullmatch(r"[-+]?\d{1,15}(?:\.\d{1,12})?", bare) else None


def wrong(value: float, like: str = "") -> Iterator[NearNumber]:
    """Wrong numbers, the farthest first; `like` is how the right one is written."""
    if value:
        yield NearNumber("a hundred times it", value * 100, is_plain=True)
        yield NearNumber("a hundredth of it", value / 100, is_plain=True)
        yield NearNumber("ten times it", value * 10, is_plain=True)
        yield NearNumber("its negative", -value, is_plain=True)
        yield NearNumber("twice it", value * 2, is_plain=True)
        yield NearNumber("zero", 0.0, is_plain=True)
        yield NearNumber("10 % more", value * 1.1, is_plain=True)
        yield NearNumber("10 % less", value * 0.9, is_plain=True)
    if float(value).is_integer():
        for share in (1, 0.5, 0.1):
            if abs(step := round(value * share / 100)) > 1:
                yield NearNumber(f"{share} % more", value + step, is_plain=True)
                yield NearNumber(f"{share} % less", value - step, is_plain=True)
        whole = abs(value) < WHOLE
        yield NearNumber("one more", value + 1, is_plain=whole)
        yield NearNumber("one less", value - 1, is_plain=whole)
        if whole:
            yield NearNumber("a half more", value + 0.5, is_plain=True)
            yield NearNumber("0.4 more", value + 0.4, is_plain=True)
    elif value:
        yield NearNumber(
            "rounded to a whole number", float(round(value)), is_plain=abs(round(value) - value) > 0.1 * abs(value)
        )
        yield NearNumber("1 % more", value * 1.01, is_plain=False)
        unit = 10.0 ** -len(like.strip().partition(".")[2])
        yield NearNumber("four units of its last digit more", value + 4 * unit, is_plain=False)
        yield NearNumber("four units of its last digit less", value - 4 * unit, is_plain=False)


def spelled(value: float, like: str) -> str:
    """A number as text, with as many decimals as the right one has, where that is enough."""
    decimals = len(like.strip().partition(".")[2])
    if float(value).is_integer() and not decimals:
        return str(int(value))
    short = f"{value:.{max(decimals, 1)}f}"
    return short if abs(float(short) - value) < 1e-9 * max(1.0, abs(value)) else f"{value:.6f}".rstrip("0")
