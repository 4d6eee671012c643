"""Row by row, what differs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.resources.database import Database, RowChange, difference, trees
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
        seen.append((found := honest(*args, **names)).rows)
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


# -- only what differs is read

LARGE = """
CREATE TABLE pair (a, b TEXT COLLATE NOCASE, v, PRIMARY KEY (b DESC, a)) WITHOUT ROWID;
CREATE TABLE plain (id INTEGER PRIMARY KEY, x TEXT);
CREATE VIRTUAL TABLE notes USING fts5(body);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO pair SELECT i, 'key ' || (i % 7), 'value ' || i FROM n;
INSERT INTO plain SELECT a, v FROM pair;
INSERT INTO notes (rowid, body) SELECT a, v FROM pair;
"""


@pytest.mark.parametrize(
    ("sql", "differing"),
    [
        ("UPDATE pair SET v = 'new' WHERE a = 77", 1),
        ("UPDATE pair SET b = 'KEY 0' WHERE a = 77", 2),
        ("DELETE FROM pair WHERE a BETWEEN 5 AND 9", 5),
        ("INSERT INTO pair VALUES (-1, 'key 3', NULL)", 1),
        ("UPDATE notes SET body = 'new' WHERE rowid = 9", 1),
        ("DELETE FROM notes WHERE rowid IN (1, 1000)", 2),
        ("CREATE INDEX i ON plain (x); UPDATE plain SET x = 'new' WHERE id = 5", 1),
        ("CREATE TABLE other (x); INSERT INTO other SELECT 'long ' || a FROM pair LIMIT 40", 40),
        ("DROP TABLE notes; UPDATE plain SET x = 'new' WHERE id = 5", 2001),
        ("INSERT INTO notes (notes) VALUES ('optimize')", 0),
    ],
)
def test_a_difference_reads_what_stands_on_changed_pages(
    sql: str, differing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = Database(LARGE)
    twin = db.fork()
    twin.execute(sql)
    read: list[object] = []
    scanned: set[str] = set()
    honest = difference._fetched

    def fetched(connection: Any, sql: str, *, where: str, rows: Any) -> Any:
        found = list(honest(connection, sql, where=where, rows=rows))
        read.extend(found)
        if rows is None:
            scanned.add(sql.rpartition(" ")[2])
        return found

    monkeypatch.setattr(difference, "_fetched", fetched)
    monkeypatch.setattr(
        difference._RowSelection, "_look_for_owners", lambda self: self._strays and pytest.fail("strays")
    )
    assert len(db.diff(twin)) == differing
    assert scanned <= {'"other"', '"notes"'} - ({'"notes"'} if "DROP" not in sql else set())
    assert len(read) < 600 + (2000 if "DROP" in sql else 0)


VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-2, 130),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.sampled_from(["long " * 100, "longer " * 300, b"x" * 900, b""]),
    st.binary(max_size=20),
)
ROWS = st.dictionaries(st.tuples(VALUES, VALUES), VALUES, max_size=25)


@given(before=ROWS, after=ROWS)
@settings(max_examples=50)
def test_keys_of_every_kind_without_rowid(before: dict[Any, Any], after: dict[Any, Any]) -> None:
    schema = "CREATE TABLE t (v, a, b, PRIMARY KEY (b, a)) WITHOUT ROWID"
    db = Database(schema)
    with db.transaction():
        for n in range(30):
            db.execute("INSERT INTO t VALUES ('always', ?, 'there')", n * 1000)
    twin = db.fork()
    for one, rows in ((db, before), (twin, after)):
        with one.transaction():
            for (a, b), v in rows.items():
                one.execute("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", v, a, b)
    found = {key: repr(row) for key, row in difference_of(db, twin).items()}
    expected = {key: repr(row) for key, row in difference_of(db, rebuilt(twin, schema)).items()}
    assert found == expected
    assert twin.logical_digest() == rebuilt(twin, schema).logical_digest()


def difference_of(one: Database, other: Database) -> dict[str, RowChange]:
    return {f"{change.table} {change.key!r}": change for change in one.diff(other)}


def rebuilt(db: Database, schema: str) -> Database:
    """The same rows on a base of their own, which is compared row by row."""
    again = Database(f"{schema}; CREATE TABLE only_here (x)")
    again.execute("DROP TABLE only_here")
    with again.transaction():
        for row in db.execute("SELECT * FROM t"):
            again.execute("INSERT INTO t VALUES (?, ?, ?)", *row)
    return again


# -- the logical digest


def test_a_logical_digest_reads_what_differs_from_what_it_knows(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    first = db.logical_digest()
    honest = difference.weigh_all
    monkeypatch.setattr(difference, "weigh_all", lambda image: pytest.fail("everything is read"))
    twin = db.fork()
    for number in range(5):
        twin.execute(SEND, number + 1)
        assert twin.logical_digest() != first
        assert twin.image.logical == honest(twin.image)
    assert twin.image.known is None
    twin.restore(db.snapshot())
    assert twin.logical_digest() == first
    twin.execute("CREATE TABLE more (x)")
    changed = twin.logical_digest()
    assert changed != first
    twin.execute("DROP TABLE more")
    assert twin.logical_digest() == first
    assert Database.load(twin.dump()).logical_digest() == first


def test_full_text_search_over_another_table_follows_it() -> None:
    db = Database(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b');"
        "CREATE VIRTUAL TABLE f USING fts5(body, content='t', content_rowid='id');"
        "CREATE VIRTUAL TABLE r USING rtree(id, low, high); INSERT INTO r VALUES (7, 1, 2)"
    )
    twin = db.fork()
    twin.execute("UPDATE t SET body = 'c' WHERE id = 2")
    assert [(one.table, one.key) for one in db.diff(twin)] == [("f", (2,)), ("t", (2,))]
    assert twin.logical_digest() != db.logical_digest()
    assert twin.image.logical == difference.weigh_all(twin.image)
    twin.execute("UPDATE r SET high = 3")
    assert [one.table for one in db.diff(twin)] == ["f", "r", "t"]


def rows_that_are_read(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The rows that a difference reads, by table; None for all."""
    read, touched = difference._rows, dict[str, Any]()

    def rows(*given: Any) -> Any:
        touched[given[1].name] = given[2]
        return read(*given)

    monkeypatch.setattr(difference, "_rows", rows)
    return touched


def test_a_contentless_search_index_is_read_only_when_it_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b');"
        'CREATE VIRTUAL TABLE f USING fts5(body, content=""); INSERT INTO f (rowid, body) SELECT id, body FROM t'
    )
    touched = rows_that_are_read(monkeypatch)
    twin = db.fork()
    twin.execute("UPDATE t SET body = 'c' WHERE id = 2")
    assert [(one.table, one.key) for one in db.diff(twin)] == [("t", (2,))]
    assert touched.get("f", set()) == set()  # None would stand for every row.
    twin.execute("INSERT INTO f (rowid, body) VALUES (3, 'd')")
    assert [(one.table, one.key) for one in db.diff(twin)] == [("f", (3,)), ("t", (2,))]


def test_a_long_row_rewritten_below_its_leaf_is_found_without_reading_its_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = Database("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT, at INTEGER NOT NULL)")
    db.execute("INSERT INTO t SELECT value, '', 0 FROM json_each('[1, 2, 3, 4]')")
    db.execute("INSERT INTO t VALUES (9, ?, 1000)", "x" * 1100)
    touched = rows_that_are_read(monkeypatch)
    twin = db.fork()
    twin.execute("UPDATE t SET at = 2000 WHERE id = 9")
    assert [(one.table, one.key) for one in db.diff(twin)] == [("t", (9,))]
    assert touched == {"t": {9}}


def test_rows_without_a_key_are_told_apart_by_rowid() -> None:
    db = Database("CREATE TABLE t (k INT PRIMARY KEY, x); INSERT INTO t (rowid, k, x) VALUES (5, NULL, 1), (6, 5, 2)")
    twin = db.fork()
    twin.execute("UPDATE t SET x = 9")
    assert [one.key for one in db.diff(twin)] == [(None, 5), (5,)]
