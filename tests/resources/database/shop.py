"""A world on a database: a shop whose orders have foreign keys, triggers and full-text search."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

import quintain as qn
from quintain.resources.database import Database, Indexed, References


class Customer(msgspec.Struct):
    id: int
    name: Annotated[str, Indexed()]


class Order(msgspec.Struct):
    id: int
    customer: Annotated[int, References(Customer, "cascade")]
    status: Literal["open", "sent", "lost"] = "open"
    tags: list[str] = []
    note: str | None = None


EXTRA = """
CREATE TABLE log (at TEXT DEFAULT CURRENT_TIMESTAMP, luck INTEGER DEFAULT (random()), what TEXT);
CREATE TRIGGER sent AFTER UPDATE OF status ON orders WHEN new.status = 'sent' BEGIN
  INSERT INTO log (what) VALUES ('sent ' || new.id);
END;
CREATE VIRTUAL TABLE notes USING fts5(body);
CREATE VIEW busy AS SELECT customer, count(*) AS orders FROM orders GROUP BY customer;
"""
ROLES = {"customer": {"orders": "SELECT id, status FROM main.orders WHERE customer = who()"}}


def fill(db: Database) -> None:
    for number in range(1, 21):
        db.insert(Customer(number, f"Customer {number}"))
    for number in range(1, 401):
        db.insert(Order(number, 1 + number % 20, tags=["old"] if number % 3 else []))
        db.execute("INSERT INTO notes (rowid, body) VALUES (?, ?)", number, f"note number {number}")


def shop() -> Database:
    return Database(Customer, Order, EXTRA, seed=fill, roles=ROLES)


SEND = "UPDATE orders SET status = 'sent' WHERE id = ?"


def status(db: Database, order: int) -> Any:
    """Returns the status of one order."""
    return db.execute("SELECT status FROM orders WHERE id = ?", order)[0][0]


class Shop(qn.State):
    db: Database

    @qn.tool
    def send(self, order: int) -> str:
        """Send an order.

        Args:
            order: Its number.
        """
        with self.db.transaction():
            if self.db.execute("UPDATE orders SET status = 'sent' WHERE id = ? RETURNING id", order):
                return str(self.db.execute("SELECT at, luck FROM log ORDER BY rowid DESC LIMIT 1")[0])
        raise qn.ToolError(f"no order {order}")

    @qn.tool
    def wait(self, hours: float) -> str:
        """Let time pass.

        Args:
            hours: How much.
        """
        self.clock.advance(hours * 3600)
        return str(self.db.execute("SELECT datetime('now')")[0][0])

    @qn.tool
    def read(self, sql: str) -> list[list[object]]:
        """Ask the database.

        Args:
            sql: One SELECT.
        """
        return self.db.ask(sql).rows
