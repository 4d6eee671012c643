"""Shadow of the world, from the record alone: a read must show the last write.

Reads show entities (JSON objects with an `id`, or the answer to a call that names one) and their fields. A call that
names an entity and gives a field another value is a write if the world's digest, or the tool's name, says so. A later
read with the old value is a suspect. The mapping of arguments to fields is learned from the run: reads that show the
new value confirm it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .episode_log import Call, EpisodeLog
from .plain import loaded, mapping, sequence

_WRITES = re.compile(
    r"(^|_)(update|set|create|add|edit|change|write|put|post|patch|delete|remove|cancel|book|assign|mark|modify|move|"
    r"merge|decide|close|open|reset|rename|transfer|pay|refund|enable|disable)(_|$)"
)
_SCALARS = (str, int, float, bool)


class Suspect(NamedTuple):
    """Read that shows an overwritten value."""

    key: str
    field: str
    old: Any
    new: Any
    tool: str
    """Tool that wrote."""
    turn: int
    step: int
    """Step of the read."""

    @property
    def mapping(self) -> tuple[str, str]:
        """Returns (tool, argument), which is taken for (tool, field)."""
        return self.tool, self.field


class Shadow(NamedTuple):
    """Result of comparing one episode's reads with its writes."""

    suspects: list[Suspect]
    confirmed: list[tuple[str, str]]


class _Written(NamedTuple):
    old: Any
    new: Any
    tool: str


def shadow(one: EpisodeLog) -> Shadow:
    """Follows the writes and reads of one episode."""
    found = Shadow([], [])
    values: dict[tuple[str, str], Any] = {}
    written: dict[tuple[str, str], _Written] = {}
    for call in one.calls:
        if call.is_error or call.fault is not None or not call.answered:
            continue
        if _is_write(one, call):
            _note_write(call, values, written)
        for key, entity in entities(call):
            for field, value in entity.items():
                _compare(found, written.pop((key, field), None), call, place=(key, field), value=value)
                values[key, field] = value
    return found


def _compare(found: Shadow, write: _Written | None, call: Call, *, place: tuple[str, str], value: Any) -> None:
    if write is None:
        return
    if value == write.old:
        found.suspects.append(Suspect(*place, write.old, write.new, tool=write.tool, turn=call.turn, step=call.step))
    elif value == write.new:
        found.confirmed.append((write.tool, place[1]))


def _note_write(call: Call, values: dict[tuple[str, str], Any], written: dict[tuple[str, str], _Written]) -> None:
    arguments = call.arguments or {}
    keys = [value for value in arguments.values() if isinstance(value, str) and any(value == key for key, _ in values)]
    for key in keys:
        for place in [place for place in written if place[0] == key]:
            del written[place]  # somebody else's write to the same entity may put the old value back
        for field, value in arguments.items():
            old = values.get((key, field))
            if value != key and isinstance(value, _SCALARS) and old is not None and old != value:
                written[key, field] = _Written(old, value, call.name)


def _is_write(one: EpisodeLog, call: Call) -> bool:
    """True if the world changed in the turn of this call; without digests, if the tool's name means a write."""
    if not one.digests:
        return _WRITES.search(call.name) is not None
    if call.turn == 0 or call.turn >= len(one.digests):
        return False
    return one.digests[call.turn] != one.digests[call.turn - 1] and len(one.calls_of(call.turn)) == 1


def entities(call: Call) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields (key, fields) of the objects that an answer shows."""
    value = loaded(call.observation)
    shown = mapping(value)
    if shown is not None and "id" not in shown:
        named = [text for text in (call.arguments or {}).values() if isinstance(text, str)]
        if len(named) == 1 and not _WRITES.search(call.name):
            yield named[0], shown
    yield from _with_id(value)


def _with_id(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    shown = mapping(value)
    if shown is not None and isinstance(shown.get("id"), str):
        yield shown["id"], shown
    for item in shown.values() if shown is not None else sequence(value) or ():
        yield from _with_id(item)
