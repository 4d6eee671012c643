"""Differences between two databases, row by row, and the digest of their rows, whatever the storage."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import msgspec

from quintain import codec

from . import trees
from .connection import Connection, borrow, give_back
from .pages import Base, PageImage
from .rows import quoted

Key = tuple[Any, ...]
Values = tuple[Any, ...]

_MASK = 2**256 - 1
_NO_ROWS: set[Any] = set()


class RowChange(msgspec.Struct, frozen=True):
    """One row that differs between two databases.

    Attributes:
        table: Name of its table.
        key: Its primary key, or its rowid where the table has none; both where a part of the key is NULL.
        before: Column by column in the first database; None when it is not there.
        after: The same in the second.
    """

    table: str
    key: Key
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class _TableLayout(NamedTuple):
    name: str
    sql: str
    root: int
    kind: str
    """table, virtual or shadow."""
    has_rowid: bool
    columns: tuple[str, ...]
    places: tuple[int, ...]
    """Positions of the primary key among the columns."""
    indexes: tuple[int, ...]
    """Root pages of its indexes."""

    def is_same(self, other: _TableLayout) -> bool:
        """True if their rows can be compared page by page."""
        return self[:-1] == other[:-1]


def changes(before: PageImage, after: PageImage) -> list[RowChange]:
    """Returns the changes from one image's rows to the other's, sorted by table, and by key if keys compare."""
    if before is after:
        return []
    left, right = borrow(before), borrow(after)
    for connection in (left, right):
        connection.engine("BEGIN")  # one transaction for many small reads
    try:
        old, new = _tables(left), _tables(right)
        differing: dict[str, set[Any] | None] = {}
        if before.base is after.base:
            differing = _RowSelection(before, after, left).make(old, new)
        found: list[RowChange] = []
        names = old if old is new else {**old, **new}
        for name in sorted(name for name in names if differing.get(name) is not _NO_ROWS):
            touched = differing.get(name)
            rows_before = _rows(left, old.get(name), touched)
            rows_after = _rows(right, new.get(name), touched)
            found += _compared(name, rows_before, rows_after)
        return found
    finally:
        for connection in (left, right):
            connection.abandon()
            give_back(connection)


def logical_digest(image: PageImage) -> str:
    """Equal for equal schema and rows, 32 hex digits.

    Each row weighs h(table, key, values), and an image keeps the sum, modulo 2**256 (an additive multiset hash, as in
    `pages.py`). So an image whose ancestor, or base, was asked before reads only the rows that differ from there.
    """
    connection = borrow(image)
    try:
        definitions = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name"
        schema = connection.rows(definitions, None)
    finally:
        give_back(connection)
    return codec.digest(codec.dumps((schema, (_total(image) & _MASK).to_bytes(32, "little"))))


def weigh_all(image: PageImage) -> int:
    """Returns the sum of all rows, from nothing."""
    connection = borrow(image)
    try:
        tables = _tables(connection)
        return sum(_weight(name, *row) for name, table in tables.items() for row in _read(connection, table, None))
    finally:
        give_back(connection)


def _total(image: PageImage) -> int:
    if image.logical is not None:
        return image.logical
    start = image.known or PageImage(image.base)
    if start.logical is None:
        if image.base.logical is None:
            image.base.logical = weigh_all(start)
        start.logical = image.base.logical
    total = start.logical
    for change in changes(start, image):
        if change.before is not None:
            total -= _weight(change.table, change.key, tuple(change.before.values()))
        if change.after is not None:
            total += _weight(change.table, change.key, tuple(change.after.values()))
    image.logical, image.known = total, None
    return total


def _weight(table: str, key: Key, values: Values) -> int:
    return int.from_bytes(hashlib.sha256(codec.dumps((table, key, values))).digest(), "little")


def _tables(connection: Connection) -> dict[str, _TableLayout]:
    """Returns every table that holds rows of its own; a virtual table stands for the shadow tables below it."""
    image = connection.file.image
    if image.schema is not image.base.schema:
        return _read_tables(connection)
    if image.base.tables is None:
        image.base.tables = _read_tables(connection)
    return cast(dict[str, _TableLayout], image.base.tables)


def _read_tables(connection: Connection) -> dict[str, _TableLayout]:
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
    columns: dict[str, list[tuple[int, str]]] = {}
    for table, column, place in connection.rows(
        "SELECT s.name, i.name, i.pk FROM sqlite_schema s, pragma_table_info(s.name) i WHERE s.type = 'table'", None
    ):
        columns.setdefault(table, []).append((place, column))
    return {
        name: _TableLayout(name, sql, root, *kinds[name], *_columns(columns[name]), tuple(indexes.get(name, ())))
        for type_, name, _, root, sql in roots
        if type_ == "table" and not name.startswith("sqlite_stat")
    }


def _columns(described: list[tuple[int, str]]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    keyed = sorted((pk, place) for place, (pk, _) in enumerate(described) if pk)
    return tuple(name for _, name in described), tuple(place for _, place in keyed)


def _index(base: Base, tables: dict[str, _TableLayout]) -> tuple[dict[int, int], dict[int, str]]:
    """Returns the root of each page's tree, and the table of each root, for the tables of the base."""
    if base.index is None:
        roots = [root for one in tables.values() for root in (one.root, *one.indexes) if root]
        owners = {page: root for root in roots for pages in trees.base_tree(base, root) for page in pages}
        base.index = owners, {one.root: name for name, one in tables.items() if one.kind != "virtual"}
    return cast(tuple[dict[int, int], dict[int, str]], base.index)


class _RowSelection:
    """Rows to read, table by table.

    Attributes:
        rows: Their rowids, or the values of their keys in a table WITHOUT ROWID; None for every row. A missing table
            means every row, too.
    """

    def __init__(self, before: PageImage, after: PageImage, connection: Connection) -> None:
        self.rows: dict[str, set[Any] | None] = {}
        self._images = before, after
        self._connection = connection
        self._changed = {number + 1 for number in before.changed(after)}
        # Changed pages that no table has accounted for; page 1 counts, and a free page says nothing.
        self._strays = self._changed - trees.free(before) - trees.free(after) - {1}
        self._strays -= trees.touched(before, after, root=1, changed=self._changed).pages

    def make(self, old: dict[str, _TableLayout], new: dict[str, _TableLayout]) -> dict[str, set[Any] | None]:
        if old is new:
            same, (owners, real) = set(old), _index(self._images[0].base, old)
            looked = [real[root] for root in self._near(owners) if root in real]
        else:
            same, owners = {name for name in old.keys() & new.keys() if old[name].is_same(new[name])}, {}
            real = {old[name].root: name for name in same if old[name].kind != "virtual"}
            looked = list(real.values())
        self.rows = dict.fromkeys(real.values(), _NO_ROWS)
        for name in looked:
            self._look(old[name])
        for root in {owners[page] for page in self._strays if page in owners}:
            for image in self._images:
                self._account(image, root)
        if self._strays:
            self._account_all(same, old, new)
        if self._strays:
            self._look_at_written(old)
        self._look_for_owners()
        for name, table in old.items():
            if table.kind == "virtual" and name in same:
                self._look_below(table, {one for one in {*old, *new} if one.startswith(f"{name}_")})
        return self.rows

    def _near(self, owners: dict[int, int]) -> set[int]:
        """Returns roots of the trees that may differ: with a changed page, or another shape than in the base."""
        near = {owners[page] for page in self._changed if page in owners}
        base = self._images[0].base
        for image in self._images:
            for layer in image.layers:
                for page in layer:
                    root = owners.get(page + 1)
                    if root is not None and (page + 1 == root or page + 1 in trees.base_tree(base, root).inner):
                        near.add(root)
        return near

    def _account_all(self, same: set[str], old: dict[str, _TableLayout], new: dict[str, _TableLayout]) -> None:
        for image, tables in zip(self._images, (old, new), strict=True):
            for name, table in tables.items():
                roots = table.indexes if name in same or table.kind == "virtual" else (table.root, *table.indexes)
                for root in roots:
                    self._account(image, root)

    def _look(self, table: _TableLayout) -> None:
        before, after = self._images
        if table.has_rowid:
            found: trees.Touched | None = trees.touched(before, after, root=table.root, changed=self._changed)
        else:
            found = trees.touched_keys(before, after, root=table.root, width=len(table.places), changed=self._changed)
        self.rows[table.name] = None if found is None else found.rows
        if found is not None:
            self._strays -= found.pages

    def _look_below(self, table: _TableLayout, shadows: set[str]) -> None:
        """Full-text search keeps the rows of a virtual table in a shadow of it, under the same rowids.

        Unless it has an option `content` with a name: then they may be those of any other table.
        """
        content, sql = f"{table.name}_content", table.sql.lower().replace('content=""', "")
        if content in self.rows:
            self.rows[table.name] = self.rows[content]
        elif shadows and "content" not in sql and all(self.rows.get(one) == set() for one in shadows):
            self.rows[table.name] = set()

    def _account(self, image: PageImage, root: int) -> None:
        if self._strays:
            found = trees.tree(image, root)
            self._strays -= found.inner | found.leaves

    def _look_at_written(self, tables: dict[str, _TableLayout]) -> None:
        """Finds those of overflow pages that were rewritten in place, below a leaf that is not the base's."""
        found: set[int] = set()
        for name, rows in self.rows.items():
            if rows is not None and tables[name].has_rowid:
                pairs = [pair for image in self._images for pair in trees.continued(image, tables[name].root)]
                owners = [(rowid, chain) for rowid, chain in pairs if not chain.isdisjoint(self._strays)]
                self.rows[name] = rows | {rowid for rowid, _ in owners}
                found.update(*(chain for _, chain in owners))
        self._strays -= found

    def _look_for_owners(self) -> None:
        """Finds those of overflow pages that were rewritten in place, below a leaf that did not change."""
        if not self._strays:
            return
        sql = "SELECT DISTINCT name FROM dbstat WHERE pageno IN (SELECT value FROM json_each(?))"
        for (name,) in self._connection.rows(sql, [codec.text(sorted(self._strays))]):
            self.rows[name] = None


def _rows(connection: Connection, table: _TableLayout | None, rows: Iterable[Any] | None) -> dict[Key, dict[str, Any]]:
    """Returns rows by key."""
    if table is None:
        return {}
    return {key: dict(zip(table.columns, values, strict=True)) for key, values in _read(connection, table, rows)}


def _read(connection: Connection, table: _TableLayout, rows: Iterable[Any] | None) -> Iterator[tuple[Key, Values]]:
    """(key, values) of the rows that are named, or of all."""
    if table.kind == "shadow":
        return
    lowered = {name.lower() for name in table.columns}
    rowid = next((name for name in ("rowid", "_rowid_", "oid") if name not in lowered), None)
    if not table.has_rowid:
        rowid, where = "NULL", " AND ".join(f"{quoted(table.columns[place])} = ?" for place in table.places)
    elif rowid is None:
        rowid, where, rows = "NULL", "", None
    else:
        where = f"{rowid} = ?"
    sql = f"SELECT {rowid}, {', '.join(map(quoted, table.columns))} FROM {quoted(table.name)}"  # noqa: S608 (quoted)
    for number, *values in _fetched(connection, sql, where=where, rows=rows):
        key = tuple(values[place] for place in table.places)
        yield (*key, number) if not key or None in key else key, tuple(values)


def _fetched(connection: Connection, sql: str, *, where: str, rows: Iterable[Any] | None) -> Iterator[Values]:
    if rows is None:
        yield from connection.rows(sql, None)
        return
    keys = list(rows)
    if len(keys) > 1 and not isinstance(keys[0], tuple):
        where = where.replace("= ?", "IN (SELECT value FROM json_each(?))")
        yield from connection.rows(f"{sql} WHERE {where}", (codec.text(keys),))
        return
    for row in keys:
        yield from connection.rows(f"{sql} WHERE {where}", row if isinstance(row, tuple) else (row,))


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
