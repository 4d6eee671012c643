"""Helpers for plain data of unknown shape: type guards, and differences between two values."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

MAX_CHANGES = 400  # longest list of differences; the rest are counted
_MORE = "<more>"
MAX_INDEXED = 400  # lists of which an index is kept


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)


def is_number(value: object) -> TypeGuard[int | float]:
    """True if a value is a number and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def leaves(value: Any, path: tuple[str, ...] = (), *, places: bool = False) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields scalars with the keys that lead to them, and with their places in lists if `places` is set."""
    if is_dict(value) or is_list(value):
        is_named = is_dict(value) or places
        for key, item in value.items() if is_dict(value) else enumerate(value):
            yield from leaves(item, (*path, str(key)) if is_named else path, places=places)
    else:
        yield path, value


def changes(before: Any, after: Any) -> dict[str, list[Any]]:
    """Returns the differences by path ("tickets/7/status"), each as [before, after]; None marks an absent side.

    Rows of a list are identified by "id", else by the first field with distinct values, else by position.
    """
    return Differ(before).changes(after)


class RowIndex:
    """Rows of lists by the fields that identify them; lists must not change. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[list[Any], dict[str, dict[str, Any]]]] = {}

    def prepare(self, rows: list[Any]) -> None:
        self.keyed(rows, [], [])

    def keyed(self, rows: list[Any], gone: list[Any], made: list[Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Returns the rows that are gone from a list and those that are new, by key; None if no field identifies rows.

        The key is "id", else the first field whose values are distinct before and after.
        """
        either = rows or made
        if not all(map(is_dict, (*rows[:1], *made))):
            return None
        for name in sorted(either[0] if either else (), key=lambda one: one != "id"):
            known, added = self._by(rows, name), _by(name, made)
            if (known or not rows) and (added or not made):
                left = {str(row[name]): row for row in gone}
                if not any(key in known and key not in left for key in added):
                    return left, added
        return None

    def _by(self, rows: list[Any], name: str) -> dict[str, Any]:
        if len(self._known) > MAX_INDEXED:
            self._known.clear()
        _, found = self._known.setdefault(id(rows), (rows, {}))
        if name not in found:
            found[name] = _by(name, rows)
        return found[name]


class Differ:
    """Comparison of many values with the same one, which must not change and whose rows are indexed once."""

    def __init__(self, before: Any, index: RowIndex | None = None) -> None:
        self._before = before
        self.index = RowIndex() if index is None else index
        self._ids: dict[int, set[int]] = {}

    def changes(self, after: Any) -> dict[str, list[Any]]:
        return counted(self.walk(self._before, after, ""))

    def walk(self, before: Any, after: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
        """Yields (path, before, after) for each difference between a part of the value and another one."""
        if before is after:
            return
        if is_list(before) and is_list(after) and (rows := self._differing(before, after)):
            before, after = rows
        if is_dict(before) and is_dict(after):
            for name in before if before.keys() == after.keys() else dict.fromkeys((*before, *after)):
                one, other = before.get(name), after.get(name)
                if one is other and name in before and name in after:
                    continue
                here = f"{path}/{name}" if path else str(name)
                if name not in before or name not in after:
                    yield here, one, other
                else:
                    yield from self.walk(one, other, here)
        elif is_list(before) and is_list(after) and len(before) == len(after):
            for place, (one, other) in enumerate(zip(before, after, strict=True)):
                yield from self.walk(one, other, f"{path}/{place}" if path else str(place))
        elif type(before) is not type(after) or (before != after and not _is_nan(before, after)):
            yield path, before, after

    def _differing(self, before: list[Any], after: list[Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Returns the rows of both lists that the other does not have, by key; None if no field identifies rows."""
        old, new = self._ids.get(id(before)), {*map(id, after)}
        if old is None:
            old = self._ids[id(before)] = {*map(id, before)}
        gone = [row for row in before if id(row) not in new]
        made = [row for row in after if id(row) not in old]
        return self.index.keyed(before, gone, made) if len(new) == len(after) else None


def counted(differences: Iterable[tuple[str, Any, Any]]) -> dict[str, list[Any]]:
    """Returns differences by path, the first `MAX_CHANGES`; the rest are counted."""
    left = iter(differences)
    found = {path: [one, other] for path, one, other in itertools.islice(left, MAX_CHANGES)}
    rest = sum(1 for _ in left)
    return found | ({_MORE: [None, rest]} if rest else {})


def _is_nan(*values: Any) -> bool:
    return all(isinstance(one, float) and math.isnan(one) for one in values)


def _by(name: str, rows: list[Any]) -> dict[str, Any]:
    found = {str(row[name]): row for row in rows if is_dict(row) and isinstance(row.get(name), str | int)}
    return found if len(found) == len(rows) else {}


def tabled(world: Any) -> Any:
    """Returns a state as tables and settings by name; a state that is one table is put under "rows".

    All its values have the same fields, of the same types, and not only numbers.
    """
    rows: list[Any] = world if is_list(world) else list(world.values()) if is_dict(world) else []
    named = is_dict(world) and (len(rows) > 2 or any(letter.isdigit() for key in world for letter in str(key)))
    if len(rows) < 2 or not (named or is_list(world)):
        return world
    if not all(is_dict(row) and row.keys() == rows[0].keys() for row in rows):
        return world
    columns = [[row[name] for row in rows if row[name] is not None] for name in rows[0]]
    kinds = [{"number" if is_number(one) else type(one).__name__ for one in column} for column in columns]
    is_typed = all(len(some) < 2 for some in kinds)
    return {"rows": world} if is_typed and set().union(*kinds) - {"number", "list", "dict"} else world


def dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Yields each dict in a value, at any depth."""
    if is_dict(value):
        yield value
    for one in value.values() if is_dict(value) else value if is_list(value) else ():
        yield from dicts(one)


def is_alike(value: dict[str, Any]) -> bool:
    """True if all values of a dict, two at least, have one type: its keys may be names of things."""
    return len(value) > 1 and len({type(one).__name__ for one in value.values()}) == 1


def glance(value: Any, most: int = 40) -> Any:
    """Returns a value with at most `most` entries of each nested list and dict, as an example."""
    return {name: _short(one, most) for name, one in value.items()} if is_dict(value) else _short(value, most)


def _short(value: Any, most: int) -> Any:
    if is_dict(value):
        return {name: _short(one, most) for name, one in list(value.items())[:most]}
    if is_list(value):
        return [_short(one, most) for one in value[:most]]
    return value


def parsed(value: Any) -> Any:
    """Returns JSON text as data, and any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
