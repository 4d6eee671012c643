"""Histograms of rewards: a bound at which they pile up."""

from __future__ import annotations

from collections.abc import Sequence

BINS = 10
PILE, OVER = 0.3, 3
"""Share of the values at a bound from which on they are a pile, and how many times those beside it: in the next bin, or
at the next level where levels are few."""
LEVELS, LEAST = 5, 15
"""Levels and values below which there is no histogram: a reward of few levels may be coarse on purpose."""


def atom(values: Sequence[float]) -> float | None:
    """The bound at which far more values lie than beside it, the upper one first; None without."""
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
