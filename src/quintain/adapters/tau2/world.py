"""Base of tau2-bench's worlds: databases of rows that can be compared and digested as a whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from quintain.state import State

from .record import builtin


class World(State, kw_only=True):
    """Base class of a domain's database; every section is a `Table` of the same name unless a subclass says more."""

    toolkit: ClassVar[str]
    """Name of the reference's class of tools; it is in the errors that the model reads."""
    user_toolkit: ClassVar[str] = ""
    """The same for the tools of the customer; empty where the customer has none."""
    has_one_database: ClassVar[bool] = False
    """True if the customer's tools work on the company's database; the reference then digests it for both."""
    foresees: ClassVar[bool] = False
    """True if the calls of a task's solution decide what the database records of other calls."""
    sections: ClassVar[tuple[str, ...]]
    """Names of the database's parts."""

    def keys(self, section: str) -> list[str]:
        """Returns the keys of a section."""
        return list(getattr(self, section))

    def document(self, section: str, key: str) -> Any:
        """Returns one row as the reference would dump it; None if it does not exist."""
        return builtin(getattr(self, section).get(key))

    def laid_out(self, section: str, rows: dict[str, str]) -> str:
        """JSON of a section, from the JSON of its rows; a mapping by key unless a subclass says more."""
        return f"{{{', '.join(f'{_text(key)}: {rows[key]}' for key in sorted(rows))}}}"

    def user_document(self) -> Any:
        """Returns the customer's own database as the reference would dump it; None if there is none."""
        return None

    def adopt(self, changes: Mapping[str, Any]) -> None:
        """Adds rows by section and key with which a task begins; a domain whose tasks have such rows overrides it."""

    def foresee(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Learns the calls of the task's solution; a domain that sets `foresees` overrides it."""

    def settle(self) -> None:
        """Brings the customer's and the company's side into line; runs after every call."""

    def changed(self, other: World, section: str) -> set[str]:
        """Keys whose rows may differ. Costs O(changes) where one world is a copy of the other."""
        return {change.key for change in getattr(self, section).diff(getattr(other, section))}


def same(one: World, two: World) -> bool:
    """True if two databases have the same digests, from the rows that differ alone."""
    return _text(one.user_document()) == _text(two.user_document()) and all(
        _text(one.document(section, key)) == _text(two.document(section, key))
        for section in one.sections
        for key in one.changed(two, section)
    )


class Ledger:
    """Names databases as the reference does: SHA-256 of the whole database as JSON with sorted keys.

    The text of each row of a base is made once; a world that grew out of it encodes its changed rows only.
    """

    def __init__(self, base: World) -> None:
        self._base = base
        self._rows = {
            section: {key: _text(base.document(section, key)) for key in base.keys(section)}
            for section in sorted(base.sections)
        }

    def digest(self, world: World) -> str:
        """64 hex digits."""
        whole = ", ".join(f"{_text(section)}: {self._section(world, section)}" for section in self._rows)
        return _digest(f"{{{whole}}}")

    def user_digest(self, world: World) -> str | None:
        """64 hex digits for the database that the customer's tools work on; None if there is none."""
        if world.has_one_database:
            return self.digest(world)
        document = world.user_document()
        return None if document is None else _digest(_text(document))

    def _section(self, world: World, section: str) -> str:
        rows = self._rows[section]
        changed = self._base.changed(world, section)
        if changed:
            fresh = {key: document for key in changed if (document := world.document(section, key)) is not None}
            kept = {key: text for key, text in rows.items() if key not in changed}
            rows = kept | {key: _text(document) for key, document in fresh.items()}
        return world.laid_out(section, rows)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
