"""Databases as plain data, on both backends, read again where they changed."""

from __future__ import annotations

import pytest

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


@pytest.mark.slow
def test_tables_on_a_server() -> None:
    with running(folder("quintain-audit")) as cluster:
        database = shop(cluster.url)
        database.bind(qn.State().shared)
        tables = world.Memory().tables("db", database)
        here = world.Memory().tables("db", shop(None))
        assert tables == here != {}
        database.close()  # type: ignore[attr-defined]  # only the one on a server has it
