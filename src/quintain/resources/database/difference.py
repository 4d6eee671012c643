"""What differs between two databases, row by row, and the digest of what they say rather than of how it is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import msgspec

from quintain import codec

from . import trees
from .connection import Connection, borrow, give_back
from .pages import Image
from .rows import quoted

Key = tuple[Any, ...]
Values = tuple[Any, ...]


class RowChange(msgspec.Struct, frozen=True):
    """One row that differs between two databases.

    Attributes:
        table: Name of its table.
        key: Its primary key, or its rowid where the table has none.
        before: Column by column in the first database; None when it is not there.
        after: The same in the second.
    """

    table: str
    key: Key
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class _Table(NamedTuple):
    name: str
    sql: str
    root: int
    kind: str
    """table, virtual or shadow."""
    has_rowid: bool
    indexes: tuple[int, ...]
    """Root pages of its indexes."""


def changes(before: Image, after: Image) -> list[RowChange]:
    """What turns the rows of one image into those of the other, sorted by table; by key as far as keys compare."""
    if before is after:
        return []
    left, right = borrow(before), borrow(after)
    for connection in (left, right):
        connection.engine("BEGIN")  # one transaction for many small reads
    try:
        old, new = _tables(left), _tables(right)
        plan = _Plan(before, after, left)
        if before.base is after.base:
            plan.make(old, new)
        found: list[RowChange] = []
        for name in sorted(old.keys() | new.keys()):
            rowids = plan.rowids.get(name)
            if rowids is not None and not rowids:
                continue
            rows_before = _rows(left, old.get(name), rowids)
            rows_after = _rows(right, new.get(name), rowids)
            found += _compared(name, rows_before, rows_after)
        return found
    finally:
        for connection in (left, right):
            connection.abandon()
            give_back(connection)


def logical_digest(image: Image) -> str:
    """Equal for equal schema and rows, 32 hex digits."""
    connection = borrow(image)
    hasher = hashlib.blake2b(digest_size=16)
    try:
        definitions = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name"
        hasher.update(codec.dumps(connection.rows(definitions, None)))
        for name, table in sorted(_tables(connection).items()):
            rows = _rows(connection, table, None)
            for key in sorted(rows, key=_order):
                hasher.update(codec.dumps((name, key, rows[key])))
    finally:
        give_back(connection)
    return hasher.hexdigest()


def _tables(connection: Connection) -> dict[str, _Table]:
    """Every table that holds rows of its own; a virtual table stands for the shadow tables below it."""
    image = connection.file.image
    if image.schema is not image.base.schema:
        return _read_tables(connection)
    if image.base.tables is None:
        image.base.tables = _read_tables(connection)
    return cast(dict[str, _Table], image.base.tables)


def _read_tables(connection: Connection) -> dict[str, _Table]:
    roots = connection.rows("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema", None)
    kinds = {
        name: (kind, not without)
        for name, kind, without in connection.rows(
            "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main'", None
        )
    }
    indexes: dict[str, list[int]] = {}
    for type_, _, table, root, _ in roots:
        if type_ == "index":
            indexes.setdefault(table, []).append(root)
    return {
        name: _Table(name, sql, root, *kinds[name], tuple(indexes.get(name, ())))
        for type_, name, _, root, sql in roots
        if type_ == "table" and not name.startswith("sqlite_stat")
    }


class _Plan:
    """Which rows to look at, table by table.

    Attributes:
        rowids: None for every row; a table that is not there has every row looked at, too.
    """

    def __init__(self, before: Image, after: Image, connection: Connection) -> None:
        self.rowids: dict[str, set[int] | None] = {}
        self._images = before, after
        self._connection = connection
        self._changed = {number + 1 for number in before.changed(after)}
        # Changed pages that no table has accounted for; page 1 counts, and a free page says nothing.
        self._strays = self._changed - trees.free(before) - trees.free(after) - {1}
        self._moved: set[str] = set()

    def make(self, old: dict[str, _Table], new: dict[str, _Table]) -> None:
        shadows = {name for name, table in old.items() if table.kind == "shadow"}
        same = {name: table for name, table in old.items() if new.get(name) == table}
        for name, table in same.items():
            if table.kind != "virtual":
                self._look(name, table)
        self._look_for_owners()
        self._moved |= shadows - same.keys()
        for name, table in same.items():
            below = {shadow for shadow in shadows if shadow.startswith(f"{name}_")}
            if table.kind == "virtual" and not below & self._moved:
                self.rowids[name] = set()

    def _look(self, name: str, table: _Table) -> None:
        before, after = self._images
        for root in table.indexes:
            self._account(root)
        if not table.has_rowid:
            if not self._account(table.root):
                self.rowids[name] = set()
            else:
                self._moved.add(name)
            return
        touched = trees.touched(before, after, root=table.root, changed=self._changed)
        self._strays -= touched.pages
        self.rowids[name] = touched.rowids
        if touched.rowids:
            self._moved.add(name)

    def _account(self, root: int) -> bool:
        """Whether a tree differs."""
        old, new = (trees.tree(image, root) for image in self._images)
        found = {page for pages in {*old, *new} for page in self._changed & pages}
        self._strays -= found
        return bool(found) or old != new

    def _look_for_owners(self) -> None:
        """Find those of overflow pages that were rewritten in place, below a leaf that did not change."""
        if not self._strays:
            return
        sql = "SELECT DISTINCT name FROM dbstat WHERE pageno IN (SELECT value FROM json_each(?))"
        for (name,) in self._connection.rows(sql, [codec.text(sorted(self._strays))]):
            self._moved.add(name)
            self.rowids[name] = None


def _rows(connection: Connection, table: _Table | None, rowids: Iterable[int] | None) -> dict[Key, dict[str, Any]]:
    """Rows by key."""
    if table is None or table.kind == "shadow":
        return {}
    described = connection.rows("SELECT name, pk FROM pragma_table_info(?)", [table.name])
    names = [name for name, _ in described]
    places = [place for _, place in sorted((pk, place) for place, (_, pk) in enumerate(described) if pk)]
    lowered = {name.lower() for name in names}
    rowid = next((name for name in ("rowid", "_rowid_", "oid") if name not in lowered), None)
    if not table.has_rowid or rowid is None:
        rowid, rowids = "NULL", None
    sql = f"SELECT {rowid}, {', '.join(map(quoted, names))} FROM {quoted(table.name)}"  # noqa: S608 (names are quoted)
    found: dict[Key, dict[str, Any]] = {}
    for number, *values in _fetched(connection, sql, rowid=rowid, rowids=rowids):
        key = tuple(values[place] for place in places)
        if not key or None in key:
            key = (number,)
        found[key] = dict(zip(names, values, strict=True))
    return found


def _fetched(connection: Connection, sql: str, *, rowid: str, rowids: Iterable[int] | None) -> Iterator[Values]:
    if rowids is None:
        yield from connection.rows(sql, None)
        return
    for number in sorted(rowids):
        yield from connection.rows(f"{sql} WHERE {rowid} = ?", [number])


def _compared(table: str, before: dict[Key, dict[str, Any]], after: dict[Key, dict[str, Any]]) -> Iterator[RowChange]:
    for key in sorted(before.keys() | after.keys(), key=_order):
        old, new = before.get(key), after.get(key)
        if old is None or new is None or not _same(old, new):
            yield RowChange(table, key, old, new)


def _same(old: dict[str, Any], new: dict[str, Any]) -> bool:
    # 1 and 1.0 are different values of SQLite.
    return old == new and all(type(old[name]) is type(new[name]) for name in old)


def _order(key: Key) -> list[tuple[str, Any]]:
    """Sorts keys as SQLite does: nothing, numbers, text, bytes."""
    return [(_RANK.get(cast(Any, type(value)), "1"), value if value is not None else 0) for value in key]


_RANK: dict[Any, str] = {type(None): "0", int: "1", float: "1", str: "2", bytes: "3"}
