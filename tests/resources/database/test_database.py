"""Contract of a Database: the laws of a Resource, and its place in a world."""

from __future__ import annotations

import asyncio
import copy
import os
import subprocess
import sys

import pytest

import quintain as qn
from quintain import resource
from quintain.resources.database import Database
from quintain.resources.database.connection import Refused
from quintain.state import Shared, begin
from tests.resources.database.shop import SEND, Shop, shop, status

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
    assert len(db.image.pages.layers) < 12
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


# -- order


def test_an_order_that_nothing_fixes_is_found(db: Database) -> None:
    twin = db.fork()
    twin.reverse_unordered_selects()
    loose, fixed = "SELECT id FROM orders LIMIT 3", "SELECT id FROM orders ORDER BY id LIMIT 3"
    assert db.execute(fixed) == twin.fork().execute(fixed)
    assert db.execute(loose) != twin.fork().execute(loose)
    twin.reverse_unordered_selects(on=False)
    assert db.execute(loose) == twin.execute(loose)
