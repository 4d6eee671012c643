"""A session that was closed, and a request that was answered, leave nothing, not even for the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import weakref
from typing import Any

import pytest

from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.http.keys import ANYONE
from tests.serve.environments import counter
from tests.serve.mcp.episodes import served


@pytest.mark.parametrize("last_words", ["", "3"])
def test_closed_episodes_leave_no_objects(last_words: str) -> None:
    async def play() -> list[bool]:
        host = Host([counter])
        gone: list[weakref.ref[Any]] = []
        gc.disable()
        try:
            for number in range(3):
                live = await host.create(EpisodeSpec(split="train", task=0, id=f"s{number}"), ANYONE)
                episode = await live.ready()
                await live.call("add", '{"by":3}', key="k")
                if last_words:
                    await live.answer(last_words)
                await host.close(live.id, ANYONE)
                gone += [weakref.ref(live), weakref.ref(episode)]
                del live, episode
                await asyncio.sleep(0)
        finally:
            gc.enable()
            host.executor.close()
        return [one() is None for one in gone]

    assert asyncio.run(play()) == [True] * 6


@pytest.mark.slow
def test_answered_requests_leave_no_garbage() -> None:
    """Garbage is collected rarely, and each request here is as large as it may be."""
    times = 20

    def play(port: int) -> None:
        line = http.client.HTTPConnection("127.0.0.1", port)
        for _ in range(times):
            for path, body in (
                ("/create", {"split": "train", "index": 0}),
                ("/call", {"name": "add", "input": {"by": 1}}),
                ("/call", {"name": "nothing", "input": {}}),
                ("/delete", {}),
                ("/ping", {}),
                ("/no/such/page", {}),
            ):
                line.request("POST", path, json.dumps(body), {"x-session-id": "mine"})
                line.getresponse().read()
        line.close()

    async def left() -> int:
        async with served(counter) as here:
            await asyncio.to_thread(play, here.port)
            gc.collect()
            gc.disable()
            await asyncio.to_thread(play, here.port)
            return gc.collect()

    try:
        assert asyncio.run(left()) < times
    finally:
        gc.enable()
