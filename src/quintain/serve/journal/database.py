"""The journal on disk, `--journal DIR`: an SQLite database from which a killed server goes on.

One table of events holds the entries in the order in which they were written. The rows of a closed episode are deleted
in batches. Every commit survives a killed process; with `sync` it survives a loss of power, too, because SQLite then
waits for the disk (`synchronous=FULL`, otherwise `NORMAL`: the database stays intact, the latest commits may be lost).
"""

from __future__ import annotations

import asyncio
import errno
import functools
import logging
import os
import resource
import sqlite3
import threading
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintain import codec
from quintain.errors import UsageError
from quintain.serve.errors import Unavailable

from .entries import Closed, Created, Done, Entry, Log, Settled

LOCK_S = 2.0
"""Seconds that an earlier process may take to release the database."""
ROOM = 1 << 20
"""Bytes that must be free on the disk beyond the size of a call: others write, too."""
DELETED_AT_ONCE = 1000
"""Rows of closed episodes that are deleted together."""
VERSION = 1
"""Version of the table, as SQLite's `user_version`."""

_log = logging.getLogger(__name__)
_ENTRY: Any = Entry  # A union is a type to the decoder.
_DONE: dict[type, str] = {Closed: "closed", Done: "played", Settled: "scored"}
"""Entries of what has happened already: it cannot be refused any more."""


class Past(msgspec.Struct, frozen=True):
    """An episode that was open when the journal was read.

    Attributes:
        created: Its first entry.
        settled: Its record, if it had ended and was scored.
        is_new: True if no call was made in it.
        entries: Reads its other entries, in order.
    """

    created: Created
    settled: bytes | None
    is_new: bool
    entries: Callable[[], Sequence[Entry]]


class Journal(Log):
    """Log on disk.

    Args:
        folder: Created if missing, readable for its owner alone.
        sync: Whether commits wait for the disk.

    Raises:
        UsageError: Another process has it; or it is damaged, of another version, or cannot be made.
    """

    keeps = True

    def __init__(self, folder: Path, *, sync: bool = False) -> None:
        self.path = folder / "0.journal"
        self._folder = str(folder)
        self._guard = threading.Lock()
        self._rows: dict[str, array[int]] = {}
        self._dead = array("q")
        self._batch: list[tuple[Entry, asyncio.Future[int] | None]] = []
        self._outcomes: list[tuple[asyncio.Future[int], int | Unavailable]] = []
        self._pasts: dict[str, Past] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._database = sqlite3.connect(self.path, LOCK_S, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"the journal in {folder} cannot be used: {error}") from error
        try:
            self._open(sync=sync)
            self._last = self._found = self._read()
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                words = f"another server writes the journal in {folder}: end it, or name another folder"
            else:
                words = f"the journal in {folder} cannot be used: {self._foreign(str(error))}"
            self._database.close()
            raise UsageError(words) from error
        except UsageError:
            self._database.close()
            raise

    def pasts(self) -> list[Past]:
        """Returns the episodes that were open when the journal was read."""
        return list(self._pasts.values())

    def write(self, entry: Entry) -> None:
        """Commits an entry, with all that waits, from any thread; raises Unavailable if the disk is full or broken.

        An entry of what has happened already is logged instead.
        """
        with self._guard:
            self._commit((entry, None))

    async def append(self, entry: Entry) -> None:
        """Commits an entry together with all others of this pass of the event loop; raises Unavailable."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[int] = loop.create_future()
        with self._guard:
            if not self._batch:
                loop.call_soon(self._flush)
            self._batch.append((entry, waiting))
        try:
            await waiting
        except asyncio.CancelledError:
            if type(entry) not in _DONE and waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                with self._guard:  # It is committed, and what it announces will not be done.
                    self._database.execute("DELETE FROM events WHERE number = ?", (waiting.result(),))
            raise

    def room(self, size: int) -> None:
        """Raises Unavailable if the disk is full, or if the process may not write files of this size."""
        disk = os.statvfs(self._folder)
        most, largest = disk.f_bavail * disk.f_frsize, resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        if largest >= 0:
            files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
            most = min(most, largest - max(file.stat().st_size for file in files if file.exists()))
        if most < size + ROOM:
            raise _unavailable(os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Commits what waits and closes the file; nothing can be written any more."""
        with self._guard:
            self._commit()
            self._database.close()

    # -- inside

    def _open(self, *, sync: bool) -> None:
        execute = self._database.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA journal_mode = WAL")
        execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
        (version,) = execute("PRAGMA user_version").fetchone()
        if version not in (0, VERSION):
            raise self._foreign(f"{version}, this is {VERSION}")
        if not version:
            execute("BEGIN IMMEDIATE")
            columns = "number INTEGER PRIMARY KEY, episode TEXT, kind TEXT, body BLOB"
            execute(f"CREATE TABLE IF NOT EXISTS events ({columns})")
            execute(f"PRAGMA user_version = {VERSION}")
            execute("COMMIT")

    def _read(self) -> int:
        """Learns which episodes are open; returns the number of the last row."""
        number = 0
        for number, name, kind, body in self._database.execute("SELECT * FROM events ORDER BY number"):
            self._count(number, name, kind)
            if kind == "created":
                read = functools.partial(self._entries, self._rows[name])
                self._pasts[name] = Past(self._decoded(body, Created), None, is_new=True, entries=read)
            elif kind == "closed":
                self._pasts.pop(name, None)
            elif (past := self._pasts.get(name)) and kind == "settled":
                self._pasts[name] = msgspec.structs.replace(past, settled=self._decoded(body, Settled).trace)
            elif past and kind in {"acted", "ended"}:
                self._pasts[name] = msgspec.structs.replace(past, is_new=False)
        if self._dead:
            self._insert([])
        (pages,), (free,) = (self._database.execute(f"PRAGMA {what}_count").fetchone() for what in ("page", "freelist"))
        if free > max(pages / 2, ROOM / 4096):
            self._database.execute("VACUUM")
        return number

    def _count(self, number: int, name: str, kind: str) -> None:
        """Notes a row: of an open episode, or of one that is closed."""
        if kind == "created":
            self._dead += self._rows.pop(name, array("q"))
            self._rows[name] = array("q")
        rows = self._dead if kind == "closed" else self._rows.get(name, self._dead)
        rows.append(number)
        if kind == "closed":
            self._dead += self._rows.pop(name, array("q"))

    def _flush(self) -> None:
        """Commits what waits and ends all waits, also for what another thread has committed."""
        with self._guard:
            self._commit()
            outcomes, self._outcomes = self._outcomes, []
        for waiting, outcome in outcomes:
            if waiting.done():
                continue
            if isinstance(outcome, int):
                waiting.set_result(outcome)
            else:
                waiting.set_exception(outcome)

    def _commit(self, *more: tuple[Entry, None]) -> None:
        """Writes all that waits, and more, in one transaction."""
        batch = [
            (entry, waiting)
            for entry, waiting in (*self._batch, *more)
            if waiting is None or type(entry) in _DONE or not waiting.cancelled()
        ]
        self._batch = []
        if not batch:
            return
        rows = [
            (number, entry.id, str(entry.__struct_config__.tag), codec.dumps(entry))
            for number, (entry, _) in enumerate(batch, self._last + 1)
        ]
        failure: Unavailable | None = None
        try:
            self._insert(rows)
        except sqlite3.Error as error:
            full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            reason = os.strerror(errno.ENOSPC) if full else str(error)
            failure = _unavailable(reason)
            for entry, _ in batch:
                if type(entry) in _DONE:
                    _log.warning("%s lacks that an episode was %s: %s", self.path, _DONE[type(entry)], reason)
        else:
            self._last += len(rows)
            for number, name, kind, _ in rows:
                self._count(number, name, kind)
        for (entry, waiting), (number, *_) in zip(batch, rows, strict=True):
            refusal = None if type(entry) in _DONE else failure
            if waiting is not None:
                self._outcomes.append((waiting, refusal or number))
            elif refusal is not None:
                raise refusal

    def _insert(self, rows: Sequence[tuple[int, str, str, bytes]]) -> None:
        dead = self._dead if len(self._dead) >= DELETED_AT_ONCE or not rows else array("q")
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._database.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
            self._database.executemany("DELETE FROM events WHERE number = ?", ((number,) for number in dead))
            self._database.execute("COMMIT")
        except sqlite3.Error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        if dead:
            self._dead = array("q")

    def _entries(self, rows: array[int]) -> list[Entry]:
        """Returns the entries of an episode after the first that an earlier process wrote."""
        query = "SELECT body FROM events WHERE number = ?"
        earlier = [row for row in rows[1:] if row <= self._found]
        with self._guard:
            found = (self._database.execute(query, (row,)).fetchone() for row in earlier)
            return [self._decoded(row[0], _ENTRY) for row in found if row is not None]

    def _decoded(self, body: bytes, type_: Any) -> Any:
        try:
            return codec.loads(body, type_)
        except msgspec.DecodeError as error:
            raise self._foreign(str(error)) from error

    def _foreign(self, why: str) -> UsageError:
        return UsageError(
            f"{self.path} is damaged, or was written by another version ({why}): go on with that one, or move the file "
            "away to begin without what it holds"
        )


def _unavailable(reason: str) -> Unavailable:
    return Unavailable(f"the journal cannot be written: {reason}")
