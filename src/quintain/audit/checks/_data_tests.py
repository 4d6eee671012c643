"""Two-sample tests of columns, of pairs of columns and of a table's rows, with effect sizes, in plain Python.

Kolmogorov and Smirnov's D with its asymptotic p (Stephens 1970's correction), total variation with Pearson's chi-square
(p by Wilson and Hilferty 1931), two proportions by the normal test, Spearman's rho (the difference by Fisher's z), and
Holm 1979 over all tests. With many rows everything is significant: what counts is the effect; the p only keeps small
samples from talking.
"""

from __future__ import annotations

import bisect
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list

from ._data_tables import STAMP, Row, column, columns, filled, is_id, is_stamps, numbers, texts

LEAST = 20
"""Values on either side below which nothing is said."""
DISTANCE, SHARE = 0.2, 0.15
"""Distance from which two distributions count as different, and difference from which two shares do."""
NEVER, SURE = 0.03, 1e-5
"""Bound of a share that counts as none or all, and the p-value that it needs."""
ALPHA, MAX_CATEGORIES = 0.01, 10
"""Categories of a column, or columns of a kind, that are looked into."""
MOMENT = re.compile(
    r"(?:^|_)(?:created|updated|modified|closed|opened|sent|seen|time|timestamp|ts|date|day|at|epoch)(?:$|_)"
)
EPOCH = 1e8
"""Seconds beyond which a number is a moment in the history of mankind."""
WITHIN = ("distribution", "categories", "share of empty values", "share of true")
"""Tests that are made again where another column has a certain value."""

Named = tuple[str, "ColumnTest"]
_Test = Callable[..., tuple[float, float]]


class ColumnTest(msgspec.Struct, frozen=True):
    """One test of one column.

    Attributes:
        what: What was compared.
        effect: Its size: a distance between distributions, or between shares.
        p: Of a difference so large by chance.
        sample, reference: Summary of each side.
    """

    what: str
    effect: float
    p: float
    sample: Any
    reference: Any

    @property
    def is_large(self) -> bool:
        if not self.what.startswith("share"):
            return self.effect > DISTANCE
        if self.sample in (0, 1) or self.reference in (0, 1):
            return self.effect >= NEVER and self.p < SURE  # Never, or always, is more than a little less.
        return self.effect > SHARE


def ks(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """(D, p): the largest distance between two empirical distribution functions."""
    a, b = sorted(first), sorted(second)
    distance = max(
        abs(bisect.bisect_right(a, value) / len(a) - bisect.bisect_right(b, value) / len(b)) for value in {*a, *b}
    )
    size = len(a) * len(b) / (len(a) + len(b))
    scaled = (math.sqrt(size) + 0.12 + 0.11 / math.sqrt(size)) * distance
    if scaled < 0.3:
        return distance, 1.0
    terms = (2 * (-1) ** (k - 1) * math.exp(-2 * k * k * scaled * scaled) for k in range(1, 101))
    return distance, min(1.0, max(0.0, sum(terms)))


def variation(first: Sequence[Hashable], second: Sequence[Hashable]) -> tuple[float, float]:
    """(total variation, p of Pearson's chi-square); rare values are counted together."""
    a, b = Counter(first), Counter(second)
    distance = sum(abs(a[key] / len(first) - b[key] / len(second)) for key in {*a, *b}) / 2
    share = len(first) / (len(first) + len(second))
    rare, groups = [0, 0], [(0, 0)]
    for key in {*a, *b}:
        if (a[key] + b[key]) * min(share, 1 - share) >= 5:
            groups.append((a[key], b[key]))
        else:
            rare = [rare[0] + a[key], rare[1] + b[key]]
    groups = [group for group in (*groups, (rare[0], rare[1])) if sum(group)]
    chi = 0.0
    for sample, rest in groups:
        expected = (sample + rest) * share
        chi += (sample - expected) ** 2 / expected + (rest - (sample + rest - expected)) ** 2 / (
            sample + rest - expected
        )
    return distance, _chi_p(chi, len(groups) - 1)


def _chi_p(chi: float, freedom: int) -> float:
    if freedom < 1 or chi <= 0:
        return 1.0
    spread = 2 / (9 * freedom)
    return _tail(((chi / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread))


def _tail(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2


def shares(first: Sequence[bool], second: Sequence[bool]) -> tuple[float, float]:
    """(difference of two shares, p of the normal test)."""
    a, b = sum(first) / len(first), sum(second) / len(second)
    both = (sum(first) + sum(second)) / (len(first) + len(second))
    error = math.sqrt(both * (1 - both) * (1 / len(first) + 1 / len(second)))
    return abs(a - b), 1.0 if error == 0 else min(1.0, 2 * _tail(abs(a - b) / error))


def binomial(hits: int, count: int, rate: float) -> float:
    """Two-sided p of so many hits, by doubling the smaller tail, which is summed exactly."""
    if rate <= 0 or rate >= 1:
        return 1.0 if hits == round(rate * count) else 0.0
    ways = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(count + 1)]
    odds = [math.exp(w + k * math.log(rate) + (count - k) * math.log(1 - rate)) for k, w in enumerate(ways)]
    return min(1.0, 2 * min(sum(odds[: hits + 1]), sum(odds[hits:])))


# --- a column ---


def tests(name: str, sample: Sequence[Any], reference: Sequence[Any]) -> list[ColumnTest]:
    """All tests that fit a column; none where either side is too small."""
    if min(len(sample), len(reference)) < LEAST:
        return []
    found = [share_of("share of empty values", sample, reference, holds=lambda value: value is None or value == "")]
    a, b = filled(sample), filled(reference)
    return found if min(len(a), len(b)) < LEAST else found + _filled(name, a, b)


def _filled(name: str, a: Sequence[Any], b: Sequence[Any]) -> list[ColumnTest]:
    if all(isinstance(item, bool) for item in (*a, *b)):
        return [share_of("share of true", a, b, holds=bool)]
    if is_stamps(a) and is_stamps(b):
        hours = [[match[1] for text in texts(side) if (match := STAMP.match(text)) and match[1]] for side in (a, b)]
        return [_by("hours of the day", variation, hours, show=_counts)] if min(map(len, hours)) >= LEAST else []
    if is_id(name, a) or is_id(name, b):
        return []
    amounts, words = [numbers(a), numbers(b)], [texts(a), texts(b)]
    if len(amounts[0]) > 0.8 * len(a) and len(amounts[1]) > 0.8 * len(b):
        if MOMENT.search(name.lower()) and min(*amounts[0], *amounts[1]) > EPOCH:
            return []  # When a world was made is its own affair.
        is_round = share_of("share of round numbers", *amounts, holds=lambda value: value % 10 == 0)
        return [_by("distribution", ks, amounts, show=_quartiles), is_round]
    return _texts(words) if len(words[0]) > 0.8 * len(a) and len(words[1]) > 0.8 * len(b) else []


def share_of(what: str, sample: Sequence[Any], reference: Sequence[Any], *, holds: Callable[[Any], bool]) -> ColumnTest:
    """The test of the share of values of which something holds."""
    sides = [[bool(holds(value)) for value in side] for side in (sample, reference)]
    return _by(what, shares, sides, show=lambda side: round(sum(side) / len(side), 3))


def _by(what: str, test: _Test, sides: Sequence[Any], *, show: Callable[[Any], Any]) -> ColumnTest:
    return ColumnTest(what, *test(*sides), *map(show, sides))


def _counts(values: Sequence[Any]) -> dict[str, int]:
    return {str(value): count for value, count in Counter(values).most_common(4)}


def _quartiles(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [round(ordered[round(part * (len(ordered) - 1))], 3) for part in (0, 0.25, 0.5, 0.75, 1)]


_FORMS: dict[str, Callable[[str], bool]] = {
    "with letters beyond ASCII": lambda value: not value.isascii(),
    "in one case": lambda value: value in (value.lower(), value.upper()),
    "with digits": lambda value: any(map(str.isdigit, value)),
    "with white space around it": lambda value: value != value.strip(),
}


def _texts(sides: Sequence[Sequence[str]]) -> list[ColumnTest]:
    found = [share_of(f"share {name}", *sides, holds=holds) for name, holds in _FORMS.items()]
    if max(len({*side}) for side in sides) <= 20:
        return [*found, _by("categories", variation, sides, show=_counts)]
    size = min(map(len, sides))
    again = [_repeats(side[:size]) for side in sides]
    lengths = [[float(len(text)) for text in side] for side in sides]
    repeated = share_of("share of repeated values", *again, holds=bool)
    return [*found, _by("lengths", ks, lengths, show=_quartiles), repeated]


def _repeats(values: Sequence[str]) -> list[bool]:
    low = [value.casefold() for value in values]
    first = {value: place for place, value in reversed([*enumerate(low)])}
    return [first[value] < place for place, value in enumerate(low)]


# --- a table ---


def drawn_by_task(tasks: Sequence[Sequence[Row]]) -> set[str]:
    """Columns whose few values are drawn for each task, and not for each row: most tasks are unlike all others.

    As one more such draw production's says nothing, however many rows it has.
    """
    found: set[str] = set()
    for name in columns([row for rows in tasks for row in rows]) if len(tasks) > 2 else ():
        sides = [texts(column(rows, name)) for rows in tasks]
        if min(map(len, sides)) < LEAST or len({text for side in sides for text in side}) > 20:
            continue
        apart = 0
        for place, side in enumerate(sides):
            rest = [value for reference, side in enumerate(sides) if reference != place for value in side]
            effect, p = variation(side, rest)
            apart += effect > DISTANCE and p < SURE
        if 2 * apart > len(sides):
            found.add(name)
    return found


def holm(every: Sequence[tuple[str, ColumnTest]]) -> list[tuple[str, ColumnTest]]:
    """Returns the large differences that hold after Holm's correction, largest first."""
    kept: list[tuple[str, ColumnTest]] = []
    for rank, (name, difference) in enumerate(sorted(every, key=lambda pair: pair[1].p)):
        if difference.p > ALPHA / (len(every) - rank):
            break
        kept.append((name, difference))
    return sorted((pair for pair in kept if pair[1].is_large), key=lambda pair: -pair[1].effect)


def joint(sample: Sequence[Row], reference: Sequence[Row]) -> list[Named]:
    """All tests of a table that look beyond one plain column, for the margins alone may match.

    Within each category of one column the others are compared again; ranks of two numbers may hang together in
    production alone; lists and objects count as their sizes and as what is in them.
    """
    if min(len(sample), len(reference)) < LEAST:
        return []
    both = [name for name in columns(sample) if name in {*columns(reference)}]
    sides = {name: (column(sample, name), column(reference, name)) for name in both}
    kinds = [name for name in both if _is_kind(*sides[name])][:MAX_CATEGORIES]
    amounts = [name for name in both if _is_amount(name, sides[name])][:MAX_CATEGORIES]
    found = [(name, test) for name in both for test in _sized(sides[name])]
    found += [(name, test) for name in kinds for test in _lost(*sides[name])]
    found += [(name, test) for name in amounts for test in _tails(*map(numbers, sides[name]))]
    for kind in kinds:
        for value in sorted({str(cell) for cell in filled(sides[kind][1])}):
            a, b = ([row for row in rows if str(row.get(kind)) == value] for rows in (sample, reference))
            for name in both if min(len(a), len(b)) >= LEAST else ():
                again = tests(name, column(a, name), column(b, name)) if name != kind else []
                some = [(test, f"{test.what} where {kind} is {value}") for test in again if test.what in WITHIN]
                found += [(name, msgspec.structs.replace(test, what=what)) for test, what in some]
    for place, first in enumerate(amounts):
        found += [pair for second in amounts[place + 1 :] for pair in _ranks(first, second, sample, reference)]
    return found


def _is_kind(a: Sequence[Any], b: Sequence[Any]) -> bool:
    there = [*filled(a), *filled(b)]
    plain = bool(there) and all(isinstance(item, str | bool | int) for item in there)
    return plain and 2 <= len({str(item) for item in there}) <= MAX_CATEGORIES


def _is_amount(name: str, sides: Sequence[Sequence[Any]]) -> bool:
    amounts = [(numbers(side), len(filled(side))) for side in sides if not is_id(name, side)]
    return len(amounts) == 2 and all(
        len(known) > 0.8 * count >= LEAST and len({*known}) > MAX_CATEGORIES for known, count in amounts
    )


def _lost(a: Sequence[Any], b: Sequence[Any]) -> Iterator[ColumnTest]:
    here = {str(cell) for cell in filled(a)}
    lost = {str(cell) for cell in filled(b)} - here
    if here and lost:
        yield share_of("share of values that are nowhere here", a, b, holds=lambda value: str(value) in lost)


def _tails(a: Sequence[float], b: Sequence[float]) -> Iterator[ColumnTest]:
    """Yields tests of the tails in production and of the signs of numbers."""
    ordered = sorted(b)
    low, high = (ordered[int(part * (len(ordered) - 1))] for part in (0.05, 0.95))
    rules: dict[str, Callable[[float], bool]] = {
        "beyond production's highest twentieth": lambda value: value > high,
        "beyond production's lowest twentieth": lambda value: value < low, "of whole numbers": float.is_integer,
        "of zeros": lambda value: value == 0, "below zero": lambda value: value < 0,
    }  # fmt: skip
    yield from (share_of(f"share {name}", a, b, holds=holds) for name, holds in rules.items())


def _sized(both: Sequence[Sequence[Any]]) -> Iterator[ColumnTest]:
    """Lists and objects: how many things are in them, and how large these are."""
    sides = [[item for item in side if is_dict(item) or is_list(item)] for side in both]
    sizes = [[float(len(item)) for item in side] for side in sides]
    inner = [[one for item in side for one in (item.values() if is_dict(item) else item)] for side in sides]
    for what, counted in (("sizes", sizes), ("numbers in it", [*map(numbers, inner)])):
        if min(map(len, sides)) >= LEAST <= min(map(len, counted)):
            yield _by(what, ks, counted, show=_counts)


def _ranks(first: str, second: str, *tables: Sequence[Row]) -> Iterator[Named]:
    """Yields the difference in rank correlation of two numeric columns."""
    pairs = [[numbers([row.get(first), row.get(second)]) for row in rows] for rows in tables]
    kept = [[pair for pair in side if len(pair) == 2] for side in pairs]
    if min(map(len, kept)) >= 2 * LEAST:
        ranked = [map(_ranked, zip(*side, strict=True)) for side in kept]
        rhos = [statistics.correlation(x, y) if len({*x}) > 1 < len({*y}) else 0.0 for x, y in ranked]
        error = math.sqrt(sum(1 / (len(side) - 3) for side in kept))
        z = abs(math.atanh(max(-0.999, min(0.999, rhos[0]))) - math.atanh(max(-0.999, min(0.999, rhos[1])))) / error
        rounded = [round(rho, 2) for rho in rhos]
        yield f"{first}, {second}", ColumnTest("correlation", abs(rhos[0] - rhos[1]) / 2, 2 * _tail(z), *rounded)


def _ranked(values: Sequence[float]) -> list[float]:
    """Ranks; equal values share the middle of theirs."""
    ordered = sorted(values)
    return [(bisect.bisect_left(ordered, value) + bisect.bisect_right(ordered, value)) / 2 for value in values]
