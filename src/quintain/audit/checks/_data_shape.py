"""What a sample of rows cannot show: how many rows point to one thing, how evenly times follow, whether ids have gaps.

Counted in the child over all rows. A production sample that is thinned out has fewer rows for each thing than the real
one: so fewer here than in the sample, or always the same number here, is a difference that sampling cannot explain.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from quintain.audit.data import is_dict, is_list, is_number
from quintain.audit.player import Player
from quintain.audit.probe import Probe, Record, ask, reset

from ._data_tables import Row, column, columns, filled, is_id, is_stamps
from ._data_tests import ks

SHAPE = f"{__name__}:shape"
ROWS = 20_000
LEAST = 20
"""Things, or gaps, on either side below which nothing is said."""


class Shape(msgspec.Struct, frozen=True):
    """Of one column of a table.

    Attributes:
        fans: How many rows point to each thing: {rows: things}; empty where the column points to nothing.
        even: Share of the gaps between sorted values that are as long as the usual one.
        follows: Share of ids that are the one before plus 1.
        count: Gaps that were looked at.
    """

    fans: dict[str, int] = {}
    even: float = 0.0
    follows: float = 0.0
    count: int = 0


def shape(player: Player, on: str, value: Any) -> dict[str, Any]:
    """The shape of each column, by "table.column", of the state, or of production's data."""
    subject = player.handle(on).subject
    given = subject.production() if value == "production" else subject.state()
    if value == "production":
        given = given.get("data") if is_dict(given) else None
    tables = {str(name): _rows(one) for name, one in given.items()} if is_dict(given) else {}
    ids = {name: _ids(rows) for name, rows in tables.items()}
    found: dict[str, Any] = {}
    for name, rows in tables.items():
        if len(rows) >= LEAST:
            for one in columns(rows):
                known = _shape(name, one, rows, ids=ids)
                if known.fans or known.count:
                    found[f"{name.rpartition('.')[2].lower()}.{one}"] = msgspec.to_builtins(known)
    return found


def _rows(value: Any) -> list[Row]:
    rows = (
        value
        if is_list(value)
        else [{"(key)": key, **row} for key, row in value.items() if is_dict(row)]
        if is_dict(value)
        else []
    )
    return [row for row in rows if is_dict(row)][:ROWS]


def _ids(rows: Sequence[Row]) -> set[str]:
    """The names of a table's rows: its keys, or the first column in which all differ."""
    for name in ("(key)", "id", *columns(rows)):
        values = column(rows, name)
        if len(values) >= LEAST and all(isinstance(one, str | int) for one in values) and len({*values}) == len(values):
            return {str(one) for one in values}
    return set()


def _shape(table: str, name: str, rows: Sequence[Row], *, ids: dict[str, set[str]]) -> Shape:
    values = column(rows, name)
    flat = [str(item) for one in values for item in _pointers(one)]
    fans: dict[str, int] = {}
    distinct = {*flat}
    for other, known in ids.items():
        if other != table and len(distinct) >= LEAST and len(distinct & known) >= 0.9 * len(distinct):
            each = Counter(flat)
            counts = Counter(each.get(one, 0) for one in known)
            fans = {str(count): things for count, things in sorted(counts.items())}
            break
    there = filled(values)
    even, follows, count = 0.0, 0.0, 0
    if is_id(name, []):
        follows, count = _following(there)
    elif (points := _points(there)) and len(points) == len(there):
        even, count = _evenness(points)
    return Shape(fans, round(even, 3), round(follows, 3), count)


def _pointers(value: Any) -> list[Any]:
    if is_dict(value):
        return list(value)
    return value if is_list(value) else [] if value is None else [value]


def _points(values: Sequence[Any]) -> list[float]:
    """Values on a line: numbers, or times in seconds."""
    if values and all(is_number(one) for one in values):
        return [float(one) for one in values]
    if not is_stamps(values):
        return []
    try:
        return [datetime.fromisoformat(str(one)).replace(tzinfo=None).timestamp() for one in values]
    except ValueError:
        return []


def _evenness(points: Sequence[float]) -> tuple[float, int]:
    ordered = sorted({*points})
    gaps = [b - a for a, b in itertools.pairwise(ordered)]
    if len(gaps) < 1.5 * LEAST or len(ordered) < 0.7 * len(points):
        return 0.0, 0
    usual = sorted(gaps)[len(gaps) // 2]
    if usual < 8 and min(gaps) == 1:  # Small whole numbers lie close, whatever they count.
        return 0.0, 0
    return sum(abs(gap - usual) <= max(0.05 * usual, 1.0) for gap in gaps) / len(gaps), len(gaps)


def _following(values: Sequence[Any]) -> tuple[float, int]:
    tails = [match for one in values if (match := re.search(r"(\d+)$", str(one)))]
    numbers = sorted({int(match.group(1)) for match in tails})
    if len(numbers) < 1.5 * LEAST or len(numbers) < 0.9 * len(values):
        return 0.0, 0
    return sum(b - a == 1 for a, b in itertools.pairwise(numbers)) / (len(numbers) - 1), len(numbers) - 1


# --- both sides ---


def probes(task: str) -> tuple[Probe, Probe]:
    """What reads the shape of a task's world, and of production's data."""
    return Probe((reset(task), ask(SHAPE, "state", mark="shape"))), Probe((ask(SHAPE, "production", mark="shape"),))


def unlike(records: Sequence[Record]) -> Iterator[tuple[str, str, Any, Any]]:
    """(column, what, here, in production) for what differs so much that no sampling explains it."""
    sides = [record.at("shape").value for record in records[:2]]
    if not all(is_dict(side) for side in sides):
        return
    mine, other = ({name: msgspec.convert(one, Shape) for name, one in side.items()} for side in sides)
    for name, here in mine.items():
        there = other.get(name)
        if there is None:
            continue
        what = _fans(here.fans, there.fans)
        if what:
            yield name, what, here.fans, there.fans
        enough = min(here.count, there.count) >= 1.5 * LEAST
        if enough and here.even >= 0.85 and there.even <= 0.5:
            yield name, "its values follow at even distances", here.even, there.even
        if enough and here.follows >= 0.95 and there.follows <= 0.5:
            yield name, "its ids have no gaps", here.follows, there.follows


def _fans(here: dict[str, int], there: dict[str, int]) -> str:
    if min(sum(here.values()), sum(there.values())) < LEAST:
        return ""
    most, modal = max(here.values()) / sum(here.values()), max(there.values()) / sum(there.values())
    usual = max(here, key=lambda count: here[count])
    above = sum(things for count, things in there.items() if int(count) > int(usual)) / sum(there.values())
    if most >= 0.93 and modal <= 0.7 and int(usual) >= 1 and above >= 0.05:
        return f"{usual} rows point to nearly each thing"
    a, b = ([float(count) for count, things in side.items() for _ in range(things)] for side in (here, there))
    effect, p = ks(a, b)
    fewer = sum(a) / len(a) < 0.7 * sum(b) / len(b)
    if effect > 0.3 and p < 1e-8 and fewer:
        return "fewer rows point to each thing"
    return ""
