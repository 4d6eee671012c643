"""A Database keeps the laws of a Resource, alone and held by a world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quintain.resources.database import Database
from quintain.testing import ResourceContract
from quintain.testing.resource import Operation
from tests.resources.database.shop import shop


def sql(statement: str, *values: Any) -> Operation:
    return lambda db: db.execute(statement, *values)


def several(db: Database) -> None:
    with db.transaction():
        db.execute("DELETE FROM customers WHERE id = 2")
        db.execute("INSERT INTO notes (body) VALUES ('more to find')")
        with db.transaction():
            db.execute("UPDATE orders SET note = 'x' || id WHERE customer = 3")


def failing(db: Database) -> None:
    with db.transaction():
        db.execute("DELETE FROM orders")
        db.execute("INSERT INTO orders (id, customer) VALUES (1, 999)")


class TestDatabase(ResourceContract):
    examples = 15

    def make(self) -> Database:
        # Without chance and time: those are the world's, and here is none.
        db = shop()
        db.execute("DROP TABLE log; CREATE TABLE log (at TEXT DEFAULT (datetime(0)), what TEXT)")
        return db

    def operations(self) -> Sequence[Operation]:
        return [
            sql("UPDATE orders SET status = 'sent' WHERE id = 7 AND status = 'open'"),
            sql("INSERT INTO orders (customer, note) VALUES (1, ?)", "long " * 1000),
            sql("INSERT INTO log (what) VALUES ('it was ' || datetime(0))"),
            sql("DELETE FROM notes WHERE notes MATCH 'number' AND rowid < 50"),
            sql("CREATE TABLE aa (x)"),
            sql("CREATE TABLE bb (y, x)"),
            sql("INSERT INTO aa (x) VALUES (1)"),
            sql("INSERT INTO bb (x) VALUES (1)"),
            sql("DROP TABLE aa"),
            sql("SELECT count(*) FROM orders WHERE status = 'sent'"),
            lambda db: db.ask("SELECT * FROM busy ORDER BY customer").rows,
            several,
            failing,
        ]
