"""Tables of the environment and of production, sampled in the child so that large worlds cost little."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, is_number, tabled
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Probe, Record, ask, reset
from quintain.audit.kernel.registry import probe_function

ROWS = 400
"""Rows of a table that are looked at."""
SAMPLE = f"{__name__}:sample"
STAMP = re.compile(r"^\d{4}-\d\d-\d\d(?:[T ](\d\d):(\d\d)(?::(\d\d))?|$)")

Row = dict[str, Any]
Tables = dict[str, list[Row]]


@probe_function
def sample(player: Player, on: str, value: Any) -> Tables:
    """Rows of each table of the state, or of production's data where `value` is "production"."""
    subject = player.adapter(on).subject
    if value == "production":
        given = subject.production()
        return tables(given.get("data") if is_dict(given) else None)
    return tables(tabled(subject.state()))


def tables(value: Any, most: int = ROWS) -> Tables:
    """Returns the tables in a value: lists of rows or dicts of rows by key, at most so many rows each."""
    found: Tables = {}
    for name, item in value.items() if is_dict(value) else ():
        rows: list[Row] = []
        if is_list(item):
            rows = [row for row in item if is_dict(row)]
        elif is_dict(item):
            rows = [{"(key)": key, **row} for key, row in item.items() if is_dict(row)]
        if rows:
            step = max(1.0, len(rows) / most)
            found[str(name)] = [rows[int(place * step)] for place in range(min(len(rows), most))]
    return found


def state_probes(tasks: Sequence[str]) -> list[Probe]:
    """Probes that read the state at the start of tasks, at the mark "ours"."""
    return [Probe((reset(task), ask(SAMPLE, "state", mark="ours"))) for task in tasks]


def production_probe() -> Probe:
    """A probe that reads production's data."""
    return Probe((ask(SAMPLE, "production", mark="theirs"),))


def pooled(records: Sequence[Record]) -> Tables:
    """Returns the rows of several tasks, each distinct row as often as in the first task that has it."""
    found: Tables = {}
    for record in records:
        given: Any = record.at("ours").value
        for name, rows in given.items() if is_dict(given) else ():
            there = found.setdefault(name, [])
            known = {repr(row) for row in there}
            there += [row for row in rows if repr(row) not in known]
    return {name: rows[: 3 * ROWS] for name, rows in found.items()}


def matched(own_rows: Tables, reference: Tables) -> list[tuple[str, list[Row], list[Row]]]:
    """Tables of both sides that have one name, whatever stands before its last point."""
    short = {name.rpartition(".")[2].lower(): name for name in own_rows}
    pairs = [(name if name in own_rows else short.get(name.rpartition(".")[2].lower(), ""), name) for name in reference]
    return [(name, own_rows[own], reference[name]) for own, name in pairs if own]


def columns(rows: Sequence[Row]) -> list[str]:
    """Names in the order in which they appear; key columns that stand for a dict's keys left out."""
    return [name for name in dict.fromkeys(key for row in rows for key in row) if name != "(key)"]


def column(rows: Sequence[Row], name: str) -> list[Any]:
    return [row.get(name) for row in rows]


def filled(values: Sequence[Any]) -> list[Any]:
    """Values that are there: neither None nor empty text."""
    return [value for value in values if value is not None and value != ""]


def numbers(values: Sequence[Any]) -> list[float]:
    """Returns the values that are finite numbers."""
    return [float(number) for number in values if is_number(number) and math.isfinite(number)]


def texts(values: Sequence[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def is_id(name: str, values: Sequence[Any]) -> bool:
    """True if a column identifies rows: by its name, or because it holds consecutive numbers."""
    lowered = name.lower()
    if lowered in ("id", "key", "uuid", "(key)") or lowered.endswith(("_id", "_key", "_uuid", "_ref", "number")):
        return True
    there = [cell for cell in filled(values) if isinstance(cell, int)]
    if len(there) < 20 or len(there) < len(filled(values)) or len({*there}) < len(there):
        return False
    return max(there) - min(there) < 3 * len(there)  # Counted up, and not a time or an amount that happens to differ.


def is_stamps(values: Sequence[Any]) -> bool:
    """True if a column holds dates or times as text."""
    there = filled(values)
    return bool(there) and sum(bool(STAMP.match(text)) for text in texts(there)) >= 0.8 * len(there)
