"""What several processes count together, in memory that they share: it is there before them, and outlives each."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import mmap
import os
import time
from collections.abc import Generator, Hashable, Mapping
from typing import TypeVar

from .errors import Full

T = TypeVar("T", bound=Hashable)

SLOTS = 4096
"""Names that can be counted at once; a key that asks and has episodes and sessions is three of them."""

_TIME, _FIRST = 1, 2  # What stands in a row: a name's digest, a time, then a number of each process.


class Tally:
    """Numbers by name, to which each process adds its part.

    Who reads and writes holds a lock, which the system takes from a process that dies with it.

    Args:
        count: How many processes there are.
        slots: Most names whose number is not 0.

    Attributes:
        number: Which of them this is.
    """

    def __init__(self, count: int = 1, slots: int = SLOTS) -> None:
        self.number = 0
        self._width = _FIRST + count
        self._slots = slots
        memory = memoryview(mmap.mmap(-1, 8 * slots * self._width))
        self._names, self._numbers = memory.cast("q"), memory.cast("d")
        self._lock = os.memfd_create("tally") if count > 1 else None
        self._known: dict[str, tuple[int, int]] = {}

    def add(self, name: str, number: float) -> float:
        """Add to a name's number; returns what that is now, of all processes.

        Raises:
            Full: Too many other names have one.
        """
        with self._held():
            row = self._row(name)
            self._numbers[row + _FIRST + self.number] += number
            return self._sum(row)

    def sum(self, name: str) -> float:
        """A name's number, of all processes."""
        with self._held():
            row = self._find(name)
            return 0.0 if row is None else self._sum(row)

    def sums(self, names: Mapping[str, T]) -> dict[T, float]:
        """The numbers of many names, by what each stands for."""
        with self._held():
            rows = {digest: place * self._width for place, digest in enumerate(self._names[:: self._width].tolist())}
            found = {meaning: rows.get(_digest(name)) for name, meaning in names.items()}
            return {meaning: 0.0 if row is None else self._sum(row) for meaning, row in found.items()}

    def take(self, *wanted: tuple[str, int]) -> str:
        """Add one to each name, if none of them has its most; else the first that has, and nothing is added.

        Raises:
            Full: As for `add`.
        """
        with self._held():
            cells: list[int] = []
            full = ""
            try:
                for name, most in wanted:
                    row = self._row(name)
                    if self._sum(row) >= most:
                        full = name
                        break
                    cells.append(row + _FIRST + self.number)
                    self._numbers[cells[-1]] += 1
                else:
                    cells.clear()
            finally:
                for cell in cells:
                    self._numbers[cell] -= 1
            return full

    def give(self, *names: str) -> None:
        """Take one from each name's number."""
        for name in names:
            self.add(name, -1)

    def clear(self) -> None:
        """Forget what this process has added, or the one whose place it takes."""
        with self._held():
            for row in range(0, len(self._names), self._width):
                self._numbers[row + _FIRST + self.number] = 0

    def pace(self, name: str, rate: float, *, on_credit: bool = False) -> float:
        """Use one of so many a second, of which twice as many may be saved up; 0, or the seconds until there is one.

        Args:
            name: Whose.
            rate: Per second.
            on_credit: Whether to use it at once, although it is there only then.

        Raises:
            Full: As for `add`.
        """
        burst = max(1.0, 2 * rate)
        now = time.monotonic()
        with self._held():
            at = self._row(name) + _TIME
            full = max(now, self._numbers[at])  # When all will be saved up again.
            wait = max(0.0, full + 1 / rate - now - burst / rate)
            if on_credit or not wait:
                self._numbers[at] = full + 1 / rate
        return wait

    def close(self) -> None:
        """Give back what it takes of the system, once nobody counts any more."""
        if self._lock is not None:
            os.close(self._lock)

    @contextlib.contextmanager
    def _held(self) -> Generator[None]:
        if self._lock is None:
            yield
            return
        fcntl.lockf(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN)

    def _sum(self, row: int) -> float:
        return sum(self._numbers[row + _FIRST : row + self._width])

    def _row(self, name: str) -> int:
        row = self._find(name)
        if row is None:
            row = self._free()
            self._names[row] = _digest(name)
        return row

    def _find(self, name: str) -> int | None:
        row, digest = self._known.get(name, (0, 0))
        if digest and self._names[row] == digest:
            return row
        digest = _digest(name)
        names = self._names[:: self._width].tolist()
        if digest not in names:
            return None
        if len(self._known) >= self._slots:
            self._known.clear()
        row = self._width * names.index(digest)
        self._known[name] = row, digest
        return row

    def _free(self) -> int:
        now = time.monotonic()
        for row in range(0, len(self._names), self._width):
            if self._numbers[row + _TIME] <= now and not any(self._numbers[row + _FIRST : row + self._width]):
                return row
        words = f"this server counts {self._slots} names at once, up to three of each key, and all are taken"
        raise Full(words, retry_after_s=5)


def _digest(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True) or 1
