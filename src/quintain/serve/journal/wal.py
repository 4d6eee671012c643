"""A file to which records are appended, and from which no record that was written is ever lost.

A record is one write at the end of what is there, into room that was taken on the disk before. So a process that is
killed leaves whole records and at most the beginning of one, and a full disk says so before anything is written. What
the system has not brought to the disk is lost with the power alone; `sync` waits for the disk.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from quintain.errors import QuintainError

MAGIC = b"quintain journal 1\n"
ROOM = 1 << 20
"""Bytes that are taken on the disk at a time."""

_HEAD = struct.Struct("<III")  # length, its checksum, the body's checksum


class Damaged(QuintainError):
    """A file that holds what no killed process leaves behind."""


class Wal:
    """One such file; not thread-safe.

    Args:
        path: Made where it is not there, readable for its owner alone.
        sync: Whether `append` may wait for the disk.

    Attributes:
        end: Where the next record goes.

    Raises:
        Damaged: It holds something else.
        OSError: It cannot be made or read.
    """

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        self.path = path
        self.sync = sync
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._taken = os.fstat(self._file).st_size
            self.end = 0
            begun = os.pread(self._file, len(MAGIC), 0).rstrip(b"\0")
            if begun != MAGIC and MAGIC.startswith(begun):  # Killed while it was made, or fresh.
                self._put(MAGIC)
            self.end = len(MAGIC)
            for place, body in self.records():
                self.end = place + _HEAD.size + len(body)
            self._check_rest()
        except BaseException:
            os.close(self._file)
            raise

    def append(self, body: bytes, *, durable: bool = True) -> int:
        """Write a record; returns its place.

        Args:
            body: At most 4 GB.
            durable: Whether to wait for the disk, where that is wished for at all.

        Raises:
            OSError: The disk is full, or broken; then the record is not in the file.
        """
        length = len(body).to_bytes(4, "little")
        place = self.end
        self._put(_HEAD.pack(len(body), zlib.crc32(length), zlib.crc32(body)) + body)
        if self.sync and durable:
            try:
                os.fdatasync(self._file)
            except OSError:  # What it tells of will not be done, so no process after this one may read it.
                self.end = place
                os.pwrite(self._file, bytes(_HEAD.size + len(body)), place)
                raise
        return place

    def room(self, size: int) -> None:
        """Take room on the disk, so that so many bytes can be written whoever else fills it.

        Raises:
            OSError: There is none.
        """
        wanted = self.end + size
        while self._taken < wanted:
            self._taken += os.pwrite(self._file, bytes(max(ROOM, wanted - self._taken)), self._taken)

    def records(self, since: int = len(MAGIC)) -> Iterator[tuple[int, bytes]]:
        """All whole records from a place on, in their order, with their places.

        Raises:
            Damaged: The file begins with something else.
        """
        with mmap.mmap(self._file, 0, access=mmap.ACCESS_READ) as data:
            if data[: len(MAGIC)] != MAGIC:
                raise Damaged(
                    f"{self.path} is no journal of this version: go on with the version that wrote it, "
                    "or move the file away to begin without what it holds"
                )
            place = since
            while (body := _body(data, place)) is not None:
                yield place, body
                place += _HEAD.size + len(body)

    def read(self, place: int) -> bytes:
        """The record at a place that `append` or `records` told."""
        length = _HEAD.unpack(os.pread(self._file, _HEAD.size, place))[0]
        return os.pread(self._file, length, place + _HEAD.size)

    def copy(self, places: Iterable[int], to: Wal) -> Iterator[tuple[int, int]]:
        """Append some records to another file; yields both places of each."""
        for place in places:
            yield place, to.append(self.read(place), durable=False)

    def close(self, *, tidy: bool = True) -> None:
        """Close the file, and give back the room that was not needed."""
        with contextlib.suppress(OSError):
            if tidy:
                os.ftruncate(self._file, self.end)
        os.close(self._file)

    def flush(self) -> None:
        """Wait for the disk."""
        os.fsync(self._file)

    def _put(self, data: bytes) -> None:
        self.room(len(data))
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self._file, data[written:], self.end + written)
        except OSError:
            os.pwrite(self._file, bytes(written), self.end)  # What follows must find nothing of it.
            raise
        self.end += len(data)

    def _check_rest(self) -> None:
        """What a killed process leaves is the beginning of one record, and then room."""
        with mmap.mmap(self._file, 0, access=mmap.ACCESS_READ) as data:
            rest = data[self.end :]
        torn = _HEAD.size + (_length(rest) or 0)
        if rest[torn:].strip(b"\0"):
            raise Damaged(
                f"{self.path} is damaged at byte {self.end}, as a loss of power may leave it, and no killed process: "
                f"`truncate --size={self.end} {self.path}` keeps what was written before; "
                "or move the file away to begin without what it holds"
            )
        if rest.strip(b"\0"):
            os.pwrite(self._file, bytes(min(torn, len(rest))), self.end)


def settle(folder: Path) -> None:
    """Wait until the disk has the names of what is in a folder."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def _length(data: bytes) -> int | None:
    """What a record's head says, if it is one."""
    if len(data) < _HEAD.size:
        return None
    length, check, _ = _HEAD.unpack(data[: _HEAD.size])
    return int(length) if zlib.crc32(length.to_bytes(4, "little")) == check else None


def _body(data: mmap.mmap, place: int) -> bytes | None:
    length = _length(data[place : place + _HEAD.size])
    if length is None:
        return None
    start = place + _HEAD.size
    body = data[start : start + length]
    check = int.from_bytes(data[place + 8 : start], "little")
    return body if len(body) == length and zlib.crc32(body) == check else None
