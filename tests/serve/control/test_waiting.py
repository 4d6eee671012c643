"""What a client waits for: worlds that are built for long, and the slowest of a group of a day."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.harness import Model, Request
from quintain.models import Scripted
from quintain.trace import Reply
from tests.serve.control.conftest import TALK
from tests.serve.control.test_remote import call, run, say
from tests.serve.serving import serve

HASTY = "import quintain.serve.control.episodes as episodes\nepisodes.READY_S = 0.0"
REAPING = "import quintain.serve.http.server as server\nserver.REAP_S = 0.1"


def test_copies_that_begin_late_are_waited_for(tmp_path: Path) -> None:
    async def play(url: str) -> None:
        async with qn.connect(url) as server:
            remote = await server.environment("hesitant")
            first = await remote.begin("test", 0, harness="server")
            for episode in (first, await first.fork(), await remote.restore(await first.snapshot(), harness="server")):
                assert episode.session.request().messages[-1].text == "Take 1 coins."
                await episode.session.step(call("take", '{"coins": 1}'))
                await episode.session.step(say("done"))
                assert await episode.verify() == 1

    with serve("hesitant", folder=tmp_path, file=TALK, before=HASTY) as served:
        run(play(served.url))


class Uneven:
    """The second that begins goes on for longer than an episode may be idle; all others are done at once."""

    name = "uneven"

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        if next(self._numbers) != 1:
            return Scripted([call("take", '{"coins": 1}'), say("done")])
        until = time.monotonic() + 2.0

        async def dawdle(_request: Request) -> Reply:
            await asyncio.sleep(0.2)
            return call("take", '{"coins": 1}') if time.monotonic() < until else say("done")

        return dawdle


@pytest.mark.slow
def test_the_worlds_of_a_day_are_kept_until_nobody_can_go_on_in_them(tmp_path: Path) -> None:
    async def play(url: str) -> None:
        async with qn.connect(url) as server:
            remote = await server.environment("shift")
            groups = qn.rollouts(remote, Uneven(), remote.tasks("test"), group=2, split="test")
            traces = [trace async for group in groups for trace in group.traces]
            assert [trace.failure for trace in traces] == [None] * 6
            assert [bool(trace.continues) for trace in traces] == [False] * 2 + [True] * 4
            async with asyncio.timeout(10):
                while remote._open_episodes.ids:  # Nobody tells when the last is let go
                    gc.collect()
                    await asyncio.sleep(0.05)

    with serve("shift", folder=tmp_path, file=TALK, options=("--idle", "1"), before=REAPING) as served:
        run(play(served.url))
