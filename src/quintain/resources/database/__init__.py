"""A SQLite database as part of a world: real SQL, and copied, hashed and forked like plain data.

    pages              images: the content as an immutable value
    bases, sources     base images on disk, named by the code and data that determine them
    seeding            from a schema and a seed to an image, and to an ordinary SQLite file
    connection, files  SQLite connections that switch between images, and the file system below them
    lease              loan of a connection for one statement or one transaction
    difference, trees  rows that differ between two images
    standing           answers that hold as long as no page of their tables is written
    rows               annotated classes as tables
    readonly           untrusted SQL: one SELECT of a role, within limits
    dates              SQL's functions of time

A database is a pointer to an image. A statement that writes, or a transaction that succeeds, makes a new image and
moves the pointer; a fork and a snapshot copy it. So snapshots form a tree: each can be restored at any time.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import msgspec

from quintain import codec
from quintain.errors import UsageError, short

if any(importlib.util.find_spec(name) is None for name in ("apsw", "xxhash")):
    raise ImportError("a Database needs apsw and xxhash: pip install 'quintain[database]'")

from apsw import ConstraintError, SQLError

from . import bases, difference, readonly, rows, seeding
from .bases import ImageError
from .connection import Refused
from .difference import RowChange
from .files import World
from .lease import Leaseholder, Transaction, Use
from .pages import SIZE, Page, PageImage, Pages
from .readonly import Asker, Limits, QueryAnswer
from .rows import Indexed, Key, References, Unique

__all__ = [
    "ConstraintError",
    "Database",
    "DatabaseSnapshot",
    "ImageError",
    "Indexed",
    "Key",
    "Limits",
    "QueryAnswer",
    "References",
    "Refused",
    "RowChange",
    "SQLError",
    "Unique",
]

T = TypeVar("T")

_FORMAT = "quintain database 1"
_ELSEWHERE = b"quintain postgres "
"""Dumps of databases on PostgreSQL begin with it."""
_ENDS = 2**31
"""Pages a file may have."""


class DatabaseSnapshot:
    """Content of a database at one moment; `restore` brings it back, at any time and any number of times."""

    __slots__ = ("image",)

    def __init__(self, image: PageImage) -> None:
        self.image = image


class Database(Leaseholder):
    """Tables in SQL, with O(1) `fork`, `snapshot` and `restore`.

    In a database that is a field of a State, `random()`, `datetime('now')` and `CURRENT_TIMESTAMP` use the rng and the
    clock of the world.

    Args:
        schema: SQL text, or classes that become tables (see `quintain.resources.database.rows`), in this order.
        seed: A function that gets the empty database and fills it, or a `.sql` file, or a SQLite file that replaces the
            schema. It runs once; the result is kept in the cache folder under a digest of the schema and of the
            seed (of a function: of its module and its imports, see `sources.py`).
        roles: The tables that a role may read with `ask`: for each table the SELECT that replaces it. `who()` in the
            SELECT is the `who` of `ask`.
        url: Address of a PostgreSQL server that holds the database: see `quintain.resources.postgres`.
        shared: Name of a world on that server that several processes share, and that outlives them.
    """

    __slots__ = ()

    def __new__(
        cls,
        *schema: str | type[Any],
        seed: Callable[[Database], object] | Path | None = None,
        roles: Mapping[str, Mapping[str, str]] | None = None,
        url: str | None = None,
        shared: str = "",
    ) -> Self:
        """Returns a database here, or on the server."""
        del schema, seed, roles, shared  # They are for __init__; help() shows the parameters of __new__.
        if url is None:
            return super().__new__(cls)
        from quintain.resources import postgres

        return cast(Self, object.__new__(postgres.PostgresDatabase))

    def __init__(
        self,
        *schema: str | type[Any],
        seed: Callable[[Database], object] | Path | None = None,
        roles: Mapping[str, Mapping[str, str]] | None = None,
        url: str | None = None,
        shared: str = "",
    ) -> None:
        if shared:
            raise UsageError(f"shared={shared!r} needs the url of a PostgreSQL server")
        plan = seeding.BaseRecipe(schema, seed, roles or {})
        self.stand(PageImage(bases.made(plan.recipe(), lambda: plan.build(self._on))))

    @classmethod
    def _on(cls, image: PageImage) -> Self:
        database = object.__new__(cls)
        database.stand(image)
        return database

    def bind(self, world: World) -> None:
        """Takes random numbers and time from this world. A State does this for its fields, and for every copy."""
        self.world = world

    # -- SQL

    def execute(self, sql: str, *values: Any, **names: Any) -> list[tuple[Any, ...]]:
        """Runs SQL and returns all rows. `values` are for `?`, `names` for `:name`. Outside a transaction it is one.

        A date, time, Decimal, UUID or enum is the text that `insert` stores for it.

        Raises:
            apsw.Error: SQLite says no: SQLError for bad SQL, ConstraintError for bad data, on every backend.
            Refused: It would reach beyond this database or leave something behind in the connection; or another thread
                has a transaction open.
            ToolError: A value is an integer of more than 64 bits, which mostly comes from the model.
            TypeError: A value is of another type.
        """
        connection = self.mine()
        if connection is not None:
            return connection.rows(sql, names or values)
        with Use(self) as connection:
            return connection.rows(sql, names or values)

    def all(self, type: type[T], sql: str, *values: Any, **names: Any) -> list[T]:
        """Returns the rows as instances of `type`: a Struct, field by column name; or the type of the only column.

        `values` and `names` are as for `execute`.

        Raises:
            msgspec.ValidationError: A row is not of that type; the message ends in the path.
        """
        with Use(self) as connection:
            columns, found = connection.table(sql, names or values)
        if not found:
            return []
        read = rows.reader(type, columns)
        try:
            return [read(row) for row in found]
        except msgspec.ValidationError as error:
            advice = " (a value is NULL: use coalesce() in SQL, or a Struct whose field may be None)"
            hint = advice if "got `null`" in str(error) else ""
            name = getattr(type, "__name__", type)
            raise msgspec.ValidationError(f"a row of {short(sql)} does not fit {name}{hint}: {error}") from error

    def one(self, type: type[T], sql: str, *values: Any, **names: Any) -> T | None:
        """Returns the only row, as `all` does for `type`, `values` and `names`; None without a row.

        Raises:
            LookupError: There are several.
        """
        found = self.all(type, sql, *values, **names)
        if len(found) > 1:
            raise LookupError(f"{len(found)} rows where one was expected: {sql}")
        return found[0] if found else None

    def insert(self, *structs: msgspec.Struct) -> int:
        """Inserts instances of the schema's classes, all or none; the rowid of the last."""
        connection = self.mine() if len(structs) == 1 else None
        if connection is not None:  # One statement is all or none by itself.
            connection.rows(*rows.insertion(structs[0]))
            return cast(int, connection.sqlite.last_insert_rowid())
        with self.transaction(), Use(self) as connection:
            for one in structs:
                connection.rows(*rows.insertion(one))
            return cast(int, connection.sqlite.last_insert_rowid())

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """All or nothing: what happens inside is undone when it raises. May be nested.

        Raises:
            apsw.ConstraintError: A deferred foreign key is still violated at the end.
        """
        return Transaction(self)

    def ask(self, sql: str, *, role: str = "", who: Any = None, limits: Limits | None = None) -> QueryAnswer:
        """Runs one untrusted SELECT: it never writes, ends in time and returns a small result.

        Args:
            sql: The statement.
            role: The role whose views it reads; empty for all tables.
            who: Value of `who()` in the views of the role.
            limits: Bounds on time and size.

        Raises:
            ToolError: The statement is refused, wrong, or takes too long; the message is meant for its author.
        """
        self._still("ask")
        asker = Asker(role=role, who=who, limits=limits or Limits())
        return readonly.ask(self.image, sql, asker=asker, world=self.world)

    # -- a Resource

    def fork(self) -> Self:
        """Returns an independent twin, in O(1)."""
        self._still("fork")
        twin = object.__new__(type(self))
        twin.stand(self.image)
        twin.world, twin.is_reversed = self.world, self.is_reversed
        return twin

    def dump(self) -> bytes:
        """Returns the name of the base and the pages that differ from it. For a file of its own see `export`."""
        self._still("dump")
        image = self.image
        ends = max(image.count, image.base.count)
        written = sorted((number, image.page(number)) for number in image.pages.changes() if number < ends)
        pages = [(number, data) for number, data in written if data != image.base.page(number)]
        return codec.dumps((_FORMAT, image.base.digest, image.count, image.schema is image.base.schema, pages))

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Loads a dump, on any machine whose cache folder has the base.

        Raises:
            ImageError: The base is missing, or the bytes are not a dump of a database.
        """
        if data.startswith(_ELSEWHERE):
            from quintain.resources import postgres

            return cast(Self, postgres.PostgresDatabase.load(data))
        try:
            kind, digest, count, same, pages = codec.loads(data, tuple[str, str, int, bool, list[tuple[int, bytes]]])
        except msgspec.DecodeError as error:
            raise ImageError(f"no dump of a database: {error}") from error
        base = bases.find(digest)
        whole = 0 <= count < _ENDS and all(len(page) == SIZE and 0 <= n < _ENDS for n, page in pages)
        if kind != _FORMAT or not whole:
            raise ImageError(f"no dump of a database: a {kind!r} of {count} pages")
        written: Pages = {number: Page(page) for number, page in pages}
        image = PageImage(base)
        if written or count != base.count:
            image = image.write(written, count, base.schema if same else object())
        return cls._on(image)

    def weight(self) -> int:
        """Returns bytes in memory that are its own: of the pages that were written since the base."""
        return self.image.weight()

    def digest(self) -> str:
        """Names the bytes, in O(pages written since it was last asked): equal for equal histories, 32 hex digits.

        Databases with equal rows but another history differ; for those see `logical_digest`.
        """
        self._still("digest")
        return self.image.digest()

    def __copy__(self) -> Self:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.fork()

    def __repr__(self) -> str:
        return f"Database({self.image.count * SIZE // 1024} KB, {len(self.image.pages.changes())} pages written)"

    # -- a tree of snapshots, differences, files

    def snapshot(self) -> DatabaseSnapshot:
        """Returns a snapshot of the content."""
        self._still("snapshot")
        return DatabaseSnapshot(self.image)

    def restore(self, snapshot: DatabaseSnapshot) -> None:
        """Restores the content of a snapshot of this database, or of any fork of it."""
        self._still("restore")
        self.replace(snapshot.image)

    def diff(self, other: Database) -> list[RowChange]:
        """Returns the changes from the rows of this database to those of the other, by table and key.

        If both have one base, only the rows on changed pages are read, else every row.
        """
        self._still("diff")
        other._still("diff")
        return difference.changes(self.image, other.image)

    def logical_digest(self) -> str:
        """Names schema and rows, however they came to be: equal for equal content, 32 hex digits.

        The first one on a base reads everything; after that only rows that differ from a state that was asked before.
        """
        self._still("logical_digest")
        return difference.logical_digest(self.image)

    def export(self, path: Path | str) -> None:
        """Writes an ordinary SQLite file, which takes the place of one that is there."""
        self._still("export")
        seeding.export(self.image, Path(path))

    def reverse_unordered_selects(self, *, on: bool = True) -> None:
        """Development mode, for this database and its later forks: rows that no ORDER BY sorts come in reverse.

        A world that behaves alike in both modes depends on no order that SQLite does not promise.
        """
        self.is_reversed = on

    # -- inside

    def _still(self, verb: str) -> None:
        if self.is_in_transaction:
            raise Refused(f"{verb}() in the middle of a transaction")
