"""A log on disk, `--journal DIR`: one file per process, from which a server that was killed goes on.

The file grows by a record for every call and shrinks when most of what it holds is of closed episodes. At the start it
is read once, to learn which episodes are open; what they did is read when somebody asks for one of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintain import codec
from quintain.errors import UsageError
from quintain.serve.errors import Unavailable

from .entries import Acted, Closed, Created, Done, Ended, Entry, Met, Missed, Opened, Passed, Settled, mark
from .wal import Damaged, Wal, settle

WASTE = 64 << 20
"""Bytes of closed episodes that a journal may hold, beside as many as there are of open ones."""
PATIENCE_S = 2.0
"""Seconds that the process before may need to be gone."""
SLACK = 1 << 20
"""Beyond what a call is said to need: others write, too."""

_log = logging.getLogger(__name__)


_ENTRY: Any = Entry  # To a decoder a union is a type.
_WORDS: dict[type, str] = {Closed: "closed", Done: "played", Settled: "judged", Missed: "not heard", Met: "heard"}
"""Of what has happened already."""


class Past(msgspec.Struct, frozen=True):
    """An episode that was open when the journal was read.

    Attributes:
        created: How it began.
        settled: Its record, where it had ended and was judged.
        is_new: Whether nobody had acted in it.
        entries: Reads all that was written of it since then, in order.
    """

    created: Created
    settled: bytes | None
    is_new: bool
    entries: Callable[[], Sequence[Entry]]


class Journal:
    """A Log on disk.

    Args:
        folder: Made where it is not there.
        number: Of the process, among those that serve together.
        sync: Whether calls wait for the disk, so that nothing is lost with the power.

    Attributes:
        marks: Of the processes that wrote it before.
        passed: Digests of the requests that they passed on to others.

    Raises:
        UsageError: Another process has it; or the file is damaged, or cannot be made.
    """

    keeps = True

    def __init__(self, folder: Path, *, number: int = 0, sync: bool = False) -> None:
        self._path = folder / f"{number}.journal"
        self._sync = sync
        self._guard = threading.Lock()
        self._size: Counter[str] = Counter()
        self._waste = 0
        self._places: dict[str, list[int]] = {}
        self._acted: set[str] = set()
        self._pressing: threading.Thread | None = None
        with contextlib.ExitStack() as undo:
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._lock = _locked(folder / f"{number}.lock")
                undo.callback(os.close, self._lock)
                self._path.with_suffix(".new").unlink(missing_ok=True)
                self._wal = Wal(self._path, sync=sync)
                if sync:  # What is in a file is worth as much as its name.
                    settle(folder)
                    settle(folder.absolute().parent)
            except (OSError, Damaged) as error:
                raise UsageError(f"the journal in {folder} cannot be used: {error}") from error
            undo.pop_all()
            undo.callback(self.close)
            self.marks: list[str] = []
            self.passed: dict[str, str] = {}
            self._pasts = self._read()
            if self._waste > min(WASTE, sum(self._size.values())):
                self._press()
            self.write(Opened(mark()))
            undo.pop_all()

    def pasts(self) -> list[Past]:
        """The episodes that were open when the journal was read."""
        return [
            Past(created, settled, name not in self._acted, functools.partial(self._entries, name))
            for name, (created, settled) in self._pasts.items()
        ]

    def write(self, entry: Entry) -> None:
        """Keep an entry; what tells of something that has happened is kept where that is possible.

        Raises:
            Unavailable: The disk is full, or broken.
        """
        body = codec.dumps(entry)
        with self._guard:
            try:
                self._wal.append(body, durable=not isinstance(entry, Done | Missed | Met))
            except OSError as error:
                if type(entry) not in _WORDS:
                    raise Unavailable(f"the journal cannot be written: {error.strerror}") from error
                _log.warning("%s lacks that an episode was %s: %s", self._path, _WORDS[type(entry)], error.strerror)
            self._account(entry, len(body))
            if self._waste > max(WASTE, sum(self._size.values())) and self._pressing is None:
                self._pressing = threading.Thread(target=self._press, name="quintain-journal", daemon=True)
                self._pressing.start()

    def room(self, size: int) -> None:
        """Make sure that an entry of so many bytes can be kept.

        Raises:
            Unavailable: The disk is full, or broken.
        """
        with self._guard:
            try:
                self._wal.room(size + SLACK)
            except OSError as error:
                raise Unavailable(f"the journal cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Close the file; nothing can be written any more."""
        if (pressing := self._pressing) is not None:
            pressing.join()
        self._wal.close()
        os.close(self._lock)

    # -- inside

    def _read(self) -> dict[str, tuple[Created, bytes | None]]:
        pasts: dict[str, tuple[Created, bytes | None]] = {}
        for place, body in self._wal.records():
            entry = _entry(self._path, body)
            if isinstance(entry, Opened):
                self.marks.append(entry.id)
            elif isinstance(entry, Passed):
                self.passed[entry.id] = entry.request
            elif isinstance(entry, Created):
                pasts[entry.id] = (entry, None)
                self._acted.discard(entry.id)
                self._places[entry.id] = []
            elif isinstance(entry, Closed):
                pasts.pop(entry.id, None)
                self.passed.pop(entry.id, None)
            elif entry.id in pasts:
                if isinstance(entry, Settled):
                    pasts[entry.id] = (pasts[entry.id][0], entry.trace)
                if isinstance(entry, Acted | Ended):
                    self._acted.add(entry.id)
                self._places[entry.id].append(place)
            self._account(entry, len(body))
        return pasts

    def _account(self, entry: Entry, size: int) -> None:
        if isinstance(entry, Closed):
            self._waste += size + self._size.pop(entry.id, 0)
            self._places.pop(entry.id, None)
        elif isinstance(entry, Opened | Created | Passed) or entry.id in self._size:
            self._size[entry.id] += size
        else:
            self._waste += size  # A call ended after its episode was closed.

    def _entries(self, id: str) -> list[Entry]:
        """What was written of an episode; it is read once."""
        with self._guard:
            places = self._places.pop(id, [])
            return [_entry(self._path, self._wal.read(place)) for place in places]

    def _press(self) -> None:
        """Write what is of open episodes into another file, which then takes this one's place."""
        try:
            with self._guard:
                old, end, alive = self._wal, self._wal.end, set(self._size)
            path = self._path.with_suffix(".new")
            path.unlink(missing_ok=True)
            new = Wal(path, sync=self._sync)
            moved: dict[int, int] = {}
            try:
                moved |= old.copy(self._of(alive, old, until=end), new)
                with self._guard:
                    moved |= old.copy((place for place, _ in old.records(end)), new)
                    new.flush()
                    path.replace(self._path)
                    new.path = self._path
                    self._wal = new
                    self._places = {name: [moved[one] for one in places] for name, places in self._places.items()}
                    self._waste = 0
                    if self._sync:  # Before anything is written to it, its name must lead to it for good.
                        settle(self._path.parent)
            except BaseException:
                if self._wal is not new:
                    new.close()
                    path.unlink(missing_ok=True)
                raise
            old.close(tidy=False)
        except OSError as error:
            _log.warning("%s cannot be made smaller: %s", self._path, error.strerror)
            self._waste = 0  # Tried again after as much more of it.
        finally:
            self._pressing = None

    def _of(self, alive: set[str], wal: Wal, *, until: int) -> Iterator[int]:
        for place, body in wal.records():
            if place >= until:
                return
            if _entry(self._path, body).id in alive:
                yield place


def agree(folder: Path, count: int) -> None:
    """Make sure that a journal is of as many processes as are to go on with it, for each has its own episodes.

    Raises:
        UsageError: It is of another number; or it cannot be written.
    """
    file = folder / "workers"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not file.exists():
            _put(file, f"{count}\n")
        before = int(file.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"the journal in {folder} cannot be used: {error}") from error
    if before != count:
        raise UsageError(
            f"the journal in {folder} is of {before} processes, each with its own episodes: "
            f"go on with --workers {before}, or name another folder and begin without them"
        )


def _put(file: Path, text: str) -> None:
    """Have a file with this text, or none, whenever the process is killed or the power goes."""
    part = file.with_suffix(".new")
    with part.open("w") as written:
        written.write(text)
        written.flush()
        os.fsync(written.fileno())
    part.replace(file)


def _entry(path: Path, body: bytes) -> Entry:
    try:
        found: Entry = codec.loads(body, _ENTRY)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"{path} was written by another version: go on with that one, or move the file away: {error}"
        ) from error
    return found


def _locked(path: Path) -> int:
    """Hold a file as long as this process lives.

    Raises:
        UsageError: Another process does.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    limit = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > limit:
                os.close(lock)
                raise UsageError(
                    f"another server writes the journal in {path.parent}: end it, or name another folder"
                ) from error
            time.sleep(0.02)
        else:
            return lock
