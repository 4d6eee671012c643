"""Threads come when they are needed, and go when they are not."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quintain.serve.episodes import executor as module
from quintain.serve.episodes.executor import FEW, TRIALS, Crew, Overdue, Place
from tests.serve.operation.raw import ask
from tests.serve.serving import serve, until


def threads() -> int:
    return sum(thread.name == "quintain-world" for thread in threading.enumerate())


def test_a_server_lets_its_threads_go(tmp_path: Path) -> None:
    hasty = (
        "import quintain.serve.episodes.executor as crew, quintain.serve.server as server\n"
        "crew.IDLE_S = server.REAP_S = 0.1"
    )
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


async def here() -> int:
    return threading.get_ident()


async def waits() -> int:
    await asyncio.sleep(0)
    return threading.get_ident()


def test_work_of_a_kind_that_waits_is_not_done_on_the_loop() -> None:
    """Or its episode would be bound to the loop, and with it all that comes after, whether it blocks or not."""

    async def play() -> None:
        crew = Crew()
        for _ in range(TRIALS * 2):
            assert await crew.run(Place(), "waits", waits) != threading.get_ident()
        crew.close()

    asyncio.run(play())


def test_what_waited_on_the_loop_goes_on_there_but_does_not_stall_it() -> None:
    async def blocks() -> int:
        if threading.current_thread() is threading.main_thread():
            time.sleep(2)  # noqa: ASYNC251  # that is what it is about
        return threading.get_ident()

    async def play() -> None:
        crew, bound = Crew(), Place()
        main = threading.get_ident()
        for _ in range(TRIALS):
            await crew.run(Place(), "mostly", here)
        assert await crew.run(bound, "mostly", waits) == main
        assert await crew.run(Place(), "mostly", here) != main
        assert await crew.run(bound, "other", here) == main
        assert await crew.run(bound, "judge", blocks) != main
        assert await crew.run(bound, "other", here) == main  # The world is the one that it was.
        assert await crew.run(bound, "tool", blocks, redo=blocks) != main
        for _ in range(TRIALS):
            assert await crew.run(bound, "fresh", here) != main  # It is another one.
        crew.close()

    asyncio.run(play())


class Odd(BaseException):
    """Nothing that anybody expects."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, Odd, asyncio.CancelledError])
def test_whatever_work_raises_whoever_waits_is_told(kind: type[BaseException]) -> None:
    """On a thread, which goes on, and then on the loop, which does, too."""
    where = set[int]()

    async def breaks() -> int:
        where.add(threading.get_ident())
        if kind is not asyncio.CancelledError:
            raise kind("no more")
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return 0

    async def play() -> None:
        crew = Crew()
        for _ in range(2 * TRIALS):
            with pytest.raises(RuntimeError, match=f"{kind.__name__} was raised|cancelled itself"):
                await asyncio.wait_for(crew.run(Place(), "breaks", breaks), 10)
        assert (threading.get_ident() in where) == (kind is not asyncio.CancelledError)
        assert len(where - {threading.get_ident()}) == 1
        crew.close()

    asyncio.run(play())


def test_an_episode_whose_thread_was_given_up_goes_on_elsewhere() -> None:
    gate = threading.Event()

    async def blocks() -> None:
        while not gate.is_set():  # A thread that runs no Python hangs the tracer of coverage in 3.11.
            with contextlib.suppress(Overdue):  # It will not be told.
                gate.wait(0.01)

    async def play() -> None:
        crew, bound = Crew(), Place()
        home = await crew.run(bound, "waits", waits)
        with pytest.raises(TimeoutError):
            await crew.run(bound, "blocks", blocks, limit_s=0.05)
        assert crew.lost == 1
        assert await crew.run(bound, "waits", waits, limit_s=5) != home
        gate.set()
        crew.close()

    asyncio.run(play())


def test_nobody_is_sent_to_a_thread_in_which_what_was_cancelled_still_runs() -> None:
    entered, gate = threading.Event(), threading.Event()

    async def hang() -> None:
        entered.set()
        while not gate.wait(0.01):
            continue

    async def answer() -> str:
        return "done"

    async def play() -> None:
        crew = Crew()
        hanging = asyncio.create_task(crew.run(Place(), "hang", hang))
        await asyncio.to_thread(entered.wait)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        try:
            async with asyncio.timeout(10):
                assert await crew.run(Place(), "answer", answer) == "done"
        finally:
            gate.set()
            crew.close()

    asyncio.run(play())


def test_work_that_says_that_its_time_is_over_costs_no_thread() -> None:
    async def late() -> None:
        raise TimeoutError("its own")

    async def play() -> None:
        crew = Crew()
        with pytest.raises(TimeoutError, match="its own"):
            await crew.run(Place(), "late", late, limit_s=60.0)
        assert (len(crew._hands), crew.lost) == (1, 0)
        crew.close()

    asyncio.run(play())
