"""Statements, transactions and snapshots of one world, on the images and tails below it."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from quintain.resources.database import Refused
from quintain.resources.database.lease import Claimable

from . import content, sql
from .content import Dump, Facts, Sequences
from .images import Position, Tail, WorldImage
from .session import PostgresSession, SessionWorld, Table, WritesError
from .sql import Statement

T = TypeVar("T")


class LeaseLevel(NamedTuple):
    """One level of a transaction, and what was known when it began."""

    facts: Facts
    sequences: Sequences


class Lease(Claimable):
    """A world's place, and the unit of work that may move it.

    Attributes:
        image: What it holds, or what its tail stands on.
        tail: The transaction that holds more; None when everything is committed.
        world: Whose random numbers and time SQL sees.
        is_reversed: Whether its rows were laid the other way round.
    """

    def __init__(self, image: WorldImage) -> None:
        self.image = image
        self.tail: Tail | None = None
        self.world: SessionWorld | None = None
        self.is_reversed = False
        self._levels: list[LeaseLevel] = []
        self._session: PostgresSession | None = None
        self.unclaim()
        image.users.add(self)

    # -- statements

    def run(self, text: str, given: tuple[Any, ...], named: dict[str, Any]) -> Table:
        """All statements of a text, all or none; the columns of the first that has rows, and all rows."""
        statements = sql.parse(text)
        for one in statements:
            if one.refusal:
                raise Refused(one.refusal)
            if one.is_definition and one.slots:
                raise Refused(f"a definition has no placeholders: {one.text}")
        values = [one.values(given, named) for one in statements]
        if all(one.is_read for one in statements) and not self.tail:
            with self._claimed(), contextlib.suppress(WritesError):
                if not self._levels:
                    return self._reading(statements, values)
        with self._level(transaction=False):
            assert self._session is not None
            return self._all(self._session, statements, values)

    def inside(self, text: str, given: tuple[Any, ...]) -> Table:
        """One statement of the engine's in the open transaction, whose level is undone when it fails."""
        assert self._session is not None
        statements = sql.parse(text)
        return self._all(self._session, statements, [one.values(given, {}) for one in statements])

    def _reading(self, statements: tuple[Statement, ...], values: list[list[Any]]) -> Table:
        with self.image.lock:
            session = self.image.session()
            if len(statements) < 2:
                return self._all(session, statements, values)
            session.engine("BEGIN READ ONLY")
            try:
                return self._all(session, statements, values)
            finally:
                session.engine("ROLLBACK")
                session.forget()

    def _all(self, session: PostgresSession, statements: tuple[Statement, ...], values: list[list[Any]]) -> Table:
        columns: list[str] = []
        rows: list[Any] = []
        for statement, some in zip(statements, values, strict=True):
            facts = self.facts
            draws = facts.draws or statement.draws
            session.attune(self.world, draws=draws)
            names, found = session.run(statement, some)
            if draws:
                session.drawn(self.world)
            if statement.is_definition:
                self._know(Facts((*facts.log, statement.text), draws))
            columns = columns or names
            rows += found
        return columns, rows

    # -- transactions

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """One level: what happens inside is undone when it raises."""
        return self._level(transaction=True)

    @contextlib.contextmanager
    def _level(self, *, transaction: bool) -> Generator[None, None, None]:
        with self._claimed(transaction=transaction):
            session = self._begin()
            failed = True
            try:
                yield
                failed = False
            finally:
                self._end(session, failed=failed)

    def still(self, verb: str) -> None:
        """Raises Refused in the middle of a transaction."""
        if self._levels:
            raise Refused(f"{verb}() in the middle of a transaction")

    @contextlib.contextmanager
    def _claimed(self, *, transaction: bool = False) -> Generator[None, None, None]:
        """One thread at a time."""
        if self.is_mine:
            yield
            return
        self.claim(transaction=transaction)
        try:
            yield
        finally:
            self.release()

    def _begin(self) -> PostgresSession:
        depth = len(self._levels)
        if depth:
            session = self._session
            assert session is not None
        else:
            self._make_ours()
            self.image.lock.acquire()
            session = self.tail.session if self.tail else self.image.session()
        try:
            facts = self.facts
            names = self.image.shape(session, facts).sequences
            begin = f"SAVEPOINT level_{depth}" if depth or self.tail else "BEGIN READ WRITE"
            found = session.engine(f"{begin}; {content.counters(names)}")
        except BaseException:
            if not depth:
                self.image.lock.release()
            raise
        self._levels.append(LeaseLevel(facts, content.counted(found)))
        session.is_busy = True
        self._session = session
        return session

    def _end(self, session: PostgresSession, *, failed: bool) -> None:
        level = self._levels.pop()
        depth = len(self._levels)
        is_whole = not depth and not self.tail
        try:
            if not failed:
                failed = True
                if not depth and self.tail:
                    self.tail.check()
                session.engine("COMMIT" if is_whole else f"RELEASE level_{depth}")
                failed = False
                self._changed()
        finally:
            try:
                if failed and not session.connection.closed:
                    self._undo(session, level, depth=depth, is_whole=is_whole)
            finally:
                if not depth:
                    session.is_busy = False
                    self._session = None
                    self.image.lock.release()

    def _undo(self, session: PostgresSession, level: LeaseLevel, *, depth: int, is_whole: bool) -> None:
        self._know(level.facts)
        session.engine("ROLLBACK" if is_whole else f"ROLLBACK TO level_{depth}; RELEASE level_{depth}")
        session.forget()
        if not level.sequences:
            return
        if is_whole:
            session.engine("BEGIN READ WRITE")
        now = content.sequences(session, self.image.shape(session, level.facts))
        content.rewind(session, level.sequences, now)
        if is_whole:
            session.engine("COMMIT")

    # -- places

    @property
    def facts(self) -> Facts:
        """Returns the facts about the present schema."""
        return (self.tail or self.image).facts

    def _know(self, facts: Facts) -> None:
        (self.tail or self.image).facts = facts

    def _changed(self) -> None:
        (self.tail or self.image).digest = ""

    def _make_ours(self) -> None:
        """Opens a tail, or copies the image, so that no other world sees the next write."""
        if self.tail and self.tail.commit():
            self.tail = None
        if self.tail or self.image.is_shared:
            return
        if self.image.is_alone:
            self.image.owner = weakref.ref(self)
            return
        if self.image.name and self.image.is_owned(self):
            with self.image.lock:
                self.tail = Tail(self.image)
            return
        twin = self.image.copied()
        twin.owner = weakref.ref(self)
        self.move(twin)

    def move(self, image: WorldImage) -> None:
        """Points the world to another image."""
        self.image.users.discard(self)
        self.image = image
        image.users.add(self)

    def settled(self) -> WorldImage:
        """Returns an image of what it holds, which others may hold, too."""
        if self.tail:
            tail, self.tail = self.tail, None
            with self.image.lock:
                if not tail.commit():
                    self.move(tail.leave())
        if self.image.is_shared:
            return WorldImage(self.image.server, self.image.template, self.facts, dump=self.image.dumped())
        return self.image

    def snapshot(self) -> WorldImage | Position:
        """Returns the image, or the position in the tail, of the present content."""
        if self.tail:
            with self.image.lock:
                return self.tail.mark()
        return self.settled()

    def restore(self, place: WorldImage | Position) -> None:
        """Points the world to the image or position again."""
        if isinstance(place, Position) and place.tail is not None:
            if self.tail is place.tail:
                with self.image.lock:
                    place.tail.go_back(place)
                return
            self._part(place.tail)
        image = place.image if isinstance(place, Position) else place
        assert image is not None
        if self.tail:
            tail, self.tail = self.tail, None
            with self.image.lock:
                tail.close()
        if self.image.is_shared:
            self._overwrite(image.dumped(whole=True))
        else:
            self.move(image)

    def close(self) -> None:
        """Releases the image."""
        self.still("close")
        if self.tail:
            tail, self.tail = self.tail, None
            with self.image.lock:
                tail.close()
        self.image.users.discard(self)
        if not self.image.users:
            self.image.drop()

    def _part(self, tail: Tail) -> None:
        """Removes every position from the tail of another world."""
        with tail.image.lock:
            for other in list(tail.image.users):
                if isinstance(other, Lease) and other.tail is tail:
                    other.still("the other database's restore")
                    other.tail = None
                    other.move(tail.leave())
                    return
            tail.close()

    def _overwrite(self, dump: Dump) -> None:
        """Gives a shared world another content, for all who use it."""
        with self.transaction():
            assert self._session is not None
            if dump.facts.log != self.facts.log:
                raise Refused("a shared world is restored to snapshots with its own schema only")
            content.fill(self._session, dump)

    # -- reading

    def read(self, use: Callable[[PostgresSession], T]) -> T:
        """Reads with the connection that sees what this world holds."""
        with self._claimed():
            if self.tail:
                return use(self.tail.session)
            with self.image.lock:
                return use(self.image.session())

    def dumped(self, *, whole: bool = False) -> Dump:
        with self._claimed():
            return self.tail.dumped(whole=whole) if self.tail else self.image.dumped(whole=whole)

    def digest(self) -> str:
        """Returns the digest of the content."""
        place = self.tail or self.image
        if place.digest and not self.image.is_shared:
            return place.digest

        def look(session: PostgresSession) -> str:
            shape = self.image.shape(session, self.facts)
            counted = self.tail.sequences() if self.tail else self.image.sequences(session)
            return content.name_of(shape, content.digests(session, shape), counted)

        place.digest = self.read(look)
        return place.digest
