"""A PostgreSQL database in a world: the same `Database`, for worlds that processes share or that outlive them.

    server    the databases on a server, their owners, and the removal of databases whose owner is dead
    images    contents, copied before they are changed; snapshots as savepoints while that is possible
    session   one connection, with a world's time and random numbers
    content   digests, dumps, sequences: a world read and written as a whole
    lease, difference   statements and snapshots of one world, and the rows that differ between two
    seeding   from a schema and a seed to a template database
    sql, values   translation of SQL and conversion of values to and from SQLite's
    asking    untrusted SQL: one SELECT of a role, within limits

A world is a database of its own on the server, made from a template that all processes share. Its first use costs
20-60 ms (a copy of the template), and so does the first write after a fork whose twin still exists. A snapshot, and
the way back to it, cost 0.1 ms; going back to a snapshot that is not on the stack costs a dump and a copy. SQLite does
all of this in microseconds; PostgreSQL adds its SQL, and worlds that processes share.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import msgspec

if importlib.util.find_spec("psycopg") is None:
    raise ImportError("a Database with a url needs psycopg: pip install 'quintain[postgres]'")

import quintain.resources.database as sqlite
from quintain.errors import UsageError
from quintain.resources.database import ImageError, Limits, QueryAnswer, Refused, RowChange, rows
from quintain.resources.database.readonly import Asker

from . import asking, content, difference
from .content import MARK, Dump
from .images import Position, WorldImage
from .lease import Lease
from .seeding import TemplateRecipe
from .server import ServerError, known, reach
from .session import SessionWorld

__all__ = ["PostgresDatabase", "PostgresSnapshot", "ServerError"]

T = TypeVar("T")

_NAME = re.compile(r"[a-z0-9_]{1,30}")


class PostgresSnapshot(sqlite.DatabaseSnapshot):
    """Content of a database at one moment."""

    __slots__ = ("__weakref__", "place")

    def __init__(self, place: WorldImage | Position) -> None:
        self.place = place
        if isinstance(place, WorldImage):
            place.users.add(self)


class PostgresDatabase(sqlite.Database):
    """Tables in PostgreSQL. Made by `Database(..., url=...)`; the verbs are those of the SQLite one.

    The url names a superuser of PostgreSQL 15 or later; a server for worlds is one of its own. The tables are in the
    schema `main`. Placeholders are `?` and `:name`; values are numbers, text, bytes and None, as SQLite gives them.
    `now()`, CURRENT_TIMESTAMP and `random()` answer from the world. The order of rows needs an ORDER BY.

    Args:
        schema: As for SQLite: classes, or text in PostgreSQL's SQL.
        seed: A function that is given the database, or a `.sql` file (of pg_dump: with `--inserts`).
        roles: As for SQLite; views are read with the rights of a role of the server that has no others.
        url: The server, and the database there in which it is noted whose the worlds are.
        shared: A name: several processes open the same world and see each other's commits. It outlives them, until
            `remove()`. Of the laws of a Resource these hold: `digest()` names the content that is there at the moment;
            `fork()`, and so every copy of a State, gives a private copy of that content, and so does `load(dump())`.

    Raises:
        ServerError: The server cannot be reached.
        DefinitionError: The schema or the seed is wrong, or the server will not do.
    """

    __slots__ = ("_held",)

    def __init__(
        self,
        *schema: str | type[Any],
        seed: Callable[[Any], object] | Path | None = None,
        roles: Mapping[str, Mapping[str, str]] | None = None,
        url: str | None = None,
        shared: str = "",
    ) -> None:
        if url is None:
            raise UsageError("a Database on PostgreSQL needs a url: postgresql://user@host:port/dbname")
        if shared and not _NAME.fullmatch(shared):
            raise UsageError(f"shared must match {_NAME.pattern}, got {shared!r}")
        there = reach(url)
        template, facts = TemplateRecipe(schema, seed, roles or {}).template(there)
        image = WorldImage(there, template, facts)
        if shared:
            image.publish(shared)
        self._held = Lease(image)

    @classmethod
    def on(cls, image: WorldImage) -> PostgresDatabase:
        """Returns a database that holds this."""
        database = object.__new__(PostgresDatabase)
        database._held = Lease(image)
        return database

    def bind(self, world: Any) -> None:
        self._held.world = cast(SessionWorld, world)

    # -- SQL

    def execute(self, sql: str, *values: Any, **names: Any) -> list[tuple[Any, ...]]:
        """Runs SQL and returns all rows. `values` are for `?`, `names` for `:name`. Outside a transaction it is one.

        Raises:
            SQLError, ConstraintError: PostgreSQL says no: for bad SQL, for bad data. `__cause__` is psycopg's error.
            Refused: It would reach beyond this database or leave something behind in the connection; or another thread
                has a transaction open.
            ToolError: A value is an integer of more than 64 bits, and too large for its column.
            ServerError: The server is gone.
        """
        return self._held.run(sql, values, names)[1]

    def all(self, type: type[T], sql: str, *values: Any, **names: Any) -> list[T]:
        """Returns the rows as instances of `type`: a Struct, field by column name; or the type of the only column.

        `values` and `names` are as for `execute`.

        Raises:
            msgspec.ValidationError: A row is not of that type; the message ends in the path.
        """
        columns, found = self._held.run(sql, values, names)
        if not found:
            return []
        read = rows.reader(type, columns)
        return [read(row) for row in found]

    def insert(self, *structs: msgspec.Struct) -> int:
        """Inserts instances of the schema's classes, all or none; the integer key of the last, 0 where it has none."""
        last = 0
        with self.transaction():
            for one in structs:
                values = rows.plain(one)
                key = rows.given_key(type(one))
                if key is not None and values[key] is None:
                    del values[key]
                names = ", ".join(map(rows.quoted, values))
                what = f"({names}) VALUES ({', '.join('?' * len(values))})" if values else "DEFAULT VALUES"
                table = rows.quoted(rows.table_name(type(one)))
                returned = f"RETURNING {rows.quoted(key)}" if key is not None else ""
                text = f"INSERT INTO {table} {what} {returned}"
                _, found = self._held.inside(text, tuple(values.values()))
                last = cast(int, found[0][0]) if found else 0
        return last

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        return self._held.transaction()

    def ask(self, sql: str, *, role: str = "", who: Any = None, limits: Limits | None = None) -> QueryAnswer:
        """Runs one untrusted SELECT, as a role of the server that may read, and nothing else.

        Args:
            sql: The statement.
            role: The role whose views it reads; empty for every table.
            who: Value of `who()` in the views of the role: it compares with numbers and with text.
            limits: `steps` has no effect on PostgreSQL: `seconds` ends a statement. `length` bounds a value that is
                returned; while a value is computed it may take up to a gigabyte on the server.

        Raises:
            ToolError: The statement is refused, wrong, or takes too long; the message is meant for its author.
        """
        self._held.still("ask")
        asker = Asker(role=role, who=who, limits=limits or Limits())
        return asking.ask(self._held, sql, asker)

    # -- a Resource

    def fork(self) -> Self:
        """Returns an independent twin. It costs nothing until one of the two writes; then that one is copied."""
        self._held.still("fork")
        twin = self.on(self._held.settled())
        twin._held.world, twin._held.is_reversed = self._held.world, self._held.is_reversed
        return cast(Self, twin)

    def dump(self) -> bytes:
        """Returns the name of the template, what changed the schema since, and every table that differs from it, whole.

        The url is in it without its password; elsewhere it comes from PGPASSWORD or ~/.pgpass.
        """
        self._held.still("dump")
        return self._held.dumped().pack()

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Loads a dump, if the server has the template. The database is created at its first use.

        Raises:
            ImageError: The template is missing, or the bytes are not a dump of a database.
            ServerError: The server cannot be reached.
        """
        if not data.startswith(MARK):
            raise ImageError("no dump of a database on PostgreSQL")
        dump = Dump.unpack(data)
        there = reach(known(dump.url))
        if not there.exists(there.template(dump.template)):
            raise ImageError(f"template {dump.template} is not on {dump.url}; build the same database there first")
        return cast(Self, cls.on(WorldImage(there, dump.template, dump.facts, dump=dump)))

    def weight(self) -> int:
        """Nothing: its bytes are the server's to hold."""
        return 0

    def digest(self) -> str:
        """Names schema, rows and sequences, however they came to be: 32 hex digits. Reads everything after a write."""
        self._held.still("digest")
        return self._held.digest()

    def logical_digest(self) -> str:
        """Returns the same as `digest`."""
        return self.digest()

    def __repr__(self) -> str:
        return f"Database({self._held.image.server.public}, {self._held.image.name or 'not yet made'})"

    # -- snapshots and differences

    def snapshot(self) -> PostgresSnapshot:
        """Returns a snapshot of the content: a savepoint inside a tail, else nothing is done."""
        self._held.still("snapshot")
        return PostgresSnapshot(self._held.snapshot())

    def restore(self, snapshot: sqlite.DatabaseSnapshot) -> None:
        """Restores the content of a snapshot of this database, or of any fork of it.

        A snapshot on the stack is restored by a ROLLBACK. Later snapshots in use are dumped first, and cost a copy when
        they are used again.
        """
        self._held.still("restore")
        if not isinstance(snapshot, PostgresSnapshot):
            raise UsageError("a snapshot of a SQLite database cannot be restored on PostgreSQL")
        self._held.restore(snapshot.place)

    def diff(self, other: sqlite.Database) -> list[RowChange]:
        """Returns the changes from the rows of this database to those of the other, by table and key.

        Reads all rows of the tables that differ. The key of a row without a primary key is the whole row, and its
        number among equal ones.
        """
        if not isinstance(other, PostgresDatabase):
            raise UsageError("a database on PostgreSQL differs from one in SQLite in every way")
        self._held.still("diff")
        other._held.still("diff")
        return difference.changes(self._held, other._held)

    def export(self, path: Path | str) -> None:
        """Raises Refused: use `pg_dump`."""
        image = self._held.image
        raise Refused(f"PostgreSQL has its own: pg_dump --dbname {image.server.public!r}, database {image.name!r}")

    def reverse_unordered_selects(self, *, on: bool = True) -> None:
        """Development mode, for this database and its later forks: all rows are laid the other way round.

        A scan meets them in reverse then; rows that are written later lie behind them in both modes.
        """
        held = self._held
        held.still("reverse_unordered_selects")
        if held.image.is_shared:
            raise Refused("a shared world is not turned round; fork() it")
        if on != held.is_reversed:
            dump = content.reverse(held.dumped(whole=True))
            held.restore(WorldImage(held.image.server, held.image.template, dump.facts, dump=dump))
            held.is_reversed = on

    # -- the end

    def close(self) -> None:
        """Drops the database on the server now; without it, the database is dropped when its last reference is gone."""
        self._held.close()

    def remove(self) -> None:
        """Drops a shared world, for everybody."""
        image = self._held.image
        if not image.is_shared:
            raise UsageError("only a shared world is removed; close() this one")
        name = image.name
        self.close()
        image.server.remove(name)
