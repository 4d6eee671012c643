"""Checks what a sample of rows cannot show: rows per foreign key, their order, regular times and gaps in ids.

Counted in the child over all rows. A thinned production sample has fewer rows for each thing than the full data: so
fewer here than in the sample, or always the same number here, is a difference that sampling cannot explain.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.registry import probe_function

from ._data_tables import Row, column, columns, filled, is_id, is_stamps, tables
from ._data_tests import MOMENT, ks

ROWS = 20_000
LEAST, MANY = 20, 30
"""Things, and gaps, on either side below which nothing is said."""
KINDS = 12
"""Kinds of rows beyond which their order is left alone."""
NEVER, SURE = 0.05, 1e-5
"""Share of things in which an order is turned round, and how sure it must be that production's never is."""


class Shape(NamedTuple):
    """Shape of one column of a table.

    Attributes:
        fans: Things by number of rows that reference each; empty where the column references nothing.
        even: Share of the gaps between sorted values that have the usual length; None for few gaps.
        follows: Share of ids that are the previous one plus 1; None for few ids.
        turns: Number of things in which a row of one kind came before one of another: {"one > other": things}.
    """

    fans: Counter[int]
    even: float | None
    follows: float | None
    turns: Counter[str]


@probe_function
def misshapen(player: Player, on: str, _value: Any) -> list[list[Any]]:
    """Returns [column, what, here, in production] for what differs so much that no sampling explains it."""
    subject = player.adapter(on).subject
    given = subject.production()
    here, there = _shapes(subject.state()), _shapes(given.get("data") if is_dict(given) else None)
    return [[name, *row] for name, shape in here.items() if name in there for row in _unlike(shape, there[name])]


def _shapes(value: Any) -> dict[str, Shape]:
    known = tables(value, ROWS)
    ids = {name: _ids(rows) for name, rows in known.items()}
    found: dict[str, Shape] = {}
    for table, rows in known.items():
        others = [names for other, names in ids.items() if other != table]
        for name in columns(rows) if len(rows) >= LEAST else ():
            values = column(rows, name)
            there = filled(values)
            points = [] if is_id(name, []) else _points(there)
            even = _evenness(points) if len(points) == len(there) else None
            follows = _following(there) if is_id(name, []) else None
            shape = Shape(_fans(values, others), even, follows, _turns(name, rows))
            found[f"{table.rpartition('.')[2].lower()}.{name}"] = shape
    return found


def _ids(rows: Sequence[Row]) -> set[str]:
    """The names of a table's rows: its keys, or the first column in which all differ."""
    for name in ("(key)", "id", *columns(rows)):
        values = column(rows, name)
        plain = len(values) >= LEAST and all(isinstance(value, str | int) for value in values)
        if plain and len({*values}) == len(values):
            return {*map(str, values)}
    return set()


def _fans(values: Sequence[Any], others: Sequence[set[str]]) -> Counter[int]:
    each = Counter(str(item) for value in values for item in _pointers(value))
    for known in others:
        if len(each) >= LEAST and len(each.keys() & known) >= 0.9 * len(each):
            return Counter(each[name] for name in known)
    return Counter()


def _pointers(value: Any) -> list[Any]:
    if is_dict(value):
        return list(value)
    return value if is_list(value) else [] if value is None else [value]


def _turns(kind: str, rows: Sequence[Row]) -> Counter[str]:
    """Returns which kinds come before which in the rows of one thing, for kinds that occur once."""
    found: Counter[str] = Counter()
    values = column(rows, kind)
    whose, points = _whose(rows), _moments(rows)
    if whose and points and all(isinstance(value, str) for value in values) and 2 <= len({*values}) <= KINDS:
        lives: dict[str, dict[str, list[float]]] = {}
        for row, point in zip(rows, points, strict=True):
            lives.setdefault(str(row[whose]), {}).setdefault(row[kind], []).append(point)
        for life in lives.values():
            once = [(times[0], text) for text, times in life.items() if len(times) == 1]
            found.update(f"{one} > {two}" for (a, one), (b, two) in itertools.permutations(once, 2) if a < b)
    return found


def _whose(rows: Sequence[Row]) -> str:
    """Returns the column that names the thing shared by several rows, or an empty string."""
    for name in filter(lambda name: is_id(name, []), columns(rows)):
        values = column(rows, name)
        few = LEAST <= len({*map(str, values)}) < 0.8 * len(rows)
        if few and all(isinstance(value, str | int) for value in values):
            return name
    return ""


def _moments(rows: Sequence[Row]) -> list[float]:
    """Times of the rows; empty where no column says when, or several might."""
    timed = [name for name in columns(rows) if is_stamps(column(rows, name)) or MOMENT.search(name)]
    points = _points(column(rows, timed[0])) if len(timed) == 1 else []
    return points if len(points) == len(rows) else []


def _points(values: Sequence[Any]) -> list[float]:
    """Values on a line: numbers, or times in seconds."""
    if values and all(is_number(value) for value in values):
        return [float(value) for value in values]
    try:
        stamps = values if is_stamps(values) else ()
        return [datetime.fromisoformat(str(value)).replace(tzinfo=None).timestamp() for value in stamps]
    except ValueError:
        return []


def _evenness(points: Sequence[float]) -> float | None:
    ordered = sorted({*points})
    gaps = [b - a for a, b in itertools.pairwise(ordered)]
    if len(gaps) < MANY or len(ordered) < 0.7 * len(points):
        return None
    usual = sorted(gaps)[len(gaps) // 2]
    if usual < 8 and min(gaps) == 1:  # Small whole numbers lie close, whatever they count.
        return None
    return round(sum(abs(gap - usual) <= max(0.05 * usual, 1.0) for gap in gaps) / len(gaps), 3)


def _following(values: Sequence[Any]) -> float | None:
    tails = sorted({int(match[1]) for value in values if (match := re.search(r"(\d+)$", str(value)))})
    if len(tails) <= MANY or len(tails) < 0.9 * len(values):
        return None
    return round(sum(b - a == 1 for a, b in itertools.pairwise(tails)) / (len(tails) - 1), 3)


# --- both sides ---


def _unlike(here: Shape, there: Shape) -> Iterator[tuple[str, Any, Any]]:
    """(what, here, in production) for what differs."""
    if what := _unlike_fans(here.fans, there.fans):
        yield what, _sorted(here.fans), _sorted(there.fans)
    if here.even is not None and there.even is not None and here.even >= 0.85 and there.even <= 0.5:
        yield "its values follow at even distances", here.even, there.even
    if here.follows is not None and there.follows is not None and here.follows >= 0.95 and there.follows <= 0.5:
        yield "its ids have no gaps", here.follows, there.follows
    if turned := _turned(here.turns, there.turns):
        one, _, two = turned.partition(" > ")
        mine, other = ({order: side.turns[order] for order in (turned, f"{two} > {one}")} for side in (here, there))
        yield f"{one} comes before {two}", mine, other


def _sorted(fans: Counter[int]) -> dict[str, int]:
    return {str(count): things for count, things in sorted(fans.items())}


def _turned(here: Counter[str], there: Counter[str]) -> str:
    """The order that is most common here among those that are never found in production; empty for none."""
    found: dict[str, int] = {}
    for order, count in there.items():
        second, _, first = order.partition(" > ")
        turned = f"{first} > {second}"
        wrong, right = here[turned], here[order]
        if turned not in there and min(count, wrong + right) >= LEAST:
            share = wrong / (wrong + right)
            if share >= NEVER and (1 - share) ** count < SURE:  # So often, production's sample would have had it.
                found[turned] = wrong
    return max(found, key=lambda order: found[order], default="")


def _unlike_fans(here: Counter[int], there: Counter[int]) -> str:
    if min(here.total(), there.total()) < LEAST:
        return ""
    usual, most = here.most_common(1)[0]
    modal = max(there.values()) / there.total()
    above = sum(things for count, things in there.items() if count > usual) / there.total()
    if most >= 0.93 * here.total() and modal <= 0.7 and usual >= 1 and above >= 0.05:
        return f"{usual} rows point to nearly each thing"
    a, b = ([float(count) for count in side.elements()] for side in (here, there))
    effect, p = ks(a, b)
    fewer = sum(a) / len(a) < 0.7 * sum(b) / len(b)
    return "fewer rows point to each thing" if effect > 0.3 and p < 1e-8 and fewer else ""
