"""What a Database promises: the laws of a Resource, SQL, transactions, and what it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import datetime as dt
import enum
import gc
import importlib
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import apsw
import msgspec
import pytest

import quintain as qn
from quintain import codec, resource
from quintain.resources import bases, connection, holding, trees
from quintain.resources.connection import Refused
from quintain.resources.database import Database, ImageError, Key, References, RowChange, Unique
from quintain.resources.pages import Image
from quintain.state import Shared, begin
from tests.resources.shop import Customer, Order, Shop, shop

SEND = "UPDATE orders SET status = 'sent' WHERE id = ?"


def status(db: Database, order: int) -> Any:
    return db.execute("SELECT status FROM orders WHERE id = ?", order)[0][0]


@pytest.fixture
def db() -> Database:
    one = shop()
    one.bind(Shared())
    return one


# -- the laws


def test_neither_fork_nor_origin_sees_what_the_other_does(db: Database) -> None:
    twin, third = db.fork(), copy.deepcopy(copy.copy(db))
    assert twin.digest() == db.digest() == third.digest()
    twin.execute(SEND, 1)
    db.execute(SEND, 2)
    assert [status(one, n) for one in (db, twin, third) for n in (1, 2)] == [
        "open",
        "sent",
        "sent",
        "open",
        *["open"] * 2,
    ]
    assert len({one.digest() for one in (db, twin, third)}) == 3


def test_equal_histories_have_equal_digests_whatever_was_read_between(db: Database) -> None:
    twin = db.fork()
    twin.bind(Shared())
    for number in (3, 4):
        db.execute(SEND, number)
        db.digest()
        db.execute("SELECT count(*) FROM orders")
    for number in (3, 4):
        twin.execute(SEND, number)
    assert db.digest() == twin.digest()
    assert db.dump() == twin.dump()


def test_a_dump_continues(db: Database) -> None:
    db.execute(SEND, 1)
    again = Database.load(db.dump())
    again.bind(Shared())
    assert again.digest() == db.digest()
    assert again.dump() == db.dump()
    again.execute("INSERT INTO log (at, luck, what) VALUES (1, 2, 3)")
    db.execute("INSERT INTO log (at, luck, what) VALUES (1, 2, 3)")
    assert again.digest() == db.digest()


def test_a_change_that_is_taken_back_leaves_no_trace_in_digest_and_dump(db: Database) -> None:
    before, dump = db.digest(), db.dump()
    db.execute("UPDATE customers SET name = 'x' WHERE id = 1")
    db.execute("UPDATE customers SET name = 'Customer 1' WHERE id = 1")
    assert db.logical_digest() == shop().logical_digest()
    assert len(db.dump()) < len(dump) + 6000
    db.restore(shop().snapshot())
    assert (db.digest(), db.dump()) == (before, dump)


def test_snapshots_are_a_tree(db: Database) -> None:
    root = db.snapshot()
    db.execute(SEND, 1)
    left = db.snapshot()
    db.restore(root)
    assert status(db, 1) == "open"
    db.execute(SEND, 2)
    right = db.snapshot()
    for one, expected in (
        (left, ("sent", "open")),
        (right, ("open", "sent")),
        (left, ("sent", "open")),
        (root, ("open",) * 2),
    ):
        db.restore(one)
        assert (status(db, 1), status(db, 2)) == expected


def test_forks_of_forks_ten_thousand_deep(db: Database) -> None:
    first = db.fork()
    for number in range(10_000):
        db = db.fork()
        if number % 10 == 0:
            db.execute("UPDATE orders SET note = ? WHERE id = ?", str(number), 1 + number % 400)
    assert len(db.image.layers) < 12
    assert db.one(str, "SELECT note FROM orders WHERE id = 391") == "9990"
    assert first.one(str, "SELECT note FROM orders WHERE id = 391 AND note IS NOT NULL") is None


def test_another_process_with_another_hash_seed_goes_on_alike(db: Database) -> None:
    code = (
        "import sys; from quintain.resources.database import Database; from quintain.state import Shared\n"
        "db = Database.load(sys.stdin.buffer.read()); db.bind(Shared()); before = db.digest()\n"
        "db.execute(\"UPDATE orders SET status = 'sent' WHERE id < 50\"); print(before, db.digest())"
    )
    db.execute(SEND, 1)
    expected = [db.digest()]
    data = db.dump()
    db.bind(Shared())
    db.execute("UPDATE orders SET status = 'sent' WHERE id < 50")
    expected.append(db.digest())
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], input=data, env=env, capture_output=True, check=True)
        assert done.stdout.decode().split() == expected


# -- in a State


def test_a_world_forks_with_its_database() -> None:
    world = Shop(db=shop())
    twin = world.copy()
    assert twin.db is not world.db
    assert world.send(5) == twin.send(5)
    assert asyncio.run(resource.digest(world)) == asyncio.run(resource.digest(twin))
    loaded = resource.load(Shop, asyncio.run(resource.dump(world)))
    assert (loaded.send(6), loaded.wait(3)) == (world.send(6), world.wait(3))
    assert asyncio.run(resource.digest(world)) == asyncio.run(resource.digest(loaded))


def test_random_numbers_and_time_are_the_worlds() -> None:
    world = asyncio.run(begin(Shop(db=shop()), seed=1, task_id="a"))
    twin = world.copy()
    world.clock.advance(86_400.5)
    now = "SELECT CURRENT_TIMESTAMP, CURRENT_DATE, CURRENT_TIME, datetime(), unixepoch('now', 'subsec')"
    expected = ("1970-01-02 00:00:00", "1970-01-02", "00:00:00", "1970-01-02 00:00:00", 86400.5)
    assert world.db.execute(now) == [expected]
    assert world.db.execute("SELECT CAST(julianday('now') AS INTEGER)") == [(2440588,)]
    assert twin.db.execute("SELECT strftime('%s')") == [("0",)]
    draws = [one.db.execute("SELECT random(), hex(randomblob(11)), randomblob(0)") for one in (world, twin)]
    assert draws[0] == draws[1] != world.db.execute("SELECT random(), hex(randomblob(11)), randomblob(0)")
    assert world.rng.counter == 2 * (1 + 2 + 1)
    other = asyncio.run(begin(Shop(db=shop()), seed=2, task_id="a"))
    assert other.db.execute("SELECT random()") != [(draws[0][0][0],)]


def test_a_part_draws_from_the_world_that_it_joins() -> None:
    class Street(qn.State):
        shop: Shop

    street = Street(shop=Shop(db=shop()))
    street.clock.advance(60)
    assert street.shop.db.execute("SELECT unixepoch()") == [(60,)]
    street.shop.db = shop()
    assert street.shop.db.execute("SELECT unixepoch()") == [(60,)]


def test_random_needs_a_world() -> None:
    db = shop()
    with pytest.raises(Refused, match="needs a world"):
        db.execute("SELECT random()")
    assert db.execute("SELECT datetime('now')") == [("1970-01-01 00:00:00",)]


# -- the traps of SQLite below a connection that lives on


def test_a_statement_is_prepared_once_for_all_values(db: Database) -> None:
    sql = "SELECT count(*) FROM orders WHERE customer = ? AND status > ?"
    with db.transaction():
        unit = db.unit
        assert unit is not None
        prepared: list[dict[str, int]] = []
        unit.sqlite.trace_v2(apsw.SQLITE_TRACE_PROFILE, lambda event: prepared.append(event["stmt_status"]))
        for number in range(5):
            db.execute(sql, number, "a" * number)
        unit.sqlite.trace_v2(0, None)
    assert [status["SQLITE_STMTSTATUS_REPREPARE"] for status in prepared] == [0] * 5


def test_tables_made_in_two_branches_are_told_apart(db: Database) -> None:
    left, right = db.fork(), db.fork()
    left.execute("CREATE TABLE aa (v); INSERT INTO aa VALUES ('left')")
    right.execute("CREATE TABLE bb (v, w); INSERT INTO bb VALUES ('right', 1)")
    for _ in range(2):
        assert left.execute("SELECT * FROM aa") == [("left",)]
        assert right.execute("SELECT * FROM bb") == [("right", 1)]
        with pytest.raises(apsw.SQLError, match="no such table: bb"):
            left.execute("SELECT * FROM bb")
        with pytest.raises(apsw.SQLError, match="no such table: aa"):
            right.execute("SELECT * FROM aa")
    again = Database.load(right.dump())
    assert again.execute("SELECT w FROM bb") == [(1,)]
    assert left.execute("SELECT * FROM aa") == [("left",)]
    left.restore(db.snapshot())
    with pytest.raises(apsw.SQLError, match="no such table: aa"):
        left.execute("SELECT * FROM aa")


def test_tables_made_in_a_transaction_that_fails_are_gone(db: Database) -> None:
    twin = db.fork()
    with pytest.raises(KeyError), db.transaction():
        db.execute("CREATE TABLE aa (v)")
        db.execute("INSERT INTO aa VALUES (1)")
        raise KeyError
    with pytest.raises(apsw.SQLError, match="no such table"):
        db.execute("SELECT * FROM aa")
    with pytest.raises(apsw.SQLError):
        db.execute("CREATE TABLE aa (v); CREATE TABLE aa (v)")
    with pytest.raises(apsw.SQLError, match="no such table"):
        db.execute("SELECT * FROM aa")
    db.execute("CREATE TABLE aa (w)")
    assert db.execute("SELECT w FROM aa") == []
    assert twin.digest() != db.digest()


def test_a_live_connection_sees_what_was_restored(db: Database) -> None:
    before = db.snapshot()
    for number in range(5):
        db.execute("UPDATE orders SET note = ? WHERE id = 1", str(number))
        db.restore(before)
        assert db.one(int, "SELECT count(*) FROM orders WHERE note IS NOT NULL") == 0
        assert db.execute("SELECT count(*) FROM notes WHERE notes MATCH 'number'") == [(400,)]
        db.execute("DELETE FROM notes WHERE rowid < 10")
        assert db.execute("SELECT count(*) FROM notes WHERE notes MATCH 'number'") == [(391,)]
        db.restore(before)


def test_no_extension_is_loaded_and_none_crashes(db: Database) -> None:
    with pytest.raises(apsw.SQLError):
        db.execute("SELECT load_extension('/lib/x.so')")
    with db.transaction():
        assert db.unit is not None
        db.unit.sqlite.enable_load_extension(True)
        with pytest.raises(apsw.ExtensionLoadingError):
            db.unit.sqlite.load_extension("/lib/x.so")
        db.unit.sqlite.enable_load_extension(False)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("BEGIN", "db.transaction"),
        ("COMMIT", "db.transaction"),
        ("SAVEPOINT a", "db.transaction"),
        ("ATTACH ':memory:' AS other", "one file"),
        ("VACUUM", "one file"),
        ("VACUUM INTO '/tmp/x'", "one file"),
        ("CREATE TEMP TABLE t (x)", "stay in the connection"),
        ("CREATE TEMP VIEW t AS SELECT 1", "stay in the connection"),
        ("PRAGMA foreign_keys = OFF", "change the connection"),
        ("PRAGMA journal_mode = WAL", "change the connection"),
        ("PRAGMA writable_schema = ON", "change the connection"),
        ("ANALYZE", "statistics"),
        ("SELECT 1; PRAGMA cache_size = 1", "change the connection"),
    ],
)
def test_what_reaches_beyond_the_database_is_refused(db: Database, sql: str, words: str) -> None:
    before = db.digest()
    for _ in range(2):
        with pytest.raises(Refused, match=words):
            db.execute(sql)
        with pytest.raises((Refused, apsw.SQLError), match=f"{words}|cannot VACUUM"), db.transaction():
            db.execute(SEND, 1)
            db.execute(sql)
    assert db.digest() == before


def test_nothing_moves_in_the_middle_of_a_transaction(db: Database) -> None:
    snapshot = db.snapshot()
    with db.transaction():
        for verb in (
            db.fork,
            db.dump,
            db.digest,
            db.snapshot,
            db.logical_digest,
            lambda: db.restore(snapshot),
            lambda: db.diff(db),
            lambda: db.export("x"),
            lambda: db.ask("SELECT 1"),
        ):
            with pytest.raises(Refused, match="in the middle of a transaction"):
                verb()
    db.fork()


def test_what_a_connection_counts_begins_anew(db: Database) -> None:
    counts = "SELECT changes(), total_changes(), last_insert_rowid()"
    db.execute("INSERT INTO customers VALUES (99, 'x')")
    assert db.execute(counts) == [(0, 0, 0)]
    with db.transaction():
        db.execute("INSERT INTO customers VALUES (100, 'x'), (101, 'y')")
        assert db.execute(counts) == [(2, 2, 101)]


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
        patch.setattr(holding, "borrow", broken)
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
    with pytest.raises(msgspec.ValidationError, match="ratio"):
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


# -- order


def test_an_order_that_nothing_fixes_is_found(db: Database) -> None:
    twin = db.fork()
    twin.reverse_unordered_selects()
    loose, fixed = "SELECT id FROM orders LIMIT 3", "SELECT id FROM orders ORDER BY id LIMIT 3"
    assert db.execute(fixed) == twin.fork().execute(fixed)
    assert db.execute(loose) != twin.fork().execute(loose)
    twin.reverse_unordered_selects(on=False)
    assert db.execute(loose) == twin.execute(loose)


# -- files


def test_an_exported_file_is_ordinary(db: Database, tmp_path: Path) -> None:
    db.execute("UPDATE customers SET name = 'Zed' WHERE id = 1")
    path = tmp_path / "shop.db"
    path.write_text("was here before")
    db.export(path)
    with sqlite3.connect(path) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert plain.execute("SELECT name FROM customers WHERE id = 1").fetchall() == [("Zed",)]
        plain.execute("UPDATE customers SET name = 'Yves' WHERE id = 1")
    plain.close()
    again = Database(seed=path)
    assert again.one(str, "SELECT name FROM customers WHERE id = 1") == "Yves"
    assert [one.table for one in db.diff(again)] == ["customers"]
    assert [one.name for one in tmp_path.iterdir()] == ["shop.db"]


def test_an_export_that_fails_leaves_what_was_there(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shop.db"
    path.write_text("was here before")

    def full(image: Image) -> Any:
        yield b"x"
        raise OSError("disk full")

    monkeypatch.setattr(Image, "chunks", full)
    with pytest.raises(OSError, match="disk full"):
        db.export(path)
    assert path.read_text() == "was here before"
    assert [one.name for one in tmp_path.iterdir()] == ["shop.db"]


def test_seeds_from_files(tmp_path: Path) -> None:
    script = tmp_path / "seed.sql"
    script.write_text("PRAGMA foreign_keys=OFF; BEGIN; INSERT INTO customers VALUES (1, 'a'); COMMIT; ANALYZE")
    db = Database(Customer, seed=script)
    assert db.all(str, "SELECT name FROM customers") == ["a"]
    script.write_text("INSERT INTO customers VALUES (1, 'b')")
    assert Database(Customer, seed=script).all(str, "SELECT name FROM customers") == ["b"]
    script.write_text("BEGIN; INSERT INTO customers VALUES (1, 'b')")
    with pytest.raises(qn.DefinitionError, match="leaves a transaction open"):
        Database(Customer, seed=script)
    script.write_text("PRAGMA foreign_keys=OFF; INSERT INTO orders (id, customer) VALUES (1, 99)")
    with pytest.raises(qn.DefinitionError, match="'orders' refers to a row of 'customers'"):
        Database(Customer, Order, seed=script)
    (foreign := tmp_path / "x.db").write_bytes(b"no database" * 200)
    with pytest.raises(qn.DefinitionError, match="no SQLite database"):
        Database(seed=foreign)
    with pytest.raises(qn.DefinitionError, match="its own schema"):
        Database(Customer, seed=foreign)


# -- base images


def test_a_base_is_built_once_and_shared(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = shop(), shop()
    assert one.image.base is other.image.base
    assert (cache / "databases" / f"{one.image.base.digest}.db").exists()


def test_a_seed_that_closes_over_something_is_built_each_time() -> None:
    calls: list[int] = []

    def fill(db: Database) -> None:
        calls.append(1)
        db.insert(Customer(1, "a"))

    assert Database(Customer, seed=fill).digest() == Database(Customer, seed=fill).digest()
    assert len(calls) == 2


def test_an_image_that_was_changed_is_built_again_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    monkeypatch.setattr(bases, "_opened", {})
    db = shop()
    data = db.dump()
    (path,) = (tmp_path / "databases").glob("*.db")
    whole = path.read_bytes()
    for broken in (whole[:-5], b"\1" + whole[1:]):
        path.unlink()
        path.write_bytes(broken)
        bases._opened.clear()
        with pytest.raises(ImageError, match="was changed"):
            Database.load(data)
        bases._opened.clear()
        assert shop().digest() == db.digest()
        assert path.read_bytes() == whole
    path.unlink()
    bases._opened.clear()
    with pytest.raises(ImageError, match="is not in"):
        Database.load(data)


def test_bytes_that_are_no_dump_are_refused(db: Database) -> None:
    good = codec.loads(db.dump(), list[Any])
    for place, value in ((0, "else"), (2, -1), (4, [(0, b"short")]), (4, [(-1, bytes(1024))])):
        bad = list(good)
        bad[place] = value
        with pytest.raises(ImageError, match="no dump"):
            Database.load(codec.dumps(bad))
    with pytest.raises(ImageError, match="no dump"):
        Database.load(b"\xc1")


def test_a_build_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))

    def full(image: Image) -> Any:
        yield b"x"
        raise OSError("disk full")

    monkeypatch.setattr(Image, "chunks", full)
    with pytest.raises(OSError, match="disk full"):
        Database("CREATE TABLE only_here (x)")
    assert list((tmp_path / "databases").iterdir()) == []


def test_many_bases_do_not_keep_their_connections() -> None:
    first = Database("CREATE TABLE t0 (x)")
    for number in range(1, 20):
        Database(f"CREATE TABLE t{number} (x)").execute("SELECT 1")
    gc.collect()
    assert first.image.base.retired
    assert first.execute("SELECT * FROM t0") == []
    assert first.image.base.idle == []


def test_a_database_without_anything() -> None:
    db = Database()
    twin = Database.load(db.dump())
    db.execute("CREATE TABLE t (x)")
    assert twin.execute("SELECT name FROM sqlite_schema") == []
    assert repr(db) == "Database(2 KB, 2 pages written)"


def test_a_file_that_shrinks_and_grows_again(tmp_path: Path) -> None:
    with sqlite3.connect(path := tmp_path / "shrinking.db") as plain:
        plain.executescript(
            "PRAGMA auto_vacuum = FULL; VACUUM; CREATE TABLE t (id INTEGER PRIMARY KEY, x);"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)"
            "INSERT INTO t SELECT i, zeroblob(700) FROM n"
        )
    plain.close()
    db = Database(seed=path)
    full = db.image.count
    histories: list[Database] = []
    for asks in (True, False):
        one = db.fork()
        for step in (
            "DELETE FROM t WHERE id > 20",
            "INSERT INTO t SELECT id + 100, x FROM t",
            "DELETE FROM t WHERE id < 15",
            "INSERT INTO t SELECT id + 1000, x FROM t",
        ):
            one.execute(step)
            assert one.execute("PRAGMA integrity_check") == [("ok",)]
            again = Database.load(one.dump())
            if asks:
                assert again.digest() == one.digest()
            assert again.logical_digest() == one.logical_digest()
            assert len(db.diff(one)) == len(
                {row for (row,) in db.execute("SELECT id FROM t")} ^ {row for (row,) in one.execute("SELECT id FROM t")}
            )
        assert one.image.count < full
        histories.append(one)
    assert histories[0].digest() == histories[1].digest()


def test_pages_that_are_no_database_are_an_error_and_no_crash(db: Database, tmp_path: Path) -> None:
    kind, base, count, same, _ = codec.loads(db.dump(), list[Any])
    for number in range(1, count, 5):
        broken = Database.load(codec.dumps([kind, base, count, same, [(number, b"\5" * 1024)]]))
        with contextlib.suppress(apsw.Error):
            broken.execute("SELECT count(note), count(tags) FROM orders; SELECT * FROM customers; SELECT * FROM notes")
        with contextlib.suppress(apsw.Error, ValueError, IndexError):
            broken.diff(db)
    looped = db.fork()
    root = looped.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'orders'")[0][0]
    page = bytes([5, 0, 0, 0, 0, 0, 0, 0]) + root.to_bytes(4, "big") + bytes(1012)
    looped = Database.load(codec.dumps([kind, base, count, same, [(root - 1, page)]]))
    with pytest.raises(ValueError, match="contains itself"):
        looped.diff(db)
    assert db.execute("PRAGMA integrity_check") == [("ok",)]


def test_refusals_reach_typed_reads(db: Database) -> None:
    with pytest.raises(Refused, match="PRAGMA"):
        db.all(int, "PRAGMA cache_size = 4")
    assert db.all(int, "SELECT 1 WHERE 0") == []


def test_every_setting_that_was_measured_is_set(db: Database) -> None:
    with db.transaction():
        assert db.unit is not None
        settings = {
            name: db.unit.engine(f"PRAGMA {name}")[0][0]
            for name in ("page_size", "journal_mode", "synchronous", "temp_store", "locking_mode", "foreign_keys")
        }
    assert settings == {
        "page_size": 1024,
        "journal_mode": "memory",
        "synchronous": 0,
        "temp_store": 2,
        "locking_mode": "normal",
        "foreign_keys": 1,
    }


def test_the_file_system_has_one_file_and_the_worlds_time(monkeypatch: pytest.MonkeyPatch) -> None:
    image = Database().image
    file = connection.PageFile(image)
    system = connection.FileSystem(file)
    assert system.xCurrentTime() == 2440587.5
    with pytest.raises(apsw.CantOpenError, match="one file"):
        system.xOpen(None, [apsw.SQLITE_OPEN_TEMP_DB, 0])
    system.unregister()

    def broken(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(apsw, "Connection", broken)
    with pytest.raises(MemoryError):
        connection.Connection(image)


def test_a_seed_without_source_is_built_each_time() -> None:
    names: dict[str, Any] = {}
    exec("def fill(db): db.execute('CREATE TABLE made (x)')", names)
    assert Database(seed=names["fill"]).execute("SELECT * FROM made") == []


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apsw", None)
    monkeypatch.delitem(sys.modules, "quintain.resources.database")
    with pytest.raises(ImportError, match=r"quintain\[database\]"):
        importlib.import_module("quintain.resources.database")


def test_a_thousand_writes_between_two_digests(db: Database) -> None:
    twin = db.fork()
    for number in range(300):
        db.execute("UPDATE orders SET note = ? WHERE id = ?", "n" * 300, number)
    for number in range(300):
        twin.execute("UPDATE orders SET note = ? WHERE id = ?", "n" * 300, number)
        twin.digest()
    assert db.digest() == twin.digest()
