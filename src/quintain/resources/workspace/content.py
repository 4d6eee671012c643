"""Content of files: chunks named by their bytes, which equal files share.

A file is cut at multiples of 1 MiB. A chunk of zeros is a hole: it is never stored, so a sparse file of a terabyte
costs what its other chunks cost. Chunks never change.

    FileChunk     bytes in memory; or, if it is a whole megabyte, in the spill
    Mapped    bytes in the file of a base, which all processes map (`bases.py`)

The spill is one unnamed file for each process, in the cache folder: memory stays small, and nothing is left over when
the process ends, however it ends. A slot is used again when its chunk is gone, unless the process was forked since:
then the child may still read it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path

from quintain.errors import QuintainError

CHUNK = 2**20
"""Bytes of a chunk; the last of a file may be shorter."""

_ZEROS = bytes(CHUNK)


class ImageError(QuintainError, ValueError):
    """Error for bytes that are not a workspace, or whose base is not, or no longer, on this machine."""


def cache() -> Path:
    """Returns the folder of the bases."""
    return Path(os.environ.get("QUINTAIN_CACHE") or Path.home() / ".cache" / "quintain") / "workspaces"


class Spill:
    """Slots of one chunk each, in a file that has no name."""

    def __init__(self) -> None:
        self._fd: int | None = None
        self._count = 0
        self._free: list[int] = []
        self._lock = threading.Lock()
        self.era = 0

    def put(self, data: bytes) -> tuple[int, int, int]:
        """Stores these bytes; returns (descriptor, offset, era) of their slot.

        Raises:
            OSError: The disk is full. Nothing is stored then.
        """
        with self._lock:
            if self._fd is None:
                cache().mkdir(parents=True, exist_ok=True)
                self._fd, path = tempfile.mkstemp(dir=cache())  # open as long as the process lives
                Path(path).unlink()
            slot = self._free.pop() if self._free else self._count
            self._count = max(self._count, slot + 1)
            try:
                written = 0
                while written < len(data):
                    written += os.pwrite(self._fd, data[written:], slot * CHUNK + written)
            except BaseException:
                self._free.append(slot)
                raise
            return self._fd, slot * CHUNK, self.era

    def drop(self, offset: int, era: int) -> None:
        """Frees the slot of a chunk that is gone."""
        if era == self.era:
            self._free.append(offset // CHUNK)

    def forked(self) -> None:
        """Freezes the present slots: two processes read them, so neither writes there again."""
        self._free, self.era = [], self.era + 1

    def inherited(self) -> None:
        """In the child: write to a file of its own. The parent's stays open for reading."""
        self._lock = threading.Lock()
        self.forked()
        self._fd, self._count = None, 0


_spill = Spill()
os.register_at_fork(after_in_parent=_spill.forked, after_in_child=_spill.inherited)


class FileChunk:
    """Up to a megabyte that is not all zeros."""

    __slots__ = ("__weakref__", "_data", "_where", "digest", "size")

    def __init__(self, data: bytes) -> None:
        self.digest = name(data)
        self.size = len(data)
        self._where: tuple[int, int, int] | None = None
        self._data: bytes | None = data
        if self.size == CHUNK:
            self._where, self._data = _spill.put(data), None

    def read(self) -> bytes:
        """Returns its bytes."""
        if self._data is not None:
            return self._data
        assert self._where is not None
        return os.pread(self._where[0], CHUNK, self._where[1])

    def __del__(self) -> None:
        where = getattr(self, "_where", None)  # a chunk that could not be written has none
        if where is not None:
            _spill.drop(*where[1:])


class Mapped(FileChunk):
    """A chunk in the file of a base; it is compared with its name when it is read first."""

    __slots__ = ("_base", "_start", "_trusted")

    def __init__(self, base: memoryview, start: int, *, size: int, digest: bytes) -> None:
        self._base, self._start, self.size, self.digest = base, start, size, digest
        self._trusted = False
        self._where = None

    def read(self) -> bytes:
        """Returns the bytes.

        Raises:
            ImageError: The file was changed.
        """
        data = bytes(self._base[self._start : self._start + self.size])
        if not self._trusted:
            if name(data) != self.digest:
                raise ImageError(f"a base in {cache()} was changed: bytes do not have the digest {self.digest.hex()}")
            self._trusted = True
        return data


_known: weakref.WeakValueDictionary[bytes, FileChunk] = weakref.WeakValueDictionary()


def name(data: bytes) -> bytes:
    """Returns the name of a chunk: a digest of its bytes."""
    return hashlib.blake2b(data, digest_size=20).digest()


def chunk(data: bytes) -> FileChunk | None:
    """Returns the chunk of these bytes; None for zeros. Whole megabytes are kept once for all who have them."""
    if not data[0] and data == _ZEROS[: len(data)]:
        return None
    if len(data) < CHUNK:
        return FileChunk(data)
    found = _known.get(name(data))
    if found is None:
        found = FileChunk(data)
        _known[found.digest] = found
    return found


class Content:
    """The bytes of one file.

    Attributes:
        size: Bytes, holes included.
        chunks: (number, chunk), rising; a number that is missing is a hole.
    """

    __slots__ = ("_digest", "chunks", "size")

    def __init__(self, size: int, chunks: Iterable[tuple[int, FileChunk]]) -> None:
        self.size = size
        self.chunks = tuple(chunks)
        self._digest: bytes | None = None

    @property
    def stored(self) -> int:
        """Returns the number of bytes that are stored."""
        return sum(chunk.size for _, chunk in self.chunks)

    @property
    def digest(self) -> bytes:
        """Names the bytes."""
        if self._digest is None:
            hasher = hashlib.blake2b(b"%d" % self.size, digest_size=20)
            for number, chunk in self.chunks:
                hasher.update(b"/%d:" % number + chunk.digest)
            self._digest = hasher.digest()
        return self._digest

    def read(self, offset: int, size: int) -> bytes:
        """Returns up to `size` bytes from `offset`."""
        end = min(self.size, offset + size)
        if offset >= end:
            return b""
        if not offset and end == self.size <= CHUNK:
            return self.chunks[0][1].read() if self.chunks else bytes(end)
        found = dict(self.chunks) if self.chunks else {}
        pieces: list[bytes] = []
        while offset < end:
            number, start = divmod(offset, CHUNK)
            stop = min(CHUNK, start + end - offset)
            held = found.get(number)
            pieces.append(held.read()[start:stop] if held else _ZEROS[start:stop])
            offset += stop - start
        return b"".join(pieces)

    def extended(self, data: bytes) -> Content:
        """Returns the same, with more at the end."""
        if not data:
            return self
        whole = self.size // CHUNK
        tail = self.read(whole * CHUNK, CHUNK)
        kept = [pair for pair in self.chunks if pair[0] < whole]
        return Content(self.size + len(data), [*kept, *cut(tail + data, whole)])


EMPTY = Content(0, ())


def content(data: bytes) -> Content:
    """Returns the content of a file with these bytes."""
    return Content(len(data), cut(data)) if data else EMPTY


def cut(data: bytes, first: int = 0) -> Iterator[tuple[int, FileChunk]]:
    """Chunks of bytes that begin at chunk `first`."""
    for start in range(0, len(data), CHUNK):
        made = chunk(data[start : start + CHUNK])
        if made is not None:
            yield first + start // CHUNK, made
