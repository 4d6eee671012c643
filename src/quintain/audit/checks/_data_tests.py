"""Two-sample tests with effect sizes, in plain Python.

Kolmogorov and Smirnov's D with its asymptotic p (Stephens 1970's correction), total variation with Pearson's chi-square
(p by Wilson and Hilferty 1931), two proportions by the normal test, Holm 1979 over all tests, and the classifier
two-sample test of Lopez-Paz and Oquab (ICLR 2017) with a logistic regression. With many rows everything is significant:
what counts is the effect; the p only keeps small samples from talking.
"""

from __future__ import annotations

import bisect
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import msgspec

from ._data_near import AMOUNT, first_digits, is_wide, near_rows, near_texts, phrased, things
from ._data_tables import STAMP, Row, column, columns, filled, is_id, is_stamps, numbers, texts

LEAST = 20
"""Values on either side below which nothing is said."""
DISTANCE = 0.2
"""Distance from which two distributions count as different."""
SHARE = 0.15
"""Difference from which two shares count as different."""
NEVER, SURE = 0.03, 1e-5
"""Bound of a share that counts as none or all, and the p-value that it needs."""
PHRASES, PHRASED = "words in phrases that come back", 0.5
"""Test of recurring phrases and its distance; human text has phrases too, so only a large distance counts."""
ALPHA = 0.01
AUC = 0.75
MOMENT = re.compile(
    r"(?:^|_)(?:created|updated|modified|closed|opened|sent|seen|time|timestamp|ts|date|day|at|epoch)(?:$|_)"
)
EPOCH = 1e8
"""Seconds beyond which a number is a moment in the history of mankind."""


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
        if self.what.startswith("share") and (self.sample in (0, 1) or self.reference in (0, 1)):
            return self.effect >= NEVER and self.p < SURE  # Never, or always, is more than a little less.
        if self.what == PHRASES:
            return self.effect > PHRASED
        return self.effect > (SHARE if self.what.startswith("share") else DISTANCE)


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
    logs = [
        math.lgamma(count + 1)
        - math.lgamma(k + 1)
        - math.lgamma(count - k + 1)
        + k * math.log(rate)
        + (count - k) * math.log(1 - rate)
        for k in range(count + 1)
    ]
    low, high = sum(map(math.exp, logs[: hits + 1])), sum(map(math.exp, logs[hits:]))
    return min(1.0, 2 * min(low, high))


# --- a column ---


def tests(name: str, sample: Sequence[Any], reference: Sequence[Any]) -> list[ColumnTest]:
    """All tests that fit a column; none where either side is too small."""
    if min(len(sample), len(reference)) < LEAST:
        return []
    found = [share_of("share of empty values", sample, reference, holds=lambda value: value is None or value == "")]
    a, b = filled(sample), filled(reference)
    if min(len(a), len(b)) < LEAST:
        return found
    return found + _filled(name, a, b)


def _filled(name: str, a: Sequence[Any], b: Sequence[Any]) -> list[ColumnTest]:
    if all(isinstance(item, bool) for item in (*a, *b)):
        return [share_of("share of true", a, b, holds=bool)]
    if is_stamps(a) and is_stamps(b):
        return _stamps(texts(a), texts(b))
    if is_id(name, a) or is_id(name, b):
        return []
    if len(numbers(a)) > 0.8 * len(a) and len(numbers(b)) > 0.8 * len(b):
        if MOMENT.search(name.lower()) and min(*numbers(a), *numbers(b)) > EPOCH:
            return []  # When a world was made is its own affair.
        digits = _digits(numbers(a), numbers(b)) if AMOUNT.search(name.lower()) else []
        return [*_numbers(numbers(a), numbers(b)), *digits]
    both_text = len(texts(a)) > 0.8 * len(a) and len(texts(b)) > 0.8 * len(b)
    return _texts(texts(a), texts(b)) if both_text else []


def share_of(what: str, sample: Sequence[Any], reference: Sequence[Any], *, holds: Callable[[Any], bool]) -> ColumnTest:
    """The test of the share of values of which something holds."""
    first, second = [holds(value) for value in sample], [holds(value) for value in reference]
    effect, p = shares(first, second)
    return ColumnTest(what, effect, p, round(sum(first) / len(first), 3), round(sum(second) / len(second), 3))


def _numbers(sample: Sequence[float], reference: Sequence[float]) -> list[ColumnTest]:
    effect, p = ks(sample, reference)
    return [
        ColumnTest("distribution", effect, p, _quartiles(sample), _quartiles(reference)),
        share_of("share of round numbers", sample, reference, holds=lambda value: value % 10 == 0),
    ]


def _digits(sample: Sequence[float], reference: Sequence[float]) -> list[ColumnTest]:
    """First digits, where amounts of both sides span orders of magnitude."""
    if not (is_wide(sample) and is_wide(reference)):
        return []
    a, b = first_digits(sample), first_digits(reference)
    effect, p = variation(a, b)
    return [ColumnTest("first digits", effect, p, dict(sorted(Counter(a).items())), dict(sorted(Counter(b).items())))]


def _quartiles(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [round(ordered[round(part * (len(ordered) - 1))], 3) for part in (0, 0.25, 0.5, 0.75, 1)]


def _texts(sample: Sequence[str], reference: Sequence[str]) -> list[ColumnTest]:
    found = [
        share_of("share with letters beyond ASCII", sample, reference, holds=lambda value: not value.isascii()),
        share_of("share in one case", sample, reference, holds=lambda value: value in (value.lower(), value.upper())),
        share_of("share with digits", sample, reference, holds=lambda value: any(map(str.isdigit, value))),
        share_of("share with white space around it", sample, reference, holds=lambda value: value != value.strip()),
    ]
    if max(_distinct(sample), _distinct(reference)) <= 20:
        effect, p = variation([*sample], [*reference])
        a, b = Counter(sample).most_common(4), Counter(reference).most_common(4)
        return [*found, ColumnTest("categories", effect, p, dict(a), dict(b))]
    lengths = [float(len(text)) for text in sample], [float(len(text)) for text in reference]
    effect, p = ks(*lengths)
    found.append(ColumnTest("lengths", effect, p, _quartiles(lengths[0]), _quartiles(lengths[1])))
    size = min(len(sample), len(reference))
    again = [_repeats(sample[:size]), _repeats(reference[:size])]
    effect, p = shares(*again)
    found.append(ColumnTest("share of repeated values", effect, p, sum(again[0]) / size, sum(again[1]) / size))
    return found + _prose(sample[:size], reference[:size])


def _prose(sample: Sequence[str], reference: Sequence[str]) -> list[ColumnTest]:
    """Phrases, and texts that are nearly others, of as many texts on both sides."""
    size = min(len({*sample}), len({*reference}))
    sides = [list(dict.fromkeys(side))[:size] for side in (sample, reference)]
    a, b = (phrased(side) for side in sides)
    if min(len(a), len(b)) < LEAST:
        return []
    effect, p = ks(a, b)
    again = [near_texts(side) for side in sides]
    return [
        ColumnTest(PHRASES, effect, p, _quartiles(a), _quartiles(b)),
        share_of("share of nearly repeated texts", *again, holds=bool),
    ]


def rows_alike(sample: Sequence[Row], reference: Sequence[Row]) -> list[ColumnTest]:
    """The test of rows that are nearly others, of as many rows on both sides."""
    sides = [things(side) for side in (sample, reference)]
    size = min(map(len, sides))
    again: list[list[bool]] = [near_rows(side[:size]) for side in sides] if size >= LEAST else [[]]
    if min(map(len, again)) < LEAST:
        return []
    return [share_of("share of nearly repeated rows", *again, holds=bool)]


def _distinct(values: Sequence[str]) -> int:
    return len({*values})


def _repeats(values: Sequence[str]) -> list[bool]:
    seen: set[str] = set()
    found: list[bool] = []
    for value in values:
        found.append(value.casefold() in seen)
        seen.add(value.casefold())
    return found


def _stamps(sample: Sequence[str], reference: Sequence[str]) -> list[ColumnTest]:
    hours = [
        [match.group(1) for text in side if (match := STAMP.match(text)) and match.group(1)]
        for side in (sample, reference)
    ]
    if min(map(len, hours)) < LEAST:
        return []
    effect, p = variation(hours[0], hours[1])
    a, b = (dict(Counter(side).most_common(4)) for side in hours)
    return [ColumnTest("hours of the day", effect, p, a, b)]


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


def auc(sample: Sequence[Row], reference: Sequence[Row], rng: random.Random, *, most: int = 200) -> float | None:
    """Returns the area under the curve, 0.5 to 1, of a classifier of both sides on held-out rows."""
    names = [name for name in columns(sample) if name in set(columns(reference))]
    names = [name for name in names if not is_id(name, column(sample, name))]
    rows = [(row, 0) for row in _drawn(sample, rng, most)] + [(row, 1) for row in _drawn(reference, rng, most)]
    if not names or min(len(sample), len(reference)) < 2 * LEAST:
        return None
    rng.shuffle(rows)
    features = _scaled([_features(row, names) for row, _ in rows])
    labels = [label for _, label in rows]
    half = len(rows) // 2
    scores = [0.0] * len(rows)
    for test, train in ((range(half), range(half, len(rows))), (range(half, len(rows)), range(half))):
        weights = _fitted([features[place] for place in train], [labels[place] for place in train])
        for place in test:
            scores[place] = _dot(weights, features[place])
    areas = [
        _area([scores[p] for p in part], [labels[p] for p in part]) for part in (range(half), range(half, len(rows)))
    ]
    return sum(areas) / 2


def _drawn(rows: Sequence[Row], rng: random.Random, most: int) -> list[Row]:
    return list(rows) if len(rows) <= most else rng.sample(list(rows), most)


def _features(row: Row, names: Sequence[str]) -> list[float]:
    found = [1.0]
    for name in names:
        value = row.get(name)
        text = value if isinstance(value, str) else ""
        stamp = STAMP.match(text)
        amount = numbers([value])
        found += [
            float(value is None or value == ""),
            math.copysign(math.log1p(abs(amount[0])), amount[0]) if amount else 0.0,
            float(len(text)) if not stamp else 0.0,
            float(not text.isascii()),
            float(text != "" and text == text.lower()),
            float(stamp.group(1) or 12) if stamp else 0.0,
        ]
    return found


def _scaled(rows: list[list[float]]) -> list[list[float]]:
    for place in range(1, len(rows[0])):
        values = [row[place] for row in rows]
        mean = sum(values) / len(values)
        spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)) or 1.0
        for row in rows:
            row[place] = (row[place] - mean) / spread
    return rows


def _dot(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


def _fitted(rows: Sequence[list[float]], labels: Sequence[int], rounds: int = 40) -> list[float]:
    weights = [0.0] * len(rows[0])
    for _ in range(rounds):
        slope = [0.01 * weight for weight in weights]
        for row, label in zip(rows, labels, strict=True):
            error = 1 / (1 + math.exp(-max(-30.0, min(30.0, _dot(weights, row))))) - label
            for place, value in enumerate(row):
                slope[place] += error * value / len(rows)
        weights = [weight - 0.8 * number for weight, number in zip(weights, slope, strict=True)]
    return weights


def _area(scores: Sequence[float], labels: Sequence[int]) -> float:
    ones = sorted(score for score, label in zip(scores, labels, strict=True) if label)
    zeros = [score for score, label in zip(scores, labels, strict=True) if not label]
    if not ones or not zeros:
        return 0.5
    above = sum(len(ones) - (bisect.bisect_left(ones, zero) + bisect.bisect_right(ones, zero)) / 2 for zero in zeros)
    return above / (len(ones) * len(zeros))
