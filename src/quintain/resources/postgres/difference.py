"""Differences between two worlds, row by row."""

from __future__ import annotations

from collections import Counter
from typing import Any

from quintain import codec
from quintain.resources.database import RowChange

from . import content
from .content import TableInfo
from .lease import Lease
from .session import PostgresSession

Key = tuple[Any, ...]
Rows = dict[Key, dict[str, Any]]
Digests = dict[str, tuple[TableInfo, str]]


def changes(before: Lease, after: Lease) -> list[RowChange]:
    """Returns the changes from the rows of one world to those of the other, sorted by table and key."""
    if before is after:
        return []
    old, new = _digests(before), _digests(after)
    found: list[RowChange] = []
    for name in sorted(old.keys() | new.keys()):
        if name in old and name in new and old[name] == new[name]:
            continue
        left, right = _rows(before, old.get(name)), _rows(after, new.get(name))
        for key in sorted(left.keys() | right.keys(), key=_order):
            one, other = left.get(key), right.get(key)
            if one != other:
                found.append(RowChange(name, key, one, other))
    return found


def _digests(held: Lease) -> Digests:
    def look(session: PostgresSession) -> Digests:
        shape = held.image.shape(session, held.facts)
        found = content.digests(session, shape)
        return {table.name: (table, found[table.name]) for table in shape.tables}

    return held.read(look)


def _rows(held: Lease, entry: tuple[TableInfo, str] | None) -> Rows:
    if entry is None:
        return {}
    table, _ = entry
    found: Rows = {}
    seen: Counter[bytes] = Counter()
    for row in held.read(lambda session: content.rows(session, table)):
        key = tuple(row[name] for name in table.key)
        if not key:
            whole = codec.dumps(list(row.values()))
            seen[whole] += 1
            key = (*row.values(), seen[whole])
        found[key] = row
    return found


def _order(key: Key) -> list[tuple[str, Any]]:
    """Nothing, numbers, text, bytes."""
    ranks: dict[Any, str] = {type(None): "0", int: "1", float: "1", str: "2", bytes: "3"}
    return [(ranks[type(value)], 0 if value is None else value) for value in key]
