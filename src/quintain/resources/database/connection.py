"""SQLite connections that are switched between images: opening one costs a millisecond, switching it microseconds.

State of a connection outside its pages would leak from one world into another. So temporary tables, statistics and
settings are refused, and counts of changes begin anew with each use. Random numbers and time come from the world.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import apsw

from quintain.executor import end

from .dates import Dates
from .files import FileSystem, PageFile, Refused, Unbound, World
from .pages import SIZE, Base, PageImage
from .rows import bound, check_integers

_STATEMENTS = 512
"""Prepared statements kept, the most that apsw allows. They are those of the latest uses, not the most used ones."""
_ENGINE = apsw.SQLITE_PREPARE_PERSISTENT
"""Marks the statements of the engine itself, so that the statement cache keeps them apart from those of a tool."""
_LOOKS = 100_000
"""Instructions of SQLite's machine, about 2 ms, after which Python gets a look at what interrupts it."""
_LENGTH = 100_000_000
"""Bytes of one value. SQLite's own limit is ten times that: seconds in which nothing interrupts it."""
_IDLE = 16
"""Connections that may wait on one base; each holds some 600 KB."""

__all__ = ["READABLE", "Connection", "Make", "Refused", "borrow", "give_back", "retire"]

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

_lock = threading.Lock()


class Connection:
    """One SQLite connection and the file below it.

    Attributes:
        role: Which statements its guard lets pass; empty for those of the world's own code.
        file: What it stands on.
        reason: Why the guard refused last.
        is_trusted: Whether it lets everything pass that stays in the file.
        reversed: Whether rows come in reverse where no ORDER BY sorts them.
    """

    unguarded: ClassVar[frozenset[int]] = frozenset({apsw.SQLITE_READ, apsw.SQLITE_RECURSIVE, apsw.SQLITE_SELECT})
    """Authorizer codes for which `refusal` is never needed; most calls of the guard are about columns that are read."""

    def __init__(self, image: PageImage, role: str = "") -> None:
        self.role = role
        self.file = PageFile(image)
        self.reversed = False
        self.is_trusted = True
        self.reason = ""
        self._start = 0
        self._system = FileSystem(self.file)
        self._dates = Dates(self._system.name)
        self.sqlite: Any = apsw.Connection("database", vfs=self._system.name, statementcachesize=_STATEMENTS)
        # A statement is prepared once for all values: wheels look at bound values and would prepare it for each.
        self.sqlite.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self.sqlite.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        self.sqlite.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
        self.sqlite.limit(apsw.SQLITE_LIMIT_LENGTH, _LENGTH)
        for setting in (
            f"page_size={SIZE}",
            "journal_mode=MEMORY",
            "synchronous=OFF",
            "temp_store=MEMORY",
            "cache_spill=OFF",
            "foreign_keys=ON",
        ):
            self.engine(f"PRAGMA {setting}")
        self.sqlite.convert_binding = _bound
        self._functions()
        # In the main thread a time limit is a signal, and Python sees none while SQLite runs; elsewhere it is a time.
        self.sqlite.set_progress_handler(lambda: time.monotonic() > end.get(), _LOOKS)
        self.sqlite.authorizer = self._guard = _Guard(self)
        self.is_trusted = False

    def __del__(self) -> None:
        if hasattr(self, "sqlite"):
            self.sqlite.close(force=True)
            self._dates.close()
            self._system.unregister()

    def take(self, image: PageImage, world: World | None) -> None:
        """Switches the connection to an image."""
        file = self.file
        if file.image is not image:
            file.switch(image)
        if file.stale:
            if not file.count:
                # Setting an authorizer expires prepared statements, as a rollback does. One that a former empty file
                # left would take the schema in the cache for that of this file.
                self.sqlite.authorizer = self._guard
            self.engine("SELECT 1 FROM sqlite_schema LIMIT 1")
            file.stale = False
        file.world, file.spoiled = world, False
        self._start = self.sqlite.total_changes()
        self.sqlite.set_last_insert_rowid(0)

    def reverse(self, *, on: bool) -> None:
        """Lets rows whose order no ORDER BY fixes come the other way round, or not."""
        if on != self.reversed:
            self.engine(f"PRAGMA reverse_unordered_selects={int(on)}")
            self.reversed = on

    @property
    def is_clean(self) -> bool:
        """True until a statement changes a row: what is read is the content of the image."""
        return bool(self.sqlite.total_changes() == self._start)

    def rows(self, sql: str, values: Any) -> list[tuple[Any, ...]]:
        """Executes, and fetches everything: no statement stays open.

        Raises:
            Refused: The guard says no.
            ToolError: A value is an integer that SQLite does not hold.
        """
        try:
            found: list[tuple[Any, ...]] = self.sqlite.execute(sql, values).fetchall()
        except (apsw.AuthError, OverflowError) as error:
            raise self._mapped(error, values) from error
        return found

    def table(self, sql: str, values: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Returns the names of the columns and the rows; no names if there are no rows. Raises as `rows`."""
        try:
            cursor = self.sqlite.execute(sql, values)
            first = next(cursor, None)
            if first is None:
                return [], []
            return [column[0] for column in cursor.get_description()], [first, *cursor]
        except (apsw.AuthError, OverflowError) as error:
            raise self._mapped(error, values) from error

    def _mapped(self, error: Exception, values: Any) -> Exception:
        """Returns the exception that a caller gets."""
        if isinstance(error, apsw.AuthError):
            return Refused(self.reason or str(error))
        check_integers(values or ())
        return error

    def engine(self, sql: str) -> list[tuple[Any, ...]]:
        """Executes a statement of the engine's own."""
        before, self.is_trusted = self.is_trusted, True
        try:
            found: list[tuple[Any, ...]] = self.sqlite.execute(sql, prepare_flags=_ENGINE).fetchall()
            return found
        finally:
            self.is_trusted = before

    def script(self, sql: str) -> None:
        """Executes the author's own schema or seed, which may do what a tool may not, but not reach another file."""
        self.is_trusted = True
        try:
            self.rows(sql, None)
        finally:
            self.is_trusted = False

    def abandon(self) -> None:
        """Undoes what was not committed, and drops what was written."""
        if not self.sqlite.get_autocommit():
            self.engine("ROLLBACK")
        if self.file.pending:
            self.file.forget()

    def refusal(self, action: int, names: tuple[str, str, str], view: str) -> str:
        """Returns the reason why a statement may not do this; empty if it may.

        Args:
            action: One of SQLite's authorizer codes.
            names: The object of the action and its database; their meaning depends on the action.
            view: The innermost view or trigger of the access; empty for the statement itself.
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
                raise Unbound("random() needs a world: make the database a field of a State, or bind() it")
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

        self._dates.install(self.sqlite)
        self.sqlite.create_scalar_function("random", lambda: bits() - 2**63, 0)
        self.sqlite.create_scalar_function("randomblob", randomblob, 1)
        self.sqlite.create_scalar_function("total_changes", total, 0)
        self.sqlite.create_scalar_function("changes", changes, 0)


_STATISTICS = "statistics decide how a query runs: ANALYZE belongs into a .sql seed"

Make = Callable[[PageImage, str], Connection]
"""Opens a connection for a role."""


def borrow(image: PageImage, world: World | None = None, *, role: str = "", make: Make | None = None) -> Connection:
    """Returns a connection that stands on this image: the one that knows most of it already, or a new one."""
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
    """Returns a connection to the pool."""
    connection.file.world = None
    base = connection.file.image.base
    with _lock:
        if not base.retired and len(base.idle) < _IDLE:
            base.idle.append(connection)


def retire(base: Base) -> None:
    """Closes the idle connections of a base that is unlikely to be used again; later uses open a new one each."""
    with _lock:
        base.retired = True
        base.idle.clear()


def _bound(_cursor: object, _number: int, value: Any) -> Any:
    return bound(value)


class _Guard:
    """SQLite asks it, when a statement is prepared, about everything that the statement would do."""

    def __init__(self, connection: Connection) -> None:
        self._connection = weakref.ref(connection)
        self._unguarded = connection.unguarded

    def __call__(self, action: int, *details: str | None) -> int:
        if action in self._unguarded:
            return apsw.SQLITE_OK
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
