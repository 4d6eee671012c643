"""Databases as plain data, on both backends, read again after changes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies

import quintain as qn
from quintain.audit.subjects import world
from quintain.resources.database import Database
from tests.audit.subjects.test_native import Note
from tests.resources.postgres.cluster import folder, running
from tests.resources.postgres.shop import shop


def test_tables_that_appear_and_vanish_are_seen() -> None:
    database, memory = Database(Note), world.Memory()
    assert memory.tables("db", database) == {"notes": []}
    database.execute("CREATE TABLE more (a, b, PRIMARY KEY (b, a)) WITHOUT ROWID")
    database.execute("INSERT INTO more VALUES (1, 2), (2, 1)")
    assert memory.tables("db", database)["more"] == [{"a": 2, "b": 1}, {"a": 1, "b": 2}]
    database.execute("UPDATE more SET a = 3 WHERE a = 1")
    assert memory.tables("db", database)["more"] == [{"a": 2, "b": 1}, {"a": 3, "b": 2}]
    database.execute("DROP TABLE more")
    assert memory.tables("db", database) == {"notes": []}


@given(strategies.lists(strategies.tuples(strategies.integers(0, 5), strategies.none() | strategies.text(max_size=2))))
def test_tables_that_were_read_before_read_as_ones_that_were_not(changes: list[tuple[int, str | None]]) -> None:
    database, memory = Database(Note), world.Memory()
    database.execute("CREATE TABLE log (b TEXT, a INTEGER, data BLOB, PRIMARY KEY (a, b))")
    database.execute("INSERT INTO log VALUES ('x', 1, x'ff'), ('x', 2, NULL), ('y', 1, NULL), ('z', 9, NULL)")
    for a, b in changes:
        before = memory.tables("db", database)["log"]
        with database.transaction():
            if b is None:
                database.execute("DELETE FROM log WHERE a = ?", a)
            else:
                database.execute("INSERT OR REPLACE INTO log VALUES (?, ?, 'new')", b, a)
        after = memory.tables("db", database)["log"]
        assert after == world.Memory().tables("db", database)["log"]
        if len(changes) == 1 and b is not None and len(before) > 3:
            assert sum(row in before and any(row is one for one in before) for row in after) >= len(before) - 1


@pytest.mark.slow
def test_tables_on_a_server_are_read() -> None:
    with running(folder("quintain-audit")) as cluster:
        database = shop(cluster.url)
        database.bind(qn.State().shared)
        tables = world.Memory().tables("db", database)
        here = world.Memory().tables("db", shop(None))
        assert tables == here != {}
        database.close()  # type: ignore[attr-defined]  # only the one on a server has it


class Row(msgspec.Struct):
    name: str
    data: bytes = b""
    at: tuple[int, float] = (0, 0.5)


@given(strategies.lists(strategies.tuples(strategies.sampled_from("abc"), strategies.none() | strategies.text())))
def test_a_table_that_was_read_before_reads_as_one_that_was_not(changes: list[tuple[str, str | None]]) -> None:
    table, memory = qn.Table(Row, {"a": Row("x", b"\xff")}), world.Memory()
    for key, name in changes:
        assert memory.rows("t", table) == world.Memory().rows("t", table)
        if name is not None:
            table[key] = Row(name)
        elif key in table:
            del table[key]
    rows = memory.rows("t", table.fork())
    assert rows == world.Memory().rows("t", table)
    assert set(rows) == set(table)
