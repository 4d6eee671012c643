"""First contents of workspaces, on disk: built once, named by their digest, mapped by every process that needs them.

In the cache folder, which `QUINTAIN_CACHE` names (default: `~/.cache/quintain`), are

    workspaces/<digest>.base     chunks, then the list of entries, then the offset of that list
    workspaces/<digest>.tree/    the same as files, the read-only lower layer of an overlay; made on demand

The digest is that of the list, which names every chunk by its bytes. Each is put there by one rename, so that processes
may build at the same time, and a killed process leaves nothing half-written under a name.
"""

from __future__ import annotations

import collections
import contextlib
import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from quintain import codec

from .content import CHUNK, Content, FileChunk, ImageError, Mapped, cache
from .images import FILE, FOLDER, SYMLINK, Base, Entry, Layer

_FORMAT = b"quintain workspace 1"
_TAIL = 8 + len(_FORMAT)

EMPTY = Base()
"""Base of a workspace without files."""

_opened: weakref.WeakValueDictionary[str, Base] = weakref.WeakValueDictionary()
_recent: collections.deque[Base] = collections.deque(maxlen=16)
"""Bases that stay open although no workspace stands on them."""
_lock = threading.RLock()


class Row(msgspec.Struct, array_like=True):
    """An entry in a list."""

    path: bytes
    kind: str
    mode: int
    mtime: int
    target: bytes
    size: int
    chunks: list[tuple[int, bytes]]
    """Pairs of number and digest."""


def row(path: bytes, entry: Entry) -> Row:
    held = entry.content
    chunks = [(number, chunk.digest) for number, chunk in held.chunks]
    return Row(path, entry.kind, entry.mode, entry.mtime, entry.target, held.size, chunks)


def made(entries: Mapping[bytes, Entry]) -> Base:
    """Returns the base that holds these entries, which come with all their folders: from the cache, or put there now.

    Raises:
        OSError: The cache folder cannot be written. Nothing is left in it then.
    """
    ordered = sorted(entries.items())
    if not ordered:
        return EMPTY
    rows = codec.dumps([row(path, entry) for path, entry in ordered])
    digest = codec.digest(rows)
    with _lock:
        if _path(digest).exists():
            with contextlib.suppress(ImageError):  # changed: it is made again
                return find(digest)
        _store(digest, rows, ordered)
        return find(digest)


def find(digest: str) -> Base:
    """Returns the base of this name.

    Raises:
        ImageError: The cache folder does not have it, or has something else under its name.
    """
    if not digest:
        return EMPTY
    with _lock:
        found = _opened.get(digest)
        if found is None:
            found = _opened[digest] = _open(digest)
            _recent.append(found)
        return found


def entries(rows: Iterable[Row], chunks: Mapping[bytes, FileChunk]) -> Iterator[tuple[bytes, Entry]]:
    """Yields the entries of a list, whose chunks are given by their digests.

    Raises:
        KeyError: A chunk is missing.
        ValueError: A row is not an entry.
    """
    for one in rows:
        names = one.path.split(b"/")
        holds = one.kind == FILE or not (one.size or one.chunks)
        if one.kind not in {FILE, FOLDER, SYMLINK} or not holds or bool(one.target) != (one.kind == SYMLINK):
            raise ValueError(f"no entry: a {one.kind!r} at {one.path!r}")
        if not {b"", b".", b".."}.isdisjoint(names) or b"\0" in one.path + one.target or not 0 <= one.mode <= 0o777:
            raise ValueError(f"no entry: {one.path!r} with {one.mode:#o}")
        held = [(number, chunks[digest]) for number, digest in one.chunks]
        last = -1
        for number, chunk in held:
            if number <= last or chunk.size != min(CHUNK, one.size - number * CHUNK):
                raise ValueError(f"no entry: chunk {number} of {one.path!r}")
            last = number
        yield one.path, Entry(one.kind, one.mode, one.mtime, content=Content(one.size, held), target=one.target)


def layout(rows: Iterable[Row]) -> Iterator[tuple[bytes, int]]:
    """(digest, size) of each chunk that these entries refer to, once, in the order in which they are stored."""
    seen: set[bytes] = set()
    for one in rows:
        for number, digest in one.chunks:
            if digest not in seen:
                seen.add(digest)
                yield digest, min(CHUNK, one.size - number * CHUNK)


def _store(digest: str, rows: bytes, ordered: list[tuple[bytes, Entry]]) -> None:
    cache().mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=cache())
    try:
        with os.fdopen(handle, "wb") as file:
            seen: set[bytes] = set()
            for _, entry in ordered:
                for _, chunk in entry.content.chunks:
                    if chunk.digest not in seen:
                        seen.add(chunk.digest)
                        file.write(chunk.read())
            start = file.tell()
            file.write(rows + start.to_bytes(8, "little") + _FORMAT)
        Path(temporary).replace(_path(digest))
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _path(digest: str) -> Path:
    return cache() / f"{digest}.base"


def _open(digest: str) -> Base:
    path = _path(digest)
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError:
        raise ImageError(f"base {digest} is not in {cache()}; make the same workspace here first") from None
    except ValueError as error:  # an empty file cannot be mapped
        raise ImageError(f"{path} was changed: {error}") from error
    end = max(0, len(data) - _TAIL)
    start = int.from_bytes(data[end : end + 8], "little")
    if bytes(data[end + 8 :]) != _FORMAT or start > end or codec.digest(bytes(data[start:end])) != digest:
        raise ImageError(f"{path} was changed, or is of another version: it does not have the content of its name")
    rows = codec.loads(bytes(data[start:end]), list[Row])
    chunks: dict[bytes, FileChunk] = {}
    at = 0
    for name, size in layout(rows):
        chunks[name] = Mapped(data, at, size=size, digest=name)
        at += size
    if at != start:
        raise ImageError(f"{path} was changed: its chunks have {start} bytes, not {at}")
    return Base(digest, Layer(entries(rows, chunks)), data)
