"""Untrusted SQL: one SELECT, in the view of a role, bounded in time and size.

A role sees, under the name of each table, the view that the author wrote for it, and nothing else: the authorizer of
its connection lets only those views reach the tables below. No other role uses the connection, and its content cannot
change.

SQLite passes the authorizer the name of the innermost view, but also the name of a statement's own WITH. So a statement
that spells the name of such a view is refused before SQLite sees it.

Full-text search reads its tables by statements of its own, which the authorizer checks too. They are prepared while the
asker's statement runs, after that one was authorized: only from then on may these tables be read.
"""

from __future__ import annotations

import math
import time
import weakref
from typing import Any, ClassVar

import apsw
import msgspec

from quintain.errors import ToolError, UsageError

from .connection import Connection, borrow, give_back
from .files import Refused, Unbound, World
from .pages import PageImage
from .rows import quoted
from .seeding import view_name

_READER = "reader"
_STEPS = 1000
"""Instructions of SQLite's machine between two looks at the limits."""
_UNREPEATABLE = {"random", "randomblob", "load_extension", "changes", "total_changes", "last_insert_rowid"}
_FUNCTIONS = {"json_each", "json_tree"}
"""Tables that are functions of their arguments, and so show nothing."""
_ALLOWED = {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one SELECT in time and size.

    Attributes:
        steps: Thousands of instructions of SQLite's virtual machine; the same statement takes as many everywhere.
        seconds: Wall clock; the last resort, since a replay on another machine may exceed it elsewhere.
        rows: Number of rows; more are cut off.
        characters: Length of the text and bytes in all cells together; the rows beyond are cut off.
        length: Bytes of one value while it is computed.
    """

    steps: int = 10_000
    seconds: float = 10.0
    rows: int = 100
    characters: int = 20_000
    length: int = 1_000_000


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Author of a SELECT.

    Attributes:
        role: The role whose views it reads; empty for everything.
        who: Value of `who()` in them.
        limits: Bounds in time and size.
    """

    role: str = ""
    who: Any = None
    limits: Limits = Limits()


class QueryAnswer(msgspec.Struct, frozen=True):
    """Result of a SELECT.

    Attributes:
        columns: Names of the columns.
        rows: Rows in the statement's order.
        is_cut: True if rows are missing.
    """

    columns: list[str]
    rows: list[list[Any]]
    is_cut: bool = False


class ReadonlyConnection(Connection):
    """A connection that can only read, as one role."""

    unguarded: ClassVar[frozenset[int]] = frozenset()

    def __init__(self, image: PageImage, role: str) -> None:
        self.who: Any = None
        self.budget: list[float] = []
        """Looks at the limits that are left, and the end on the monotonic clock; empty for no limit."""
        self.is_running = False
        """True once the asker's statement is prepared; later statements are those of full-text search."""
        self._name = role.partition(":")[2]
        self._known: object = None
        self._views: set[str] = set()
        self._visible: set[str] = set()  # their names as SQL compares them
        self._hidden: set[str] = set()  # and those of everything else; what is in neither is a statement's own WITH
        self._virtual: set[str] = set()  # what full-text search reads
        super().__init__(image, role)
        own = weakref.ref(self)
        # They must not refer to this object: SQLite holds them where the garbage collector does not see them.
        self.sqlite.create_scalar_function("who", lambda: getattr(own(), "who", None), 0)
        self.sqlite.set_progress_handler(lambda: _is_over(own()), _STEPS)
        self.engine("PRAGMA query_only=ON")

    def prepare(self, image: PageImage) -> None:
        """See the tables of this image through the views of the role.

        Raises:
            UsageError: It has no such role.
        """
        if not self._name or self._known is image.schema:
            return
        prefix = view_name(self._name, "")
        self.engine("PRAGMA query_only=OFF")
        for view in self._views:
            self.script(f"DROP VIEW temp.{quoted(view.removeprefix(prefix))}")
        names = [name for (name,) in self.engine("SELECT name FROM main.sqlite_schema ORDER BY name")]
        self._views = {name for name in names if name.startswith(prefix)}
        self._visible = {name.lower() for name in self._views}
        self._hidden = {name.lower() for name in names}
        virtual = "SELECT name FROM pragma_table_list WHERE type IN ('shadow', 'virtual')"
        self._virtual = {name for (name,) in self.engine(virtual)}
        for view in self._views:
            own = quoted(view.removeprefix(prefix))
            columns = self.engine(f"SELECT name FROM pragma_table_info({_text(view)})")  # noqa: S608
            # A statement that reads no column, as count(*) does, would reach the table below without its view's name.
            reads = " || ".join(f"typeof({quoted(name)})" for (name,) in columns)
            whole = f"SELECT * FROM main.{quoted(view)} WHERE {reads} <> ''"  # noqa: S608 (names are quoted)
            self.script(f"CREATE TEMP VIEW {own} AS {whole}")
        self.engine("PRAGMA query_only=ON")
        self._known = image.schema
        if not self._views:
            self._known = None
            known = sorted({name.partition(".")[0] for name in names if "." in name})
            raise UsageError(f"no role {self._name!r}; this database has {known}")

    def check(self, sql: str) -> None:
        """Refuses a statement that names a view by which its role sees a table.

        Raises:
            Refused: It does, in one of the four ways to quote a name; for it has a dot.
        """
        for view in self._views:
            spelled = [f"[{view}]", *(quote + view.replace(quote, quote * 2) + quote for quote in "\"'`")]
            if any(one in sql for one in spelled):
                raise Refused(f"no such table: {view}")

    def refusal(self, action: int, names: tuple[str, str, str], view: str) -> str:
        if self.is_trusted:
            return super().refusal(action, names, view)
        first, second, _ = names
        if action not in _ALLOWED and not (action == apsw.SQLITE_PRAGMA and first == "data_version"):
            return "only a SELECT may be asked"  # full-text search looks at the version of the data
        if action == apsw.SQLITE_FUNCTION and second.lower() in _UNREPEATABLE:
            return f"{second}() would not answer the same twice"
        if action == apsw.SQLITE_READ and self._name and not self._may_read(names, view):
            return f"no such table: {first}"
        return ""

    def _may_read(self, names: tuple[str, str, str], view: str) -> bool:
        table, _, database = names
        if view in self._views or table in _FUNCTIONS or (self.is_running and table in self._virtual):
            return True
        name = table.lower()
        if not database and name not in self._hidden and not name.startswith("sqlite_"):
            return True  # the statement's own WITH
        return (name if database == "main" else view_name(self._name, name).lower()) in self._visible


def ask(image: PageImage, sql: str, *, asker: Asker, world: World | None) -> QueryAnswer:
    """Implements the method `Database.ask`."""
    limits = asker.limits
    reader = borrow(image, world, role=f"{_READER}:{asker.role}", make=ReadonlyConnection)
    assert isinstance(reader, ReadonlyConnection)
    try:
        reader.prepare(image)
        reader.who = asker.who
        reader.budget = [limits.steps, time.monotonic() + limits.seconds]
        reader.sqlite.limit(apsw.SQLITE_LIMIT_LENGTH, limits.length)
        return _fetched(reader, sql, limits)
    except (UsageError, Unbound):
        raise
    except (apsw.AuthError, Refused) as error:
        raise ToolError(reader.reason if isinstance(error, apsw.AuthError) else str(error)) from error
    except apsw.InterruptError as error:
        raise ToolError("this takes too long: ask for less, or by an indexed column") from error
    except (apsw.Error, ValueError) as error:
        raise ToolError(f"SQL: {error}") from error
    finally:
        reader.who, reader.budget = None, []
        give_back(reader)


def _fetched(reader: ReadonlyConnection, sql: str, limits: Limits) -> QueryAnswer:
    statements = 0

    def only_one(*_: Any) -> bool:
        nonlocal statements
        statements += 1
        if statements > 1:
            raise Refused("one statement at a time")
        reader.is_running = True
        return True

    reader.check(sql)
    cursor: Any = reader.sqlite.cursor()
    cursor.exec_trace = only_one
    columns: list[str] = []
    rows: list[list[Any]] = []
    characters = 0
    is_cut = False
    try:
        for row in cursor.execute(sql, can_cache=False):
            columns = columns or [column[0] for column in cursor.get_description()]
            characters += sum(len(value) for value in row if isinstance(value, str | bytes))
            if len(rows) == limits.rows or characters > limits.characters:
                is_cut = True
                break
            rows.append([_shown(value) for value in row])
    finally:
        reader.is_running = False
        cursor.close(force=True)
    return QueryAnswer(columns, rows, is_cut)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _shown(value: Any) -> Any:
    """JSON has no bytes, and no infinities."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _is_over(reader: ReadonlyConnection | None) -> bool:
    """True if the running statement has used up its steps or seconds."""
    if not (reader and reader.budget):
        return False
    reader.budget[0] -= 1
    return reader.budget[0] < 0 or time.monotonic() > reader.budget[1]
