"""Executor of episodes: work runs once, on the event loop or on threads, and idle threads end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import quintain as qn
from quintain.serve.episodes import executor as module
from quintain.serve.episodes.executor import EXIT_STATUS, MIN_THREADS, TRIALS, Affinity, EpisodeExecutor, ToolTimeout
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.episodes.live import Live
from quintain.serve.http.keys import ANYONE
from tests.serve.operation.raw import ask
from tests.serve.serving import serve, until


def threads() -> int:
    return sum(thread.name == "quintain-world" for thread in threading.enumerate())


def test_threads_of_a_server_end_when_they_are_idle(tmp_path: Path) -> None:
    hasty = (
        "import quintain.serve.episodes.executor as executor, quintain.serve.http.server as server\n"
        "executor.IDLE_S = server.REAP_S = 0.1"
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
        until(lambda: server.threads <= before + MIN_THREADS + 1)  # And the watchdog.


def test_idle_threads_end_except_a_few_and_those_of_episodes(
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
        executor, bound = EpisodeExecutor(), Affinity()
        await asyncio.gather(*(executor.run(Affinity(), number, block) for number in range(40)))
        home = await executor.run(bound, "wait", wait)
        assert threads() - before == 40
        executor.drop_idle()
        assert threads() - before == 40
        monkeypatch.setattr(module, "IDLE_S", 0.0)
        executor.drop_idle()
        await asyncio.to_thread(until, lambda: threads() - before <= MIN_THREADS + 1)
        assert await executor.run(bound, "wait", wait) == home
        await asyncio.gather(*(executor.run(Affinity(), number, block) for number in range(10)))
        del bound
        executor.drop_idle()
        await asyncio.to_thread(until, lambda: threads() - before <= MIN_THREADS)
        executor.close()

    asyncio.run(play())
    until(lambda: threads() == before)


async def here() -> int:
    return threading.get_ident()


async def waits() -> int:
    await asyncio.sleep(0)
    return threading.get_ident()


def test_work_of_a_kind_that_waits_runs_on_threads() -> None:
    """Otherwise its episode would be bound to the event loop, and all its later work with it."""

    async def play() -> None:
        executor = EpisodeExecutor()
        for _ in range(TRIALS * 2):
            assert await executor.run(Affinity(), "waits", waits) != threading.get_ident()
        executor.close()

    asyncio.run(play())


class Odd(BaseException):
    """Nothing that anybody expects."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, Odd, asyncio.CancelledError])
def test_exceptions_of_work_reach_the_caller(kind: type[BaseException]) -> None:
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
        executor = EpisodeExecutor()
        for _ in range(2 * TRIALS):
            with pytest.raises(RuntimeError, match=f"{kind.__name__} was raised|cancelled itself"):
                await asyncio.wait_for(executor.run(Affinity(), "breaks", breaks), 10)
        assert (threading.get_ident() in where) == (kind is not asyncio.CancelledError)
        assert len(where - {threading.get_ident()}) == 1
        executor.close()

    asyncio.run(play())


def test_episode_of_an_abandoned_thread_goes_on_elsewhere() -> None:
    gate = threading.Event()

    async def blocks() -> None:
        while not gate.is_set():  # A thread that runs no Python hangs the tracer of coverage in 3.11.
            gate.wait(0.01)

    async def play() -> None:
        executor, bound = EpisodeExecutor(), Affinity()
        home = await executor.run(bound, "waits", waits)
        with pytest.raises(ToolTimeout):
            await executor.run(bound, "blocks", blocks, limit_s=0.05)
        assert executor.abandoned == 1
        assert await executor.run(bound, "waits", waits, limit_s=5) != home
        gate.set()
        await asyncio.to_thread(until, lambda: executor.abandoned == 0)
        executor.close()

    asyncio.run(play())


def test_thread_of_cancelled_work_gets_no_other_work() -> None:
    entered, gate = threading.Event(), threading.Event()

    async def hang() -> None:
        entered.set()
        while not gate.wait(0.01):
            continue

    async def answer() -> str:
        return "done"

    async def play() -> None:
        executor = EpisodeExecutor()
        hanging = asyncio.create_task(executor.run(Affinity(), "hang", hang))
        await asyncio.to_thread(entered.wait)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        try:
            async with asyncio.timeout(10):
                assert await executor.run(Affinity(), "answer", answer) == "done"
        finally:
            gate.set()
            executor.close()

    asyncio.run(play())


def test_timeout_that_work_raises_itself_abandons_no_thread() -> None:
    async def late() -> None:
        raise TimeoutError("its own")

    async def play() -> None:
        executor = EpisodeExecutor()
        with pytest.raises(TimeoutError, match="its own"):
            await executor.run(Affinity(), "late", late, limit_s=60.0)
        assert (len(executor._threads), executor.abandoned) == (1, 0)
        executor.close()

    asyncio.run(play())


class Line(qn.State):
    """A tool with an effect outside of its world, which the test counts."""

    sent: int = 0

    @qn.tool
    def send(self, seconds: float = 0.0) -> str:
        """Send a line.

        Args:
            seconds: How long it takes.
        """
        EFFECTS.append(threading.current_thread().name)
        time.sleep(seconds)
        self.sent += 1
        return f"sent {self.sent}"


EFFECTS: list[str] = []


@qn.reward
def sent(outcome: qn.EpisodeView[Line]) -> float:
    return outcome.state.sent / 100


def tasks(split: str) -> list[qn.Task[Line]]:
    return [qn.Task(id="a", prompt="Send.", start=Line())]


LINE = qn.Environment("line", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(sent), state=Line)


async def opened(host: Host) -> Live:
    live = await host.create(EpisodeSpec(split="test", task=0), ANYONE)
    await live.ready()
    return live


def test_slow_call_on_the_event_loop_has_one_effect(caplog: pytest.LogCaptureFixture) -> None:
    """And its kind runs on threads from then on."""
    EFFECTS.clear()

    async def play() -> Live:
        host = Host([LINE])
        live = await opened(host)
        for _ in range(TRIALS + 4):
            await live.call("send", "{}")
        assert EFFECTS[-1] == "MainThread"
        slow = module.STALL_S * 1.5
        assert (await live.call("send", f'{{"seconds": {slow}}}')).content == f"sent {TRIALS + 5}"
        assert EFFECTS[-1] == "MainThread"
        for _ in range(4 * TRIALS):
            await live.call("send", "{}")
            assert EFFECTS[-1] != "MainThread"
        await live.answer("done")
        host.executor.close()
        return live

    live = asyncio.run(play())
    assert len(EFFECTS) == live.reward * 100 == 5 * TRIALS + 5  # type: ignore[operator]  # it has one
    assert "('line', 'send') held the event loop for 0." in caplog.text
    assert asyncio.run(qn.replay(LINE, LINE.tasks("test")[0], live.trace)).to_bytes() == live.trace.to_bytes()


def test_slow_calls_of_many_episodes_have_one_effect_each() -> None:
    EFFECTS.clear()

    async def play() -> None:
        host = Host([LINE])
        lives = [await opened(host) for _ in range(4)]
        for seconds in (0.0,) * 9 + (0.6, 0.6):
            await asyncio.gather(*(live.call("send", f'{{"seconds": {seconds}}}') for live in lives))
        assert {live.trace.turns[-1].steps[0].observation for live in lives} == {"sent 11"}
        host.executor.close()

    asyncio.run(play())
    assert len(EFFECTS) == 44


def test_blocked_event_loop_ends_a_server_with_a_journal(tmp_path: Path) -> None:
    """The supervisor starts it again, and the journal recovers its episodes."""
    script = f"""
import asyncio, time
import quintain.serve.episodes.executor as module
module.STALL_S = 0.1

async def quick(): ...
async def blocks(): time.sleep(60)

async def play():
    executor = module.EpisodeExecutor(exits=True)
    for _ in range({TRIALS}):
        await executor.run(module.Affinity(), "tool", quick, limit_s=0.3)
    await executor.run(module.Affinity(), "tool", blocks, limit_s=0.3)

asyncio.run(play())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == EXIT_STATUS, done.stderr
    assert "tool blocks the event loop" in done.stderr


def test_server_is_exhausted_when_many_threads_hang() -> None:
    gate = threading.Event()

    async def blocks() -> None:
        while not gate.is_set():
            gate.wait(0.01)

    async def play() -> None:
        executor = EpisodeExecutor(threads=8)
        for number in (1, 2):
            assert not executor.is_exhausted
            with pytest.raises(ToolTimeout):
                await executor.run(Affinity(), "blocks", blocks, limit_s=0.05)
            assert executor.abandoned == number
        assert executor.is_exhausted
        gate.set()
        await asyncio.to_thread(until, lambda: not executor.is_exhausted)
        executor.close()

    asyncio.run(play())
