"""`Queue`: rows by key with the earliest one at hand, copied in O(1).

The content is a `Table`: its digest, its dump. The index can always be made again from the rows: a heap of this queue's
own, and sorted runs that forks share, each with a place up to which this fork has read. A fork turns the heap into a
run and merges runs of similar size, as `quintain.layered` does. Removed and moved rows stay in the index until their
time comes, or until they outnumber the rows.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from quintain.layered import stack
from quintain.table import Table


class Due(Protocol):
    """Protocol of a row. Rows are frozen: the queue hands out its cached one."""

    @property
    def due(self) -> float:
        """Returns seconds since epoch; infinity when it waits for something other than time."""
        ...

    @property
    def number(self) -> int:
        """Breaks ties; no two rows of a queue have the same."""
        ...


Row = TypeVar("Row", bound=Due)

_Entry = tuple[float, int, str]
"""Due, number, key."""


class _Run:
    """Sorted entries, shared by forks and never changed, and how far this fork has read."""

    __slots__ = ("entries", "place")

    def __init__(self, entries: list[_Entry], place: int = 0) -> None:
        self.entries, self.place = entries, place

    def size(self) -> int:
        return len(self.entries) - self.place

    def merged(self, newer: _Run) -> _Run:
        return _Run(sorted(self.entries[self.place :] + newer.entries))  # of two sorted lists: a merge


class First(NamedTuple, Generic[Row]):
    """The row that is due first."""

    key: str
    row: Row


class Queue(Generic[Row]):  # noqa: PLW1641 (it changes, so it has no hash)
    """Rows of one type by key; `first()` is the one that is least by (due, number). A Resource.

    Costs: `first`, put and remove O(log n) amortised, `fork` and `digest` O(1).

    Args:
        row: Type of every row, a frozen Struct.
    """

    __slots__ = ("_entries", "_first", "_heap", "_runs", "_table")

    def __init__(self, row: type[Row]) -> None:
        self._stand(Table(row))

    def _stand(self, table: Table[Row]) -> None:
        self._table = table
        self._heap: list[_Entry] = []
        self._runs: tuple[_Run, ...] = ()
        self._entries = 0
        self._first: First[Row] | None = None
        self._index()

    # -- rows

    def __getitem__(self, key: str) -> Row:
        """Returns the row.

        Raises:
            KeyError: The queue does not have the key.
        """
        return self._table[key]

    def __setitem__(self, key: str, row: Row) -> None:
        """Puts a row, or move it to another time. A row that is due at infinity is kept, and never first."""
        self._table[key] = row
        self._changed(key)
        if row.due < math.inf:
            heapq.heappush(self._heap, (row.due, row.number, key))
            self._entries += 1
            self._sweep()

    def __delitem__(self, key: str) -> None:
        """Removes a row.

        Raises:
            KeyError: The queue does not have the key.
        """
        del self._table[key]
        self._changed(key)
        self._sweep()

    def __contains__(self, key: object) -> bool:
        return key in self._table

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[str]:
        """Returns the keys, in the order in which they were put first."""
        return iter(self._table)

    def rows(self) -> list[Row]:
        """Returns all rows, by (due, number). Costs O(n log n)."""
        return sorted(self._table.values(), key=lambda row: (row.due, row.number))

    def first(self) -> First[Row] | None:
        """Returns the row that is due first; None when all wait for something other than time."""
        if self._first is None:
            while (entry := self._least()) is not None:
                row = self._table.get(entry[2])
                if row is not None and (row.due, row.number) == entry[:2]:
                    self._first = First(entry[2], row)
                    break
                self._drop(entry)
        return self._first

    def __eq__(self, other: object) -> bool:
        return self.digest() == other.digest() if isinstance(other, Queue) else NotImplemented

    def __repr__(self) -> str:
        return f"Queue({len(self)} rows)"

    # -- a Resource

    def fork(self) -> Self:
        """Returns an independent twin. Costs O(1), plus O(log n) amortised for each row put since the last fork."""
        self._freeze()
        twin = object.__new__(type(self))
        twin._table, twin._first, twin._entries = self._table.fork(), self._first, self._entries
        twin._heap, twin._runs = [], tuple([_Run(run.entries, run.place) for run in self._runs])
        return twin

    def dump(self) -> bytes:
        """Returns all rows; equal queues give equal bytes."""
        return self._table.dump()

    def weight(self) -> int:
        """Returns the number of bytes of its rows."""
        return len(self.dump())

    def digest(self) -> str:
        """Names the rows and the order in which they were put."""
        return self._table.digest()

    @classmethod
    def load(cls, data: bytes, row: type[Row]) -> Self:
        """Returns the queue that was dumped. `row` is the type of every row, as the constructor had it.

        Raises:
            msgspec.DecodeError: The bytes are torn, or hold rows of another type.
        """
        queue = object.__new__(cls)
        queue._stand(Table[Row].load(data, row))
        return queue

    # -- the index

    def _index(self) -> None:
        """Makes the index from the rows."""
        run = sorted((row.due, row.number, key) for key, row in self._table.items() if row.due < math.inf)
        self._heap, self._runs, self._entries, self._first = [], (_Run(run),), len(run), None

    def _changed(self, key: str) -> None:
        """Forgets the cached first row; if it was this row, drops its entry at the front of the index."""
        if self._first is not None and self._first.key == key:
            self._drop((self._first.row.due, self._first.row.number, key))
        self._first = None

    def _least(self) -> _Entry | None:
        least = self._heap[0] if self._heap else None
        for run in self._runs:
            if run.place < len(run.entries) and (least is None or run.entries[run.place] < least):
                least = run.entries[run.place]
        return least

    def _drop(self, entry: _Entry) -> None:
        self._entries -= 1
        if self._heap and self._heap[0] == entry:
            heapq.heappop(self._heap)
            return
        for run in self._runs:
            if run.place < len(run.entries) and run.entries[run.place] == entry:
                run.place += 1
                return

    def _sweep(self) -> None:
        """Forgets removed rows once they are the larger part, so that setting and cancelling for ever does not grow."""
        if self._entries > 2 * len(self._table) + 64:
            self._index()

    def _freeze(self) -> None:
        """Turns the heap into a run, merging it with runs of similar size."""
        if not self._heap:
            return
        self._runs = stack(_Run(sorted(self._heap)), self._runs, size=_Run.size, merge=_Run.merged)
        self._heap = []
