"""Histories that Hypothesis looks for, over several forks, beside a plain SQLite database for each.

After every step all of the content is compared. Many more histories, compared at the end: `test_many_histories.py`.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quintain.resources.database import Database, DatabaseSnapshot
from tests.resources.database.histories import applied, content, keyed
from tests.resources.database.plain import outcome

SCHEMA = """
CREATE TABLE item (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, size REAL, data BLOB);
CREATE TABLE part (item INTEGER REFERENCES item ON DELETE CASCADE, place TEXT, PRIMARY KEY (item, place)) WITHOUT ROWID;
CREATE TABLE log (what TEXT);
CREATE INDEX by_size ON item (size);
CREATE TRIGGER gone AFTER DELETE ON item BEGIN INSERT INTO log VALUES ('gone ' || old.name); END;
CREATE VIRTUAL TABLE words USING fts5(body);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
INSERT INTO item (name, size, data) SELECT 'item ' || i, i * 0.5, zeroblob(i * 7) FROM n;
INSERT INTO part SELECT id, 'left' FROM item;
INSERT INTO words SELECT name || ' of many' FROM item;
"""
NUMBERS = st.integers(1, 310)
NAMES = st.sampled_from(["a", "b", "item 3", "item 299", "ß"])
SIZES = st.integers(0, 3000)


def statements() -> st.SearchStrategy[tuple[str, tuple[Any, ...]]]:
    """SQL and values; some break a constraint."""
    one = st.tuples
    return st.one_of(
        one(st.just("INSERT INTO item (name, data) VALUES (?, zeroblob(?))"), one(NAMES, SIZES)),
        one(st.just("UPDATE item SET data = zeroblob(?) WHERE id = ?"), one(SIZES, NUMBERS)),
        one(st.just("UPDATE item SET data = replace(hex(data), '00', ?) WHERE id = ?"), one(NAMES, NUMBERS)),
        one(st.just("UPDATE item SET size = ? WHERE id BETWEEN ? AND ?"), one(SIZES, NUMBERS, NUMBERS)),
        one(st.just("UPDATE item SET id = ? WHERE id = ?"), one(NUMBERS, NUMBERS)),
        one(st.just("DELETE FROM item WHERE id BETWEEN ? AND ?"), one(NUMBERS, NUMBERS)),
        one(st.just("INSERT INTO part VALUES (?, ?)"), one(NUMBERS, NAMES)),
        one(st.just("DELETE FROM part WHERE item < ?"), one(NUMBERS)),
        one(st.just("INSERT INTO words VALUES (?)"), one(NAMES)),
        one(st.just("DELETE FROM words WHERE words MATCH ?"), one(st.just("many"))),
        one(st.just("DELETE FROM log"), one()),
        one(st.sampled_from([f"CREATE TABLE {n} (v, w DEFAULT 'x' || '{n}')" for n in ("aa", "bb")]), one()),
        one(st.sampled_from(["INSERT INTO aa (v) VALUES (1)", "INSERT INTO bb (v) VALUES (1.0)"]), one()),
        one(st.sampled_from(["DROP TABLE aa", "DROP TABLE part", "ALTER TABLE log ADD COLUMN more TEXT"]), one()),
        one(st.just("SELECT count(*), sum(length(data)) FROM item WHERE size > ?"), one(SIZES)),
    )


def fail() -> None:
    raise KeyError


class Reference:
    """The same with nothing clever: a connection to a database in memory for each fork."""

    def __init__(self, script: str) -> None:
        self.plain = sqlite3.connect(":memory:", isolation_level=None)
        self.plain.executescript(script)
        self.plain.execute("PRAGMA foreign_keys = ON")

    def copy(self) -> Reference:
        twin = Reference("")
        self.plain.backup(twin.plain)
        return twin


def ours(db: Database) -> Any:
    return lambda sql, values=(): db.execute(sql, *values)


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.worlds: list[tuple[Database, Reference]] = []
        self.histories: list[list[Any]] = []
        self.kept: list[tuple[DatabaseSnapshot, Reference, list[Any]]] = []

    @initialize()
    def begin(self) -> None:
        self.worlds = [(Database(SCHEMA), Reference(SCHEMA))]
        self.histories = [[]]

    def pick(self, data: st.DataObject) -> int:
        return data.draw(st.integers(0, len(self.worlds) - 1), label="world")

    @rule(data=st.data(), statement=statements())
    def run(self, data: st.DataObject, statement: tuple[str, tuple[Any, ...]]) -> None:
        number = self.pick(data)
        db, reference = self.worlds[number]
        assert outcome(ours(db), *statement) == outcome(reference.plain.execute, *statement)
        self.histories[number].append(statement)

    @rule(data=st.data(), several=st.lists(statements(), max_size=4), fails=st.booleans())
    def transact(self, data: st.DataObject, several: list[Any], fails: bool) -> None:
        number = self.pick(data)
        db, reference = self.worlds[number]
        reference.plain.execute("BEGIN")
        try:
            with db.transaction():
                for statement in several:
                    assert outcome(ours(db), *statement) == outcome(reference.plain.execute, *statement)
                if fails:
                    fail()
        except KeyError:
            reference.plain.execute("ROLLBACK")
        else:
            reference.plain.execute("COMMIT")
            self.histories[number].append(several)

    @precondition(lambda self: len(self.worlds) < 5)
    @rule(data=st.data(), through=st.sampled_from(["fork", "dump"]))
    def fork(self, data: st.DataObject, through: str) -> None:
        number = self.pick(data)
        db, reference = self.worlds[number]
        twin = db.fork() if through == "fork" else Database.load(db.dump())
        assert twin.digest() == db.digest()
        self.worlds.append((twin, reference.copy()))
        self.histories.append(list(self.histories[number]))

    @rule(data=st.data())
    def snapshot(self, data: st.DataObject) -> None:
        number = self.pick(data)
        db, reference = self.worlds[number]
        self.kept.append((db.snapshot(), reference.copy(), list(self.histories[number])))

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        number = self.pick(data)
        snapshot, reference, history = data.draw(st.sampled_from(self.kept), label="snapshot")
        self.worlds[number][0].restore(snapshot)
        self.worlds[number] = (self.worlds[number][0], reference.copy())
        self.histories[number] = list(history)

    @rule(data=st.data())
    def differ(self, data: st.DataObject) -> None:
        one, other = self.worlds[self.pick(data)][0], self.worlds[self.pick(data)][0]
        before, after = keyed(ours(one)), keyed(ours(other))
        found = applied(before, one.diff(other))
        assert {k: repr(v) for k, v in found.items()} == {k: repr(v) for k, v in after.items()}
        if repr(sorted(before.items(), key=repr)) == repr(sorted(after.items(), key=repr)):
            assert one.diff(other) == []

    @rule(data=st.data())
    def export(self, data: st.DataObject) -> None:
        db, reference = self.worlds[self.pick(data)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "out.db"
            db.export(path)
            found = sqlite3.connect(path)
            assert found.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert content(found.execute) == content(reference.plain.execute)
            found.close()

    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        """The same statements in the same transactions give the same bytes, whatever was read or undone between."""
        number = self.pick(data)
        again = Database(SCHEMA)
        for step in self.histories[number]:
            if isinstance(step, tuple):
                outcome(ours(again), *step)
                continue
            with again.transaction():
                for statement in step:
                    outcome(ours(again), *statement)
        assert again.digest() == self.worlds[number][0].digest()
        assert again.logical_digest() == self.worlds[number][0].logical_digest()

    @invariant()
    def same(self) -> None:
        for db, reference in self.worlds:
            assert content(ours(db)) == content(reference.plain.execute)
            assert db.execute("PRAGMA integrity_check") == [("ok",)]

    def teardown(self) -> None:
        for _, reference in self.worlds:
            reference.plain.close()
        for _, reference, _ in self.kept:
            reference.plain.close()


class ManyHistories(Histories):
    """The same, for as long as there is time."""


def of(examples: int) -> settings:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, stateful_step_count=15, deadline=None, suppress_health_check=slow)


TestHistories = Histories.TestCase
TestHistories.settings = of(25)
TestManyHistories = pytest.mark.slow(ManyHistories.TestCase)
TestManyHistories.settings = of(300)
