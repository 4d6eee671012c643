"""Cost of a `Database` of 164 tables at 1, 10 and 100 MB, and of other copies of it.

"And read" includes the first read afterwards, for a switch drops the connection's page cache. Other ways to have one
more world of the same content, each with a read: opening a serialized image, SQLite's backup API, a copied file, the
SQL text run anew, `copy.deepcopy` of the rows as dicts. Nested savepoints make none, but go back to one of them;
`snapshot` and `restore` go anywhere.
"""

from __future__ import annotations

import copy
import functools
import gc
import hashlib
import itertools
import os
import sqlite3
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
from _table import Row, cpu, main, note, row

from quintain.resources.database import Database
from quintain.state import Shared

TABLES = 164
ROW = 115  # bytes of a row with its place in two indexes, about


def schema() -> str:
    """Each table refers to the one before it."""
    return "\n".join(
        f"CREATE TABLE t{n} (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES t{max(n - 1, 0)}, "
        f"name TEXT NOT NULL, amount REAL, note TEXT);\n"
        f"CREATE INDEX t{n}_parent ON t{n} (parent); CREATE INDEX t{n}_name ON t{n} (name);"
        for n in range(TABLES)
    )


def fill(megabytes: int) -> str:
    """SQL that fills the tables."""
    count = max(2, megabytes * 1_000_000 // ROW // TABLES)
    children = max(1, count // 10)
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
    return "PRAGMA foreign_keys=OFF; BEGIN;" + "".join(
        f"{numbers} INSERT INTO t{n} SELECT i, 1 + i * 7919 % {children}, 'name ' || (i * 31 % 1000), i * 0.5, "
        f"'a note of some length' FROM n;"
        for n in range(TABLES)
    ) + "COMMIT;"  # fmt: skip


def microseconds(work: Callable[[], object], times: int) -> float:
    """CPU of one call."""

    def all_of_them() -> None:
        for _ in range(times):
            work()

    return cpu(all_of_them, repeats=5) / times * 1e6


def database(megabytes: int, folder: Path) -> Database:
    seed = folder / f"{megabytes}.sql"
    seed.write_text(fill(megabytes))
    db = Database(schema(), seed=seed)
    db.bind(Shared())
    return db


READ = "SELECT name, amount FROM t3 WHERE id = ?"
LIST = "SELECT id, name FROM t3 WHERE parent = ? ORDER BY id LIMIT 10"
JOIN = "SELECT a.name, b.name FROM t4 a JOIN t3 b ON b.id = a.parent WHERE a.id = ?"
TURNS = 600
WRITE = "UPDATE t3 SET amount = ? WHERE id = ?"


VALUES = itertools.count()


def written(db: Database, count: int, *, tables: int = TABLES) -> Database:
    """A fork with that many writes, spread over the tables; no two forks have the same."""
    fork = db.fork()
    with fork.transaction():
        for number in range(count):
            fork.execute(f"UPDATE t{number % tables} SET amount = ? WHERE id = ?", next(VALUES), 1 + number % 97)
    return fork


def others(db: Database, folder: Path, *, at: str, times: int, is_small: bool) -> Iterator[Row]:
    """Other strategies; beside each of them what `Database` takes for the same."""
    path = folder / "plain.db"
    db.export(path)
    image = path.read_bytes()
    source = sqlite3.connect(path, isolation_level=None)

    def used(one: sqlite3.Connection) -> None:
        one.execute(READ, (5,)).fetchall()
        one.close()

    def deserialize() -> None:
        one = sqlite3.connect(":memory:")
        one.deserialize(image)
        used(one)

    def backup() -> None:
        one = sqlite3.connect(":memory:")
        source.backup(one)
        used(one)

    def copied() -> None:
        target = folder / "copy.db"
        target.write_bytes(image)
        used(sqlite3.connect(target))

    def seeded() -> None:
        one = sqlite3.connect(":memory:")
        one.executescript(text)
        used(one)

    one = written(db, 1)
    forks = itertools.cycle([one, written(db, 2)])
    forked = microseconds(lambda: next(forks).fork().execute(READ, 5), 10 * times)
    strategies = [("deserialize", deserialize), ("backup API", backup), ("file copy", copied)]
    if is_small:
        text = "\n".join(source.iterdump())
        rows = {n: {r[0]: list(r) for r in db.execute(f"SELECT * FROM t{n}")} for n in range(TABLES)}
        strategies += [("SQL text run anew", seeded), ("copy.deepcopy of dicts", lambda: copy.deepcopy(rows))]
    for name, work in strategies:
        value = microseconds(work, times if work not in {seeded, strategies[-1][1]} else 1)
        yield row(f"one more world by {name}, {at}", value, "us", peer="Database: fork", peer_value=forked)
    yield undoing(db, source, at=at, times=times)
    source.close()


def undoing(db: Database, source: sqlite3.Connection, *, at: str, times: int) -> Row:
    """A write that is taken back, by a savepoint of the plain connection and by a snapshot."""
    one = db.fork()
    start = db.snapshot()

    def undone() -> None:
        source.execute("SAVEPOINT inner")
        source.execute(WRITE, (next(VALUES), 5))
        source.execute("ROLLBACK TO inner")
        source.execute(READ, (5,)).fetchall()

    def restored() -> None:
        one.restore(start)
        one.execute(WRITE, next(VALUES), 5)
        one.restore(start)
        one.execute(READ, 5)

    source.execute("SAVEPOINT outer")
    value = microseconds(undone, 10 * times)
    ours = microseconds(restored, 10 * times)
    return row(f"a write undone by nested SAVEPOINT, {at}", value, "us", peer="Database: restore", peer_value=ours)


def copies(db: Database, at: str, *, times: int, is_goal: bool) -> Iterator[Row]:
    """Create, fork, snapshot, restore, reset."""

    def read(one: Database) -> object:
        return one.execute(READ, 5)

    changed = written(db, 20)
    snapshots = [changed.snapshot(), written(changed, 10).snapshot()]
    following = itertools.cycle(snapshots)

    def restore() -> None:
        changed.restore(next(following))

    def restore_and_read() -> None:
        changed.restore(next(following))
        changed.execute(READ, 5)

    image = changed.dump()
    yield row(f"create from a dump with 20 writes, {at}", microseconds(lambda: Database.load(image), times), "us")
    yield row(f"fork, {at}", microseconds(db.fork, times), "us")
    forks = itertools.cycle([written(db, 1), written(db, 2)])
    goal = 15 if is_goal else None
    yield row(
        f"fork a changed one and read, {at}", microseconds(lambda: read(next(forks).fork()), times), "us", goal=goal
    )
    yield row(f"snapshot, {at}", microseconds(db.snapshot, times), "us", goal=3 if is_goal else None)
    yield row(f"restore, {at}", microseconds(restore, times), "us")
    yield row(f"restore and read, {at}", microseconds(restore_and_read, times), "us", goal=20 if is_goal else None)
    many = written(db, 1000).snapshot()
    start = db.snapshot()

    def reset() -> None:
        changed.restore(many)
        changed.restore(start)
        changed.execute(READ, 5)

    yield row(
        f"reset after 1,000 writes and read, {at}", microseconds(reset, times), "us", goal=300 if is_goal else None
    )


def statements(db: Database, at: str, *, times: int, is_goal: bool) -> Iterator[Row]:
    """Reads, writes, and a tool's call."""
    one = written(db, 20)
    count = VALUES
    yield row(f"point read, {at}", microseconds(lambda: one.execute(READ, 5), times), "us", goal=8 if is_goal else None)
    yield row(f"list, {at}", microseconds(lambda: one.execute(LIST, 5), times), "us")
    yield row(f"join, {at}", microseconds(lambda: one.execute(JOIN, 5), times), "us")
    yield row(f"write, {at}", microseconds(lambda: one.execute(WRITE, next(count), 5), times), "us")
    worlds = itertools.cycle([written(db, 3), written(db, 4)])

    def call() -> Database:
        world = next(worlds)
        with world.transaction():
            world.execute(READ, 5)
            world.execute(LIST, 5)
            world.execute(JOIN, 5)
            world.execute(WRITE, next(count), 5)
        return world

    goal = 120 if is_goal else None
    yield row(f"tool call: switch, transaction, 3 reads, 1 write, {at}", microseconds(call, times), "us", goal=goal)

    def turn() -> None:
        world = call()
        world.snapshot()
        world.digest()

    goal = 125 if is_goal else None
    yield row(f"the same, with a snapshot and a digest, {at}", microseconds(turn, times), "us", goal=goal)

    def episode() -> None:
        world = db.fork()
        kept: list[object] = []
        for number in range(TURNS):
            with world.transaction():
                world.execute(READ, 5)
                world.execute(LIST, 5)
                world.execute(JOIN, 5)
                world.execute(f"UPDATE t{number % 20} SET amount = ? WHERE id = ?", next(count), 1 + number % 97)
            kept += [world.snapshot(), world.digest()]

    goal = 1e6 / 8_000 if is_goal else None
    a_turn = microseconds(episode, max(1, times // 200)) / TURNS
    yield row(f"a turn of {TURNS}, all snapshots and digests kept, {at}", a_turn, "us", goal=goal)
    twin = one.fork()
    with twin.transaction():
        for number in range(10):
            twin.execute(f"UPDATE t{number} SET amount = 7.5 WHERE id = 3")
    twin.diff(one)
    yield row(f"row diff of 10 changes, {at}", microseconds(lambda: one.diff(twin), max(1, times // 20)), "us")


def digests(db: Database, at: str, *, times: int, is_goal: bool) -> Iterator[Row]:
    """A digest alone; what is written before it is not counted."""
    for count, tables in ((1, 1), (10, 1), (10, 10), (1000, TABLES)):
        best = float("inf")
        for _ in range(max(2, min(times, 100))):
            forks = [written(db, count, tables=tables) for _ in range(10)]
            best = min(best, cpu(functools.partial(_digest_all, forks), repeats=1) / len(forks))
        name = f"digest after {count:,} writes in {tables} tables, {at}"
        limit = microseconds(functools.partial(_hash_all, [os.urandom(1024) for _ in range(tables)]), times)
        yield row(
            name, best * 1e6, "us", goal=10 if is_goal and count == 10 else None,
            peer="SHA-256 of as many pages", peer_value=limit,
        )  # fmt: skip
    yield row(f"logical digest, the first on its base, {at}", cpu(db.logical_digest, repeats=1) * 1e6, "us")
    fork = written(db, 10, tables=10)
    yield row(f"logical digest after 10 writes, {at}", cpu(fork.logical_digest, repeats=1) * 1e6, "us")


def _digest_all(databases: list[Database]) -> None:
    for one in databases:
        one.digest()


def _hash_all(pages: list[bytes]) -> None:
    for page in pages:
        hashlib.sha256(page).digest()


def memory(db: Database, *, count: int) -> Iterator[Row]:
    process = psutil.Process()
    tracemalloc.start()
    idle = [db.fork() for _ in range(count)]
    yield row("an idle fork", tracemalloc.get_traced_memory()[0] / len(idle) / 1000, "kB")
    tracemalloc.stop()
    del idle
    gc.collect()
    before = process.memory_info().rss
    live = [written(db, 20) for _ in range(count)]
    used = (process.memory_info().rss - before) / 1e6
    yield row(f"{len(live):,} live forks with 20 writes each", used, "MB", goal=1000 if count == 10_000 else None)


def ratios(rows: list[Row]) -> Iterator[Row]:
    """Yields, for each row with a goal, its ratio between sizes."""
    values = {one["name"]: one["value"] for one in rows}
    for one in rows:
        name, comma, size = one["name"].rpartition(", ")
        large = values.get(f"{name}{comma}100 MB")
        if one["goal"] is not None and size == "10 MB" and large:
            yield row(f"{name}, 100 MB over 10 MB", large / one["value"], "x", goal=1.5)


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    times = 3 if quick else 1000
    rows: list[Row] = []
    for one in _measured(quick=quick, times=times):
        rows.append(one)
        yield one
    yield from ratios(rows)
    note(f"load of the machine, over 1, 5 and 15 minutes: {os.getloadavg()}")


def _measured(*, quick: bool, times: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["QUINTAIN_CACHE"] = str(folder)
        for megabytes in (1,) if quick else (1, 10, 100):
            db = database(megabytes, folder)
            at = f"{megabytes} MB"
            is_goal = megabytes == 10
            yield from copies(db, at, times=times, is_goal=is_goal)
            yield from statements(db, at, times=times, is_goal=is_goal)
            yield from digests(db, at, times=times, is_goal=is_goal)
            yield from others(db, folder, at=at, times=2 if quick else 5, is_small=megabytes < 100)
            if megabytes == 10 or quick:
                yield from memory(db, count=20 if quick else 10_000)


if __name__ == "__main__":
    main("Database", measure)
