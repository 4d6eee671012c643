"""SQLite connections that are switched between images: opening one costs a millisecond, switching it microseconds.

A connection reads and writes one file of a file system that exists only in this process. What it writes is pending
until the transaction has succeeded; then the image with these pages takes the place of the old one. So an error at
any moment leaves the world as it was, whatever SQLite had written by then.

SQLite believes that it is alone with an ordinary file. When the file below it becomes another one, it must notice:

* its page cache is dropped when the change counter (bytes 24-27) differs from the one it saw last. Each connection
  is shown a counter of its own, which moves at every switch to another image; equal images need no switch.
* its parsed schema is dropped when the schema cookie (bytes 40-43) differs. Two branches that both create a table reach
  the same cookie with different schemas. So each image knows the *identity* of its schema, and a connection that comes
  from another identity is shown a cookie that it has never seen; the difference is taken off again when it writes.

Whatever a connection remembers beside its pages would leak from one world into another: temporary tables, statistics
and settings are refused, counts of changes begin anew with each use. Random numbers and time are the world's.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol, cast

import apsw

from quintain.errors import QuintainError

from .pages import SIZE, ZERO, Base, Image, Layer, Page, normalised

_UNIX = 210_866_760_000_000
"""Milliseconds from the beginning of SQLite's calendar, in 4714 BC, to 1970."""
_STATEMENTS = 500
"""Prepared statements kept; apsw looks them up one by one, so more would cost."""
_ENGINE = apsw.SQLITE_PREPARE_PERSISTENT
"""Marks the statements of the engine itself, so that the statement cache keeps them apart from those of a tool."""
_WORD = 2**32
_IDLE = 16
"""Connections that may wait on one base; each holds some 600 KB."""

READABLE = frozenset(
    {
        "application_id",
        "data_version",
        "defer_foreign_keys",
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
        "user_version",
    }
)
"""Pragmas that speak of the database and not of the connection."""

_numbers = itertools.count()
_lock = threading.Lock()


class Refused(QuintainError):
    """A statement that would reach beyond its database, or leave something behind in the connection."""


class Chance(Protocol):
    """Where random numbers come from."""

    def bits(self) -> int: ...


class Time(Protocol):
    """What time it is."""

    now: float


class World(Protocol):
    """Whose random numbers and whose time SQL sees."""

    @property
    def rng(self) -> Chance: ...
    @property
    def clock(self) -> Time: ...


class PageFile:
    """The file that one connection has open. SQLite calls the methods that begin with x."""

    def __init__(self, image: Image) -> None:
        self.image: Image = image
        self.world: World | None = None
        self.pending: Layer = {}
        self.count = image.count
        self.schema = image.schema
        self._counter = 1
        self._cookie = _cookie(image.page(0))  # the highest that the connection was ever shown
        self._shift = 0  # what it is shown, less what the image holds

    def switch(self, image: Image) -> None:
        """Put another image below the connection."""
        self._counter = self._counter % (_WORD - 2) + 1
        if image.schema is not self.schema:
            self._cookie += 1
            self._shift = self._cookie - _cookie(image.page(0))
        self.image, self.count, self.schema = image, image.count, image.schema

    def commit(self) -> Image:
        """The image with what was written."""
        if self.pending:
            pending, self.pending = self.pending, {}
            self.image = self.image.write(pending, self.count, self.schema)
        return self.image

    def forget(self) -> None:
        """Drop what was written; SQLite will read everything anew."""
        self.pending = {}
        lost, self.schema = self.schema, object()
        if lost is self.image.schema:
            self.schema = lost
        self.switch(self.image)

    # -- what SQLite calls

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        number, within = divmod(offset, SIZE)
        if number >= self.count:
            return b""
        page = self.pending.get(number)
        data = page.data if page is not None else self.image.page(number)
        if number == 0:
            data = self._shown(data)
        return data if amount == SIZE else data[within : within + amount]

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        number = offset // SIZE
        content = bytes(data)
        if number == 0:
            content = self._stored(content)
        self.pending[number] = Page(content)
        self.count = max(self.count, number + 1)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        # Zeros hide the pages of the image, should the file grow again.
        self.pending |= {number: Page(ZERO) for number in range(size // SIZE, self.count)}
        self.count = size // SIZE

    def xFileSize(self) -> int:  # noqa: N802
        return self.count * SIZE

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Nothing here outlives the process."""

    def xLock(self, level: int) -> None:  # noqa: N802
        """Nobody else has this file."""

    def xUnlock(self, level: int) -> None:  # noqa: N802
        """As above."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return SIZE

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0

    def xClose(self) -> None:  # noqa: N802
        """Nothing was opened."""

    # -- page 1

    def _shown(self, first: bytes) -> bytes:
        counter = self._counter.to_bytes(4, "big")
        cookie = ((_cookie(first) + self._shift) % _WORD).to_bytes(4, "big")
        return b"".join((first[:24], counter, first[28:40], cookie, first[44:92], counter, first[96:]))

    def _stored(self, first: bytes) -> bytes:
        self._counter = int.from_bytes(first[24:28], "big")
        shown = _cookie(first)
        cookie = (shown - self._shift) % _WORD
        known = self.pending.get(0)
        if cookie != _cookie(known.data if known else self.image.page(0)):
            self.schema = object()
        self._cookie = max(self._cookie, shown)
        return normalised(b"".join((first[:40], cookie.to_bytes(4, "big"), first[44:])))


class FileSystem(apsw.VFS):
    """Holds one file, and tells its world's time."""

    def __init__(self, file: PageFile) -> None:
        self.name = f"quintain-{next(_numbers)}"
        self._file = file
        super().__init__(self.name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        if not flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            raise apsw.CantOpenError("a database has one file, and everything temporary is in memory")
        return self._file

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802
        return False

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802, FBT001
        """There is no second file."""

    def xCurrentTimeInt64(self) -> int:  # noqa: N802
        world = self._file.world
        return _UNIX + (0 if world is None else round(world.clock.now * 1000))

    def xCurrentTime(self) -> float:  # noqa: N802
        return self.xCurrentTimeInt64() / 86_400_000

    def xDlOpen(self, filename: str) -> int:  # noqa: N802
        return 0

    def xDlError(self) -> str:  # noqa: N802
        return "a database loads no extensions"


class Connection:
    """One SQLite connection and the file below it.

    Attributes:
        role: Which statements its guard lets pass; empty for those of the world's own code.
        file: What it stands on.
        reason: Why the guard refused last.
        is_trusted: Whether it lets everything pass that stays in the file.
        reversed: Whether rows come in reverse where no ORDER BY sorts them.
    """

    def __init__(self, image: Image, role: str = "") -> None:
        self.role = role
        self.file = PageFile(image)
        self.reversed = False
        self.is_trusted = True
        self.reason = ""
        self._start = 0
        self._system = FileSystem(self.file)
        self.sqlite: Any = apsw.Connection("database", vfs=self._system.name, statementcachesize=_STATEMENTS)
        # A statement is prepared once for all values: wheels look at bound values and would prepare it for each.
        self.sqlite.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self.sqlite.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        self.sqlite.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
        for setting in (
            f"page_size={SIZE}",
            "journal_mode=MEMORY",
            "synchronous=OFF",
            "temp_store=MEMORY",
            "cache_spill=OFF",
            "foreign_keys=ON",
        ):
            self.engine(f"PRAGMA {setting}")
        self._functions()
        self.sqlite.authorizer = _Guard(self)
        self.is_trusted = False

    def __del__(self) -> None:
        if hasattr(self, "sqlite"):
            self.sqlite.close(force=True)
            self._system.unregister()

    def take(self, image: Image, world: World | None) -> None:
        """Stand on this image now."""
        file = self.file
        if file.image is not image:
            file.switch(image)
        file.world = world
        self._start = self.sqlite.total_changes()
        self.sqlite.set_last_insert_rowid(0)

    def reverse(self, *, on: bool) -> None:
        """Let rows whose order no ORDER BY fixes come the other way round, or not."""
        if on != self.reversed:
            self.engine(f"PRAGMA reverse_unordered_selects={int(on)}")
            self.reversed = on

    def rows(self, sql: str, values: Any) -> list[tuple[Any, ...]]:
        """Execute, and fetch everything: no statement stays open.

        Raises:
            Refused: The guard says no.
        """
        try:
            return cast("list[tuple[Any, ...]]", self.sqlite.execute(sql, values).fetchall())
        except apsw.AuthError as error:
            raise Refused(self.reason or str(error)) from error

    def table(self, sql: str, values: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The same, with the names of the columns before the rows; no names where there are no rows."""
        try:
            cursor = self.sqlite.execute(sql, values)
            try:
                names = [column[0] for column in cursor.get_description()]
            except apsw.ExecutionCompleteError:
                return [], []
            return names, cursor.fetchall()
        except apsw.AuthError as error:
            raise Refused(self.reason or str(error)) from error

    def engine(self, sql: str) -> list[tuple[Any, ...]]:
        """Execute a statement of the engine's own."""
        before, self.is_trusted = self.is_trusted, True
        try:
            return cast("list[tuple[Any, ...]]", self.sqlite.execute(sql, prepare_flags=_ENGINE).fetchall())
        finally:
            self.is_trusted = before

    def script(self, sql: str) -> None:
        """Execute the author's own schema or seed, which may do what a tool may not, but not reach another file."""
        self.is_trusted = True
        try:
            self.rows(sql, None)
        finally:
            self.is_trusted = False

    def abandon(self) -> None:
        """Undo what was not committed, and drop what was written."""
        if not self.sqlite.get_autocommit():
            self.engine("ROLLBACK")
        if self.file.pending:
            self.file.forget()

    def refusal(self, action: int, names: tuple[str, str, str], view: str) -> str:
        """Why a statement may not do this; empty when it may.

        Args:
            action: One of SQLite's authorizer codes.
            names: What it is about, and in which database; their meaning depends on the action.
            view: The innermost view or trigger that wants it; empty for the statement itself.
        """
        first, second, _ = names
        if action in {apsw.SQLITE_ATTACH, apsw.SQLITE_DETACH}:
            return "a database is one file: ATTACH, DETACH and VACUUM are refused"
        if self.is_trusted:
            return ""
        for actions, is_meant, reason in _REFUSALS:
            if action in actions and is_meant(first.lower(), second.lower()):
                return reason.format(first=first)
        return ""

    def _functions(self) -> None:
        # They must not refer to this object: SQLite holds them where the garbage collector does not see them.
        file, own = self.file, weakref.ref(self)

        def bits() -> int:
            if file.world is None:
                raise Refused("random() needs a world: make the database a field of a State, or bind() it")
            return file.world.rng.bits()

        def randomblob(size: int | None) -> bytes:
            wanted = max(size or 0, 1)
            return b"".join(bits().to_bytes(8, "little") for _ in range(-(-wanted // 8)))[:wanted]

        def total() -> int:
            connection = own()
            return connection.sqlite.total_changes() - connection._start if connection else 0

        def changes() -> int:
            connection = own()
            return connection.sqlite.changes() if connection and total() else 0

        self.sqlite.create_scalar_function("random", lambda: bits() - 2**63, 0)
        self.sqlite.create_scalar_function("randomblob", randomblob, 1)
        self.sqlite.create_scalar_function("total_changes", total, 0)
        self.sqlite.create_scalar_function("changes", changes, 0)


_STATISTICS = "statistics decide how a query runs: ANALYZE belongs into a .sql seed"

Make = Callable[[Image, str], Connection]
"""Opens a connection for a role."""


def borrow(image: Image, world: World | None = None, *, role: str = "", make: Make | None = None) -> Connection:
    """A connection that stands on this image: the one that knows most of it already, or a new one."""
    found: Connection | None = None
    with _lock:
        idle: list[Connection] = image.base.idle
        for one in reversed(idle):
            if one.role != role:
                continue
            if one.file.image is image:
                found = one
                break
            if found is None or (one.file.schema is image.schema and found.file.schema is not image.schema):
                found = one
        if found is not None:
            idle.remove(found)
    if found is None:
        found = (make or Connection)(image, role)
    found.take(image, world)
    return found


def give_back(connection: Connection) -> None:
    """Let others use it."""
    connection.file.world = None
    base = connection.file.image.base
    with _lock:
        if not base.retired and len(base.idle) < _IDLE:
            base.idle.append(connection)


def retire(base: Base) -> None:
    """Close what waits on a base that nobody is expected to use again; whoever does pays for a connection each time."""
    with _lock:
        base.retired = True
        base.idle.clear()


class _Guard:
    """SQLite asks it, when a statement is prepared, about everything that the statement would do."""

    def __init__(self, connection: Connection) -> None:
        self._connection = weakref.ref(connection)

    def __call__(self, action: int, *details: str | None) -> int:
        connection = self._connection()
        assert connection is not None  # it closes SQLite's one before it goes
        first, second, database, view = (detail or "" for detail in details)
        reason = connection.refusal(action, (first, second, database), view)
        if reason:
            connection.reason = reason
        return apsw.SQLITE_DENY if reason else apsw.SQLITE_OK


_REFUSALS: tuple[tuple[set[int], Callable[[str, str], bool], str], ...] = (
    # For these authorizer codes, if what they are about is meant: the reason.
    (
        {apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT},
        lambda first, second: True,
        "write `with db.transaction():` instead of BEGIN, COMMIT, ROLLBACK and SAVEPOINT",
    ),
    (
        {
            apsw.SQLITE_CREATE_TEMP_INDEX,
            apsw.SQLITE_CREATE_TEMP_TABLE,
            apsw.SQLITE_CREATE_TEMP_TRIGGER,
            apsw.SQLITE_CREATE_TEMP_VIEW,
        },
        lambda first, second: True,
        "a temporary table, view or trigger would stay in the connection, which other worlds use",
    ),
    (
        {apsw.SQLITE_PRAGMA},
        lambda first, second: first not in READABLE,
        "PRAGMA {first} would change the connection, which other worlds use",
    ),
    (
        {apsw.SQLITE_ANALYZE, apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE},
        lambda first, second: first.startswith("sqlite_stat"),
        _STATISTICS,
    ),
    ({apsw.SQLITE_ANALYZE}, lambda first, second: True, _STATISTICS),
    (
        {apsw.SQLITE_FUNCTION},
        lambda first, second: second == "load_extension",
        "a database loads no extensions",
    ),
)


def _cookie(first: bytes) -> int:
    return int.from_bytes(first[40:44], "big")
