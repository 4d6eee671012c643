"""Pages of a list in two styles: by offset and by cursor.

A `Listing` is a condition and an order over one table. The order always ends in the key, so it is total, and a cursor
is the values of the order's columns in the last row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from quintain.resources.database import Database
from quintain.resources.database.rows import table_name

from .rows import WebRow, count, render, shape


class Listing(msgspec.Struct, frozen=True):
    """Rows of a table, filtered and sorted.

    Attributes:
        kind: Class of the rows.
        where: Condition in SQL.
        values: Values of its question marks.
        order: Expressions in SQL, most significant first; the key is added.
        descending: True for the largest first.
    """

    kind: type[WebRow]
    where: str = "1"
    values: tuple[Any, ...] = ()
    order: tuple[str, ...] = ()
    descending: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Expressions of the order, with the key."""
        return self.order if self.order and self.order[-1] == "id" else (*self.order, "id")

    def sorting(self, *, reverse: bool = False) -> str:
        """Returns the ORDER BY clause."""
        down = " DESC" if self.descending is not reverse else ""
        return "ORDER BY " + ", ".join(f"{key}{down}" for key in self.keys)


class CursorPage(NamedTuple):
    """A page after or before a cursor.

    Attributes:
        rows: Rows as answers show them.
        first: Cursor of the first row; None for an empty page.
        last: Cursor of the last row.
        has_more: True if rows follow in the direction of reading.
    """

    rows: list[dict[str, Any]]
    first: list[Any] | None
    last: list[Any] | None
    has_more: bool


def offset_page(db: Database, listing: Listing, *, page: int, size: int) -> tuple[list[dict[str, Any]], int]:
    """Returns the rows of a page by its number, from 1, and the length of the whole list."""
    where = f"{listing.where} {listing.sorting()} LIMIT ? OFFSET ?"
    rows = [row for row, _ in _read(db, listing, where, *listing.values, size, (page - 1) * size)]
    is_whole = page == 1 and len(rows) < size
    return rows, len(rows) if is_whole else count(db, listing.kind, listing.where, *listing.values)


def cursor_page(
    db: Database, listing: Listing, *, size: int, after: list[Any] | None = None, before: list[Any] | None = None
) -> CursorPage:
    """Returns the rows after a cursor, or those before one, in the order of the list."""
    where, values = listing.where, [*listing.values]
    cursor = before if before is not None else after
    if cursor is not None:
        sign = "<" if listing.descending is (before is None) else ">"
        where += f" AND ({', '.join(listing.keys)}) {sign} ({', '.join('?' * len(listing.keys))})"
        values += cursor
    where += f" {listing.sorting(reverse=before is not None)} LIMIT ?"
    found = _read(db, listing, where, *values, size + 1)
    has_more, found = len(found) > size, found[:size]
    if before is not None:
        found.reverse()
    first, last = (found[0][1], found[-1][1]) if found else (None, None)
    return CursorPage([row for row, _ in found], first, last, has_more)


def _read(db: Database, listing: Listing, where: str, *values: Any) -> list[tuple[dict[str, Any], list[Any]]]:
    form, table = shape(listing.kind), listing.kind
    keys = ", ".join(listing.keys)
    sql = f'SELECT {form.columns}, {keys} FROM "{table_name(table)}" WHERE {where}'
    width = len(form.names)
    return [(render(form, record[:width]), list(record[width:])) for record in db.execute(sql, *values)]
