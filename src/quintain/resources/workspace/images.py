"""A tree of files as a value: a map from paths to entries, over a base that everybody shares.

    base      the first content of the workspace, kept in the cache folder, never written
    entries   a `LayeredMap` from paths to entries over the base's, whose layers images share

A `TreeImage` never changes. A write makes a new one that shares all older layers, so a fork, a snapshot or a restore is
one pointer, whatever the size. Each layer sorts its paths when a folder is listed first; the paths below a folder stand
together.

The digest is that of `quintain.table`: each entry weighs a hash of all that it is, and an image keeps the sum.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from quintain import codec
from quintain.layered import LayeredMap

from .content import EMPTY, Content, FileChunk

FILE, FOLDER, SYMLINK = "file", "folder", "symlink"
_MODULUS = 2**256


class Entry:
    """File, folder or symlink.

    Attributes:
        kind: "file", "folder" or "symlink".
        mode: Permission bits, 0 to 0o777; those of a symlink are 0o777.
        mtime: Last write, for a folder its creation: seconds since 1970.
        content: Content of a file.
        target: Target of a symlink.
    """

    __slots__ = ("_path", "_weight", "content", "kind", "mode", "mtime", "target")

    def __init__(self, kind: str, mode: int, mtime: int, *, content: Content = EMPTY, target: bytes = b"") -> None:
        self.kind = kind
        self.mode = mode
        self.mtime = mtime
        self.content = content
        self.target = target
        self._path: bytes | None = None
        self._weight = 0

    def weigh(self, path: bytes) -> int:
        """Returns its weight in the sum; cached for the first path."""
        if self._path == path:
            return self._weight
        block = codec.dumps((path, self.kind, self.mode, self.mtime, self.content.digest, self.target))
        weight = int.from_bytes(hashlib.blake2b(block, digest_size=32).digest(), "little")
        if self._path is None:
            self._weight, self._path = weight, path
        return weight

    def like(self, other: Entry | None) -> bool:
        """True if both are equal except for the time."""
        return self is other or (
            other is not None
            and (self.kind, self.mode, self.target) == (other.kind, other.mode, other.target)
            and self.content.digest == other.content.digest
        )

    def at(self, mtime: int, *, mode: int | None = None) -> Entry:
        """Returns the same at another time, or with other permissions."""
        bits = self.mode if mode is None else mode
        return Entry(self.kind, bits, mtime, content=self.content, target=self.target)


ROOT = Entry(FOLDER, 0o755, 0)
"""The workspace itself, at the empty path; it is in no map."""

Delta = Mapping[bytes, "Entry | None"]


class Layer(dict[bytes, "Entry | None"]):
    """A dict that is not changed any more, and knows its paths in order."""

    __slots__ = ("_paths",)

    def __init__(self, delta: Delta | Iterable[tuple[bytes, Entry | None]] = ()) -> None:
        super().__init__(delta)
        self._paths: list[bytes] | None = None

    def __or__(self, newer: Delta) -> Layer:  # type: ignore[override]
        return Layer({**self, **newer})

    def below(self, folder: bytes) -> Iterator[bytes]:
        """Returns an iterator over its paths anywhere in a folder, ascending."""
        paths = self.paths()
        return iter(paths[slice(*_span(paths, folder))])

    def children(self, folder: bytes) -> Iterator[bytes]:
        """Yields its paths directly in a folder, ascending, without reading those further down."""
        paths = self.paths()
        start, end = _span(paths, folder)
        skip = len(folder) + 1 if folder else 0
        while start < end:
            path = paths[start]
            slash = path.find(b"/", skip)
            if slash < 0:
                yield path
                start += 1
            else:
                start = bisect.bisect_left(paths, path[:slash] + b"0", start, end)

    def paths(self) -> list[bytes]:
        """Returns all its paths, rising."""
        if self._paths is None:
            self._paths = sorted(self)
        return self._paths


def _span(paths: list[bytes], folder: bytes) -> tuple[int, int]:
    """Returns the start and end of the paths in a folder. "0" comes after "/"."""
    if not folder:
        return 0, len(paths)
    start = bisect.bisect_left(paths, folder + b"/")
    return start, bisect.bisect_left(paths, folder + b"0", start)


class Base:
    """Content under many images.

    Attributes:
        digest: Digest of the content; empty for the base that has none.
        layer: Its entries.
        total: Sum of their weights.
        stored: Bytes that its files store.
        floor: The second after the latest of its times.
        held: Owner of the mapped bytes.
    """

    __slots__ = ("__weakref__", "_chunks", "digest", "floor", "held", "layer", "stored", "total")

    def __init__(self, digest: str = "", layer: Layer | None = None, held: Any = None) -> None:
        self.digest = digest
        self.layer = layer or Layer()
        self.held = held
        entries = [(path, entry) for path, entry in self.layer.items() if entry]
        self.total = sum(entry.weigh(path) for path, entry in entries)
        self.stored = sum(entry.content.stored for _, entry in entries)
        self.floor = max((entry.mtime + 1 for _, entry in entries), default=0)
        self._chunks: dict[bytes, FileChunk] | None = None

    @property
    def chunks(self) -> dict[bytes, FileChunk]:
        """Returns the chunks of its files by digest."""
        if self._chunks is None:
            contents = [entry.content for entry in self.layer.values() if entry]
            self._chunks = {chunk.digest: chunk for held in contents for _, chunk in held.chunks}
        return self._chunks


class TreeImage(msgspec.Struct, frozen=True, eq=False):
    """Content of a workspace at one moment; it never changes.

    Attributes:
        base: The base.
        entries: Its entries by path, without the root.
        count: Number of entries.
        stored: Bytes that its files store.
        total: Sum of the weights of its entries.
        floor: Earliest time of the next entry, so that it is newer than those of programs before.
    """

    base: Base
    entries: LayeredMap[bytes, Entry]
    count: int
    stored: int
    total: int
    floor: int

    @classmethod
    def on(cls, base: Base) -> TreeImage:
        """Returns the image of a base."""
        return cls(base, LayeredMap(base.layer), len(base.layer), base.stored, base.total, base.floor)

    def get(self, path: bytes) -> Entry | None:
        """Returns the entry at a path; the empty path is the workspace."""
        return self.entries.get(path) if path else ROOT

    def write(self, delta: Delta, *, floor: int | None = None) -> TreeImage:
        """Returns the image in which these paths hold these entries, or None: nothing."""
        count, stored, total = self.count, self.stored, self.total
        for path, entry in delta.items():
            old = self.get(path)
            if old is not None:
                count, stored, total = count - 1, stored - old.content.stored, total - old.weigh(path)
            if entry is not None:
                count, stored, total = count + 1, stored + entry.content.stored, total + entry.weigh(path)
        entries = self.entries.write(Layer(delta))
        return TreeImage(self.base, entries, count, stored, total, self.floor if floor is None else floor)

    def digest(self) -> str:
        """Equal for equal entries and an equal floor, however they came to be; 32 hex digits, O(1)."""
        return codec.digest(codec.dumps((self.count, self.floor, (self.total % _MODULUS).to_bytes(32, "little"))))

    def below(self, folder: bytes) -> Iterator[tuple[bytes, Entry]]:
        """Yields everything in a folder, ascending by path."""
        return self._found(layer.below(folder) for layer in self._layers())

    def children(self, folder: bytes) -> Iterator[tuple[bytes, Entry]]:
        """Yields the entries directly in a folder, ascending by path."""
        return self._found(layer.children(folder) for layer in self._layers())

    def changed(self, other: TreeImage) -> list[bytes]:
        """Returns the paths at which two images differ, also in the time alone. Does not read layers that both have."""
        candidates = self.entries.candidates(other.entries)
        return sorted(path for path in candidates if not _same(self.get(path), other.get(path), path))

    def _layers(self) -> tuple[Layer, ...]:
        return cast("tuple[Layer, ...]", (*self.entries.layers, self.base.layer))

    def _found(self, paths: Iterable[Iterator[bytes]]) -> Iterator[tuple[bytes, Entry]]:
        several = [found for found in map(list, paths) if found]
        merged = several[0] if len(several) == 1 else sorted({path for found in several for path in found})
        for path in merged:
            entry = self.get(path)
            if entry is not None:
                yield path, entry


def _same(one: Entry | None, two: Entry | None, path: bytes) -> bool:
    if one is two:
        return True
    return one is not None and two is not None and one.weigh(path) == two.weigh(path)
