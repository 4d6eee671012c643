"""Tests of pairs of columns, and of values that a column never has; the margins alone may match.

Within each category of one column the others are compared again; ranks of two numbers may hang together in production
alone (Spearman's rho, the difference by Fisher's z); lists and objects count as their sizes and as what is in them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list

from ._data_tables import Row, column, columns, filled, is_id, numbers
from ._data_tests import LEAST, ColumnTest, ks, share_of, variation

MAX_CATEGORIES = 10
"""Categories of a column, or columns of a kind, that are looked into."""


def joint(sample: Sequence[Row], reference: Sequence[Row]) -> list[tuple[str, ColumnTest]]:
    """All tests of a table that look beyond one plain column."""
    if min(len(sample), len(reference)) < LEAST:
        return []
    both = [name for name in columns(sample) if name in set(columns(reference))]
    kinds = [name for name in both if _is_kind(column(sample, name), column(reference, name))][:MAX_CATEGORIES]
    amounts = [name for name in both if _is_amount(name, column(sample, name), column(reference, name))][
        :MAX_CATEGORIES
    ]
    found = [pair for name in both for pair in _sized(name, column(sample, name), column(reference, name))]
    found += [pair for name in kinds for pair in _lost(name, column(sample, name), column(reference, name))]
    found += [pair for name in amounts for pair in _tails(name, column(sample, name), column(reference, name))]
    for kind in kinds:
        for value in sorted({str(cell) for cell in filled(column(reference, kind))}):
            a, b = ([row for row in rows if str(row.get(kind)) == value] for rows in (sample, reference))
            if min(len(a), len(b)) >= LEAST:
                found += _within(f"{kind} is {value}", a, b, names=(kind, kinds, amounts))
    for place, amount in enumerate(amounts):
        found += [pair for two in amounts[place + 1 :] for pair in _ranks(amount, two, sample, reference)]
    return found


def _is_kind(a: Sequence[Any], b: Sequence[Any]) -> bool:
    there = [*filled(a), *filled(b)]
    plain = bool(there) and all(isinstance(item, str | bool | int) for item in there)
    return plain and 2 <= len({str(item) for item in there}) <= MAX_CATEGORIES


def _is_amount(name: str, a: Sequence[Any], b: Sequence[Any]) -> bool:
    if is_id(name, a) or is_id(name, b):
        return False
    return all(
        len(numbers(side)) > 0.8 * len(filled(side)) >= LEAST and len({*numbers(side)}) > MAX_CATEGORIES
        for side in (a, b)
    )


def _lost(name: str, a: Sequence[Any], b: Sequence[Any]) -> Iterator[tuple[str, ColumnTest]]:
    """Categories of production's that are none of ours."""
    here = {str(cell) for cell in filled(a)}
    if here:
        lost = {str(cell) for cell in filled(b)} - here
        if lost:
            yield name, share_of("share of values that are nowhere here", a, b, holds=lambda value: str(value) in lost)


def _tails(name: str, a: Sequence[Any], b: Sequence[Any]) -> Iterator[tuple[str, ColumnTest]]:
    """Yields tests of the tails in production and of the signs of numbers."""
    ordered = sorted(numbers(b))
    high, low = ordered[int(0.95 * (len(ordered) - 1))], ordered[int(0.05 * (len(ordered) - 1))]
    first, second = numbers(a), numbers(b)
    yield name, share_of("share beyond production's highest twentieth", first, second, holds=lambda value: value > high)
    yield name, share_of("share beyond production's lowest twentieth", first, second, holds=lambda value: value < low)
    yield name, share_of("share of whole numbers", first, second, holds=lambda value: float(value).is_integer())
    yield name, share_of("share of zeros", first, second, holds=lambda value: value == 0)
    yield name, share_of("share below zero", first, second, holds=lambda value: value < 0)


def _sized(name: str, a: Sequence[Any], b: Sequence[Any]) -> Iterator[tuple[str, ColumnTest]]:
    """Lists and objects: how many things are in them, and how large these are."""
    sides = [[item for item in side if is_dict(item) or is_list(item)] for side in (a, b)]
    if min(map(len, sides)) < LEAST:
        return
    sizes = [[float(len(item)) for item in side] for side in sides]
    effect, p = ks(*sizes)
    yield name, ColumnTest("sizes", effect, p, _short(sizes[0]), _short(sizes[1]))
    inner = [
        [item for element in side for item in (element.values() if is_dict(element) else element)] for side in sides
    ]
    amounts = [numbers(side) for side in inner]
    if min(map(len, amounts)) >= LEAST:
        effect, p = ks(*amounts)
        yield name, ColumnTest("numbers in it", effect, p, _short(amounts[0]), _short(amounts[1]))


def _short(values: Sequence[float]) -> dict[str, int]:
    return {f"{value:g}": count for value, count in Counter(values).most_common(4)}


def _within(
    where: str, a: Sequence[Row], b: Sequence[Row], *, names: tuple[str, list[str], list[str]]
) -> Iterator[tuple[str, ColumnTest]]:
    """Other columns where one has a certain value."""
    own, kinds, amounts = names
    for name in amounts:
        left, right = numbers(column(a, name)), numbers(column(b, name))
        if min(len(left), len(right)) >= LEAST:
            effect, p = ks(left, right)
            yield name, ColumnTest(f"distribution where {where}", effect, p, _middle(left), _middle(right))
    for name in kinds:
        if name != own:
            first, second = [*map(str, column(a, name))], [*map(str, column(b, name))]
            effect, p = variation(first, second)
            stated = [dict(Counter(side).most_common(4)) for side in (first, second)]
            yield name, ColumnTest(f"categories where {where}", effect, p, *stated)
    for name in columns(b):
        gaps = [[value is None or value == "" for value in column(rows, name)] for rows in (a, b)]
        if name != own and any(map(any, gaps)):
            yield name, share_of(f"share of empty values where {where}", gaps[0], gaps[1], holds=bool)


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _ranks(first: str, second: str, *sides: Sequence[Row]) -> Iterator[tuple[str, ColumnTest]]:
    """Yields the difference in rank correlation of two numeric columns."""
    rhos: list[float] = []
    sizes: list[int] = []
    for rows in sides:
        pairs = [numbers([row.get(first), row.get(second)]) for row in rows]
        kept = [pair for pair in pairs if len(pair) == 2]
        if len(kept) < 2 * LEAST:
            return
        rhos.append(_rho([pair[0] for pair in kept], [pair[1] for pair in kept]))
        sizes.append(len(kept))
    clipped = [max(-0.999, min(0.999, rho)) for rho in rhos]
    error = math.sqrt(1 / (sizes[0] - 3) + 1 / (sizes[1] - 3))
    z = abs(math.atanh(clipped[0]) - math.atanh(clipped[1])) / error
    effect = abs(rhos[0] - rhos[1]) / 2
    yield (
        f"{first}, {second}",
        ColumnTest("correlation", effect, math.erfc(z / math.sqrt(2)), round(rhos[0], 2), round(rhos[1], 2)),
    )


def _rho(a: Sequence[float], b: Sequence[float]) -> float:
    x, y = _ranked(a), _ranked(b)
    middle = (len(x) - 1) / 2
    top = sum((p - middle) * (q - middle) for p, q in zip(x, y, strict=True))
    under = math.sqrt(sum((p - middle) ** 2 for p in x) * sum((q - middle) ** 2 for q in y))
    return top / under if under else 0.0


def _ranked(values: Sequence[float]) -> list[float]:
    """Ranks from 0; equal values share the middle of theirs."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in range(start, end + 1):
            ranks[order[place]] = (start + end) / 2
        start = end + 1
    return ranks
