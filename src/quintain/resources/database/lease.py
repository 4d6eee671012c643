"""Loan of a connection: a database borrows one for a statement, or for a transaction, and gives it back."""

from __future__ import annotations

import threading

from .connection import Connection, Refused, borrow, give_back
from .files import World
from .pages import PageImage

_claims = threading.Lock()


class Leaseholder:
    """Pointer to an image, and the unit of work that may replace it.

    Attributes:
        image: The content.
        world: Source of the random numbers and the time in SQL, or None.
        unit: Connection of the open transaction; None between statements outside a transaction.
        depth: Number of transactions within the outermost one.
        is_reversed: True if rows without an ORDER BY come in reverse order.
    """

    __slots__ = ("_thread", "depth", "image", "is_reversed", "unit", "world")

    def stand(self, image: PageImage) -> None:
        """Begins with this content."""
        self.image = image
        self.world: World | None = None
        self.unit: Connection | None = None
        self.depth = 0
        self.is_reversed = False
        self._thread = 0

    def mine(self) -> Connection | None:
        """Returns the connection of the transaction that is open.

        Raises:
            Refused: Another thread is at work.
        """
        if self._thread and self._thread != threading.get_ident():
            raise Refused("a database is used by one thread at a time; give the other one a fork")
        return self.unit

    def begin(self) -> Connection:
        """Borrows a connection.

        Raises:
            Refused: Another thread came first.
        """
        with _claims:
            self.mine()
            self._thread = threading.get_ident()
        try:
            connection = borrow(self.image, self.world)
            if self.is_reversed is not connection.reversed:
                connection.reverse(on=self.is_reversed)
        except BaseException:
            self._thread = 0
            raise
        self.unit = connection
        return connection

    def end(self, *, failed: bool) -> None:
        """Gives the connection back, with its writes or without."""
        connection = self.unit
        assert connection is not None
        try:
            if failed:
                connection.abandon()
            else:
                self.image = connection.file.commit()
            give_back(connection)  # but not one that cannot even be brought back to order
        finally:
            self.unit = None
            self._thread = 0


class Use:
    """A connection for one statement: that of the open transaction, or one of its own, whose success is a commit."""

    __slots__ = ("_alone", "_holder")

    def __init__(self, holder: Leaseholder) -> None:
        self._holder = holder
        self._alone = False

    def __enter__(self) -> Connection:
        connection = self._holder.mine()
        if connection is None:
            self._alone = True
            return self._holder.begin()
        return connection

    def __exit__(self, kind: object, *_: object) -> None:
        if self._alone:
            self._holder.end(failed=kind is not None)


class Transaction:
    """One level of a transaction; the outermost has the connection."""

    __slots__ = ("_holder", "_level")

    def __init__(self, holder: Leaseholder) -> None:
        self._holder = holder
        self._level = 0

    def __enter__(self) -> None:
        holder = self._holder
        connection = holder.mine()
        if connection is None:
            holder.begin().engine("BEGIN")
            return
        holder.depth += 1
        self._level = holder.depth
        connection.engine(f"SAVEPOINT level_{self._level}")

    def __exit__(self, kind: object, *_: object) -> None:
        holder = self._holder
        connection = holder.unit
        assert connection is not None
        if self._level:
            holder.depth -= 1
            if kind is None:
                connection.engine(f"RELEASE level_{self._level}")
            elif not connection.sqlite.get_autocommit():  # INSERT OR ROLLBACK has undone everything already
                connection.engine(f"ROLLBACK TO level_{self._level}")
                connection.engine(f"RELEASE level_{self._level}")
            return
        failed = True
        try:
            if kind is None and connection.file.spoiled:
                raise Refused("a statement of this transaction needed the time of a world, and there is none")
            if kind is None:
                connection.engine("COMMIT")
                failed = False
        finally:
            holder.end(failed=failed)
