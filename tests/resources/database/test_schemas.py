"""Schemas of databases that share a few connections: each reads its own, as plain SQLite does."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quintain import codec
from quintain.resources.database import Database
from quintain.resources.database.bases import EMPTY
from tests.resources.database.plain import outcome
from tests.resources.database.test_histories import Reference, fail, ours

WORLDS = 4


@pytest.fixture
def _no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EMPTY, "idle", [])


@pytest.mark.usefixtures("_no_connections")
def test_new_database_is_empty_when_connection_made_tables_before() -> None:
    digests: set[str] = set()
    for _ in range(3):
        db = Database()
        db.execute("CREATE TABLE t (x)")
        digests.add(db.digest())
    assert len(digests) == 1


@pytest.mark.usefixtures("_no_connections")
def test_new_database_is_empty_when_connection_read_schema_cookie_0_before() -> None:
    db = Database()
    db.execute("CREATE TABLE t (x)")
    *head, pages = codec.loads(db.dump(), list[Any])
    (_, first), *others = pages
    EMPTY.idle.clear()
    loaded = Database.load(codec.dumps([*head, [(0, first[:40] + bytes(4) + first[44:]), *others]]))
    assert loaded.execute("SELECT * FROM t") == []
    Database().execute("CREATE TABLE t (x)")


# -- many sequences, compared with plain SQLite

statements = st.sampled_from(
    [
        "CREATE TABLE t (v)",
        "CREATE TABLE t (v, w DEFAULT 'x')",
        "CREATE TABLE u (v UNIQUE)",
        "DROP TABLE t",
        "DROP TABLE u",
        "INSERT INTO t (v) VALUES (1)",
        "INSERT INTO u VALUES (2)",
        "SELECT * FROM t",
        "SELECT * FROM u",
        "PRAGMA user_version = 3",
    ]
)
several = st.lists(statements, min_size=1, max_size=3)
numbers = st.integers(0, WORLDS - 1)
operations = st.one_of(
    st.tuples(st.just("new")),
    st.tuples(st.just("fork"), numbers),
    st.tuples(st.just("diff"), numbers, numbers),
    st.tuples(st.just("execute"), numbers, several),
    st.tuples(st.just("transact"), numbers, several, st.booleans(), numbers, statements),
)


class Pair:
    """A database, the plain one with the same content, and what made it: texts, and transactions of several."""

    def __init__(self, db: Database, reference: Reference, history: list[str | list[str]]) -> None:
        self.db, self.reference, self.history = db, reference, history

    def run(self, sql: str) -> None:
        assert outcome(ours(self.db), sql, ()) == outcome(self.reference.plain.execute, sql, ())

    def execute(self, script: list[str]) -> None:
        """Runs several statements as one: all or none."""

        def execute(*_: object) -> list[Any]:
            with self.reference.plain:
                self.reference.plain.execute("BEGIN")
                return [row for sql in script for row in self.reference.plain.execute(sql)]

        found = outcome(ours(self.db), text := "; ".join(script), ())
        assert found == outcome(execute, "", ())
        if isinstance(found, list):
            self.history.append(text)

    def transact(self, script: list[str], fails: bool, other: Pair, sql: str) -> None:
        """Runs statements in a transaction, and one of another database before it ends."""
        with contextlib.suppress(KeyError), self.reference.plain, self.db.transaction():
            self.reference.plain.execute("BEGIN")
            for one in script:
                self.run(one)
            if other is not self:
                other.execute([sql])
            if fails:
                fail()
            self.history.append(script)

    def check(self) -> None:
        self.run("SELECT type, name, sql FROM sqlite_schema")
        self.run("PRAGMA user_version")
        for table in ("t", "u"):
            self.run(f"SELECT * FROM {table}")
        again = Database()
        for step in self.history:
            if isinstance(step, str):
                again.execute(step)
                continue
            with again.transaction():
                for sql in step:
                    outcome(ours(again), sql, ())
        assert again.digest() == self.db.digest()


@settings(max_examples=400)
@given(st.lists(operations, max_size=20))
@example(  # the page that holds the version belongs to the schema of the empty file
    [
        ("execute", 0, ["PRAGMA user_version = 3"]),
        ("new",),
        ("execute", 1, ["CREATE TABLE t (v)"]),
        ("execute", 0, ["SELECT * FROM t"]),
        ("new",),
        ("execute", 2, ["CREATE TABLE t (v)"]),
    ]
)
def test_schemas_match_plain_sqlite_on_shared_connections(sequence: list[tuple[Any, ...]]) -> None:
    EMPTY.idle.clear()
    pairs = [Pair(Database(), Reference(""), [])]
    for kind, *details in sequence:
        number, *values = details or [0]
        pair = pairs[number % len(pairs)]
        match kind:
            case "new":
                pairs.append(Pair(Database(), Reference(""), []))
            case "fork":
                pairs.append(Pair(pair.db.fork(), pair.reference.copy(), list(pair.history)))
            case "diff":
                pair.db.diff(pairs[values[0] % len(pairs)].db)
            case "execute":
                pair.execute(*values)
            case _:
                script, fails, other, sql = values
                pair.transact(script, fails, pairs[other % len(pairs)], sql)
        for dropped in pairs[:-WORLDS]:
            dropped.reference.plain.close()
        del pairs[:-WORLDS]
    for pair in pairs:
        pair.check()
        pair.reference.plain.close()
