"""Numbers of open episodes, rates of requests, and how long calls may take."""

from __future__ import annotations

import asyncio

import pytest

from quintain.config import Config
from quintain.serve.errors import Full
from quintain.serve.http.asgi import Event
from quintain.serve.http.auth import RateLimit
from quintain.serve.http.limits import GRACE_S, Limits, Room, patience_s


def test_an_episode_that_does_not_begin_takes_no_room() -> None:
    room = Room(Limits(episodes=2, episodes_per_key=1))
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


def test_a_rate_allows_twice_as_many_at_once_and_then_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("quintain.serve.http.auth.time.monotonic", lambda: now)
    paces = RateLimit(2.0)
    for _ in range(4):
        paces.take("a")
    with pytest.raises(Full, match="more than 2 requests per second") as refused:
        paces.take("a")
    assert refused.value.retry_after_s == 1
    paces.take("b")
    now += 0.5
    paces.take("a")
    with pytest.raises(Full):
        paces.take("a")


def test_messages_of_a_socket_that_come_too_fast_are_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def receive() -> Event:
        return {"type": "websocket.receive"}

    async def received() -> None:
        slowed = RateLimit(1.0).slowed("key", receive)
        for _ in range(4):
            assert (await slowed())["type"] == "websocket.receive"

    monkeypatch.setattr("quintain.serve.http.auth.time.monotonic", lambda: 100.0)
    monkeypatch.setattr("quintain.serve.http.auth.asyncio.sleep", sleep)
    asyncio.run(received())
    assert waited == [0, 0, 1, 2]
