"""A Database on PostgreSQL keeps the laws of a Resource."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

from quintain.resources.database import Database
from quintain.state import Shared
from quintain.testing import ResourceContract
from quintain.testing.resource import Operation
from tests.resources.postgres.shop import Order, shop


def sql(statement: str, *values: Any) -> Operation:
    return lambda db: db.execute(statement, *values)


def several(db: Database) -> None:
    with db.transaction():
        db.execute("DELETE FROM customers WHERE id = 2")
        with db.transaction():
            db.execute("UPDATE orders SET note = 'x' || id WHERE customer = 3")


def failing(db: Database) -> None:
    with db.transaction():
        db.execute("DELETE FROM orders")
        db.insert(Order(None, 1))
        db.execute("INSERT INTO orders (customer) VALUES (999)")


def there_and_back(db: Database) -> None:
    start = db.snapshot()
    db.insert(Order(None, 5))
    middle = db.snapshot()
    db.execute("DELETE FROM orders WHERE customer = 5")
    db.restore(start)
    db.execute("UPDATE orders SET status = 'lost' WHERE id = 9")
    db.restore(middle)


class TestDatabase(ResourceContract):
    examples = 6

    @pytest.fixture(autouse=True)
    def here(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("QUINTAIN_TEST_POSTGRES", url)

    def make(self) -> Database:
        db = shop(os.environ["QUINTAIN_TEST_POSTGRES"])
        db.bind(Shared())
        return db

    @pytest.mark.slow  # The database of SQLite shows it, and histories on both agree.
    def test_other_processes_give_the_same_digests(self) -> None:
        super().test_other_processes_give_the_same_digests()

    def operations(self) -> Sequence[Operation]:
        return [
            sql("UPDATE orders SET status = 'sent' WHERE id = 7 AND status = 'open'"),
            lambda db: db.insert(Order(None, 1, note="long" * 1000)),
            lambda db: db.insert(Order(None, 2)),
            sql("CREATE TABLE aa (x INTEGER)"),
            sql("CREATE TABLE bb (y INTEGER, x SERIAL)"),
            sql("INSERT INTO aa (x) VALUES (1)"),
            sql("INSERT INTO bb (y) VALUES (1) RETURNING x"),
            sql("DROP TABLE aa"),
            sql("SELECT count(*) FROM orders WHERE status = 'sent'"),
            lambda db: db.ask("SELECT status, count(*) FROM orders GROUP BY status ORDER BY status").rows,
            several,
            failing,
            there_and_back,
        ]
