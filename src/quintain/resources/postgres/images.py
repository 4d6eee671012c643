"""Content of worlds: databases that are copied before they are changed, and transactions on them.

    WorldImage  a database, or its source: a template, or a dump. While several worlds and snapshots refer to it, it
                does not change; a world that writes makes a copy, or, if the image is its own, opens a
    Tail        a transaction that is not committed while a snapshot needs the content before it. A snapshot taken in
                it is a savepoint, a
    Position    which is restored by ROLLBACK TO. A fork, and a snapshot that is restored when it is not on the stack,
                leave the transaction as a dump.

So every snapshot can be restored at any time, like SQLite's; restoring one that is on the stack costs microseconds, any
other one a copy of the database.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from quintain.errors import DefinitionError

from . import content
from .content import Dump, Facts, Sequences, Shape
from .server import Server
from .session import PostgresSession

_shapes: dict[tuple[str, Facts], Shape] = {}
_SHAPES = 500
"""Schemas that a process remembers."""
_WORLD_AND_TAIL = 2
"""Number of users of an image that only one world uses."""


class WorldImage:
    """One content.

    Attributes:
        server: Where it is.
        template: What its dumps differ from.
        facts: What is known of its schema.
        dump: What it is to be made of; None for the template, or when it is made.
        name: Its database; empty until it is made.
        users: Worlds and snapshots that refer to it.
        owner: The world that may stand a tail on it.
        tail: The transaction that stands on it.
        lock: Whose thread uses its connection.
        digest: Names the content; empty when it is not known.
        is_shared: Other processes change it, too, and it outlives this one.
    """

    def __init__(self, server: Server, template: str, facts: Facts, *, dump: Dump | None = None) -> None:
        self.server = server
        self.template = template
        self.facts = facts
        self.dump = dump
        self.name = ""
        self.users: weakref.WeakSet[Any] = weakref.WeakSet()
        self.owner: weakref.ref[Any] | None = None
        self.tail: weakref.ref[Tail] | None = None
        self.lock = threading.RLock()
        self.digest = dump.digest if dump else ""
        self.is_shared = False
        self._session: PostgresSession | None = None
        self._rewind: Sequences | None = None

    def __del__(self) -> None:
        self.drop()

    def drop(self) -> None:
        """Gives the database back."""
        name, self.name = self.name, ""
        self._session = None  # closed as it goes
        if name and not self.is_shared:
            self.server.drop(name)

    def publish(self, name: str) -> None:
        """Renames the database to the shared world of this name, which begins as the template.

        Raises:
            DefinitionError: The shared world was made from another template.
        """
        server = self.server
        there = server.shared(name)
        if not server.exists(there):
            mine = server.name()
            server.create(mine, server.template(self.template))
            session = PostgresSession(server, mine)
            try:
                session.engine("BEGIN READ WRITE; CREATE TABLE quintain.shared (template text)")
                session.engine("INSERT INTO quintain.shared VALUES ($1)", [self.template])
                session.engine("COMMIT")
            finally:
                session.close()
            server.publish(mine, there)
        self.name, self.is_shared = there, True
        ((template,),) = self.session().engine("SELECT template FROM quintain.shared")
        if template != self.template:
            raise DefinitionError(
                f"the shared world {name!r} was made from template {template}, not from {self.template}"
            )

    @property
    def is_alone(self) -> bool:
        """At most one refers to it, so that one may change it."""
        return len(self.users) < 2

    def is_owned(self, world: object) -> bool:
        """True if this world may open a tail here."""
        return self.owner is not None and self.owner() is world and not self.standing()

    def standing(self) -> Tail | None:
        """Returns the tail that stands on it."""
        return self.tail() if self.tail is not None else None

    def session(self) -> PostgresSession:
        """Returns a connection to what is committed."""
        if not self.name:
            self._make()
        if self._session is None:
            self._session = PostgresSession(self.server, self.name)
        if self._rewind is not None and not self.standing():
            # A tail was dropped without a word, and sequences do not go back with a transaction.
            session = self._session
            now = content.sequences(session, self.shape(session, self.facts))
            session.engine("BEGIN READ WRITE")
            content.rewind(session, self._rewind, now)
            session.engine("COMMIT")
            self._rewind = None
        self.server.warm(self)
        return self._session

    def lend(self, before: Sequences) -> PostgresSession:
        """Returns the connection for a tail; readers get another one."""
        session = self.session()
        self._session = None
        self._rewind = before
        return session

    def take_back(self, session: PostgresSession) -> None:
        """Returns the connection of a tail that has ended, and whose sequences are right."""
        self._session = session
        self._rewind = None
        self.tail = None

    def rest(self) -> bool:
        """Closes the connection, if it is idle."""
        if not self.lock.acquire(blocking=False):
            return False
        try:
            if self._session is not None and self._session.is_busy:
                return False
            self._close()
            return True
        finally:
            self.lock.release()

    def copied(self) -> WorldImage:
        """Returns an image with the same content that may be changed."""
        with self.lock:
            if not self.name:
                return WorldImage(self.server, self.template, self.facts, dump=self.dump)
            if self.standing() or self.is_shared:
                return WorldImage(self.server, self.template, self.facts, dump=self.dumped())
            self.session()  # its sequences are right
            self._close()
            twin = WorldImage(self.server, self.template, self.facts)
            name = self.server.name()
            self.server.create(name, self.name)
            twin.name, twin.digest = name, self.digest
            return twin

    def dumped(self, *, whole: bool = False) -> Dump:
        """Returns a dump of the committed content."""
        with self.lock:
            if self.dump is not None and not self.name and not whole:
                return self.dump
            session = self.session()
            session.engine("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                return self.written(session, self.facts, self.sequences(session), whole=whole)
            finally:
                session.engine("ROLLBACK")
                session.forget()

    def sequences(self, session: PostgresSession) -> Sequences:
        """Returns the sequences as of the committed content; a tail moves them for all users."""
        if self._rewind is not None:
            return self._rewind
        return content.sequences(session, self.shape(session, self.facts))

    def written(self, session: PostgresSession, facts: Facts, counted: Sequences, *, whole: bool = False) -> Dump:
        """Returns a dump of the content that a connection sees."""
        shape = self.shape(session, facts)
        digests = content.digests(session, shape)
        base: dict[str, str] = {}
        if not facts.log and not whole:
            base = dict(session.engine("SELECT name, digest FROM quintain.base"))
        changed = [table for table in shape.tables if not table.is_view and base.get(table.name) != digests[table.name]]
        return Dump(
            url=self.server.public,
            template=self.template,
            facts=facts,
            tables=tuple((table.name, content.out(session, table)) for table in changed),
            sequences=counted,
            digest=content.name_of(shape, digests, counted),
        )

    def shape(self, session: PostgresSession, facts: Facts) -> Shape:
        """Returns the schema after these facts. What others may change is read each time."""
        if self.is_shared:
            return content.shape(session)
        key = (self.template, facts)
        found = _shapes.get(key)
        if found is None:
            if len(_shapes) >= _SHAPES:
                _shapes.clear()
            found = _shapes[key] = content.shape(session)
        return found

    def _make(self) -> None:
        name = self.server.name()
        self.server.create(name, self.server.template(self.template))
        self.name = name
        if self.dump is not None:
            session = self._session = PostgresSession(self.server, name)
            session.engine("BEGIN READ WRITE")
            content.fill(session, self.dump)
            session.engine("COMMIT")
            self.dump = None

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


class Position:
    """Place of a snapshot in a tail.

    Attributes:
        tail: The transaction.
        facts: Facts about the schema there.
        sequences: State of the sequences there.
        image: The image after it left the tail; None while it is a savepoint.
    """

    def __init__(self, tail: Tail, facts: Facts, sequences: Sequences) -> None:
        self.tail: Tail | None = tail
        self.facts = facts
        self.sequences = sequences
        self.image: WorldImage | None = None


class Tail:
    """A transaction that stands on an image. See above.

    Attributes:
        image: What it stands on.
        facts: What is known of the schema now.
        session: The connection.
        digest: Names what it holds now; empty when it is not known.
    """

    def __init__(self, image: WorldImage) -> None:
        self.image = image
        self.facts = image.facts
        self.digest = image.digest
        session = image.session()
        self._before = content.sequences(session, image.shape(session, image.facts))
        self.session = image.lend(self._before)
        self.session.engine("BEGIN READ WRITE")
        image.tail = weakref.ref(self)
        image.users.add(self)
        self._positions: list[weakref.ref[Position]] = []

    def sequences(self) -> Sequences:
        return content.sequences(self.session, self.image.shape(self.session, self.facts))

    def dumped(self, *, whole: bool = False) -> Dump:
        """Returns a dump of the present content."""
        return self.image.written(self.session, self.facts, self.sequences(), whole=whole)

    def mark(self) -> Position:
        """Sets a savepoint at the present content."""
        self._shorten()
        position = Position(self, self.facts, self.sequences())
        self.session.engine(f"SAVEPOINT kept_{len(self._positions)}")
        self._positions.append(weakref.ref(position))
        return position

    def go_back(self, position: Position) -> None:
        """Restores a position; later positions that are still in use become images."""
        number = next(n for n, one in enumerate(self._positions) if one() is position)
        self._release(number + 1)
        self._roll_back(number, position)

    def commit(self) -> bool:
        """Commits into the image, if no snapshot needs the content before; True if it did."""
        if len(self.image.users) > _WORLD_AND_TAIL or any(one() for one in self._positions):
            return False
        self.session.engine("COMMIT")
        self.image.facts, self.image.digest = self.facts, self.digest
        self._end()
        return True

    def leave(self) -> WorldImage:
        """Ends the tail; its content becomes an image of its own, and so does every position in use."""
        dump = self.dumped()
        self.close()
        return WorldImage(self.image.server, self.image.template, dump.facts, dump=dump)

    def close(self) -> None:
        """Ends the tail and discards its content."""
        self._release(0)
        now = self.sequences()
        self.session.engine("ROLLBACK")
        self.session.forget()
        self._back_to(self._before, now)
        self._end()

    def check(self) -> None:
        """Checks the deferred constraints against the present content."""
        deferred = ", ".join(self.image.shape(self.session, self.facts).deferred)
        again = f"; SET CONSTRAINTS {deferred} DEFERRED" if deferred else ""
        self.session.engine(f"SET CONSTRAINTS ALL IMMEDIATE{again}")

    def _end(self) -> None:
        self._positions.clear()
        self.image.users.discard(self)
        self.image.take_back(self.session)

    def _release(self, first: int) -> None:
        """Turns the positions from this one on into images."""
        for number in range(len(self._positions) - 1, first - 1, -1):
            position = self._positions[number]()
            if position is not None:
                self._roll_back(number, position)
                dump = self.dumped()
                position.image = WorldImage(self.image.server, self.image.template, position.facts, dump=dump)
                position.image.users.add(position)
                position.tail = None
        del self._positions[first:]

    def _roll_back(self, number: int, position: Position) -> None:
        now = self.sequences()
        self.session.engine(f"ROLLBACK TO kept_{number}")
        self.session.forget()
        self.facts, self.digest = position.facts, ""
        self._back_to(position.sequences, now)

    def _back_to(self, before: Sequences, now: Sequences) -> None:
        if self.session.connection.info.transaction_status.name == "INTRANS":
            content.rewind(self.session, before, now)
            return
        self.session.engine("BEGIN READ WRITE")
        content.rewind(self.session, before, now)
        self.session.engine("COMMIT")

    def _shorten(self) -> None:
        """Releases the savepoints at the end that are not in use."""
        length = len(self._positions)
        while length and self._positions[length - 1]() is None:
            length -= 1
        if length < len(self._positions):
            self.session.engine(f"RELEASE kept_{length}")
            del self._positions[length:]
