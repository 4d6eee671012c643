"""A shop that is the same on both backends."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

import quintain as qn
from quintain.resources.database import Database, Indexed, References, Unique


class Customer(msgspec.Struct):
    id: int
    name: Annotated[str, Indexed()]


class Order(msgspec.Struct):
    id: int | None
    customer: Annotated[int, References(Customer, "cascade")]
    status: Literal["open", "sent", "lost"] = "open"
    tags: list[str] = []
    note: Annotated[str | None, Unique()] = None
    is_gift: bool = False
    weight: float | None = None
    label: bytes = b"\1"


LOG = "CREATE TABLE log (at TEXT DEFAULT CURRENT_TIMESTAMP, what TEXT)"
ROLES = {"customer": {"orders": "SELECT id, status FROM main.orders WHERE customer = who()"}}


def fill(db: Database) -> None:
    for number in range(1, 11):
        db.insert(Customer(number, f"Customer {number}"))
    for number in range(1, 41):
        db.insert(Order(number, 1 + number % 10, tags=["old"] if number % 3 else []))


def shop(url: str | None) -> Database:
    return Database(Customer, Order, LOG, seed=fill, roles=ROLES, url=url)


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
                self.db.execute("INSERT INTO log (what) VALUES (?)", f"sent {order}")
                return self.new_id("S")
        raise qn.ToolError(f"no order {order}")

    @qn.tool
    def order(self, customer: int) -> str:
        """Order something.

        Args:
            customer: Who.
        """
        return str(self.db.insert(Order(None, customer)))

    @qn.tool
    def wait(self, hours: float) -> str:
        """Let time pass.

        Args:
            hours: How much.
        """
        self.clock.advance(hours * 3600)
        return str(self.db.execute("SELECT CURRENT_TIMESTAMP")[0][0])[:19]

    @qn.tool
    def read(self, sql: str) -> list[list[object]]:
        """Ask the database.

        Args:
            sql: One SELECT.
        """
        return self.db.ask(sql).rows
