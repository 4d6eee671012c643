"""Histogram of rewards: detection of a bound at which rewards pile up."""

from __future__ import annotations

from collections.abc import Sequence

BINS = 10
PILE, OVER = 0.3, 3  # least share of values at a bound that is a pile, and least ratio to the next bin or level
LEVELS, LEAST = 5, 15
"""Least numbers of levels and of values for a histogram: a reward of few levels may be coarse on purpose."""


def atom(values: Sequence[float]) -> float | None:
    """Returns the bound at which values pile up, the upper one first; None without a pile."""
    if len({round(one, 9) for one in values}) < LEVELS or len(values) < LEAST:
        return None
    low, high = min(values), max(values)
    wide = (high - low) / BINS
    for bound, least, most in ((high, high - wide, high), (low, low, low + wide)):
        there = sum(one == bound for one in values)
        next_level = min((one for one in values if one != bound), key=lambda one: abs(one - bound))
        near = max(values.count(next_level), sum(one != bound and least <= one <= most for one in values))
        if there >= PILE * len(values) and there >= OVER * max(1, near):
            return bound
    return None
