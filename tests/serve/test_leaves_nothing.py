"""A session that was closed leaves nothing behind, not even for the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from quintain.serve.host import Host, Wanted
from quintain.serve.keys import ANYONE
from tests.serve.environments import counter


@pytest.mark.parametrize("last_words", ["", "3"])
def test_what_is_closed_is_gone(last_words: str) -> None:
    async def play() -> list[bool]:
        host = Host([counter])
        gone: list[weakref.ref[Any]] = []
        gc.disable()
        try:
            for number in range(3):
                live = await host.create(Wanted(split="train", task=0, id=f"s{number}"), ANYONE)
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
            host.crew.close()
        return [one() is None for one in gone]

    assert asyncio.run(play()) == [True] * 6
