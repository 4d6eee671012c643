"""State as plain data: a dict from table or field to its content.

Parts are flattened, so that each table has one name: "crm.accounts", "db.tickets", "files". Resources are recognised by
their methods and not by class, so those of other packages work too.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, NamedTuple, TypeGuard, cast

import msgspec

from quintain import codec, resource
from quintain.audit.facts.data import Differ, RowIndex, counted
from quintain.state import State
from quintain.table import Table

Tables = dict[str, list[dict[str, Any]]]  # rows of each table of a SQL database

_ANYTHING: Any = Any

SHARED = "shared"  # key of time, timers, identifier counters and the number of random draws


class TableInfo(NamedTuple):
    """Table of a SQL database; `key` holds the columns of its primary key."""

    table: str
    columns: list[str]
    key: list[str]
    """Columns of the primary key."""


class Memory:
    """Cache of the tables read last, because most worlds are forks of one that was read before.

    An unchanged row or table is the object that was returned before. Several threads may use it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Any, Any, Tables]] = {}
        self._rows: dict[str, tuple[Table[Any], dict[str, Any]]] = {}

    def copy(self) -> Memory:
        other = Memory()
        with self._lock:
            other._known, other._rows = dict(self._known), dict(self._rows)
        return other

    def rows(self, name: str, table: Table[Any]) -> dict[str, Any]:
        """Returns the rows of a table by key; unchanged rows are the objects returned before."""
        with self._lock:
            if name in self._rows:
                old, rows = self._rows[name]
                changes = old.diff(table)
                changed = {change.key: plain(change.after) for change in changes if change.key in table}
                gone = {change.key for change in changes} - changed.keys()
                rows = {key: row for key, row in (rows | changed).items() if key not in gone}
            else:
                rows = _rows(table)
            self._rows[name] = (table.fork(), rows)
            return dict(rows)

    def tables(self, name: str, database: Any) -> Tables:
        """Returns the rows of each table; the list of an unchanged table is the one returned before."""
        if _is_on_server(database):
            return _read(database, _listed_by_postgres(database))
        with self._lock:
            schema = _schema(database)
            known = self._known.get(name)
            if known is not None and known[1] == schema and _base(known[0]) is _base(database):
                changed = _grouped(known[0].diff(database))
                listed = [one for one in _listed_by_sqlite(database, changed) if one.table in changed]
                tables = known[2] | {
                    one.table: _updated(database, one, before=known[2][one.table], changes=changed[one.table])
                    for one in listed
                }
            else:
                tables = _read(database, _listed_by_sqlite(database))
            self._known[name] = (database.fork(), schema, tables)
            return tables


async def view(state: State, memory: Memory) -> dict[str, Any]:
    """Returns the whole world as read-only data whose parts are shared between calls.

    A `Table` is a dict of rows by key, a database a list of rows per table in the order of the primary key, a workspace
    a dict of files by path. A resource of another kind is `{"digest": ...}`.
    """
    found: dict[str, Any] = {}
    for name, value, _ in _pairs(state, state):
        await _put(name, value, found, memory=memory)
    found[SHARED] = _shared(state)
    return found


def _shared(state: State) -> Any:
    clock, counters = state.clock, state.shared.counters
    own = {"now": clock.now, "timers": clock.timers, "counters": counters}
    return plain(own | {"finished": state.finished, "draws": state.rng.counter})


async def _put(name: str, value: Any, found: dict[str, Any], *, memory: Memory) -> None:
    if isinstance(value, State):
        for inner, one, _ in _pairs(value, value, f"{name}."):
            await _put(inner, one, found, memory=memory)
    elif _is_table(value):
        found[name] = memory.rows(name, value)
    elif _is_database(value):
        found |= {f"{name}.{table}": rows for table, rows in memory.tables(name, value).items()}
    else:
        known = {id(one): await _resource(one) for one in resource.split(value).held}
        found[name] = plain(value, lambda one: known[id(one)])


async def differences(
    before: State, start: dict[str, Any], after: State, *, memory: Memory, index: RowIndex
) -> dict[str, list[Any]]:
    """Returns the differences of two worlds by path, as `facts.data.changes` returns those of their views.

    `start` is the view of `before`, whose rows are in `index`; `memory` reads databases that show no changed rows
    alone.
    """
    differ = Differ(start, index)
    found: list[tuple[str, Any, Any]] = []
    for name, one, other in _pairs(before, after):
        if _is_table(one) and _is_table(other):
            changes = one.diff(other)
            old = {row.key: start[name][row.key] for row in changes if row.before is not None}
            new = {row.key: row.after for row in changes if row.after is not None}
            found += differ.walk(old, plain(new), name)
        elif not _is_database(other) or (rows := _changed_rows(name, one, other, start=start, differ=differ)) is None:
            view: dict[str, Any] = {}
            await _put(name, other, view, memory=memory)
            known = {part: start[part] for part in start if part == name or part.startswith(f"{name}.")}
            found += differ.walk(known, view, "")
        else:
            found += rows
    return counted([*found, *differ.walk(start[SHARED], _shared(after), SHARED)])


def weight(state: State) -> int:
    """Returns the number of pages of a world's databases in SQLite."""
    images = (getattr(one, "image", None) for _, one, _ in _pairs(state, state) if _is_database(one))
    return sum(getattr(image, "count", 0) for image in images)


def _pairs(before: State, after: State, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    for field in before.__struct_fields__:
        one, other = getattr(before, field), getattr(after, field)
        if isinstance(one, State):
            yield from _pairs(one, other, f"{prefix}{field}.")
        elif field != SHARED:
            yield prefix + field, one, other


def _changed_rows(
    name: str, one: Any, other: Any, *, start: dict[str, Any], differ: Differ
) -> list[tuple[str, Any, Any]] | None:
    """Returns the differences of two databases; None if not only their changed rows can be read."""
    if _is_on_server(other) or _base(one) is not _base(other) or _schema(one) != _schema(other):
        return None
    changes = _grouped(one.diff(other))
    found: list[tuple[str, Any, Any]] = []
    for table in _listed_by_sqlite(other, changes) if changes else ():
        sides = zip(*((change.before, change.after) for change in changes[table.table]), strict=True)
        gone, made = ([{column: row[column] for column in table.columns} for row in rows if row] for rows in sides)
        path = f"{name}.{table.table}"
        if (keyed := differ.index.keyed(start[path], plain(gone), plain(made))) is None:
            return None
        found += differ.walk(*keyed, path)
    return found


def _grouped(changes: Iterable[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for change in changes:
        found[change.table].append(change)
    return found


def _schema(database: Any) -> Any:
    return database.execute("SELECT name, sql FROM sqlite_master ORDER BY name")


async def _resource(one: Any) -> Any:
    if _is_table(one):
        return _rows(one)
    if hasattr(one, "walk") and hasattr(one, "read"):
        return plain(dict(_file(one, entry) for entry in one.walk()))
    if hasattr(one, "rows") and hasattr(one, "__getitem__"):
        return plain({key: one[key] for key in one})
    return Memory().tables("", one) if _is_database(one) else {"digest": await resource.settle(one.digest())}


def _file(files: Any, entry: Any) -> tuple[str, dict[str, Any]]:
    # Bytes that are not UTF-8 are escaped, because JSON cannot hold surrogates.
    path = entry.path.encode(errors="backslashreplace").decode()
    shown = cast(dict[str, Any], msgspec.to_builtins(entry, str_keys=True)) | {"path": path}
    for name in ("mtime", "size"):  # A file that is written anew has not changed; its size is not an amount.
        shown.pop(name, None)
    data: bytes = files.read(entry.path) if entry.kind == "file" else b""
    try:
        return path, shown | ({"text": data.decode()} if entry.kind == "file" else {})
    except UnicodeDecodeError:
        return path, shown | {"data": data}


def _rows(table: Table[Any]) -> dict[str, Any]:
    rows: dict[str, Any] = plain(dict(codec.loads(table.dump(), list[tuple[str, Any]])))
    return rows


def _is_table(value: object) -> TypeGuard[Table[Any]]:
    return isinstance(value, Table)


def _is_database(value: object) -> bool:
    return hasattr(value, "execute") and hasattr(value, "transaction")


def _base(database: Any) -> Any:
    return getattr(getattr(database, "image", None), "base", None)


def _is_on_server(database: object) -> bool:
    """True if the database is on a server: only such a database outlives its worlds and has `remove`."""
    return hasattr(database, "remove")


def _read(database: Any, listed: list[TableInfo]) -> Tables:
    return {
        one.table: plain([dict(zip(one.columns, row, strict=True)) for row in _selected(database, one, one.columns)])
        for one in listed
    }


def _selected(database: Any, one: TableInfo, columns: list[str]) -> list[tuple[Any, ...]]:
    """Returns columns of all rows of a table in the order of its primary key, else of all columns."""
    chosen, order = ", ".join(map(_quoted, columns)), ", ".join(map(_quoted, one.key or one.columns))
    rows: list[tuple[Any, ...]] = database.execute(
        f"SELECT {chosen} FROM {_quoted(one.table)} ORDER BY {order}"  # noqa: S608 (quoted)
    )
    return rows


def _updated(
    database: Any, one: TableInfo, *, before: list[dict[str, Any]], changes: list[Any]
) -> list[dict[str, Any]]:
    """Returns the rows of a table, of which only the changed ones are new objects.

    A table is read anew if most of its rows changed, or if a key could be ambiguous: without a primary key, and where
    a key is neither an integer nor text.
    """
    rows = plain([{name: change.after[name] for name in one.columns} for change in changes if change.after is not None])
    keys = _selected(database, one, one.key) if one.key and len(changes) <= len(before) // 2 else []
    if not keys or not all(isinstance(part, int | str) for key in keys for part in key):
        return _read(database, [one])[one.table]
    known = {tuple([row[name] for name in one.key]): row for some in (before, rows) for row in some}
    return [known[key] for key in keys]


def _listed_by_sqlite(database: Any, wanted: Container[str] | None = None) -> list[TableInfo]:
    names = database.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite!_%' "
        "ESCAPE '!' ORDER BY name"
    )
    found: list[TableInfo] = []
    for (name,) in (one for one in names if wanted is None or one[0] in wanted):
        columns = database.execute("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", name)
        key = [column for place, column in sorted((pk, column) for column, pk in columns) if place]
        found.append(TableInfo(name, [column for column, _ in columns], key))
    return found


def _listed_by_postgres(database: Any) -> list[TableInfo]:
    columns = database.execute(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'main' "
        "ORDER BY table_name, ordinal_position"
    )
    tables: dict[str, list[str]] = {}
    for table, column in columns:
        tables.setdefault(table, []).append(column)
    return [TableInfo(table, names, []) for table, names in tables.items()]


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def plain(value: Any, encode: Callable[[Any], Any] | None = None) -> Any:
    """Returns the value as dicts with text keys, lists, text, numbers, True, False and None; bytes are base64 text."""
    builtin = msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=encode)
    return codec.loads(codec.dumps(builtin, canonical=False), _ANYTHING)  # so that a tuple is a list
