"""Least-squares fit of a total as a weighted sum of its components, with the points that deviate.

The normal equations are solved by elimination with the largest pivot, after each part was scaled to its largest value.
A part that the others make up gets no weight and is not known; what is said of weights is said of the known ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

TIGHT = 1e-6
"""Largest error of an exact fit, as a share of the range of the totals."""
SPARE = 2
"""Points beyond the number of weights that an exact fit needs: with fewer, chance makes sums."""
_PIVOT = 1e-9

Row = Sequence[float]


class Fit(msgspec.Struct, frozen=True):
    """A total as a sum.

    Attributes:
        weights: One per part, then the constant; 0 for a part that is not known.
        known: Whether each part has a weight of its own, and is not made up by the others.
        off: By point, the total less the sum.
    """

    weights: tuple[float, ...]
    known: tuple[bool, ...]
    off: tuple[float, ...]

    @property
    def largest(self) -> float:
        """The largest distance from the sum."""
        return max((abs(number) for number in self.off), default=0.0)

    def at(self, row: Row) -> float:
        """Returns the weighted sum at a point."""
        return sum(weight * number for weight, number in zip(self.weights, (*row, 1.0), strict=True))


class CutSum(msgspec.Struct, frozen=True):
    """A sum that holds at some points, and others at which the total is not the sum.

    Attributes:
        fit: Of the points at which it holds.
        kept: Their places.
        top: Places at which the sum is more than the largest total, which is what is paid.
        floor: Places at which the sum is less than the smallest total, which is what is paid.
    """

    fit: Fit
    kept: tuple[int, ...]
    top: tuple[int, ...] = ()
    floor: tuple[int, ...] = ()


def fitted(rows: Sequence[Row], totals: Sequence[float]) -> Fit:
    """The weights with the least sum of squares; at least one point."""
    weights, is_whole = _weights(rows, totals)
    known = tuple(is_whole or not _explained(rows, index, _other_columns(rows, index)) for index in range(len(rows[0])))
    return Fit(weights, known, _off(rows, totals, weights))


def basis(rows: Sequence[Row]) -> tuple[int, ...]:
    """Places of parts of which none is made up by those before it; one that never changes is none of them."""
    found: list[int] = []
    for index in range(len(rows[0]) if rows else 0):
        if not _explained(rows, index, found):
            found.append(index)
    return tuple(found)


def _other_columns(rows: Sequence[Row], number: int) -> list[int]:
    return [place for place in range(len(rows[0])) if place != number]


def _explained(rows: Sequence[Row], number: int, other_places: Sequence[int]) -> bool:
    """True if a component is a linear sum of others."""
    wanted = [row[number] for row in rows]
    given = [[row[place] for place in other_places] for row in rows]
    weights, _ = _weights(given, wanted)
    reach = max(map(abs, wanted)) or 1.0
    return max(map(abs, _off(given, wanted, weights))) <= TIGHT * reach


def _off(rows: Sequence[Row], totals: Sequence[float], weights: Sequence[float]) -> tuple[float, ...]:
    return tuple(
        total - sum(weight * number for weight, number in zip(weights, (*row, 1.0), strict=True))
        for row, total in zip(rows, totals, strict=True)
    )


def _weights(rows: Sequence[Row], totals: Sequence[float]) -> tuple[tuple[float, ...], bool]:
    """Returns the weights and True if no other weights fit equally well."""
    points = [(*row, 1.0) for row in rows]
    width = len(points[0])
    scale = [max(abs(point[index]) for point in points) or 1.0 for index in range(width)]
    scaled = [[point[index] / scale[index] for index in range(width)] for point in points]
    matrix = [[sum(point[a] * point[b] for point in scaled) for b in range(width)] for a in range(width)]
    right = [sum(point[a] * total for point, total in zip(scaled, totals, strict=True)) for a in range(width)]
    solved, is_whole = _solved([[*row, value] for row, value in zip(matrix, right, strict=True)])
    return tuple(number / size for number, size in zip(solved, scale, strict=True)), is_whole


def _solved(rows: list[list[float]]) -> tuple[list[float], bool]:
    """(the solution of rows that end on their right sides, whether it is the only one)."""
    width = len(rows)
    pivots: dict[int, int] = {}
    for column in range(width):
        left = [row for row in range(width) if row not in pivots.values()]
        best = max(left, key=lambda row: abs(rows[row][column]))
        if abs(rows[best][column]) < _PIVOT * width:
            continue
        pivots[column] = best
        for row in range(width):
            if row != best and (part := rows[row][column] / rows[best][column]):
                rows[row] = [first - part * second for first, second in zip(rows[row], rows[best], strict=True)]
    solved = [
        rows[pivots[index]][-1] / rows[pivots[index]][index] if index in pivots else 0.0 for index in range(width)
    ]
    return solved, len(pivots) == width


def is_exact(fit: Fit, totals: Sequence[float]) -> bool:
    """True if a sum holds at each of enough points."""
    reach = max(totals) - min(totals)
    rank = sum(fit.known) + 1
    return reach > 0 and len(totals) >= rank + SPARE and fit.largest <= TIGHT * max(1.0, reach)


def spoilt(rows: Sequence[Row], totals: Sequence[float]) -> CutSum | None:
    """The sum that the totals are, all of them or all between the largest and the smallest; None where they are none.

    What is paid at a bound, though the sum lies beyond it, was cut off there. What is paid at a bound though the sum
    lies between them has a reason of its own, such as a condition, and is left alone.
    """
    low, high = min(totals), max(totals)
    for bounds in ((), (high,), (low,), (low, high)):
        kept = tuple(place for place, total in enumerate(totals) if total not in bounds)
        some = [totals[place] for place in kept]
        if len(set(some)) < 3 or len({tuple(rows[place]) for place in kept}) < len(rows[0]) + 1 + SPARE:
            continue
        fit = fitted([rows[place] for place in kept], some)
        if not all(fit.known) or not is_exact(fit, some):
            continue
        wide = TIGHT * 10 * max(1.0, high - low)
        gone = [place for place in range(len(rows)) if place not in kept]
        top = tuple(place for place in gone if totals[place] == high and fit.at(rows[place]) > high + wide)
        floor = tuple(place for place in gone if totals[place] == low and fit.at(rows[place]) < low - wide)
        return CutSum(fit, kept, top, floor)
    return None


def step_of(totals: Sequence[float]) -> float | None:
    """The coarse step of which all totals are multiples, of those that people round to; None where there is none."""
    for step in (0.5, 0.25, 0.2, 0.1, 0.05):
        if all(abs(total / step - round(total / step)) < 1e-9 for total in totals):
            return step
    return None


def rounded(rows: Sequence[Row], totals: Sequence[float]) -> tuple[Fit, float] | None:
    """(the sum, the step) where totals are the sum, rounded to a step; None where they are not.

    There must be many levels and many points to spare: with few of them any total is near some sum.
    """
    step = step_of(totals)
    enough = len({tuple(row) for row in rows}) >= 2 * (len(rows[0]) + 1) + SPARE if rows else False
    if step is None or not enough or max(totals) - min(totals) < 5 * step or len(set(totals)) < 5:
        return None
    fit = fitted(rows, totals)
    mean = sum(totals) / len(totals)
    spread = sum((total - mean) ** 2 for total in totals)
    left = sum(number * number for number in fit.off)
    is_near = fit.largest <= 0.6 * step and left <= 0.05 * spread
    return (fit, step) if is_near and fit.largest > TIGHT * 10 and all(fit.known) else None
