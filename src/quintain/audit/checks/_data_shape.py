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
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Probe, Record, ask, reset
from quintain.audit.kernel.registry import probe_function

from ._data_tables import Row, column, columns, filled, is_id, is_stamps
from ._data_tests import MOMENT, ks

SHAPE = f"{__name__}:shape"
ROWS = 20_000
LEAST = 20
"""Things, or gaps, on either side below which nothing is said."""
KINDS = 12
"""Kinds of rows beyond which their order is left alone."""
NEVER, SURE = 0.05, 1e-5
"""Share of things in which an order is turned round, and how sure it must be that production's never is."""


class Shape(msgspec.Struct, frozen=True):
    """Shape of one column of a table.

    Attributes:
        fans: Rows per referenced thing: {rows: things}; empty where the column references nothing.
        even: Share of the gaps between sorted values that have the usual length.
        follows: Share of ids that are the previous one plus 1.
        count: Number of gaps.
        turns: Number of things in which a row of one kind came before one of another: {"one > other": things}.
    """

    fans: dict[str, int] = {}
    even: float = 0.0
    follows: float = 0.0
    count: int = 0
    turns: dict[str, int] = {}


@probe_function
def shape(player: Player, on: str, value: Any) -> dict[str, Any]:
    """The shape of each column, by "table.column", of the state, or of production's data."""
    subject = player.adapter(on).subject
    given = subject.production() if value == "production" else subject.state()
    if value == "production":
        given = given.get("data") if is_dict(given) else None
    tables = {str(name): _rows(argument) for name, argument in given.items()} if is_dict(given) else {}
    ids = {name: _ids(rows) for name, rows in tables.items()}
    found: dict[str, Any] = {}
    for name, rows in tables.items():
        if len(rows) >= LEAST:
            for column_name in columns(rows):
                known = _shape(name, column_name, rows, ids=ids)
                if known.fans or known.count or known.turns:
                    found[f"{name.rpartition('.')[2].lower()}.{column_name}"] = msgspec.to_builtins(known)
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
        if (
            len(values) >= LEAST
            and all(isinstance(value, str | int) for value in values)
            and len({*values}) == len(values)
        ):
            return {str(value) for value in values}
    return set()


def _shape(table: str, name: str, rows: Sequence[Row], *, ids: dict[str, set[str]]) -> Shape:
    values = column(rows, name)
    flat = [str(item) for value in values for item in _pointers(value)]
    fans: dict[str, int] = {}
    distinct = {*flat}
    for reference, known in ids.items():
        if reference != table and len(distinct) >= LEAST and len(distinct & known) >= 0.9 * len(distinct):
            each = Counter(flat)
            counts = Counter(each.get(text, 0) for text in known)
            fans = {str(count): things for count, things in sorted(counts.items())}
            break
    there = filled(values)
    even, follows, count = 0.0, 0.0, 0
    if is_id(name, []):
        follows, count = _following(there)
    elif (points := _points(there)) and len(points) == len(there):
        even, count = _evenness(points)
    return Shape(fans, round(even, 3), round(follows, 3), count, _turns(name, rows))


def _turns(kind: str, rows: Sequence[Row]) -> dict[str, int]:
    """Returns which kinds come before which in the rows of one thing, for kinds that occur once; {} for no kinds."""
    values = column(rows, kind)
    if not all(isinstance(value, str) for value in values) or not 2 <= len({*values}) <= KINDS:
        return {}
    whose, when = _whose(rows), _when(rows)
    if not whose or not when:
        return {}
    found: Counter[str] = Counter()
    lives: dict[str, dict[str, list[float]]] = {}
    for row, point in zip(rows, _points(column(rows, when)), strict=True):
        lives.setdefault(str(row[whose]), {}).setdefault(row[kind], []).append(point)
    for life in lives.values():
        once = {text: points[0] for text, points in life.items() if len(points) == 1}
        found.update(
            f"{first} > {second}" for first, second in itertools.permutations(once, 2) if once[first] < once[second]
        )
    return dict(sorted(found.items()))


def _whose(rows: Sequence[Row]) -> str:
    """Returns the column that names the thing shared by several rows, or an empty string."""
    for name in columns(rows):
        values = column(rows, name)
        things = len({str(value) for value in values})
        if (
            is_id(name, [])
            and all(isinstance(value, str | int) for value in values)
            and LEAST <= things < 0.8 * len(rows)
        ):
            return name
    return ""


def _when(rows: Sequence[Row]) -> str:
    """The column that says when; empty for none, or for several that might."""
    timed = [name for name in columns(rows) if is_stamps(column(rows, name)) or MOMENT.search(name)]
    return timed[0] if len(timed) == 1 and len(_points(column(rows, timed[0]))) == len(rows) else ""


def _pointers(value: Any) -> list[Any]:
    if is_dict(value):
        return list(value)
    return value if is_list(value) else [] if value is None else [value]


def _points(values: Sequence[Any]) -> list[float]:
    """Values on a line: numbers, or times in seconds."""
    if values and all(is_number(value) for value in values):
        return [float(value) for value in values]
    if not is_stamps(values):
        return []
    try:
        return [datetime.fromisoformat(str(value)).replace(tzinfo=None).timestamp() for value in values]
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
    tails = [match for value in values if (match := re.search(r"(\d+)$", str(value)))]
    numbers = sorted({int(match.group(1)) for match in tails})
    if len(numbers) < 1.5 * LEAST or len(numbers) < 0.9 * len(values):
        return 0.0, 0
    return sum(b - a == 1 for a, b in itertools.pairwise(numbers)) / (len(numbers) - 1), len(numbers) - 1


# --- both sides ---


def probes(task: str) -> tuple[Probe, Probe]:
    """Returns probes that read the shape of a task's world and of production's data."""
    return Probe((reset(task), ask(SHAPE, "state", mark="shape"))), Probe((ask(SHAPE, "production", mark="shape"),))


def unlike(records: Sequence[Record]) -> Iterator[tuple[str, str, Any, Any]]:
    """(column, what, here, in production) for what differs so much that no sampling explains it."""
    sides = [record.at("shape").value for record in records[:2]]
    if not all(is_dict(side) for side in sides):
        return
    sample, reference = ({name: msgspec.convert(item, Shape) for name, item in side.items()} for side in sides)
    for name, here in sample.items():
        there = reference.get(name)
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
        turned = _turned(here.turns, there.turns)
        if turned:
            first, _, second = turned.partition(" > ")
            yield (
                name,
                f"{first} comes before {second}",
                _both(here.turns, first, second),
                _both(there.turns, first, second),
            )


def _turned(here: dict[str, int], there: dict[str, int]) -> str:
    """The order that is most common here among those that are never found in production; empty for none."""
    found: dict[str, int] = {}
    for order, count in there.items():
        second, _, first = order.partition(" > ")
        wrong, right = here.get(f"{first} > {second}", 0), here.get(order, 0)
        if f"{first} > {second}" in there or min(count, wrong + right) < LEAST:
            continue
        share = wrong / (wrong + right)
        if share >= NEVER and (1 - share) ** count < SURE:  # So often, production's sample would have had it.
            found[f"{first} > {second}"] = wrong
    return max(found, key=lambda order: found[order], default="")


def _both(turns: dict[str, int], first: str, second: str) -> dict[str, int]:
    return {order: turns.get(order, 0) for order in (f"{first} > {second}", f"{second} > {first}")}


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
