"""Content of a database file as a value: pages of 1 KB over a base image that all databases share.

    base     the seeded database, mapped from the cache folder, never written
    layers   those written since, as the layers of a `LayeredMap`, which images share
    count    number of pages of the file

A `PageImage` never changes. A transaction makes a new image, which shares all older layers; so a fork, a snapshot or a
restore is one pointer, and costs the same for 1 MB and for 100.

Six words of page 1 are not state: bytes 24-27 and 92-95 count transactions, 96-99 name the SQLite library. They are
zero in every image; `connection.py` shows each connection its own numbers.

The digest is relative to the base: each page weighs h(number, bytes), and an image keeps the difference between the
sum of its pages and the sum of the base's, modulo 2**128 (an additive multiset hash, as in `quintain.table`). Written
pages are weighed by the next `digest`, so a turn of many writes to one page weighs it once.

The weight is XXH3-128 with the page's number as its seed. So the digest detects accidents, not an attacker who builds
pages that collide, also with the BLAKE2b over the sum. Microseconds to weigh one page of 1 KB, on one core of an AMD
EPYC: 0.11; a copied hasher of SHA-256, which processors have in hardware, takes 0.83.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xxhash import xxh3_128_digest

from quintain import codec
from quintain.layered import LayeredMap, stack

SIZE = 1024
"""Bytes of a page: 2.6 times less memory per written instance than SQLite's own 4096, and no slower."""
ZERO = bytes(SIZE)

_OWED = 64
"""Pages that may wait to be weighed; beyond, each write would copy a long list of them."""
_MASK = 2**128 - 1
_integer = int.from_bytes


class Page:
    """One written page.

    Attributes:
        data: Its bytes.
        weight: Its weight in the sum; None until the first digest.
    """

    __slots__ = ("children", "data", "weight")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.children: tuple[int, ...] | None = None  # what `trees.py` has parsed, of an inner page
        self.weight: int | None = None


Pages = dict[int, Page | None]
"""Written pages by number, from 0. None, which a layer of a `LayeredMap` may hold, does not occur."""


class Base:
    """Read-only image under many databases.

    Attributes:
        digest: Digest of the bytes; empty for the base that has none.
        count: Number of pages.
        content: Bytes of its pages.
        idle: Idle connections on this base.
        retired: True if connections are closed after use.
        logical: Sum of the weights of its rows, once computed (`difference.py`).
    """

    def __init__(self, path: Path | None = None, digest: str = "") -> None:
        self.digest = digest
        self.idle: list[Any] = []
        self.retired = False
        self.logical: int | None = None
        self.trees: dict[int, Any] = {}  # what `trees.py` has walked, by root page
        self.tables: Any = None  # what `difference.py` has read of the schema
        self.children: dict[int, tuple[int, ...]] = {}  # by inner page, what `trees.py` has parsed
        self.index: Any = None  # what `difference.py` knows of the pages of those tables
        self.schema = object()
        self.weights: dict[int, int] = {}
        self.answers: dict[Any, Any] = {}  # what `standing.py` has read
        self.standing: frozenset[int] = frozenset()  # the pages of all these answers
        self.content: bytes | mmap.mmap = b""
        if path is not None:
            with path.open("rb") as file:
                self.content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.count = len(self.content) // SIZE

    def page(self, number: int) -> bytes:
        """Page `number`, from 0; zeros beyond the end."""
        start = number * SIZE
        return self.content[start : start + SIZE] or ZERO

    def weight(self, number: int) -> int:
        found = self.weights.get(number)
        if found is None:
            found = self.weights[number] = weigh(number, self.page(number))
        return found


class PageImage:
    """Content of a database at one moment; it never changes.

    Attributes:
        base: The base image.
        layers: Pages written since, newest first. A layer does not change once it is here.
        count: Number of pages of the file.
        schema: Identity of the schema: the same object for images whose tables are the same.
        logical: Sum of the weights of its rows, once computed.
        known: The nearest ancestor whose `logical` is known.
    """

    __slots__ = (
        "_counted",
        "_digest",
        "_owed",
        "_sum",
        "answers",
        "base",
        "compared",
        "count",
        "is_standing",
        "known",
        "layers",
        "logical",
        "schema",
        "trees",
    )

    def __init__(self, base: Base, layers: tuple[Pages, ...] = (), *, count: int | None = None) -> None:
        self.base = base
        self.layers = layers
        self.count = base.count if count is None else count
        self.schema = base.schema
        self.logical: int | None = None
        self.known: PageImage | None = None
        self.trees: dict[int, Any] = {}  # by root page, those that `trees.py` has walked and that are not the base's
        self.answers: dict[Any, Any] = {}  # what `standing.py` has read
        self.compared: frozenset[int] | None = None  # pages of the base of which `is_standing` says if all are here
        self.is_standing = False
        # The sum as it was when the file had `_counted` pages and the owed pages were what stands here (None: base's).
        self._sum = 0
        self._counted = base.count
        self._owed: dict[int, Page | None] = {}
        self._digest = ""

    @property
    def pages(self) -> LayeredMap[int, Page]:
        """Pages written since the base."""
        return LayeredMap(layers=self.layers)

    def weight(self) -> int:
        """Returns the number of bytes of the pages that were written since the base, in O(log n)."""
        return SIZE * sum(len(layer) for layer in self.layers)

    def page(self, number: int) -> bytes:
        """Returns the bytes of page `number`, from 0."""
        for layer in self.layers:
            page = layer.get(number)
            if page is not None:
                return page.data
        start = number * SIZE
        return self.base.content[start : start + SIZE] or ZERO  # `Base.page`, without a call

    def written(self, number: int) -> Page | None:
        """Returns page `number` if it was written since the base, in O(log n)."""
        for layer in self.layers:
            page = layer.get(number)
            if page is not None:
                return page
        return None

    def write(self, delta: Pages, count: int, schema: object) -> PageImage:
        """Returns the image after a transaction that wrote `delta` and left `count` pages."""
        if len(self._owed) > _OWED:
            self._settle()
        image = PageImage(self.base, stack(delta, self.layers) if delta else self.layers, count=count)
        image.schema = schema
        if self.is_standing and schema is self.schema and self.compared is not None:
            image.compared, image.is_standing = self.compared, delta.keys().isdisjoint(self.compared)
        image.known = self.known if self.logical is None else self
        image._sum, image._counted = self._sum, self._counted
        image._owed = owed = self._owed.copy()
        for number in delta:
            if number not in owed:
                owed[number] = self.written(number)
        return image

    def digest(self) -> str:
        """Returns 32 hex digits, equal for equal bytes over one base. Hashes each page written since the last call."""
        if not self._digest:
            self._settle()
            total = (self._sum & _MASK).to_bytes(16, "little")
            self._digest = codec.digest(codec.dumps((self.base.digest, self.count, total)))
        return self._digest

    def changed(self, other: PageImage) -> set[int]:
        """Returns the numbers of the pages that differ between two images of one base."""
        numbers = set(range(min(self.count, other.count), max(self.count, other.count)))
        candidates = self.pages.candidates(other.pages)
        numbers.update(number for number in candidates if self.page(number) != other.page(number))
        return numbers

    def chunks(self) -> Iterator[bytes]:
        """Returns the file, page by page."""
        return (self.page(number) for number in range(self.count))

    def _settle(self) -> None:
        if self.count != self._counted:
            self._settle_ends()
        base, total = self.base, self._sum
        weights, newest = base.weights, self.layers[0] if self.layers else {}
        # A call would cost half of what a hash does, so it makes as few as it can.
        for number, past in self._owed.items():
            page = newest.get(number) or self.written(number)
            if page is None:
                total += base.weight(number)
            else:
                weight = page.weight
                if weight is None:
                    weight = page.weight = _integer(xxh3_128_digest(page.data, number), "big")
                total += weight
            if past is None:
                total -= weights.get(number) or base.weight(number)
            else:
                total -= past.weight or _weighed(number, past)
        self._sum, self._owed = total, {}

    def _settle_ends(self) -> None:
        """Pages that came or went weigh as well, written or not."""
        before, now, owed = self._counted, self.count, self._owed
        for number in range(min(before, now), max(before, now)):
            page = self.written(number)
            past = owed.pop(number, page)
            if number < now:
                self._sum += _weighed(number, page) if page else self.base.weight(number)
            else:
                self._sum -= _weighed(number, past) if past else self.base.weight(number)
        self._counted = now
        # Beyond both ends are pages of zeros that a file left when it shrank, which are never read.
        self._owed = {number: past for number, past in owed.items() if number < now}


def weigh(number: int, data: bytes) -> int:
    """Returns the weight of a page in the sum."""
    return _integer(xxh3_128_digest(data, number), "big")  # faster than `xxh3_128_intdigest`


def _weighed(number: int, page: Page) -> int:
    if page.weight is None:
        page.weight = weigh(number, page.data)
    return page.weight


def normalised(first: bytes) -> bytes:
    """Returns page 1 without the words that are not state."""
    return b"".join((first[:24], b"\0\0\0\0", first[28:92], b"\0\0\0\0\0\0\0\0", first[100:]))
