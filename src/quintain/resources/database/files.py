"""The file below one connection, in a file system that exists only in this process.

What is written is pending until the transaction has succeeded; then the image with these pages takes the place of the
old one. So an error at any moment leaves the world as it was, whatever SQLite had written by then.

SQLite believes that it is alone with an ordinary file. When the file below it becomes another one, it must notice:

* its page cache is dropped when the change counter (bytes 24-27) differs from the one it saw last. Each connection
  is shown a counter of its own, which moves at every switch to another image; equal images need no switch.
* its parsed schema is dropped when the schema cookie (bytes 40-43) differs. Two branches that both create a table reach
  the same cookie with different schemas. So each image knows the *identity* of its schema, and a connection that comes
  from another identity is shown a cookie that it has never seen; the difference is taken off again when it writes.
* it looks at the cookie when a statement runs, and so not at all when the schema that it knows says no to preparing it:
  "table a already exists", of another world. So what is `stale` is to be read anew before anything is prepared.
* a prepared statement compares the cookie with the one of its preparation, and the cookie of an empty file is always 0.
  So `Connection.take` expires all prepared statements when it switches to an empty file.
"""

from __future__ import annotations

import itertools
from typing import Any, Protocol

import apsw

from quintain.errors import QuintainError

from .pages import SIZE, ZERO, Page, PageImage, Pages, normalised

_UNIX = 210_866_760_000_000
"""Milliseconds from the beginning of SQLite's calendar, in 4714 BC, to 1970."""
_WORD = 2**32

_numbers = itertools.count()


class Refused(QuintainError):
    """A statement that would reach beyond its database, or leave something behind in the connection."""


class Unbound(Refused):
    """A statement that needs the time or the chance of a world, in a database that belongs to none."""


class Chance(Protocol):
    """Source of random numbers."""

    def bits(self) -> int: ...


class Time(Protocol):
    """Source of the time, in seconds since 1970."""

    now: float


class World(Protocol):
    """World whose random numbers and time SQL uses."""

    @property
    def rng(self) -> Chance: ...
    @property
    def clock(self) -> Time: ...


class PageFile:
    """File that one connection has open. SQLite calls the methods that begin with x.

    Attributes:
        image: The content.
        world: Source of the random numbers and the time in SQL.
        pending: Written pages that are not yet part of an image.
        count: Number of pages, with the pending ones.
        schema: Identity of the schema, with the pending pages.
        stale: True if the schema in the connection's cache is an older one.
        spoiled: True if a statement read the time without a world. SQLite then uses a null and goes on, so the pending
            pages must not become an image.
    """

    def __init__(self, image: PageImage) -> None:
        self.world: World | None = None
        self.pending: Pages = {}
        self.schema: object = None
        self.stale = False
        self.spoiled = False
        self._counter = 0
        self._cookie = 0  # the highest that the connection was ever shown
        self._shift = 0  # what it is shown, less what the image holds
        self.switch(image)

    def switch(self, image: PageImage) -> None:
        """Puts another image below the connection."""
        self._counter = self._counter % (_WORD - 2) + 1
        if image.schema is not self.schema or not image.count:
            self.stale = True
            self._cookie += 1
            # An empty file has no page 1 that could show a cookie: SQLite begins with 0.
            self._shift = self._cookie - _cookie(image.page(0)) if image.count else 0
        self.image, self.count, self.schema = image, image.count, image.schema

    def commit(self) -> PageImage:
        """Returns the image with what was written."""
        if self.pending:
            pending, self.pending = self.pending, {}
            # Every transaction writes page 1, for its counter, which is not state.
            first = pending.get(0)
            if first is not None and first.data == self.image.page(0):
                del pending[0]
            if pending:
                self.image = self.image.write(pending, self.count, self.schema)
        return self.image

    def forget(self) -> None:
        """Drops what was written; SQLite will read everything anew."""
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
        page = self.pending.get(number) if self.pending else None
        data = self.image.page(number) if page is None else page.data
        if number == 0:
            if amount == 16 and within == 24:  # each statement or transaction begins with a look at the counter
                return self._counter.to_bytes(4, "big") + data[28:40]
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
        """Does nothing: no other connection has this file."""

    def xUnlock(self, level: int) -> None:  # noqa: N802
        """Does nothing: no other connection has this file."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return SIZE

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0

    def xClose(self) -> None:  # noqa: N802
        """Does nothing: the file is not open on disk."""

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
    """File system that holds one file, and has the time of its world."""

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
        """Does nothing: the database is the only file."""

    def xCurrentTimeInt64(self) -> int:  # noqa: N802
        world = self._file.world
        if world is None:
            self._file.spoiled = True
            raise Unbound("'now' needs a world: make the database a field of a State, or bind() it")
        return _UNIX + round(world.clock.now * 1000)

    def xCurrentTime(self) -> float:  # noqa: N802
        return self.xCurrentTimeInt64() / 86_400_000

    def xDlOpen(self, filename: str) -> int:  # noqa: N802
        return 0

    def xDlError(self) -> str:  # noqa: N802
        return "a database loads no extensions"


def _cookie(first: bytes) -> int:
    return int.from_bytes(first[40:44], "big")
