"""What several processes count together."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from quintain.config import Config
from quintain.serve.asgi import Event
from quintain.serve.common import Common
from quintain.serve.door import Paces
from quintain.serve.episodes.host import Host, Wanted
from quintain.serve.errors import Full
from quintain.serve.journal.database import Journal
from quintain.serve.keys import Caller
from quintain.serve.limits import GRACE_S, Limits, Room, patience_s
from quintain.serve.tally import Tally
from tests.serve.environments import counter


def forked(work: Callable[[], None]) -> int:
    """What became of a process that does this."""
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_all_processes_together_take_no_more_than_there_is() -> None:
    tally = Tally(5)

    def greedy(number: int) -> None:
        tally.number = number
        for _ in range(400):
            tally.take(("all", 1000), (f"key {number}", 300))

    pids = []
    for number in range(1, 5):
        pid = os.fork()
        if not pid:
            try:
                greedy(number)
            finally:
                os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    each = [tally.sum(f"key {number}") for number in range(1, 5)]
    assert sum(each) == tally.sum("all") == 1000
    assert max(each) <= 300
    tally.close()


def test_one_that_is_full_takes_nothing_of_the_others() -> None:
    tally = Tally()
    assert tally.take(("all", 5), ("key", 1)) == ""
    assert tally.take(("all", 5), ("key", 1)) == "key"
    assert (tally.sum("all"), tally.sum("key"), tally.sum("nobody")) == (1, 1, 0)


def test_what_the_dead_held_goes_with_them_and_what_they_counted_stays() -> None:
    common = Common.of(2, 1)

    def live_and_die() -> None:
        common.join(1)
        common.held.add("episodes", 3)
        common.counted.add("begun", 3)
        os.kill(os.getpid(), signal.SIGKILL)

    assert forked(live_and_die) == -signal.SIGKILL
    common.held.add("episodes", 1)
    assert common.held.sum("episodes") == 4
    forked(lambda: common.join(1))
    assert common.held.sum("episodes") == 1
    assert common.counted.sum("begun") == 3
    common.close()


def test_who_dies_with_the_lock_locks_nobody_out() -> None:
    tally = Tally(2)

    def die() -> None:
        with tally._held():
            os.kill(os.getpid(), signal.SIGKILL)

    assert forked(die) == -signal.SIGKILL
    tally.add("still", 1)
    assert tally.sum("still") == 1
    tally.close()


def test_who_reads_waits_for_who_writes() -> None:
    tally = Tally(2)
    held, free = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        try:
            with tally._held():
                os.write(held[1], b"!")
                os.read(free[0], 1)
        finally:
            os._exit(0)
    os.read(held[0], 1)
    reading = threading.Thread(target=tally.sum, args=("all",))
    reading.start()
    try:
        reading.join(0.1)
        assert reading.is_alive()
    finally:
        os.write(free[1], b"!")
        os.waitpid(pid, 0)
        reading.join()
    for end in (*held, *free):
        os.close(end)
    tally.close()


def test_a_pace_is_of_all_processes() -> None:
    tally = Tally(2)

    def ask() -> None:
        for _ in range(15):
            tally.pace("key", 10.0)

    forked(ask)
    waits = [tally.pace("key", 10.0) for _ in range(10)]
    assert waits[:5] == [0.0] * 5  # 20 are saved up, of which another process had 15.
    assert 0 < waits[-1] <= 0.1
    time.sleep(waits[-1])
    assert tally.pace("key", 10.0) == 0
    assert 0 < tally.pace("key", 10.0, on_credit=True) <= 0.1 < tally.pace("key", 10.0, on_credit=True) <= 0.2
    tally.close()


def test_names_that_nobody_needs_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = Tally(slots=4)
    now = time.monotonic()
    for number in range(20):
        tally.add(f"one {number}", 1)
        tally.give(f"one {number}")
    assert len(tally._known) <= 4
    for number in range(3):
        assert tally.pace(f"key {number}", 1.0) == 0
    tally.add("open", 1)
    with pytest.raises(Full, match="4 names"):
        tally.pace("another", 1.0)
    monkeypatch.setattr("quintain.serve.tally.time.monotonic", lambda: now + 10)  # Their buckets are full again.
    assert tally.pace("another", 1.0) == 0
    assert tally.sum("open") == 1


def test_more_than_can_be_counted_are_refused_and_change_no_count() -> None:
    tally = Tally(slots=3)
    room = Room(Limits(), tally)
    for key in ("a", "b"):
        room.enter("episodes", key)
    for _ in range(3):
        with pytest.raises(Full, match="3 names") as refused:
            room.enter("episodes", "c")
        with pytest.raises(Full):
            room.add("episodes", "c", 1)
        with pytest.raises(Full):
            room.add("sessions", "a", 1)
        assert refused.value.retry_after_s == 5
    assert (room.open("episodes"), room.open("sessions")) == (2, 0)
    assert [tally.sum(f"episodes/{key}") for key in "abc"] == [1, 1, 0]
    room.add("episodes", "a", -1)
    room.enter("episodes", "c")
    assert [tally.sum(f"episodes/{key}") for key in "abc"] == [0, 1, 1]


def test_of_two_numbers_that_belong_together_both_are_counted_or_none() -> None:
    tally = Tally(slots=1)
    with pytest.raises(Full, match="1 names"):
        Room(Limits(), tally).add("episodes", "a", 1)
    assert tally.sum("episodes/a") == 0


def test_messages_that_cannot_be_counted_are_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def receive() -> Event:
        return {"type": "websocket.receive"}

    async def received() -> Event:
        return await Paces(1.0, tally).slowed("key", receive)()

    tally = Tally(slots=1)
    tally.add("another", 1)
    monkeypatch.setattr("quintain.serve.door.asyncio.sleep", sleep)
    assert asyncio.run(received())["type"] == "websocket.receive"
    assert waited == [5]


def test_episodes_that_cannot_be_counted_are_there_again_and_take_no_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Before the kill they took the rows that those who ask by now have."""
    callers = [Caller(name, "trainer") for name in "abc"]

    async def live() -> None:
        journal = Journal(tmp_path)
        host = Host([counter], log=journal)
        for caller in callers:
            await (await host.create(Wanted(task=0), caller)).ready()
        host.crew.close()
        journal.close()

    async def live_again() -> None:
        journal = Journal(tmp_path)
        common = Common.of(1, 1)._replace(held=Tally(slots=3))
        host = Host([counter], log=journal, common=common)
        await host.recover(journal.pasts())
        assert (host.open, host.room.open("episodes")) == (3, 2)
        for caller in callers:
            (one,) = host.lives(caller)
            await one.call("add", '{"by": 1}')
            await host.close(one.id, caller)
        assert (host.open, host.room.open("episodes")) == (0, 0)
        assert [common.held.sum(f"episodes/{caller.name}") for caller in callers] == [0, 0, 0]
        host.crew.close()
        journal.close()

    asyncio.run(live())
    asyncio.run(live_again())
    assert "'c' is not counted" in caplog.text


def test_what_does_not_come_to_be_takes_no_room() -> None:
    room = Room(Limits(episodes=2, episodes_per_key=1), Tally())
    with pytest.raises(OSError, match="disk"), room.entered("episodes", "a"):
        raise OSError("disk")
    room.enter("episodes", "a")
    with pytest.raises(Full, match="all 1 episodes of this key"):
        room.enter("episodes", "a")
    room.enter("episodes", "b")
    with pytest.raises(Full, match="all 2 episodes of this server"):
        room.enter("episodes", "c")
    room.add("episodes", "a", -1)
    room.enter("episodes", "a")
    assert room.open("episodes") == 2


@pytest.mark.parametrize(("calls", "seconds"), [(0, 2.0), (1, 2.0), (3, 6.0)])
def test_a_reply_may_take_as_long_as_all_of_its_calls(calls: int, seconds: float) -> None:
    assert patience_s(Config(tool_timeout_s=2.0), calls) == seconds + GRACE_S
