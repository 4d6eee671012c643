"""`Look`: a variant of a product's pages, as data of the world."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import TypeVar

import msgspec

T = TypeVar("T")

_NAMED = re.compile(r">([^<>]+)((?:</a>)?</(?:label|button|legend|th)>)")


class Look(msgspec.Struct, frozen=True, omit_defaults=True):
    """Variant of a product's pages. Whoever goes by roles, names and records plays them alike.

    Attributes:
        classes: Styles of the page, separated by blanks: "dark", "dense", "mirrored".
        labels: Other names of fields, buttons and columns, by the usual ones.
        announcement: Text above each page; none if empty.
        rows: Rows of a table on one page.
        moved: Columns of a table that stand at its end instead of its beginning.
    """

    classes: str = ""
    labels: dict[str, str] = {}
    announcement: str = ""
    rows: int = 30
    moved: int = 0

    def name(self, usual: str) -> str:
        """Returns the name that a field or button has here."""
        return self.labels.get(usual, usual)

    def usual(self, name: str) -> str:
        """Returns the usual name of a field or button that has this one here."""
        return next((usual for usual, other in self.labels.items() if other == name), name)

    def renamed(self, html: str) -> str:
        """Returns a page with the names of this look."""
        return _NAMED.sub(lambda found: f">{escape(self.name(unescape(found[1])), quote=False)}{found[2]}", html)

    def arranged(self, cells: list[T]) -> list[T]:
        """Returns the cells of a row in the order of this look."""
        return [*cells[self.moved :], *cells[: self.moved]]
