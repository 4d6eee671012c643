"""Rows by key, copied in O(1): the plain-data collection for worlds, and the reference Resource.

    rows     a `LayeredMap`, shared between forks
    top      changes of this table alone, written into the rows by the next fork

Each entry has the keys of its neighbours in insertion order, so a merge need not sort, and the digest covers the order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Generic, Self, TypeVar

import msgspec

from . import codec
from .layered import LayeredMap

Row = TypeVar("Row")

_Entry = tuple[str | None, str | None, bytes]
"""Key before, key after, row in canonical bytes."""
_ABSENT: _Entry = (None, None, b"")  # compared by identity
_ANYTHING: Any = Any
_MODULUS = 2**256


class Change(msgspec.Struct, Generic[Row], frozen=True):
    """One row that differs between two tables.

    Attributes:
        key: The row's key.
        before: The row in the first table; None if it does not have the key.
        after: The row in the second table; None if it does not have the key.
    """

    key: str
    before: Row | None
    after: Row | None


class Table(MutableMapping[str, Row]):  # noqa: PLW1641 (it changes, so it has no hash)
    """Dict from str to rows of one type, in insertion order, with `fork` and `digest` in O(1).

    A read returns a private copy: nothing changes in the table until the row is assigned back.

        order = orders["#W1"]
        order.status = "cancelled"
        orders["#W1"] = order

    Rows are stored as canonical bytes, so a dict inside a row comes back with its keys sorted. Put data whose order
    matters into a list or a tuple of pairs.

    Args:
        row: Type of every row: a `msgspec.Struct`, or anything else that msgspec decodes.
        rows: First rows, as a mapping or as (key, row) pairs; a repeated key overwrites.
    """

    __slots__ = ("_digest", "_first", "_last", "_row", "_rows", "_size", "_sum", "_top")

    def __init__(self, row: type[Row], rows: Mapping[str, Row] | Iterable[tuple[str, Row]] = ()) -> None:
        self._row = row
        self._rows: LayeredMap[str, _Entry] = LayeredMap()
        self._top: dict[str, _Entry | None] = {}
        self._first: str | None = None
        self._last: str | None = None
        self._size = self._sum = 0
        self._digest = (-1, 0, "")
        self.update(rows)
        self._freeze()

    def __getitem__(self, key: str) -> Row:
        """Returns a private copy of the row.

        Raises:
            KeyError: The table does not have the key.
        """
        return codec.loads(self._entry(key)[2], self._row)

    def __setitem__(self, key: str, row: Row) -> None:
        """Sets a row; an overwritten row keeps its place, a new one goes to the end.

        Raises:
            TypeError: The key is not a str, or the row is not of the table's type, down to its last field.
        """
        self._put(key, self._encoded(key, row))

    def __delitem__(self, key: str) -> None:
        """Removes a row.

        Raises:
            KeyError: The table does not have the key.
        """
        before, after, data = self._entry(key)
        if self._rows.get(key) is not None:
            self._top[key] = None
        else:
            del self._top[key]  # no tombstone: a world that makes and deletes for ever must not grow
        self._size -= 1
        self._sum -= _weight(before, key, data)
        if before is None:
            self._first = after
        else:
            further, _, leader = self._entry(before)
            self._top[before] = (further, after, leader)
        if after is None:
            self._last = before
        else:
            _, beyond, follower = self._entry(after)
            self._top[after] = (before, beyond, follower)
            self._sum += _weight(before, after, follower) - _weight(key, after, follower)

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[str]:
        """Yields the keys in insertion order.

        Raises:
            RuntimeError: A key was added or removed during the iteration.
        """
        key, size = self._first, self._size
        while key is not None:
            yield key
            entry = self._find(key)
            if entry is None or self._size != size:
                raise RuntimeError("table changed size during iteration")
            key = entry[1]

    def popitem(self) -> tuple[str, Row]:
        """Removes and returns the newest (key, row), as dict does.

        Raises:
            KeyError: The table is empty.
        """
        if self._last is None:
            raise KeyError("popitem(): table is empty")
        return (key := self._last), self.pop(key)

    def __eq__(self, other: object) -> bool:
        """True if rows and order are equal. Unlike in dict, order counts: the model sees it."""
        return self.content_key() == other.content_key() if isinstance(other, Table) else NotImplemented

    def __repr__(self) -> str:
        return f"Table({getattr(self._row, '__name__', self._row)}, {self._size} rows)"

    def fork(self) -> Self:
        """Returns an independent copy. Costs O(1), plus O(log n) amortised for each row changed since the last fork."""
        self._freeze()
        twin = object.__new__(type(self))
        twin._row, twin._rows, twin._top = self._row, self._rows, {}
        twin._first, twin._last, twin._size, twin._sum = self._first, self._last, self._size, self._sum
        twin._digest = self._digest
        return twin

    def dump(self) -> bytes:
        """Returns all rows as one MessagePack array of [key, row], in order; equal tables give equal bytes."""
        return codec.dumps([(key, msgspec.Raw(self._entry(key)[2])) for key in self])

    @classmethod
    def load(cls, data: bytes, row: type[Row] = _ANYTHING) -> Self:
        """Returns the dumped table, its digest and order included.

        Rows are decoded when they are read, and a row of another type raises then.

        Args:
            data: A result of `dump`.
            row: Type of every row; a dump does not contain it.

        Raises:
            msgspec.DecodeError: The bytes are torn, or not a dump of a table.
        """
        table = cls(row)
        for key, raw in codec.loads(data, list[tuple[str, msgspec.Raw]]):
            table._put(key, bytes(raw))
        table._freeze()
        return table

    def digest(self) -> str:
        """Returns 32 hex digits for rows and order, in O(1), the same in every process.

        Each row weighs h(key before it, key, row), where h is 256-bit BLAKE2b of an injective encoding, and the table
        keeps the sum of all weights modulo 2**256: an additive multiset hash (Bellare and Micciancio 1997, AdHash). The
        triples (key before, key, row) determine rows and order. If h were a random function, the sums of two different
        tables would be equal with probability 2**-256. Neither history, row type nor layers count. The digest detects
        accidents; it does not resist an attacker who chooses thousands of rows so that two sums collide.
        """
        if self._digest[:2] != (self._size, self._sum):
            named = codec.digest(codec.dumps((self._size, (self._sum % _MODULUS).to_bytes(32, "little"))))
            self._digest = self._size, self._sum, named
        return self._digest[2]

    def content_key(self) -> Hashable:
        """Returns a key that is equal for tables of equal rows in equal order; cheaper than `digest`."""
        return self._size, self._sum

    def diff(self, other: Table[Row]) -> list[Change[Row]]:
        """Returns the changes from this table to `other`, sorted by key, without rows that only moved.

        Costs O(changes) if one is a fork of the other, or both are forks of a third.
        """
        keys = {*self._top, *other._top} | self._rows.candidates(other._rows)
        changes: list[Change[Row]] = []
        for key in sorted(keys):
            before, after = self._find(key), other._find(key)
            if (before and before[2]) != (after and after[2]):
                changes.append(Change(key, self.get(key), other.get(key)))
        return changes

    def __copy__(self) -> Self:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.fork()

    def _find(self, key: Any) -> _Entry | None:
        entry = self._top.get(key, _ABSENT)
        return entry if entry is not _ABSENT else self._rows.get(key)

    def _entry(self, key: str) -> _Entry:
        entry = self._find(key)
        if entry is None:
            raise KeyError(key)
        return entry

    def _put(self, key: str, data: bytes) -> None:
        if (old := self._find(key)) is not None:
            before, after, was = old
            if was != data:
                self._top[key] = (before, after, data)
                self._sum += _weight(before, key, data) - _weight(before, key, was)
            return
        last = self._last
        if last is None:
            self._first = key
        else:
            before, _, tail = self._entry(last)
            self._top[last] = (before, key, tail)
        self._top[key] = (last, None, data)
        self._last = key
        self._size += 1
        self._sum += _weight(last, key, data)

    def _encoded(self, key: str, row: Row) -> bytes:
        wanted: Any = self._row
        name: str = getattr(wanted, "__name__", repr(wanted))
        if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a table's key must be str, got {type(key).__name__}")
        # The exact class: what a subclass adds would be lost in decoding, and a dict of the same shape would pass.
        if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct) and type(row) is not wanted:
            raise TypeError(f"row {key!r}: expected {name}, got {type(row).__name__}")
        try:
            # Encoded as it will be read: Python lets an int stand where the row has a float, whose bytes are others.
            return codec.dumps(codec.loads(codec.dumps(row), self._row))
        except msgspec.ValidationError as error:
            raise TypeError(f"row {key!r}: expected {name}, got {type(row).__name__}: {error}") from error

    def _freeze(self) -> None:
        if self._top:
            self._rows, self._top = self._rows.write(self._top), {}


def _weight(before: str | None, key: str, data: bytes) -> int:
    block = hashlib.blake2b(codec.dumps((before, key, data)), digest_size=32)
    return int.from_bytes(block.digest(), "little")
