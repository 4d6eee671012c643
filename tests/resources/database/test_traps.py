"""The traps of SQLite below a connection that lives on, and what is refused because of them."""

from __future__ import annotations

import apsw
import pytest

from quintain.resources.database import Database
from quintain.resources.database.connection import Refused
from tests.resources.database.shop import SEND

# -- the traps of SQLite below a connection that lives on


def test_a_statement_is_prepared_once_for_all_values(db: Database) -> None:
    sql = "SELECT count(*) FROM orders WHERE customer = ? AND status > ?"
    with db.transaction():
        unit = db.unit
        assert unit is not None
        db.execute(sql, 0, "")  # A connection from the pool may have known it with another world's schema.
        prepared: list[dict[str, int]] = []
        unit.sqlite.trace_v2(apsw.SQLITE_TRACE_PROFILE, lambda event: prepared.append(event["stmt_status"]))
        for number in range(5):
            db.execute(sql, number, "a" * number)
        unit.sqlite.trace_v2(0, None)
    assert [status["SQLITE_STMTSTATUS_REPREPARE"] for status in prepared] == [0] * 5


def test_tables_made_in_two_branches_are_told_apart(db: Database) -> None:
    left, right = db.fork(), db.fork()
    left.execute("CREATE TABLE aa (v); INSERT INTO aa VALUES ('left')")
    right.execute("CREATE TABLE bb (v, w); INSERT INTO bb VALUES ('right', 1)")
    for _ in range(2):
        assert left.execute("SELECT * FROM aa") == [("left",)]
        assert right.execute("SELECT * FROM bb") == [("right", 1)]
        with pytest.raises(apsw.SQLError, match="no such table: bb"):
            left.execute("SELECT * FROM bb")
        with pytest.raises(apsw.SQLError, match="no such table: aa"):
            right.execute("SELECT * FROM aa")
    again = Database.load(right.dump())
    assert again.execute("SELECT w FROM bb") == [(1,)]
    assert left.execute("SELECT * FROM aa") == [("left",)]
    left.restore(db.snapshot())
    with pytest.raises(apsw.SQLError, match="no such table: aa"):
        left.execute("SELECT * FROM aa")


def test_no_statement_is_refused_for_what_another_branch_has(db: Database) -> None:
    for sql in ("CREATE TABLE aa (v)", "ALTER TABLE log ADD COLUMN more", "CREATE INDEX ii ON log (what)"):
        for one in (db.fork(), db.fork(), Database.load(db.dump())):
            one.execute(sql)
            with pytest.raises(apsw.SQLError):
                one.execute(f"{sql}; {sql}")
    with pytest.raises(apsw.SQLError, match="already exists"):
        db.execute("CREATE TABLE aa (v); CREATE TABLE aa (v)")
    db.execute("CREATE TABLE aa (v)")


def test_tables_made_in_a_transaction_that_fails_are_gone(db: Database) -> None:
    twin = db.fork()
    with pytest.raises(KeyError), db.transaction():
        db.execute("CREATE TABLE aa (v)")
        db.execute("INSERT INTO aa VALUES (1)")
        raise KeyError
    with pytest.raises(apsw.SQLError, match="no such table"):
        db.execute("SELECT * FROM aa")
    with pytest.raises(apsw.SQLError):
        db.execute("CREATE TABLE aa (v); CREATE TABLE aa (v)")
    with pytest.raises(apsw.SQLError, match="no such table"):
        db.execute("SELECT * FROM aa")
    db.execute("CREATE TABLE aa (w)")
    assert db.execute("SELECT w FROM aa") == []
    assert twin.digest() != db.digest()


def test_a_live_connection_sees_what_was_restored(db: Database) -> None:
    before = db.snapshot()
    for number in range(5):
        db.execute("UPDATE orders SET note = ? WHERE id = 1", str(number))
        db.restore(before)
        assert db.one(int, "SELECT count(*) FROM orders WHERE note IS NOT NULL") == 0
        assert db.execute("SELECT count(*) FROM notes WHERE notes MATCH 'number'") == [(400,)]
        db.execute("DELETE FROM notes WHERE rowid < 10")
        assert db.execute("SELECT count(*) FROM notes WHERE notes MATCH 'number'") == [(391,)]
        db.restore(before)


def test_no_extension_is_loaded_and_none_crashes(db: Database) -> None:
    with pytest.raises(apsw.SQLError):
        db.execute("SELECT load_extension('/lib/x.so')")
    with db.transaction():
        assert db.unit is not None
        db.unit.sqlite.enable_load_extension(True)
        with pytest.raises(apsw.ExtensionLoadingError):
            db.unit.sqlite.load_extension("/lib/x.so")
        db.unit.sqlite.enable_load_extension(False)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("BEGIN", "db.transaction"),
        ("COMMIT", "db.transaction"),
        ("SAVEPOINT a", "db.transaction"),
        ("ATTACH ':memory:' AS other", "one file"),
        ("VACUUM", "one file"),
        ("VACUUM INTO '/tmp/x'", "one file"),
        ("CREATE TEMP TABLE t (x)", "stay in the connection"),
        ("CREATE TEMP VIEW t AS SELECT 1", "stay in the connection"),
        ("PRAGMA foreign_keys = OFF", "change the connection"),
        ("PRAGMA journal_mode = WAL", "change the connection"),
        ("PRAGMA writable_schema = ON", "change the connection"),
        ("ANALYZE", "statistics"),
        ("SELECT 1; PRAGMA cache_size = 1", "change the connection"),
    ],
)
def test_statements_beyond_the_database_are_refused(db: Database, sql: str, words: str) -> None:
    before = db.digest()
    for _ in range(2):
        with pytest.raises(Refused, match=words):
            db.execute(sql)
        with pytest.raises((Refused, apsw.SQLError), match=f"{words}|cannot VACUUM"), db.transaction():
            db.execute(SEND, 1)
            db.execute(sql)
    assert db.digest() == before


def test_transaction_refuses_to_be_forked_or_restored(db: Database) -> None:
    snapshot = db.snapshot()
    with db.transaction():
        for verb in (
            db.fork,
            db.dump,
            db.digest,
            db.snapshot,
            db.logical_digest,
            lambda: db.restore(snapshot),
            lambda: db.diff(db),
            lambda: db.export("x"),
            lambda: db.ask("SELECT 1"),
        ):
            with pytest.raises(Refused, match="in the middle of a transaction"):
                verb()
    db.fork()


def test_counters_of_a_connection_begin_anew(db: Database) -> None:
    counts = "SELECT changes(), total_changes(), last_insert_rowid()"
    db.execute("INSERT INTO customers VALUES (99, 'x')")
    assert db.execute(counts) == [(0, 0, 0)]
    with db.transaction():
        db.execute("INSERT INTO customers VALUES (100, 'x'), (101, 'y')")
        assert db.execute(counts) == [(2, 2, 101)]
