"""A SQLite database as part of a world: real SQL, and copied, hashed and forked like plain data.

    image        the content, an immutable value: see pages.py
    connection   borrowed for one statement or one transaction, then used by other worlds: see connection.py

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
from quintain.errors import UsageError

if any(importlib.util.find_spec(name) is None for name in ("apsw", "xxhash")):
    raise ImportError("a Database needs apsw and xxhash: pip install 'quintain[database]'")

from apsw import ConstraintError, SQLError

from . import bases, difference, reading, rows, seeding
from .bases import ImageError
from .connection import Refused
from .difference import RowChange
from .files import World
from .holding import Holder, Transaction, Use
from .pages import SIZE, Image, Page, Pages
from .reading import Answer, Asker, Limits
from .rows import Indexed, Key, References, Unique

__all__ = [
    "Answer",
    "ConstraintError",
    "Database",
    "ImageError",
    "Indexed",
    "Key",
    "Limits",
    "References",
    "Refused",
    "RowChange",
    "SQLError",
    "Snapshot",
    "Unique",
]

T = TypeVar("T")

_FORMAT = "quintain database 1"
_ELSEWHERE = b"quintain postgres "
"""Dumps of databases on PostgreSQL begin with it."""
_ENDS = 2**31
"""Pages a file may have."""


class Snapshot:
    """What a database held at one moment; `restore` brings it back, at any time and as often as wanted."""

    __slots__ = ("image",)

    def __init__(self, image: Image) -> None:
        self.image = image


class Database(Holder):
    """Tables in SQL, with O(1) `fork`, `snapshot` and `restore`.

    Held directly as a field of a State, its `random()`, `datetime('now')` and `CURRENT_TIMESTAMP` answer from the
    world's rng and clock.

    Args:
        schema: SQL text, or classes that become tables (see `quintain.resources.database.rows`), in this order.
        seed: What fills it: a function that is given the database, or a `.sql` file, or a SQLite file, which then
            takes the place of the schema. It runs once; the result is kept in the cache folder under a digest of the
            schema and of the seed (of a function: of its module and those that it imports, see `sources.py`).
        roles: What `ask` lets a role read: for each table the SELECT that stands for it. In it, `who()` is the
            person that `ask` was told.
        url: Of a PostgreSQL server, on which the database then is: see `quintain.resources.postgres`.
        shared: There, the name of a world that several processes have in common, and that outlives them.
    """

    __slots__ = ()

    def __new__(cls, *_: Any, url: str | None = None, **__: Any) -> Self:
        """A database here, or on the server."""
        if url is None:
            return super().__new__(cls)
        from quintain.resources import postgres

        return cast(Self, object.__new__(postgres.Database))

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
        plan = seeding.Plan(schema, seed, roles or {})
        self.stand(Image(bases.made(plan.recipe(), lambda: plan.build(self._on))))

    @classmethod
    def _on(cls, image: Image) -> Self:
        database = object.__new__(cls)
        database.stand(image)
        return database

    def bind(self, world: World) -> None:
        """Take random numbers and time from this world. A State does this for its fields, and for every copy."""
        self.world = world

    # -- SQL

    def execute(self, sql: str, *values: Any, **names: Any) -> list[tuple[Any, ...]]:
        """Run SQL and fetch all rows. Values are for `?`, names for `:name`. Outside a transaction it is one.

        Raises:
            apsw.Error: SQLite says no: SQLError for bad SQL, ConstraintError for bad data, on every backend.
            Refused: It would reach beyond this database or leave something behind in the connection.
        """
        with Use(self) as connection:
            return connection.rows(sql, names or values)

    def all(self, type: type[T], sql: str, *values: Any, **names: Any) -> list[T]:
        """The rows as instances of `type`: a Struct, field by column name; or the type of the only column.

        Raises:
            msgspec.ValidationError: A row is not of that type; the message ends in the path.
        """
        with Use(self) as connection:
            columns, found = connection.table(sql, names or values)
        if not found:
            return []
        read = rows.reader(type, columns)
        return [read(row) for row in found]

    def one(self, type: type[T], sql: str, *values: Any, **names: Any) -> T | None:
        """The only row; None when there is none.

        Raises:
            LookupError: There are several.
        """
        found = self.all(type, sql, *values, **names)
        if len(found) > 1:
            raise LookupError(f"{len(found)} rows where one was expected: {sql}")
        return found[0] if found else None

    def insert(self, *structs: msgspec.Struct) -> int:
        """Insert instances of the schema's classes, all or none; the rowid of the last."""
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

    def ask(self, sql: str, *, role: str = "", who: Any = None, limits: Limits | None = None) -> Answer:
        """One SELECT from somebody who must not be trusted: it never writes, ends in time and stays small.

        Args:
            sql: The statement.
            role: Whose view; only what `roles` gave it can be read. Empty for everything.
            who: What `who()` is in the views of the role.
            limits: How long and how much.

        Raises:
            ToolError: It is refused, wrong, or takes too long; the message is for the one who asked.
        """
        self._still("ask")
        asker = Asker(role=role, who=who, limits=limits or Limits())
        return reading.ask(self.image, sql, asker=asker, world=self.world)

    # -- a Resource

    def fork(self) -> Self:
        """An independent twin, in O(1)."""
        self._still("fork")
        twin = object.__new__(type(self))
        twin.stand(self.image)
        twin.world, twin.is_reversed = self.world, self.is_reversed
        return twin

    def dump(self) -> bytes:
        """The name of the base and the pages that differ from it. For a file of its own see `export`."""
        self._still("dump")
        image = self.image
        ends = max(image.count, image.base.count)
        written = sorted((number, image.page(number)) for number in image.pages.changes() if number < ends)
        pages = [(number, data) for number, data in written if data != image.base.page(number)]
        return codec.dumps((_FORMAT, image.base.digest, image.count, image.schema is image.base.schema, pages))

    @classmethod
    def load(cls, data: bytes, *_: Any) -> Self:
        """The inverse of `dump`, on any machine whose cache folder has the base.

        Raises:
            ImageError: It has not, or these are no bytes of a database.
        """
        if data.startswith(_ELSEWHERE):
            from quintain.resources import postgres

            return cast(Self, postgres.Database.load(data))
        try:
            kind, digest, count, same, pages = codec.loads(data, tuple[str, str, int, bool, list[tuple[int, bytes]]])
        except msgspec.DecodeError as error:
            raise ImageError(f"no dump of a database: {error}") from error
        base = bases.find(digest)
        whole = 0 <= count < _ENDS and all(len(page) == SIZE and 0 <= n < _ENDS for n, page in pages)
        if kind != _FORMAT or not whole:
            raise ImageError(f"no dump of a database: a {kind!r} of {count} pages")
        written: Pages = {number: Page(page) for number, page in pages}
        image = Image(base)
        if written or count != base.count:
            image = image.write(written, count, base.schema if same else object())
        return cls._on(image)

    def weight(self) -> int:
        """Bytes in memory that are its own: of the pages that were written since the base."""
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

    def snapshot(self) -> Snapshot:
        """What it holds now."""
        self._still("snapshot")
        return Snapshot(self.image)

    def restore(self, snapshot: Snapshot) -> None:
        """Hold again what a snapshot of this database, or of any fork of it, holds."""
        self._still("restore")
        self.image = snapshot.image

    def diff(self, other: Database) -> list[RowChange]:
        """What turns the rows of this database into those of the other, by table and key.

        Reads only rows that stand on changed pages when both stand on one base, else every row.
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
        """Write an ordinary SQLite file, which takes the place of one that is there."""
        self._still("export")
        seeding.export(self.image, Path(path))

    def reverse_unordered_selects(self, *, on: bool = True) -> None:
        """Development mode, for this database and its later forks: rows that no ORDER BY sorts come in reverse.

        A world that behaves alike in both modes depends on no order that SQLite does not promise.
        """
        self.is_reversed = on

    # -- inside

    def _still(self, verb: str) -> None:
        if self.unit is not None:
            raise Refused(f"{verb}() in the middle of a transaction")
