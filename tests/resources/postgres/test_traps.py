"""Leaks through a server, or its client, from one world, branch or time into another."""

from __future__ import annotations

import gc

import pytest

from quintain.resources import postgres
from quintain.resources.database import ConstraintError, Database, Refused, SQLError
from quintain.state import Shared
from tests.resources.postgres.shop import SEND, Order, status
from tests.resources.postgres.test_server import image


def test_a_prepared_statement_follows_the_schema(db: Database) -> None:
    db.execute("CREATE VIEW seen AS SELECT id FROM orders")
    start = db.snapshot()

    def columns(table: str) -> list[int]:
        return [len(db.execute(f"SELECT * FROM {table} LIMIT 1")[0]) for _ in range(7)]

    assert columns("customers") == [2] * 7
    assert columns("seen") == [1] * 7
    with pytest.raises(KeyError), db.transaction():
        db.execute("ALTER TABLE customers ADD COLUMN age INTEGER")
        assert columns("customers") == [3] * 7
        raise KeyError
    assert columns("customers") == [2] * 7
    db.execute("CREATE OR REPLACE VIEW seen AS SELECT id, status FROM orders")
    assert columns("seen") == [2] * 7
    db.restore(start)
    assert columns("seen") == [1] * 7


def test_tables_made_in_two_branches_are_told_apart(db: Database) -> None:
    left, right = db.fork(), db.fork()
    left.execute("CREATE TABLE aa (v TEXT); INSERT INTO aa VALUES ('left')")
    right.execute("CREATE TABLE aa (w INTEGER); INSERT INTO aa VALUES (1)")
    for _ in range(2):
        assert left.execute("SELECT * FROM aa") == [("left",)]
        assert right.execute("SELECT * FROM aa") == [(1,)]
    left.restore(db.snapshot())
    with pytest.raises(SQLError, match='"aa" does not exist'):
        left.execute("SELECT * FROM aa")


def test_a_snapshot_outlives_its_world(db: Database) -> None:
    twin = db.fork()
    twin.execute(SEND, 1)
    root = twin.snapshot()
    twin.insert(Order(None, 1))
    kept = twin.snapshot()
    twin.execute(SEND, 2)
    twin.insert(Order(None, 1))
    below = image(twin)
    del twin
    gc.collect()
    assert below.standing() is not None
    db.restore(kept)
    assert [status(db, n) for n in (1, 2, 41)] == ["sent", "open", "open"]
    assert db.insert(Order(None, 1)) == 42
    db.restore(root)
    assert db.insert(Order(None, 1)) == 41


def test_sequences_go_back_when_a_tail_is_dropped(db: Database) -> None:
    twin = db.fork()
    twin.execute(SEND, 1)
    root = twin.snapshot()
    assert twin.insert(Order(None, 1), Order(None, 1)) == 42
    del twin
    gc.collect()
    db.restore(root)
    assert db.insert(Order(None, 1)) == 41


def test_deferred_constraints_are_checked_at_the_end(db: Database) -> None:
    sql = "CREATE TABLE late (id INTEGER PRIMARY KEY, up INTEGER REFERENCES late DEFERRABLE INITIALLY DEFERRED)"
    db.execute(sql)
    for keeps in (False, True):
        kept = [db.snapshot()] if keeps else []
        with db.transaction():
            db.execute("INSERT INTO late VALUES (?, ?)", 1 + keeps * 10, 2 + keeps * 10)
            db.execute("INSERT INTO late VALUES (?, NULL)", 2 + keeps * 10)
        before = db.digest()
        with pytest.raises(ConstraintError, match="foreign key"), db.transaction():
            db.execute("INSERT INTO late VALUES (50, 99)")
        with pytest.raises(ConstraintError, match="foreign key"):
            db.execute("INSERT INTO late VALUES (50, 99)")
        assert db.digest() == before
        with db.transaction():
            db.execute("SET CONSTRAINTS ALL DEFERRED")
            db.execute("INSERT INTO orders (id, customer) VALUES (?, 77)", 900 + keeps)
            db.execute("INSERT INTO customers VALUES (77, 'x') ON CONFLICT DO NOTHING")
        with pytest.raises(ConstraintError):
            db.execute("INSERT INTO orders (customer) VALUES (999)")
        assert len(kept) == keeps


def test_a_select_that_writes_is_a_write(db: Database) -> None:
    db.execute(
        "CREATE FUNCTION note(what TEXT) RETURNS TEXT LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO log (what) VALUES (what || ' ' || CURRENT_DATE); RETURN what; END $$"
    )
    twin = db.fork()
    assert twin.execute("SELECT note('a')") == [("a",)]
    assert twin.execute("SELECT what FROM log") == [("a 1970-01-01",)]
    assert db.execute("SELECT count(*) FROM log") == [(0,)]
    before = twin.digest()
    with pytest.raises(SQLError, match="division by zero"):
        twin.execute("SELECT note('b'), nextval('orders_id_seq'), 1 / (length(note('c')) - 1)")
    assert twin.digest() == before
    assert Database.load(twin.dump()).digest() == before


def test_chance_in_a_default_and_in_a_trigger_is_the_worlds(db: Database) -> None:
    db.execute("CREATE TABLE luck (id INTEGER PRIMARY KEY, u UUID DEFAULT gen_random_uuid(), x FLOAT DEFAULT random())")
    shared = Shared()
    db.bind(shared)
    twin = db.fork()
    twin.bind(Shared())
    for one in (db, twin):
        one.execute("INSERT INTO luck VALUES (1), (2)")
    assert shared.rng.counter == 4
    assert db.diff(twin) == []
    rows = db.execute("SELECT u, x FROM luck ORDER BY id")
    assert rows[0] != rows[1]
    assert all(u[14] == "4" and u[19] in "89ab" and 0 <= x < 1 for u, x in rows)
    with pytest.raises(SQLError):
        db.execute("INSERT INTO luck VALUES (3), (3 / 0)")
    assert shared.rng.counter == 4  # what failed drew nothing
    again = Database.load(db.dump())
    later = Shared()
    again.bind(later)
    again.execute("INSERT INTO luck VALUES (3)")
    assert later.rng.counter == 2  # it knows that the schema draws


def test_a_definition_has_no_placeholders(db: Database) -> None:
    with pytest.raises(Refused, match="no placeholders"):
        db.execute("CREATE TABLE made AS SELECT CAST(? AS INTEGER) AS x", 1)


def test_many_snapshots_that_nobody_keeps(db: Database) -> None:
    db.execute(SEND, 1)
    root = db.snapshot()
    for number in range(60):
        db.execute("UPDATE orders SET note = ? WHERE id = 1", str(number))
        db.snapshot()
    assert isinstance(db, postgres.PostgresDatabase)
    tail = db._held.tail
    assert tail is not None
    assert len(tail._positions) == 1
    db.restore(root)
    del root
    db.execute(SEND, 2)
    assert db._held.tail is None


def test_a_world_between_snapshots_moves_no_sequence_of_its_twin(db: Database) -> None:
    """PostgreSQL moves sequences at once, for everybody who looks at the database."""
    db.insert(Order(None, 1))
    twin, third = db.fork(), db.fork()
    before = twin.digest()
    assert db.insert(Order(None, 2)) == 42
    image(twin).digest = ""  # what it was is not to be remembered
    assert twin.digest() == before
    assert [one.insert(Order(None, 3)) for one in (twin, Database.load(third.dump()), third)] == [42] * 3
    assert db.insert(Order(None, 2)) == 43
