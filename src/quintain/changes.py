"""Differences between two worlds: tables and databases by row, files by text, structs by field, lists by entry."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from quintain import codec
from quintain.resource import settle
from quintain.state import Clock, Shared, State

_FILE_BYTES = 100_000
"""Larger files are compared by their metadata."""

_DATED_S = 1e8
"""Time of a clock, in seconds, from which on it is a date; a world without dates begins at 0."""

S = TypeVar("S", bound=State)


class Missing:
    """Type of `MISSING`, the side of a change that has no value."""

    def __repr__(self) -> str:
        return "(nothing)"


MISSING = Missing()


class WorldChange(NamedTuple):
    """Difference at one place of the world."""

    path: str
    """From the world down: `crm.contacts["C7"].email`."""
    before: Any
    after: Any

    def to_dict(self) -> dict[str, Any]:
        """Returns the change for JSON, without the key `before` or `after` if that side has no value."""
        sides = {"before": self.before, "after": self.after}
        return {"path": self.path} | {name: side for name, side in sides.items() if side is not MISSING}


def shown(value: Any) -> str:
    """Returns a side of a change as one line of text."""
    if value is MISSING:
        return repr(MISSING)
    try:
        return codec.json(value).decode()
    except (TypeError, ValueError):
        return repr(value)


async def changes(before: S, after: S) -> list[WorldChange]:
    """Returns all differences in the order of the fields; clock, identifiers and random draws come last.

    A resource with `diff` is compared by row or file, one with `contents` (a method that returns a dict) and a mapping
    by entry, any other resource by its digest.
    """
    found: list[WorldChange] = []
    for change in (*_walk("", before, after), *_shared(before.shared, after.shared)):
        if _is_resource(change.before) and _is_resource(change.after):
            old, new = await settle(change.before.digest()), await settle(change.after.digest())
            if old != new:
                found.append(WorldChange(change.path, f"digest {old}", f"digest {new}"))
        else:
            found.append(change)
    return found


def plain_changes(before: Any, after: Any) -> list[WorldChange]:
    """Returns all differences between two plain values; one with an empty path if they have no part in common."""
    if not (_is(before, dict) and _is(after, dict) and before.keys() & after.keys()):
        return list(_walk("", before, after)) if _is(before, list) else [WorldChange("", before, after)]
    sides = ((str(key), before.get(key, MISSING), after.get(key, MISSING)) for key in {**before, **after})
    return [change for side in sides for change in _walk(*side)]


def _walk(path: str, before: Any, after: Any) -> Iterator[WorldChange]:
    if before is after or isinstance(before, Shared | Clock):  # every part refers to the world's; compared once
        return
    if type(before) is not type(after):
        yield WorldChange(path, before, after)
    elif _is(before, list | tuple):
        yield from _entries(path, list(before), list(after))
    elif (sides := _named(path, before, after)) is not None:
        for name, one, other in sides:
            yield from _walk(name, one, other)
    elif _is_resource(before) or before != after:
        yield WorldChange(path, before, after)


def _named(path: str, before: Any, after: Any) -> Iterable[tuple[str, Any, Any]] | None:
    """Returns (path, before, after) for each named member of two values; None if their type has no named members."""
    if _is_resource(before):
        return _contents(path, before, after)
    if isinstance(before, msgspec.Struct):
        dot = f"{path}." if path else ""
        return [(f"{dot}{name}", getattr(before, name), getattr(after, name)) for name in before.__struct_fields__]
    if _is(before, dict):
        keys = {**before, **after}
        return [(f"{path}[{shown(key)}]", before.get(key, MISSING), after.get(key, MISSING)) for key in keys]
    return None


def _contents(path: str, before: Any, after: Any) -> Iterable[tuple[str, Any, Any]] | None:
    """Returns (path, before, after) for each row or file that differs; None if the resources expose no contents."""
    if hasattr(before, "diff"):
        return itertools.chain.from_iterable(_row(path, before, after, row=row) for row in before.diff(after))
    if hasattr(before, "contents"):
        return _named(path, before.contents(), after.contents())
    if hasattr(before, "rows") and hasattr(before, "__getitem__"):
        return _named(path, *({key: side[key] for key in side} for side in (before, after)))
    return None


def _row(path: str, before: Any, after: Any, *, row: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields the row of a Table, the file of a workspace, or the columns of a database's row that differ."""
    if hasattr(row, "path"):
        sides = tuple(_text(files, stat) for files, stat in ((before, row.before), (after, row.after)))
        yield f"{path}[{shown(row.path)}]", *(sides if sides[0] != sides[1] else (row.before, row.after))
        return
    key = row.key[0] if _is(row.key, tuple) and len(row.key) == 1 else row.key
    place = f"{path}.{row.table}[{shown(key)}]" if hasattr(row, "table") else f"{path}[{shown(key)}]"
    if _is(row.before, dict) and _is(row.after, dict):
        for name in dict.fromkeys((*row.before, *row.after)):
            yield f"{place}.{name}", row.before.get(name, MISSING), row.after.get(name, MISSING)
    else:
        yield place, _present(row.before), _present(row.after)


def _text(files: Any, stat: Any) -> Any:
    """Returns the text of a small UTF-8 file; for anything else its metadata."""
    if stat is None or stat.kind != "file" or stat.size > _FILE_BYTES:
        return _present(stat)
    try:
        return files.read(stat.path).decode()
    except UnicodeDecodeError:
        return stat


def _is(value: Any, kind: Any) -> bool:
    """Works as isinstance(), but type checkers do not narrow `value`."""
    return isinstance(value, kind)


def _present(row: Any) -> Any:
    return MISSING if row is None else row


def _is_resource(value: Any) -> bool:
    return all(hasattr(value, verb) for verb in ("fork", "dump", "load", "digest"))


def _entries(path: str, before: list[Any], after: list[Any]) -> Iterator[WorldChange]:
    """Yields the changes between the common start and the common end of two lists."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    tail = next((n for n in range(shorter - head) if before[-1 - n] != after[-1 - n]), shorter - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    for n in range(max(len(old), len(new))):
        left, right = (side[n] if n < len(side) else MISSING for side in (old, new))
        yield from _walk(f"{path}[{head + n}]", left, right)


def _moment(clock: Clock) -> float | str:
    """Returns the time in seconds, with the date if it is one."""
    return clock.now if clock.now < _DATED_S else f"{clock.now:.15g} ({clock.date:%Y-%m-%d %H:%M:%S} UTC)"


def _shared(before: Shared, after: Shared) -> Iterator[WorldChange]:
    yield from _walk("finished", before.finished, after.finished)
    yield from _walk("clock.now", *(_moment(shared.clock) for shared in (before, after)))
    timers = ({timer.number: timer for timer in shared.clock.timers} for shared in (before, after))
    yield from _walk("clock.timers", *timers)
    yield from _walk("ids", before.counters, after.counters)
    yield from _walk("rng.counter", before.rng.counter, after.rng.counter)
