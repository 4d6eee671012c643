"""Checks patterns across rows: first digits, recurring phrases, near-duplicate texts and near-duplicate rows.

First digits of amounts that span orders of magnitude follow Benford's law (1938) where many causes multiply. Texts are
compared by their shingles (Broder 1997): runs of three words, numbers being alike.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from ._data_tables import Row, column, columns, filled, is_id, is_stamps

AMOUNT = re.compile(r"amount|price|total|cost|sum|value|revenue|budget|fee|balance|salary|cents|_eur$|_usd$")
"""Names of columns of money, or of what is counted like it."""
BENFORD = tuple(math.log10(1 + 1 / digit) for digit in range(1, 10))
"""Shares of the first digits 1 to 9."""
ORDERS = 100.0
"""Times that large amounts are the small ones, one in 200 on either side left out, for digits to be looked at."""
LEAST = 100
"""Amounts below which first digits are left alone."""
TEXTS = 200
"""Texts, and rows, that are compared with each other at most."""
WORDS = 8
"""Fewest words of a compared text; shorter texts look alike by chance."""
RUN, PHRASE = 3, 4
"""Words of a shingle, and of a phrase."""
ALIKE = 0.7
"""Part of the shingles of two texts that both have, from which on one is nearly the other."""
COMMON = 0.05
"""Part of the texts in which a phrase stands that is common."""
PLAIN, VARIED = 5, 0.2
"""Columns that a row must have, without names of rows and times, to be compared with others; three of them with a value
of its own for so many of the rows."""


def first_digits(values: Sequence[float]) -> list[int]:
    """Returns the first digit of each nonzero value."""
    return [int(f"{abs(value):e}"[0]) for value in values if value]


def is_wide(values: Sequence[float]) -> bool:
    """True if enough amounts are given and they span two orders of magnitude without outliers."""
    ordered = sorted(abs(value) for value in values if value)
    if len(ordered) < LEAST:
        return False
    return ordered[round(0.995 * (len(ordered) - 1))] >= ORDERS * ordered[round(0.005 * (len(ordered) - 1))]


def off_benford(values: Sequence[float]) -> float:
    """Returns the total variation between first digits and Benford's law, 0 to 1."""
    digits = Counter(first_digits(values))
    count = sum(digits.values())
    return sum(abs(digits[place + 1] / count - share) for place, share in enumerate(BENFORD)) / 2 if count else 0.0


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", re.sub(r"\d+", "0", text.lower()))


def _spread(values: Sequence[str]) -> list[str]:
    """Distinct texts, at most so many, spread evenly."""
    distinct = list(dict.fromkeys(values))
    step = max(1.0, len(distinct) / TEXTS)
    return [distinct[int(place * step)] for place in range(min(len(distinct), TEXTS))]


def near_texts(values: Sequence[str]) -> list[bool]:
    """Returns, per distinct text of some length, True if another text is nearly the same."""
    kept = [words for words in map(_words, _spread(values)) if len(words) >= WORDS]
    shingles = [{tuple(words[place : place + RUN]) for place in range(len(words) - RUN + 1)} for words in kept]
    found = [False] * len(kept)
    for place, shingle in enumerate(shingles):
        for after in range(place + 1, len(shingles)):
            reference = shingles[after]
            shared = len(shingle & reference)
            if shared >= ALIKE * (len(shingle) + len(reference) - shared):
                found[place] = found[after] = True
    return found


def phrased(values: Sequence[str]) -> list[float]:
    """Returns, per distinct text of some length, the share of its words inside phrases that recur in other texts."""
    kept = [words for words in map(_words, _spread(values)) if len(words) >= WORDS]
    seen: Counter[tuple[str, ...]] = Counter()
    for words in kept:
        seen.update({tuple(words[place : place + PHRASE]) for place in range(len(words) - PHRASE + 1)})
    least = max(3.0, COMMON * len(kept))
    found: list[float] = []
    for words in kept:
        covered: set[int] = set()
        for place in range(len(words) - PHRASE + 1):
            if seen[tuple(words[place : place + PHRASE])] >= least:
                covered |= set(range(place, place + PHRASE))
        found.append(len(covered) / len(words))
    return found


def things(rows: Sequence[Row]) -> list[Row]:
    """Rows of things that differ, at most so many, spread evenly: what has one name in two tasks is one thing."""
    named: dict[str, Row] = {}
    for place, row in enumerate(rows):
        name = next((row[item] for item in ("(key)", "id", "key", "uuid") if row.get(item) is not None), None)
        named.setdefault(f"row {place}" if name is None else repr(name), row)
    kept = list(named.values())
    step = max(1.0, len(kept) / TEXTS)
    return [kept[int(place * step)] for place in range(min(len(kept), TEXTS))]


def near_rows(rows: Sequence[Row]) -> list[bool]:
    """Returns, per row, True if another row differs in at most one column; ids and times do not count.

    The list is empty where the remaining columns carry too little: rows of few choices are alike by chance.
    """
    names = [
        name for name in columns(rows) if not is_id(name, column(rows, name)) and not is_stamps(column(rows, name))
    ]
    stated = [name for name in names if len({repr(cell) for cell in filled(column(rows, name))}) >= VARIED * len(rows)]
    if len(names) < PLAIN or len(stated) < 3:
        return []
    found = [False] * len(rows)
    for gone in names:
        same: dict[str, list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            same[repr([row.get(name) for name in names if name != gone])].append(place)
        for places in same.values():
            for place in places if len(places) > 1 else ():
                found[place] = True
    return found
