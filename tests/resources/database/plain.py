"""Reference for a world on a database: plain SQLite in memory, whole copies, a list of timers."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import apsw

from quintain.state import Rng

SCHEMA = """
CREATE TABLE item (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, size REAL, data BLOB);
CREATE TABLE part (item INTEGER REFERENCES item ON DELETE CASCADE, place TEXT, PRIMARY KEY (item, place)) WITHOUT ROWID;
CREATE TABLE log (at TEXT, luck INTEGER, what TEXT CHECK (what <> 'bad'));
CREATE INDEX by_size ON item (size);
CREATE TRIGGER gone AFTER DELETE ON item BEGIN INSERT INTO log (what) VALUES ('gone ' || old.name); END;
CREATE VIRTUAL TABLE words USING fts5(body);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
INSERT INTO item (name, size, data) SELECT 'item ' || i, i * 0.5, zeroblob(i * 9) FROM n;
INSERT INTO part SELECT id, 'left' FROM item;
INSERT INTO part SELECT id, 'on the right' FROM item;
INSERT INTO words SELECT name || ' of many' FROM item WHERE id < 20;
"""
NOTE = "INSERT INTO log (at, luck, what) VALUES (datetime('now'), random(), ?)"

Statement = tuple[str, tuple[Any, ...]]
Execute = Callable[..., Iterable[Any]]


def outcome(execute: Execute, sql: str, values: tuple[Any, ...]) -> Any:
    try:
        return sorted(map(repr, execute(sql, values)))
    except (apsw.ConstraintError, sqlite3.IntegrityError):
        return "constraint"
    except (apsw.SQLError, sqlite3.OperationalError):
        return "wrong"


class Plain:
    """Reference for one world."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.rng = Rng()
        self.now = 0.0
        self.timers: list[tuple[float, int, str, str]] = []
        self.count = 0
        connection.create_function("random", 0, lambda: self.rng.bits() - 2**63)
        connection.create_function("unixepoch", 0, lambda: int(self.now))

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        for name in ("datetime", "date"):
            sql = sql.replace(f"{name}('now')", f"{name}({self.now!r}, 'unixepoch')")
        return self.connection.execute(sql, values).fetchall()

    def fork(self, _: str) -> Plain:
        twin = Plain(self.snapshot())
        twin.rng = Rng(self.rng.key, self.rng.counter)
        twin.now, twin.timers, twin.count = self.now, list(self.timers), self.count
        return twin

    def snapshot(self) -> sqlite3.Connection:
        return pool().copy(self.connection)

    def restore(self, snapshot: sqlite3.Connection) -> None:
        snapshot.backup(self.connection)

    def transact(self, several: Sequence[Statement], end: str, level: str = "a") -> list[Any]:
        found: list[Any] = []
        self.execute(f"SAVEPOINT {level}")
        if end == "fails within":
            found.append(self.transact(several, "fails", "b"))
        found += [outcome(self.execute, *one) for one in several]
        if end == "fails":
            self.execute(f"ROLLBACK TO {level}")
            found.append("undone")
        self.execute(f"RELEASE {level}")
        return found

    def timer(self, seconds: float, method: str, what: str = "") -> int:
        self.count += 1
        self.timers.append((self.now + seconds, self.count, method, what or f"{method} {seconds}"))
        return self.count

    def cancel(self, number: int) -> bool:
        before = len(self.timers)
        self.timers = [timer for timer in self.timers if timer[1] != number]
        return len(self.timers) < before

    def advance(self, seconds: float) -> None:
        goal = self.now + seconds
        while self.timers and min(self.timers)[0] <= goal:
            timer = min(self.timers)
            self.timers.remove(timer)
            self.now = timer[0]
            self.fire(timer[2], timer[3])
        self.now = goal

    def fire(self, method: str, what: str) -> None:
        note = functools.partial(self.execute, NOTE)
        if method == "clear" and not self.execute("SELECT 1 FROM sqlite_schema WHERE name = 'part'"):
            self.rng.bits()  # the note that was undone
            note([f"no {what}"])
            return
        note([what])
        if method == "clear":
            self.execute("DELETE FROM part WHERE place = 'left'")
        elif method == "twice":
            self.timer(3, "note", f"{what} again")


class Pool:
    """Connections for the reference, used again by the next history, which overwrites what they hold."""

    def __init__(self) -> None:
        self._all: list[sqlite3.Connection] = []
        self._used = 0
        self._first = self._open()
        self._first.executescript(SCHEMA)

    def begin(self) -> sqlite3.Connection:
        """Take all back; one that holds what every history begins with."""
        self._used = 0
        return self.copy(self._first)

    def copy(self, of: sqlite3.Connection) -> sqlite3.Connection:
        if self._used == len(self._all):
            self._all.append(self._open())
        found = self._all[self._used]
        self._used += 1
        found.rollback()  # what a history that failed has left
        of.backup(found)
        return found

    @staticmethod
    def _open() -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        return connection


pool = functools.cache(Pool)
