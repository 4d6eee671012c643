"""Tools that do to their database what they should not: the episode fails, and no other world notices."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
from typing import Any

import apsw
import pytest

import quintain as qn
from quintain import codec
from quintain.episode import Episode
from quintain.errors import UsageError
from quintain.executor import ALARM, DeadlineExceeded
from quintain.resources.database import Database
from quintain.resources.database.connection import Refused
from quintain.trace import Message, Reply, ToolCall
from tests.resources.database.shop import SEND, shop, status

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
ENDLESS_READ = f"{ENDLESS} SELECT count(*) FROM n"
# It asks for no random numbers: coverage.py holds a lock around each call of what it measures, and an interrupt that
# comes just before it lets go would leave it locked.
ENDLESS_WRITE = f"{ENDLESS} INSERT INTO log (luck, what) SELECT 1, i FROM n"


class Careless(qn.State):
    db: Database

    @qn.tool
    def send(self, order: int) -> str:
        """Send an order.

        Args:
            order: Its number.
        """
        self.db.execute(SEND, order)
        return str(status(self.db, order))

    @qn.tool
    def misuse(self, how: str) -> str:
        """Do what no tool should.

        Args:
            how: Which of it.
        """
        return str(getattr(self, how)())

    def runs_for_ever(self) -> object:
        return self.db.execute(ENDLESS_READ)

    def writes_for_ever(self) -> object:
        with self.db.transaction():
            self.db.execute(SEND, 2)
            return self.db.execute(ENDLESS_WRITE)

    def leaves_a_transaction_open(self) -> None:
        self.db.transaction().__enter__()
        self.db.execute(SEND, 2)

    def closes_the_connection(self) -> None:
        with self.db.transaction():
            self.db.execute(SEND, 2)
            assert self.db.unit is not None
            self.db.unit.sqlite.close()

    def uses_another_thread(self) -> None:
        errors: list[BaseException] = []

        def intrude() -> None:
            try:
                self.db.execute(SEND, 3)
            except Refused as error:
                errors.append(error)

        with self.db.transaction():
            self.db.execute(SEND, 2)
            thread = threading.Thread(target=intrude)
            thread.start()
            thread.join()
            raise errors[0]

    def attaches_a_file(self) -> object:
        return self.db.execute("ATTACH '/tmp/other.db' AS other")

    def loads_an_extension(self) -> object:
        return self.db.execute("SELECT load_extension('/lib/x.so')")

    def turns_foreign_keys_off(self) -> object:
        return self.db.execute("PRAGMA foreign_keys = OFF")

    def writes_the_schema(self) -> object:
        return self.db.execute("UPDATE sqlite_schema SET sql = '' WHERE name = 'orders'")

    def writes_pages(self) -> object:
        return self.db.execute("UPDATE sqlite_dbpage SET data = zeroblob(1024) WHERE pgno = 2")

    def asks_for_too_much_memory(self) -> object:
        return self.db.execute("SELECT length(zeroblob(900000000))")


MISUSES = {
    "runs_for_ever": ("quintain:tool_timeout", "took longer"),
    "writes_for_ever": ("quintain:tool_timeout", "took longer"),
    "leaves_a_transaction_open": ("quintain:state_bug", "in the middle of a transaction"),
    "closes_the_connection": ("quintain:tool_bug", "closed"),
    "uses_another_thread": ("quintain:tool_bug", "one thread at a time"),
    "attaches_a_file": ("quintain:tool_bug", "one file"),
    "loads_an_extension": ("quintain:tool_bug", ""),
    "turns_foreign_keys_off": ("quintain:tool_bug", "change the connection"),
    "writes_the_schema": ("quintain:tool_bug", "may not be modified"),
    "writes_pages": ("quintain:tool_bug", ""),
    "asks_for_too_much_memory": ("quintain:tool_bug", "too big"),
}


def call(tool: str, **arguments: Any) -> Reply:
    return Reply(Message("assistant", calls=(ToolCall("call_1", tool, codec.text(arguments)),)))


def test_every_misuse_is_tried() -> None:
    own = {name for name in vars(Careless) if "_" in name.strip("_") and not name.startswith("_")}
    assert own == set(MISUSES)


@pytest.mark.parametrize("how", MISUSES)
def test_a_misuse_fails_the_episode_and_no_other(how: str) -> None:
    env = qn.Environment(
        "careless",
        tasks=lambda split: [qn.Task(id="one", prompt="Send some.", start=Careless(db=shop()))],
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(nothing),
        state=Careless,
        config=qn.Config(tool_timeout_s=0.3),
    )
    kind, words = MISUSES[how]

    async def story() -> None:
        episode = await Episode.begin(env, env.tasks("test")[0], seed=1)
        await episode.session.step(call("send", order=1))
        twin, straight = await episode.fork(), await episode.fork()
        before = episode.state.db.snapshot()
        await episode.session.step(call("misuse", how=how))
        failure = episode.trace.failure
        assert failure is not None
        assert (failure.kind, words in failure.message) == (kind, True), failure
        if how != "leaves_a_transaction_open":
            assert episode.state.db.image is before.image
        with pytest.raises(UsageError):
            await episode.session.step(call("send", order=9))
        for one in (twin, straight):
            await one.session.step(call("send", order=2))
            assert one.trace.failure is None
        assert status(twin.state.db, 2) == "sent"
        assert twin.trace.to_bytes() == straight.trace.to_bytes()
        with pytest.raises(apsw.ConstraintError, match="FOREIGN KEY"):
            twin.state.db.execute("INSERT INTO orders (id, customer) VALUES (999, 999)")

    asyncio.run(story())


@qn.reward
def nothing(outcome: qn.EpisodeView[Careless]) -> float:
    return 0.0


def test_slow_transaction_is_interrupted_and_undone(db: Database) -> None:
    def swallow() -> None:
        with db.transaction():
            db.execute("DELETE FROM orders")
            with db.transaction():
                db.execute(ENDLESS_WRITE)

    before = db.snapshot()
    for work in (lambda: db.execute(ENDLESS_READ), lambda: db.execute(ENDLESS_WRITE), swallow):
        with pytest.raises(DeadlineExceeded):
            asyncio.run(ALARM.call(0.1, work))
        assert db.image is before.image
        assert db.execute("SELECT count(*) FROM orders") == [(400,)]


def test_in_another_thread_it_is_interrupted_as_well(db: Database) -> None:
    before = db.snapshot()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for sql in (ENDLESS_READ, ENDLESS_WRITE):
            playing = pool.submit(asyncio.run, ALARM.call(0.1, db.execute, sql))
            with pytest.raises(DeadlineExceeded):
                playing.result(timeout=60)
            assert db.image is before.image


def test_a_transaction_that_is_never_left_goes_with_its_world(db: Database) -> None:
    twin = db.fork()
    twin.transaction().__enter__()
    twin.execute("DELETE FROM orders")
    with pytest.raises(Refused, match="in the middle"):
        twin.fork()
    del twin
    gc.collect()
    assert db.execute("SELECT count(*) FROM orders") == [(400,)]


def test_a_connection_that_was_closed_is_never_used_again(db: Database) -> None:
    for _ in range(3):
        twin = db.fork()
        with pytest.raises(apsw.ConnectionClosedError), twin.transaction():
            assert twin.unit is not None
            twin.unit.sqlite.close()
            twin.execute("SELECT 1")
        assert twin.unit is None
        assert twin.execute("SELECT count(*) FROM orders") == [(400,)]
