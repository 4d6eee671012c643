"""Row by row, what differs."""

from __future__ import annotations

from typing import Any

import pytest

from quintain.resources.database import Database, RowChange, trees
from tests.resources.database.shop import SEND, Customer

# -- differences


def test_a_difference_names_rows_and_columns(db: Database) -> None:
    twin = db.fork()
    twin.execute(SEND, 7)
    twin.execute("DELETE FROM orders WHERE id = 8")
    twin.execute("INSERT INTO notes (rowid, body) VALUES (999, 'new')")
    found = db.diff(twin)
    assert [(one.table, one.key) for one in found] == [
        ("log", (1,)),
        ("notes", (999,)),
        ("orders", (7,)),
        ("orders", (8,)),
    ]
    assert found[2].before is not None
    assert found[2].before["status"] == "open"
    assert found[2].after == {**found[2].before, "status": "sent"}
    assert found[3].after is None
    back = twin.diff(db)
    assert back == [RowChange(one.table, one.key, one.after, one.before) for one in found]
    assert db.diff(db) == []
    assert db.logical_digest() != twin.logical_digest()


def test_a_difference_across_bases_and_schemas(db: Database) -> None:
    twin = db.fork()
    twin.execute("CREATE TABLE more (x); INSERT INTO more VALUES (1), (NULL); DROP TABLE log")
    assert [(one.table, one.key) for one in db.diff(twin)] == [("more", (1,)), ("more", (2,))]
    other = Database(Customer, "INSERT INTO customers VALUES (1, 'Customer 1'), (2, 'Else')")
    assert {one.table for one in other.diff(db)} == {"customers", "orders", "notes"}
    names = [one.key for one in other.diff(db) if one.table == "customers"]
    assert names == [(n,) for n in range(2, 21)]


def test_a_difference_looks_at_changed_pages_only(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = db.fork()
    twin.execute(SEND, 7)
    db.diff(twin)
    seen: list[set[int]] = []
    honest = trees.touched

    def touched(*args: Any, **names: Any) -> trees.Touched:
        seen.append((found := honest(*args, **names)).rowids)
        return found

    monkeypatch.setattr(trees, "touched", touched)
    assert len(db.diff(twin)) == 2
    assert sum(map(len, seen)) < 80


def test_one_and_one_point_zero_differ() -> None:
    db = Database("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    twin = db.fork()
    twin.execute("UPDATE t SET x = 1.0")
    assert [one.after for one in db.diff(twin)] == [{"x": 1.0}]


def test_rows_that_outgrow_their_page() -> None:
    db = Database(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT, y BLOB);"
        "INSERT INTO t VALUES (-3, '', zeroblob(9000)), (5, '', zeroblob(9000))"
    )
    twin = db.fork()
    twin.execute("UPDATE t SET y = CAST(zeroblob(8999) || x'01' AS BLOB) WHERE id = -3")
    assert [one.key for one in db.diff(twin)] == [(-3,)]
    third = twin.fork()
    third.execute("UPDATE t SET y = CAST(zeroblob(8999) || x'02' AS BLOB) WHERE id = -3")
    assert [one.key for one in twin.diff(third)] == [(-3,)]
    third.execute("UPDATE t SET x = 'longer' WHERE id = -3")
    third.execute("INSERT INTO t VALUES (1 << 40, 'new', '')")
    assert [one.key for one in twin.diff(third)] == [(-3,), (1 << 40,)]
