"""Transactions, threads and typed rows."""

from __future__ import annotations

import datetime as dt
import enum
import threading
from typing import Annotated, Any, ClassVar, Literal

import apsw
import msgspec
import pytest

import quintain as qn
from quintain.resources.database import Database, Key, References, Unique, lease
from quintain.resources.database.connection import Refused
from tests.resources.database.shop import SEND, Customer, status

# -- transactions


def test_an_error_undoes_the_transaction(db: Database) -> None:
    before = db.digest()
    with pytest.raises(apsw.ConstraintError), db.transaction():
        db.execute(SEND, 1)
        db.execute("INSERT INTO orders (id, customer) VALUES (1, 1)")
    assert db.digest() == before
    with pytest.raises(apsw.ConstraintError):
        db.execute(
            "DELETE FROM log; UPDATE orders SET status = 'sent' WHERE id = 1; INSERT INTO customers VALUES (1, 'x')"
        )
    assert (db.digest(), status(db, 1)) == (before, "open")


def test_transactions_nest(db: Database) -> None:
    with db.transaction():
        db.execute(SEND, 1)
        with pytest.raises(KeyError), db.transaction():
            db.execute(SEND, 2)
            with db.transaction():
                db.execute(SEND, 3)
            raise KeyError
        with db.transaction():
            db.execute(SEND, 4)
        db.insert(Customer(77, "x"))
    assert [status(db, n) for n in (1, 2, 3, 4)] == ["sent", "open", "open", "sent"]


def test_a_conflict_that_rolls_everything_back_is_one(db: Database) -> None:
    before = db.digest()
    with pytest.raises(apsw.ConstraintError), db.transaction(), db.transaction():
        db.execute(SEND, 1)
        db.execute("INSERT OR ROLLBACK INTO customers VALUES (1, 'x')")
    assert db.digest() == before


def test_a_deferred_foreign_key_is_checked_at_the_end(db: Database) -> None:
    with pytest.raises(apsw.ConstraintError, match="FOREIGN KEY"), db.transaction():
        db.execute("PRAGMA defer_foreign_keys = ON")
        db.execute("INSERT INTO orders (id, customer) VALUES (999, 999)")
    assert db.execute("SELECT * FROM orders WHERE id = 999") == []
    with pytest.raises(apsw.ConstraintError, match="FOREIGN KEY"):
        db.execute("INSERT INTO orders (id, customer) VALUES (999, 999)")


def test_deleting_cascades(db: Database) -> None:
    db.execute("DELETE FROM customers WHERE id = 3")
    assert db.one(int, "SELECT count(*) FROM orders") == 380


# -- threads


def test_a_thread_each(db: Database) -> None:
    forks = [db.fork() for _ in range(8)]
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(40):
                with forks[number].transaction():
                    forks[number].execute("UPDATE orders SET note = ? WHERE id = ?", f"{number}", 1 + step)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for number, fork in enumerate(forks):
        assert fork.execute("SELECT DISTINCT note FROM orders WHERE note IS NOT NULL") == [(f"{number}",)]


def test_another_thread_is_refused_in_a_transaction(db: Database) -> None:
    found: list[BaseException] = []

    def intrude() -> None:
        try:
            db.execute("SELECT 1")
        except Refused as error:
            found.append(error)

    with db.transaction():
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
    assert "one thread at a time" in str(found[0])
    assert db.execute("SELECT 1") == [(1,)]


def test_a_connection_that_does_not_open_leaves_the_database_free(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(lease, "borrow", broken)
        with pytest.raises(MemoryError):
            db.execute("SELECT 1")
    assert db.execute("SELECT 1") == [(1,)]


# -- typed rows


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Everything(msgspec.Struct):
    __table__: ClassVar[str] = "all of it"

    left: Annotated[int, Key()]
    right: Annotated[str, Key()]
    ratio: float | None
    raw: Annotated[bytes, Unique()]
    when: dt.datetime
    day: dt.date | None = None
    colour: Colour = Colour.RED
    is_on: bool = True
    level: Literal[1, 2] = 1
    word: str = "it's"
    tags: list[str] = []
    inner: Customer | None = None
    either: int | str = 7
    blob: bytes = b"\1"
    named: str | None = msgspec.field(default=None, name="Named")


def test_a_class_becomes_a_table_and_rows_become_instances() -> None:
    db = Database(Everything)
    when = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    full = Everything(
        1,
        "a",
        0.5,
        b"\0\xff",
        when,
        when.date(),
        Colour.BLUE,
        False,
        2,
        "w",
        ["x", "y"],
        Customer(1, "n"),
        "seven",
        b"",
        "N",
    )
    bare = Everything(1, "b", None, b"", when)
    db.insert(full, bare)
    assert db.all(Everything, 'SELECT * FROM "all of it" ORDER BY right') == [full, bare]
    assert db.execute('SELECT json_extract(tags, \'$[1]\'), "Named" FROM "all of it"') == [("y", "N"), (None, None)]
    assert db.one(Everything, 'SELECT * FROM "all of it" WHERE right = :r', r="z") is None
    assert db.one(float, "SELECT 1") == 1.0
    with pytest.raises(LookupError, match="2 rows"):
        db.one(Everything, 'SELECT * FROM "all of it"')
    with pytest.raises(qn.DefinitionError, match="2 columns"):
        db.one(int, "SELECT 1, 2")
    for type_, name in ((int, "int"), (Everything, "Everything")):
        text = rf"a row of 'SELECT NULL AS left' does not fit {name} \(a value is NULL: use coalesce"
        with pytest.raises(msgspec.ValidationError, match=text):
            db.all(type_, "SELECT NULL AS left")
    with pytest.raises(msgspec.ValidationError, match=r"does not fit Everything: .*ratio"):
        db.all(Everything, "SELECT 1 AS left, 'a' AS right, 'x' AS ratio")
    db.execute(
        """INSERT INTO "all of it" (left, right, raw, "when") SELECT 2, 'c', x'33', "when" FROM "all of it" LIMIT 1"""
    )
    assert db.all(Everything, 'SELECT * FROM "all of it" WHERE left = 2') == [Everything(2, "c", None, b"3", when)]
    for sql in ("is_on = 2", "level = 3", "colour = 'green'", "tags = '['", "raw = x'00ff'", '"when" = NULL'):
        with pytest.raises(apsw.ConstraintError):
            db.execute(f"UPDATE \"all of it\" SET {sql} WHERE right = 'b'")


class Category(msgspec.Struct):
    id: int | None = None
    parent: Annotated[int | None, References("categories", "set null")] = None


class OrderBox(msgspec.Struct):
    code: Annotated[str, Key()]


def test_names_and_keys_of_tables() -> None:
    db = Database(Category, OrderBox)
    assert [db.insert(Category()), db.insert(Category(parent=1))] == [1, 2]
    db.execute("DELETE FROM categories WHERE id = 1")
    assert db.all(Category, "SELECT * FROM categories") == [Category(2, None)]
    db.insert(OrderBox("x"))
    assert db.one(OrderBox, "SELECT * FROM order_boxes") == OrderBox("x")


def test_a_class_that_is_no_table_is_refused() -> None:
    class Keyless(msgspec.Struct):
        name: str

    with pytest.raises(qn.DefinitionError, match="neither a field `id`"):
        Database(Keyless)
    with pytest.raises(qn.DefinitionError, match="made of a msgspec"):
        Database(int)
    with pytest.raises(qn.DefinitionError, match="syntax error"):
        Database("CREATE TABEL x")
