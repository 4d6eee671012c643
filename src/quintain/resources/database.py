"""A SQLite database as part of a world: real SQL, and copied, hashed and forked like plain data.

    image        the content, an immutable value: see pages.py
    connection   borrowed for one statement or one transaction, then used by other worlds: see connection.py

A database is a pointer to an image. A statement that writes, or a transaction that succeeds, makes a new image and
moves the pointer; a fork and a snapshot copy it. So snapshots form a tree: each can be restored at any time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from quintain import codec

try:
    import apsw  # noqa: F401
except ImportError as error:
    raise ImportError("a Database needs apsw: pip install 'quintain[database]'") from error

from . import bases, difference, reading, rows, seeding
from .bases import ImageError as ImageError
from .connection import Connection, Refused, World, borrow, give_back
from .difference import RowChange as RowChange
from .pages import SIZE, Image, Layer, Page
from .reading import Answer as Answer
from .reading import Asker
from .reading import Limits as Limits
from .rows import Indexed as Indexed
from .rows import Key as Key
from .rows import References as References
from .rows import Unique as Unique

T = TypeVar("T")

_FORMAT = "quintain database 1"
_ENDS = 2**31
"""Pages a file may have."""


class Snapshot:
    """What a database held at one moment; `restore` brings it back, at any time and as often as wanted."""

    __slots__ = ("_image",)

    def __init__(self, image: Image) -> None:
        self._image = image


class Database:
    """Tables in SQL, with O(1) `fork`, `snapshot` and `restore`.

    Held directly as a field of a State, its `random()`, `datetime('now')` and `CURRENT_TIMESTAMP` answer from the
    world's rng and clock.

    Args:
        schema: SQL text, or classes that become tables (see `quintain.resources.rows`), in this order.
        seed: What fills it: a function that is given the database, or a `.sql` file, or a SQLite file, which then
            takes the place of the schema. It runs once; the result is kept in the cache folder under a digest of the
            schema and of the seed (of a function: of the module that it stands in).
        roles: What `ask` lets a role read: for each table the SELECT that stands for it. In it, `who()` is the
            person that `ask` was told.
    """

    __slots__ = ("_depth", "_image", "_reversed", "_thread", "_unit", "_world")

    def __init__(
        self,
        *schema: str | type[Any],
        seed: Callable[[Database], object] | Path | None = None,
        roles: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        plan = seeding.Plan(schema, seed, roles or {})
        self._stand(Image(bases.made(plan.recipe(), lambda: plan.build(self._on))))

    @classmethod
    def _on(cls, image: Image) -> Database:
        database = object.__new__(cls)
        database._stand(image)
        return database

    def _stand(self, image: Image) -> None:
        self._image = image
        self._world: World | None = None
        self._unit: Connection | None = None
        self._thread = 0
        self._depth = 0
        self._reversed = False

    def bind(self, world: World) -> None:
        """Take random numbers and time from this world. A State does this for its fields, and for every copy."""
        self._world = world

    # -- SQL

    def execute(self, sql: str, *values: Any, **names: Any) -> list[tuple[Any, ...]]:
        """Run SQL and fetch all rows. Values are for `?`, names for `:name`. Outside a transaction it is one.

        Raises:
            apsw.Error: SQLite says no: apsw.SQLError for bad SQL, apsw.ConstraintError for bad data.
            Refused: It would reach beyond this database or leave something behind in the connection.
        """
        with self._using() as connection:
            return connection.rows(sql, names or values)

    def all(self, type: type[T], sql: str, *values: Any, **names: Any) -> list[T]:
        """The rows as instances of `type`: a Struct, field by column name; or the type of the only column.

        Raises:
            msgspec.ValidationError: A row is not of that type; the message ends in the path.
        """
        with self._using() as connection:
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
        with self.transaction(), self._using() as connection:
            for one in structs:
                connection.rows(*rows.insertion(one))
            return connection.sqlite.last_insert_rowid()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing: what happens inside is undone when it raises. May be nested.

        Raises:
            apsw.ConstraintError: A deferred foreign key is still violated at the end.
        """
        connection = self._mine()
        if connection is not None:
            yield from self._nested(connection)
            return
        with self._using() as connection:
            connection.engine("BEGIN")
            self._depth = 1
            try:
                yield
                connection.engine("COMMIT")
            finally:
                self._depth = 0

    def _nested(self, connection: Connection) -> Iterator[None]:
        name = f"level_{self._depth}"
        connection.engine(f"SAVEPOINT {name}")
        self._depth += 1
        try:
            yield
        except BaseException:
            if not connection.sqlite.get_autocommit():
                connection.engine(f"ROLLBACK TO {name}")
                connection.engine(f"RELEASE {name}")
            raise
        else:
            connection.engine(f"RELEASE {name}")
        finally:
            self._depth -= 1

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
        return reading.ask(self._image, sql, asker=asker, world=self._world)

    # -- a Resource

    def fork(self) -> Self:
        """An independent twin, in O(1)."""
        self._still("fork")
        twin = object.__new__(type(self))
        twin._stand(self._image)
        twin._world, twin._reversed = self._world, self._reversed
        return twin

    def dump(self) -> bytes:
        """The name of the base and the pages that differ from it. For a file of its own see `export`."""
        self._still("dump")
        image = self._image
        ends = max(image.count, image.base.count)
        written = sorted((number, page.data) for number, page in image.written().items() if number < ends)
        pages = [(number, data) for number, data in written if data != image.base.page(number)]
        return codec.dumps((_FORMAT, image.base.digest, image.count, image.schema is image.base.schema, pages))

    @classmethod
    def load(cls, data: bytes, *arguments: Any) -> Self:
        """The inverse of `dump`, on any machine whose cache folder has the base.

        Raises:
            ImageError: It has not, or these are no bytes of a database.
        """
        try:
            kind, digest, count, same, pages = codec.loads(data, tuple[str, str, int, bool, list[tuple[int, bytes]]])
        except msgspec.DecodeError as error:
            raise ImageError(f"no dump of a database: {error}") from error
        base = bases.find(digest)
        whole = 0 <= count < _ENDS and all(len(page) == SIZE and 0 <= n < _ENDS for n, page in pages)
        if kind != _FORMAT or not whole:
            raise ImageError(f"no dump of a database: a {kind!r} of {count} pages")
        layer: Layer = {number: Page(page) for number, page in pages}
        image = Image(base)
        if layer or count != base.count:
            image = image.write(layer, count, base.schema if same else object())
        return cls._on(image)  # type: ignore[return-value]

    def digest(self) -> str:
        """Names the bytes, in O(pages written since it was last asked): equal for equal histories, 32 hex digits.

        Databases with equal rows but another history differ; for those see `logical_digest`.
        """
        self._still("digest")
        return self._image.digest()

    def __copy__(self) -> Self:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.fork()

    def __repr__(self) -> str:
        return f"Database({self._image.count * SIZE // 1024} KB, {len(self._image.written())} pages written)"

    # -- a tree of snapshots, differences, files

    def snapshot(self) -> Snapshot:
        """What it holds now."""
        self._still("snapshot")
        return Snapshot(self._image)

    def restore(self, snapshot: Snapshot) -> None:
        """Hold again what a snapshot of this database, or of any fork of it, holds."""
        self._still("restore")
        self._image = snapshot._image

    def diff(self, other: Database) -> list[RowChange]:
        """What turns the rows of this database into those of the other, by table and key.

        Reads only rows that stand on changed pages when both stand on one base, else every row.
        """
        self._still("diff")
        other._still("diff")
        return difference.changes(self._image, other._image)

    def logical_digest(self) -> str:
        """Names schema and rows, however they came to be: equal for equal content, 32 hex digits. Reads everything."""
        self._still("logical_digest")
        return difference.logical_digest(self._image)

    def export(self, path: Path | str) -> None:
        """Write an ordinary SQLite file, which takes the place of one that is there."""
        self._still("export")
        seeding.export(self._image, Path(path))

    def reverse_unordered_selects(self, *, on: bool = True) -> None:
        """Development mode, for this database and its later forks: rows that no ORDER BY sorts come in reverse.

        A world that behaves alike in both modes depends on no order that SQLite does not promise.
        """
        self._reversed = on

    # -- inside

    @property
    def image(self) -> Image:
        """The content, as the engine knows it."""
        return self._image

    def _mine(self) -> Connection | None:
        """The connection of the transaction that is open.

        Raises:
            Refused: Another thread opened it.
        """
        connection = self._unit
        if connection is not None and self._thread != threading.get_ident():
            raise Refused("a database is used by one thread at a time; give the other one a fork")
        return connection

    @contextlib.contextmanager
    def _using(self) -> Iterator[Connection]:
        connection = self._mine()
        if connection is not None:
            yield connection
            return
        connection = borrow(self._image, self._world)
        if self._reversed is not connection.reversed:
            connection.reverse(on=self._reversed)
        self._unit, self._thread = connection, threading.get_ident()
        try:
            yield connection
            self._image = connection.file.commit()
        except BaseException:
            connection.abandon()
            raise
        finally:
            self._unit = None
            give_back(connection)

    def _still(self, verb: str) -> None:
        if self._unit is not None:
            raise Refused(f"{verb}() in the middle of a transaction")
