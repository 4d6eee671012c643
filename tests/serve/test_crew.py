"""Threads come when they are needed, and go when they are not."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quintain.serve import crew as module
from quintain.serve.crew import FEW, Crew, Place
from tests.serve.operation.raw import ask
from tests.serve.serving import serve, until


def threads() -> int:
    return sum(thread.name == "quintain-world" for thread in threading.enumerate())


def test_a_server_lets_its_threads_go(tmp_path: Path) -> None:
    hasty = "import quintain.serve.crew as crew, quintain.serve.server as server\ncrew.IDLE_S = server.REAP_S = 0.1"
    with serve("gated", folder=tmp_path, before=hasty) as server, ThreadPoolExecutor(12) as pool:
        before = server.threads

        def play(number: int) -> None:
            at = {"x-session-id": f"s{number}"}
            assert ask(server.port, "POST", "/create", body={"split": "train", "index": 0}, headers=at)[0] == 200
            held = {"name": "hold", "input": {"gate": "all"}}
            assert ask(server.port, "POST", "/call", body=held, headers=at)[0] == 200

        playing = [pool.submit(play, number) for number in range(12)]
        until(lambda: server.gates.entered("all") == 12)
        assert server.threads >= before + 12
        server.gates.open("all")
        for one in playing:
            one.result()
        until(lambda: server.threads <= before + FEW)


def test_threads_that_nobody_needs_end_but_for_a_few_and_those_of_episodes_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = threads()

    async def block() -> int:
        time.sleep(0.05)  # noqa: ASYNC251  # that is what it is about
        return threading.get_ident()

    async def wait() -> int:
        await asyncio.sleep(0.01)
        return threading.get_ident()

    async def play() -> None:
        crew, bound = Crew(), Place()
        crew._watchdog.close()
        await asyncio.gather(*(crew.run(Place(), number, block) for number in range(40)))
        home = await crew.run(bound, "wait", wait)
        assert threads() - before == 40
        crew.rest()
        assert threads() - before == 40
        monkeypatch.setattr(module, "IDLE_S", 0.0)
        crew.rest()
        await asyncio.to_thread(until, lambda: threads() - before <= FEW + 1)
        assert await crew.run(bound, "wait", wait) == home
        await asyncio.gather(*(crew.run(Place(), number, block) for number in range(10)))
        del bound
        crew.rest()
        await asyncio.to_thread(until, lambda: threads() - before <= FEW)
        crew.close()

    asyncio.run(play())
    until(lambda: threads() == before)
