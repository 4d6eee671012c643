"""Loan of a connection: a database borrows one for a statement, or for a transaction, and gives it back."""

from __future__ import annotations

import threading
import time

from .connection import Connection, Refused, borrow, give_back
from .files import World
from .pages import PageImage

_LOOK_S = 0.05
"""Seconds after which a thread that waits looks whether a transaction has begun meanwhile."""
WAIT_S = 60.0
"""Seconds for which a thread waits for the statements of other threads."""

_lock = threading.RLock()
_claims = threading.Condition(_lock)
_waiting = [0]
"""Number of threads that wait for a claim."""


class Claimable:
    """Thing that one thread uses at a time.

    Single statements of several threads follow one another. A transaction is not waited for: its thread may be waiting
    for the other one, and what it has written is not to be seen.
    """

    __slots__ = ("_is_transaction", "_thread")

    def unclaim(self) -> None:
        """Lets no thread have it."""
        self._thread = 0
        self._is_transaction = False

    @property
    def is_mine(self) -> bool:
        """True if the running thread has it."""
        return self._thread == threading.get_ident()

    def claim(self, *, transaction: bool = False) -> None:
        """Takes it for a thread that does not have it; raises Refused if another one is in a transaction."""
        with _lock:
            until = time.monotonic() + WAIT_S if self._thread else 0.0
            while self._thread:
                if self._is_transaction or time.monotonic() > until:
                    raise Refused("a database is used by one thread at a time; give the other one a fork")
                _waiting[0] += 1
                _claims.wait(_LOOK_S)
                _waiting[0] -= 1
            self._thread, self._is_transaction = threading.get_ident(), transaction

    def release(self) -> None:
        """Lets another thread have it."""
        with _lock:
            self.unclaim()
            if _waiting[0]:
                _claims.notify_all()


class Leaseholder(Claimable):
    """Pointer to an image, and the unit of work that may replace it.

    Attributes:
        image: The content.
        world: Source of the random numbers and the time in SQL, or None.
        unit: Connection of the statement or transaction that runs, of whatever thread; None if there is none.
        depth: Number of transactions within the outermost one.
        is_reversed: True if rows without an ORDER BY come in reverse order.
    """

    __slots__ = ("depth", "image", "is_reversed", "unit", "world")

    def stand(self, image: PageImage) -> None:
        """Begins with this content."""
        self.image = image
        self.world: World | None = None
        self.unit: Connection | None = None
        self.depth = 0
        self.is_reversed = False
        self.unclaim()

    def mine(self) -> Connection | None:
        """Returns the connection of the transaction that this thread has open."""
        unit = self.unit
        return unit if unit is not None and self._thread == threading.get_ident() else None

    @property
    def is_in_transaction(self) -> bool:
        """True if this thread works with the database, or another one has a transaction open."""
        return self.unit is not None and (self._is_transaction or self.is_mine)

    def replace(self, image: PageImage) -> None:
        """Points to another content, after the statements of other threads."""
        self.claim()
        self.image = image
        self.release()

    def begin(self, *, transaction: bool = False) -> Connection:
        """Borrows a connection, after the statements of other threads.

        Raises:
            Refused: Another thread has a transaction open.
        """
        self.claim(transaction=transaction)
        try:
            connection = borrow(self.image, self.world)
            if self.is_reversed is not connection.reversed:
                connection.reverse(on=self.is_reversed)
        except BaseException:
            self.release()
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
            self.release()


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
            holder.begin(transaction=True).engine("BEGIN")
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
