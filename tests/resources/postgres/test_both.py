"""Contract of a Database, on both backends."""

from __future__ import annotations

import asyncio
import copy
import datetime as dt
import sys
import threading
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain import codec, resource
from quintain.episode import Episode
from quintain.errors import UsageError
from quintain.resources.database import ConstraintError, Database, Limits, Refused, RowChange, SQLError
from quintain.state import Shared, begin
from quintain.trace import Message, Reply, ToolCall
from tests.resources.postgres.shop import SEND, Customer, Order, Shop, status

# -- statements


def test_values_and_placeholders(either: Database) -> None:
    row = (1, -(2**40), 0.5, "it's ? :x", b"\0\xff", None)
    assert either.execute("SELECT CAST(? AS INTEGER), ?, ?, CAST(? AS TEXT), ?, ? -- ?\n", *row) == [row]
    sql = "SELECT :a + :b, ':a', :a /* :c */ FROM customers WHERE id = :a"
    assert either.execute(sql, a=1, b=2) == [(3, ":a", 1)]
    assert either.execute("SELECT sum(id), avg(id), count(*), max(name), sum(id) > 3 FROM customers") == [
        (55, 5.5, 10, "Customer 9", 1)
    ]
    assert either.execute("SELECT tags, is_gift, label FROM orders WHERE id = 1") == [('["old"]', 0, b"\1")]
    assert either.execute("SELECT 1; SELECT 2") == [(1,), (2,)]


def test_rows_are_instances(either: Database) -> None:
    full = Order(None, 2, "sent", ["x", "ß"], "n", True, 0.1, b"\0'")
    number = either.insert(full)
    assert number == 41
    assert either.one(Order, "SELECT * FROM orders WHERE id = ?", number) == msgspec.structs.replace(full, id=41)
    assert either.all(int, "SELECT id FROM orders WHERE customer = ? ORDER BY id", 2) == [1, 11, 21, 31, 41]
    assert either.one(Order, "SELECT * FROM orders WHERE id = 999") is None
    with pytest.raises(LookupError, match="41 rows"):
        either.one(int, "SELECT id FROM orders")


def test_numbers_follow_those_that_were_given(either: Database) -> None:
    either.insert(Order(100, 1))
    assert either.insert(Order(None, 1)) == 101
    with pytest.raises(KeyError), either.transaction():
        assert either.insert(Order(None, 1), Order(None, 1)) == 103
        raise KeyError
    with pytest.raises(ConstraintError):
        either.execute("INSERT INTO orders (customer) VALUES (1), (999)")
    assert either.insert(Order(None, 1)) == 102


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO customers VALUES (1, 'again')",
        "INSERT INTO orders (customer) VALUES (999)",
        "UPDATE orders SET status = 'gone'",
        "UPDATE orders SET customer = NULL",
        "UPDATE orders SET note = 'same'",
        "UPDATE orders SET is_gift = 2",
    ],
)
def test_bad_data_is_a_constraint_error_and_changes_nothing(either: Database, sql: str) -> None:
    before, twin = either.logical_digest(), either.fork()
    with pytest.raises(ConstraintError):
        either.execute(sql)
    with either.transaction():
        with pytest.raises(ConstraintError):
            either.execute(sql)
        assert status(either, 1) == "open"
    with pytest.raises(ConstraintError):
        either.execute(f"DELETE FROM orders WHERE id = 5; {sql}")
    assert either.logical_digest() == before
    assert either.diff(twin) == []


def test_bad_sql_is_an_sql_error_and_the_connection_stays_usable(either: Database) -> None:
    for sql in ("SELEC 1", "SELECT * FROM nothing", "SELECT nothing FROM orders"):
        with pytest.raises(SQLError):
            either.execute(sql)
        with either.transaction():
            either.execute(SEND, 1)
            with pytest.raises(SQLError):
                either.execute(sql)
    assert status(either, 1) == "sent"


@pytest.mark.parametrize("sql", ["BEGIN", "COMMIT", "SAVEPOINT a", "ROLLBACK", "CREATE TEMP TABLE t (x INTEGER)"])
def test_settings_of_the_connection_are_refused(either: Database, sql: str) -> None:
    before = either.digest()
    with pytest.raises(Refused):
        either.execute(sql)
    with pytest.raises(Refused), either.transaction():
        either.execute(SEND, 1)
        either.execute(sql)
    assert either.digest() == before


# -- transactions


def test_transactions_nest(either: Database) -> None:
    with either.transaction():
        either.execute(SEND, 1)
        with pytest.raises(KeyError), either.transaction():
            either.execute(SEND, 2)
            with either.transaction():
                either.execute(SEND, 3)
            raise KeyError
        with either.transaction():
            either.execute(SEND, 4)
    assert [status(either, n) for n in (1, 2, 3, 4)] == ["sent", "open", "open", "sent"]


def test_an_error_undoes_the_transaction(either: Database) -> None:
    before = either.digest()
    with pytest.raises(ConstraintError), either.transaction():
        either.execute(SEND, 1)
        either.execute("CREATE TABLE more (x INTEGER)")
        either.execute("INSERT INTO customers VALUES (1, 'x')")
    with pytest.raises(SQLError):
        either.execute("SELECT * FROM more")
    assert either.digest() == before


def test_transaction_refuses_to_be_forked_or_restored(either: Database) -> None:
    snapshot = either.snapshot()
    with either.transaction():
        verbs: list[Any] = [
            either.fork,
            either.dump,
            either.digest,
            either.snapshot,
            lambda: either.restore(snapshot),
            lambda: either.diff(either),
            lambda: either.ask("SELECT 1"),
        ]
        for verb in verbs:
            with pytest.raises(Refused, match="in the middle of a transaction"):
                verb()


def test_another_thread_is_refused_in_a_transaction(either: Database) -> None:
    found: list[BaseException] = []

    def intrude() -> None:
        try:
            either.execute("SELECT 1")
        except Refused as error:
            found.append(error)

    with either.transaction():
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
    assert "one thread at a time" in str(found[0])
    assert either.execute("SELECT 1") == [(1,)]


def test_statements_of_several_threads_follow_one_another(either: Database) -> None:
    errors: list[BaseException] = []
    begun = threading.Barrier(4)

    def work(number: int) -> None:
        begun.wait()
        try:
            for _ in range(30):
                assert either.one(int, "SELECT count(*) FROM customers") == 10
                either.execute("UPDATE orders SET weight = coalesce(weight, 0) + 1 WHERE id = ?", number)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 1, 2, 2)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that a thread is left in the middle of a statement
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not errors
    assert either.all(float, "SELECT weight FROM orders WHERE id < 3 ORDER BY id") == [60.0, 60.0]


def test_dates_and_times_are_values(either: Database) -> None:
    day, moment = dt.date(2026, 3, 1), dt.datetime(2026, 3, 1, 9, 30, tzinfo=dt.UTC)
    either.execute("INSERT INTO log VALUES (?, ?), (?, ?)", day, dt.time(9, 30), moment, None)
    assert either.execute("SELECT at, what FROM log ORDER BY at") == [
        ("2026-03-01", "09:30:00"),
        ("2026-03-01T09:30:00Z", None),
    ]
    assert either.execute("SELECT count(*) FROM log WHERE at > :day", day=day) == [(1,)]
    assert either.all(dt.datetime, "SELECT at FROM log WHERE what IS NULL") == [moment]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**100])
def test_an_integer_of_more_than_64_bits_is_the_callers_mistake(either: Database, number: int) -> None:
    digest = either.digest()
    for values in ((number,), {"number": number}):
        sql = f"INSERT INTO orders (customer) VALUES ({'?' if isinstance(values, tuple) else ':number'})"
        with pytest.raises(qn.ToolError, match=f"9223372036854775807; one of {number.bit_length()} bits was given"):
            either.execute(sql, *values) if isinstance(values, tuple) else either.execute(sql, **values)
    with pytest.raises(qn.ToolError, match="-9223372036854775808"):
        either.insert(Customer(1000, "kept?"), Customer(number, "n"))
    assert either.digest() == digest
    assert either.execute("SELECT CAST(? AS INTEGER)", 1) == [(1,)]


@qn.reward
def done(outcome: qn.EpisodeView[qn.State]) -> float:
    return 1.0


def test_a_tool_answers_a_model_that_gives_too_large_an_integer(either: Database) -> None:
    class Desk(qn.State):
        db: Database

        @qn.tool
        def order(self, customer: int) -> int:
            """Order something.

            Args:
                customer: Its number.
            """
            return self.db.insert(Order(None, customer))

    env = qn.Environment(
        "desk",
        tasks=lambda split: [qn.Task(id="one", prompt="Order.", start=Desk(db=either.fork()))],
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(done),
        state=Desk,
    )

    async def story() -> None:
        episode = await Episode.begin(env, env.tasks("test")[0])
        for customer, is_error in ((2**63, True), (1, False)):
            call = ToolCall("call", "order", codec.text({"customer": customer}))
            turn = await episode.session.step(Reply(Message("assistant", calls=(call,))))
            assert turn.steps[0].is_error is is_error
            assert episode.trace.failure is None

    asyncio.run(story())


def test_a_thread_each(either: Database) -> None:
    forks = [either.fork() for _ in range(3)]
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(5):
                with forks[number].transaction():
                    forks[number].execute("UPDATE orders SET note = ? WHERE id = ?", f"{number} {step}", 1 + step)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for number, fork in enumerate(forks):
        assert fork.all(str, "SELECT note FROM orders WHERE id < 6 ORDER BY id") == [f"{number} {n}" for n in range(5)]


# -- a Resource


def test_neither_fork_nor_origin_sees_what_the_other_does(either: Database) -> None:
    twin, third = either.fork(), copy.deepcopy(copy.copy(either))
    assert twin.digest() == either.digest() == third.digest()
    twin.execute(SEND, 1)
    either.execute(SEND, 2)
    found = [[status(one, n) for n in (1, 2)] for one in (either, twin, third)]
    assert found == [["open", "sent"], ["sent", "open"], ["open", "open"]]
    assert len({one.digest() for one in (either, twin, third)}) == 3


def test_a_fork_in_the_middle_of_snapshots_goes_on_alike(either: Database) -> None:
    start = either.snapshot()
    either.execute(SEND, 1)
    middle = either.snapshot()
    either.insert(Order(None, 1))
    twin = either.fork()
    assert twin.digest() == either.digest()
    assert [one.insert(Order(None, 2)) for one in (either, twin)] == [42, 42]
    assert either.diff(twin) == []
    twin.restore(middle)
    assert (status(twin, 1), twin.one(int, "SELECT count(*) FROM orders")) == ("sent", 40)
    either.restore(start)
    assert (status(either, 1), either.insert(Order(None, 3))) == ("open", 41)


def test_snapshots_are_a_tree(either: Database) -> None:
    root = either.snapshot()
    either.execute(SEND, 1)
    left = either.snapshot()
    either.execute(SEND, 3)
    either.restore(root)
    assert status(either, 1) == "open"
    either.execute(SEND, 2)
    right = either.snapshot()
    expected = ((left, ("sent", "open")), (right, ("open", "sent")), (left, ("sent", "open")), (root, ("open",) * 2))
    for one, states in expected:
        either.restore(one)
        assert (status(either, 1), status(either, 2), status(either, 3)) == (*states, "open")
    twin = either.fork()
    twin.restore(left)
    assert (status(twin, 1), status(either, 1)) == ("sent", "open")


def test_loaded_dump_continues_the_sequences(either: Database) -> None:
    either.execute(SEND, 1)
    either.insert(Order(None, 2, note="new\nline\tand \\ more"))
    again = Database.load(either.dump())
    again.bind(Shared())
    assert type(again) is type(either)
    assert again.digest() == either.digest()
    assert again.dump() == either.dump()
    for one in (again, either):
        one.execute("DELETE FROM customers WHERE id = 3")
        assert one.insert(Order(None, 4)) == 42
    assert again.digest() == either.digest()
    assert again.diff(either) == []


def test_a_schema_that_changed_is_dumped_too(either: Database) -> None:
    either.execute("CREATE TABLE more (id INTEGER PRIMARY KEY, x TEXT DEFAULT 'd'); INSERT INTO more (id) VALUES (7)")
    either.execute("ALTER TABLE customers ADD COLUMN age INTEGER; DROP TABLE log")
    with pytest.raises(KeyError), either.transaction():
        either.execute("CREATE TABLE never (x INTEGER)")
        raise KeyError
    again = Database.load(either.dump())
    assert again.digest() == either.digest()
    assert again.execute("SELECT id, x FROM more") == [(7, "d")]
    assert again.execute("SELECT count(age), count(*) FROM customers") == [(0, 10)]
    for name in ("never", "log"):
        with pytest.raises(SQLError):
            again.execute(f"SELECT * FROM {name}")


def test_a_difference_names_rows_and_columns(either: Database) -> None:
    twin = either.fork()
    twin.execute(SEND, 7)
    twin.execute("DELETE FROM orders WHERE id = 8")
    twin.insert(Customer(99, "New"))
    found = either.diff(twin)
    assert [(one.table, one.key) for one in found] == [("customers", (99,)), ("orders", (7,)), ("orders", (8,))]
    assert found[0] == RowChange("customers", (99,), None, {"id": 99, "name": "New"})
    assert found[1].before is not None
    assert found[1].after == {**found[1].before, "status": "sent"}
    assert twin.diff(either) == [RowChange(one.table, one.key, one.after, one.before) for one in found]


def test_an_order_that_nothing_fixes_is_found(either: Database) -> None:
    loose, fixed = "SELECT what FROM log", "SELECT id FROM orders ORDER BY id LIMIT 3"
    either.execute("INSERT INTO log (what) VALUES ('a'), ('b'), ('c')")
    twin = either.fork()
    twin.reverse_unordered_selects()
    assert twin.logical_digest() == either.logical_digest()
    assert either.execute(fixed) == twin.fork().execute(fixed)
    assert either.execute(loose) == twin.fork().execute(loose)[::-1] != twin.execute(loose)
    twin.reverse_unordered_selects(on=False)
    assert either.execute(loose) == twin.execute(loose)


# -- in a world


def test_a_world_forks_with_its_database(either: Database) -> None:
    world = Shop(db=either)
    twin = world.copy()
    assert world.send(5) == twin.send(5)
    assert asyncio.run(resource.digest(world)) == asyncio.run(resource.digest(twin))
    loaded = resource.load(Shop, asyncio.run(resource.dump(world)))
    assert (loaded.send(6), loaded.wait(3), loaded.order(1)) == (world.send(6), world.wait(3), world.order(1))
    assert asyncio.run(resource.digest(world)) == asyncio.run(resource.digest(loaded))


def test_time_is_the_worlds(either: Database) -> None:
    world = Shop(db=either)
    assert world.wait(25.5) == "1970-01-02 01:30:00"
    world.send(1)
    assert world.db.execute("SELECT substr(at, 1, 19), what FROM log") == [("1970-01-02 01:30:00", "sent 1")]
    (found,) = world.db.execute("SELECT CURRENT_DATE, CURRENT_TIME")
    assert (found[0], found[1][:8]) == ("1970-01-02", "01:30:00")


def test_chance_is_the_worlds(either: Database) -> None:
    world = asyncio.run(begin(Shop(db=either), seed=1, task_id="a"))
    twin, other = world.copy(), asyncio.run(begin(Shop(db=either), seed=2, task_id="a"))
    draws = [one.db.execute("SELECT random(), random()") for one in (world, twin, other)]
    assert draws[0] == draws[1] != draws[2]
    assert draws[0] != world.db.execute("SELECT random(), random()")
    assert len(set(draws[0][0])) == 2
    assert world.rng.counter == 4
    twin.db.execute("SELECT random(), random()")
    assert world.rng.bits() == twin.rng.bits()


def test_chance_and_time_need_a_world(either: Database) -> None:
    alone = Database.load(either.dump())
    for sql in ("SELECT random()", "SELECT CURRENT_TIMESTAMP", "INSERT INTO log (what) VALUES ('x')"):
        with pytest.raises(Refused, match="needs a world"):
            alone.execute(sql)
    assert alone.execute("SELECT 1") == [(1,)]


# -- questions


def test_a_role_sees_its_views_and_nothing_else(either: Database) -> None:
    found = either.ask("SELECT * FROM orders ORDER BY id", role="customer", who=3)
    assert (found.columns, found.rows[0], len(found.rows)) == (["id", "status"], [2, "open"], 4)
    assert either.ask("SELECT count(*) FROM orders", role="customer").rows == [[0]]
    for sql in ("SELECT * FROM customers", "SELECT * FROM main.orders", "SELECT customer FROM orders"):
        with pytest.raises(qn.ToolError):
            either.ask(sql, role="customer", who=3)
    with pytest.raises(UsageError, match="customer"):
        either.ask("SELECT 1", role="boss")
    assert either.ask("SELECT count(*) FROM customers").rows == [[10]]


def test_answers_are_bounded(either: Database) -> None:
    found = either.ask("SELECT id, label FROM orders ORDER BY id", limits=Limits(rows=3))
    assert (found.columns, found.rows, found.is_cut) == (["id", "label"], [[n, "x'01'"] for n in (1, 2, 3)], True)
    assert either.ask("SELECT id FROM orders LIMIT 40", limits=Limits(rows=40)).is_cut is False
    assert len(either.ask("SELECT name FROM customers", limits=Limits(characters=25)).rows) == 2
    assert either.ask("SELECT 1 WHERE 1 = 0").rows == []
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(qn.ToolError, match="too long"):
        either.ask(endless, limits=Limits(seconds=0.2, steps=10**9))
    assert either.ask("SELECT 1").rows == [[1]]
