"""Changes of the production, and the comparison of the agent's with those of the right repair.

The goal of a task is a list of calls. They are played on a fork of the world in which the task begins; what they change
is wanted, and the agent may change nothing else. Times, notes on alerts and what follows from other rows do not count.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from .description import tables
from .state import Production, plain

Place = tuple[str, str, str]
"""Table, key and field; the field is empty for a row that is new or gone."""


def content(world: Production) -> Hashable:
    """Returns a key of all tables and findings."""
    return (*(world.table(name).content_key() for name in tables()), world.findings)


def changes(start: Production, end: Production) -> dict[Place, Any]:
    """Returns what differs, by place: the new value, the values of a new row, or None for a row that is gone."""
    found: dict[Place, Any] = {}
    for name in tables():
        for change in start.table(name).diff(end.table(name)):
            if change.before is None or change.after is None:
                found[name, change.key, ""] = change.after and plain(change.after, name)
                continue
            before, after = plain(change.before, name), plain(change.after, name)
            found |= {(name, change.key, field): value for field, value in after.items() if value != before[field]}
    return found


class Verdict(msgspec.Struct, frozen=True):
    """Comparison with the right repair.

    Attributes:
        total: Wanted changes.
        missing: Those that the world does not show.
        stray: Other changes.
    """

    total: int
    missing: tuple[str, ...]
    stray: tuple[str, ...]


def compare(wanted: dict[Place, Any], found: dict[Place, Any]) -> Verdict:
    """Compares the changes of the agent with the wanted ones."""
    missing = [_words(place, value, "should be") for place, value in wanted.items() if not _holds(place, value, found)]
    stray = [_words(place, value, "became") for place, value in found.items() if place not in wanted]
    return Verdict(len(wanted), tuple(missing), tuple(stray))


def _holds(place: Place, value: Any, found: dict[Place, Any]) -> bool:
    return place in found and bool(found[place] == value)


def _words(place: Place, value: Any, verb: str) -> str:
    table, key, field = place
    if field:
        return f"{table} {key}: {field} {verb} {value!r}"
    return f"{table} {key} {verb} {'gone' if value is None else 'new'}"
