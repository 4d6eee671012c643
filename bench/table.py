"""`Table` beside the dict of structs that it stands for: fork, read, write and digest with 1,000 and 100,000 rows.

Beside a fork stand `dict.copy`, which shares the rows and so is wrong as soon as one changes, and `copy.deepcopy`;
beside a digest the digest of all rows in canonical bytes; beside reading and writing the plain dict.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator

import msgspec
from _table import Row, cpu, main, row

import quintain as qn
from quintain import codec


class Order(msgspec.Struct):
    """A row of the size that worlds have."""

    id: str
    user: str
    items: list[str]
    status: str = "pending"
    total: float = 0.0


def microseconds(work: Callable[[], object], times: int) -> float:
    """CPU of one call."""

    def all_of_them() -> None:
        for _ in range(times):
            work()

    return cpu(all_of_them, repeats=3) / times * 1e6


def sizes(count: int, times: int) -> Iterator[Row]:
    rows = {f"#W{n}": Order(f"#W{n}", f"user_{n % 97}", [f"item_{n}", f"item_{n + 1}"], total=n) for n in range(count)}
    table = qn.Table(Order, rows)
    key = f"#W{count // 2}"
    changed = msgspec.structs.replace(rows[key], status="cancelled")
    few = max(1, min(times, 100_000 // count))
    at = f"{count:,} rows"

    deep = microseconds(lambda: copy.deepcopy(rows), 1)
    yield row(f"fork, {at}", microseconds(table.fork, times), "us", peer="copy.deepcopy(dict)", peer_value=deep)
    yield row(f"dict.copy, {at}", microseconds(rows.copy, few), "us")

    def fork_and_write() -> None:
        table.fork()[key] = changed

    yield row(f"fork and write one row, {at}", microseconds(fork_and_write, times), "us")
    get = microseconds(lambda: table[key], times)
    yield row(f"read a row, {at}", get, "us", peer="dict", peer_value=microseconds(lambda: rows[key], times))
    values = itertools.cycle([changed, rows[key]])
    put = microseconds(lambda: table.__setitem__(key, next(values)), times)
    plain = microseconds(lambda: rows.__setitem__(key, changed), times)
    yield row(f"write a row, {at}", put, "us", peer="dict", peer_value=plain)
    whole = microseconds(lambda: codec.digest(codec.dumps(rows)), few)
    yield row(f"digest, {at}", microseconds(table.digest, times), "us", peer="digest of a dict", peer_value=whole)


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    for count in (10, 100) if quick else (1_000, 100_000):
        yield from sizes(count, 3 if quick else 2_000)


if __name__ == "__main__":
    main("Table", measure)
