"""One connection to the database of one world: statements in the world's time and chance, errors of one family.

Outside BEGIN a statement is a transaction that may only read; what writes says BEGIN READ WRITE. So a SELECT that calls
a function that writes is noticed by the server, and run again where it may.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import psycopg

from quintain.resources.database import ConstraintError, Refused, SQLError
from quintain.resources.database.files import Time
from quintain.resources.database.rows import check_integers

from .server import Server, ServerError
from .sql import Statement

Row = tuple[Any, ...]
Table = tuple[list[str], list[Row]]
"""Names of columns, and rows; both empty for a statement that gives none."""

_OURS = "QT001"
_RAISED = "P0001"


class KeyedStream(Protocol):
    """A stream whose n-th draw is a function of its key and n."""

    key: bytes
    counter: int


class SessionWorld(Protocol):
    """World whose random numbers and time SQL uses."""

    @property
    def rng(self) -> KeyedStream: ...
    @property
    def clock(self) -> Time: ...


class WritesError(Exception):
    """Error for a write by a statement that was classified as a read."""


class PostgresSession:
    """A connection.

    Attributes:
        connection: psycopg's.
        is_busy: A transaction is open.
    """

    def __init__(self, server: Server, database: str) -> None:
        self.server = server
        self.connection = server.connect(database)
        self.is_busy = False
        server.note(self)
        self._now: str | None = None

    def __del__(self) -> None:
        if hasattr(self, "connection"):
            self.close()

    def close(self) -> None:
        """Closes it; in a child of this process the socket is its parent's."""
        if self.server.is_at_home:
            self.connection.close()

    def run(self, statement: Statement, values: Sequence[Any]) -> Table:
        """One statement of the world's code.

        Raises:
            ConstraintError, SQLError, Refused: The server says no.
            ToolError: A value is an integer of more than 64 bits, and too large for its column.
            ServerError: It is gone.
            WritesError: It would write, where that is not allowed.
        """
        self.server.at_home()
        try:
            return _table(self.connection.execute(statement.text.encode(), values))
        except psycopg.Error as error:
            if isinstance(error, psycopg.errors.NumericValueOutOfRange):
                check_integers(values)
            raise self.mapped(error) from error

    def alone(self, text: str) -> None:
        """One statement that gives no rows, and no more than one: the server sees to it."""
        try:
            # The extended protocol takes a single statement; psycopg chooses it where results are to be binary.
            self.connection.execute(text.encode(), binary=True)
        except psycopg.Error as error:
            raise self.mapped(error) from error

    def fetched(self, text: str) -> Table:
        """Runs a statement of the engine's own and returns its rows."""
        try:
            return _table(self.connection.execute(text.encode()))
        except psycopg.Error as error:
            raise self.mapped(error) from error

    def engine(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        """SQL of the engine's own: one statement, or several without values; the rows of the last one that has any."""
        self.server.at_home()
        rows: list[Row] = []
        try:
            cursor = self.connection.execute(text.encode(), values or None)
            while True:
                if cursor.description is not None:
                    rows = cursor.fetchall()
                if not cursor.nextset():
                    return rows
        except psycopg.Error as error:
            raise self.mapped(error) from error

    def mapped(self, error: psycopg.Error) -> Exception:
        """Returns the exception that a caller gets."""
        if self.connection.closed or isinstance(error, psycopg.errors.AdminShutdown | psycopg.errors.CrashShutdown):
            return ServerError(self.server.public, error)
        message = error.diag.message_primary or str(error)
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            return WritesError(message)
        if error.sqlstate == _OURS:
            return Refused(message)
        if isinstance(error, psycopg.IntegrityError) or error.sqlstate == _RAISED:
            detail = f" ({error.diag.message_detail})" if error.diag.message_detail else ""
            return ConstraintError(f"{message}{detail}")
        return SQLError(message)

    def attune(self, world: SessionWorld | None, *, draws: bool) -> None:
        """Lets SQL see this world's time, and its chance where it may draw."""
        now = repr(float(world.clock.now)) if world else ""
        if draws:
            key, counter = (f"k{world.rng.key.hex()}", world.rng.counter) if world else ("", 0)
            self.engine(
                "SELECT set_config('quintain.now', $1, false), set_config('quintain.key', $2, false),"
                " set_config('quintain.counter', $3, false)",
                [now, key, str(counter)],
            )
        elif now != self._now:
            self.engine("SELECT set_config('quintain.now', $1, false)", [now])
        self._now = now

    def drawn(self, world: SessionWorld | None) -> None:
        """Lets the world's stream go on behind what SQL drew."""
        if world is not None:
            ((counter,),) = self.engine("SELECT current_setting('quintain.counter')")
            world.rng.counter = int(counter)

    def forget(self) -> None:
        """Settings were taken back with a transaction."""
        self._now = None


def _table(cursor: psycopg.Cursor[Any]) -> Table:
    if cursor.description is None:
        return [], []
    return [column.name for column in cursor.description], cursor.fetchall()
