"""Time limits: late results are refused under every executor, and the author's own alarm is kept."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from quintain import executor
from quintain.executor import ALARM, DeadlineExceeded, Plain, end, within

SHORT = 0.05


def spin(seconds: float = 10) -> str:
    """Block, as a tool does that computes for too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "done"


def stubborn() -> str:
    """Swallow every interrupt."""
    with contextlib.suppress(BaseException):
        spin()
    return "done"


def run(seconds: float | None, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return asyncio.run(ALARM.call(seconds, function, *args, **kwargs))


def elsewhere(seconds: float | None, function: Callable[..., Any]) -> Any:
    """The same in another thread, where no signal arrives."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(run, seconds, function).result()


@pytest.fixture
def alarms() -> Iterator[list[float]]:
    """An alarm of somebody else: the times at which it rang."""
    rung: list[float] = []

    def ring(number: int, frame: FrameType | None) -> None:
        rung.append(time.monotonic())

    handler = signal.signal(signal.SIGALRM, ring)
    yield rung
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert signal.signal(signal.SIGALRM, handler) is ring, "the handler was not given back"


@pytest.mark.parametrize("seconds", [None, 5.0])
@pytest.mark.parametrize("where", [run, elsewhere])
def test_results_in_time_are_delivered(seconds: float | None, where: Callable[..., Any]) -> None:
    async def slow() -> str:
        await asyncio.sleep(0)
        return "async"

    assert where(seconds, lambda: "plain") == "plain"
    assert where(seconds, slow) == "async"
    with pytest.raises(ZeroDivisionError):
        where(seconds, lambda: 1 / 0)


def test_any_name_may_be_an_argument() -> None:
    assert run(5.0, lambda seconds, function: (seconds, function), seconds=1, function=2) == (1, 2)


@pytest.mark.parametrize("function", [spin, stubborn])
def test_blocking_code_is_interrupted(function: Callable[[], str]) -> None:
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded, match=r"took longer than 0\.05 s"):
        run(SHORT, function)
    assert time.monotonic() - started < 5
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_in_another_thread_blocking_code_is_noticed_afterwards() -> None:
    with pytest.raises(DeadlineExceeded):
        elsewhere(SHORT, lambda: spin(2 * SHORT))


def test_exceptions_after_the_limit_count_as_late() -> None:
    def excuse() -> None:
        try:
            spin()
        except BaseException as error:
            raise ValueError("interrupted") from error

    with pytest.raises(DeadlineExceeded) as caught:
        run(SHORT, excuse)
    assert isinstance(caught.value.__cause__, ValueError)


def test_async_code_is_cancelled() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlineExceeded):
        run(SHORT, hang)
    with pytest.raises(DeadlineExceeded):
        asyncio.run(within(SHORT, hang()))


def test_async_code_that_swallows_its_cancellation_is_late_all_the_same() -> None:
    async def deaf() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return "done"

    async def excuse() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            await asyncio.sleep(0)
            raise ValueError("cancelled") from error

    for function in (deaf, excuse):
        with pytest.raises(DeadlineExceeded):
            asyncio.run(within(SHORT, function()))


@pytest.mark.parametrize("waits", [False, True])
def test_async_code_that_blocks_the_main_thread_is_interrupted(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "GRACE_S", 0.2)

    async def blocks() -> str:
        if waits:
            await asyncio.sleep(0.01)
        return spin()

    started = time.monotonic()
    with pytest.raises(DeadlineExceeded, match=r"took longer than 0\.05 s"):
        run(SHORT, blocks)
    assert time.monotonic() - started < 5


def test_cancelled_async_code_may_clean_up() -> None:
    cleaned: list[float] = []

    async def careful() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            spin(SHORT)
            cleaned.append(SHORT)

    with pytest.raises(DeadlineExceeded):
        run(SHORT, careful)
    assert cleaned == [SHORT]


def test_async_code_that_blocks_is_noticed_afterwards() -> None:
    async def blocks() -> str:
        return spin(2 * SHORT)

    with pytest.raises(DeadlineExceeded):
        run(SHORT, blocks)
    with pytest.raises(DeadlineExceeded):
        asyncio.run(within(SHORT, blocks()))


def test_a_timeout_of_its_own_is_passed_through() -> None:
    async def own() -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    def plain() -> None:
        raise TimeoutError("its own")

    for seconds in (None, 5.0):
        with pytest.raises(TimeoutError):
            run(seconds, own)
        with pytest.raises(TimeoutError, match="its own"):
            run(seconds, plain)


@pytest.mark.parametrize("seconds", [None, 5.0])
def test_a_cancellation_that_nobody_asked_for_is_an_error(seconds: float | None) -> None:
    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="nobody asked"):
        asyncio.run(within(seconds, cancels_itself()))


def test_a_cancellation_that_somebody_asked_for_is_one() -> None:
    async def law() -> None:
        async def hang() -> None:
            await asyncio.Event().wait()

        task = asyncio.create_task(within(60, hang()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(law())


def test_the_nearer_of_two_limits_counts() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    async def inner() -> str:
        with contextlib.suppress(DeadlineExceeded):
            await within(SHORT, hang())
        return "went on"

    assert asyncio.run(within(60, inner())) == "went on"
    with pytest.raises(DeadlineExceeded, match=r"0\.05"):
        asyncio.run(within(SHORT, within(60, hang())))


def test_an_outer_alarm_is_given_back(alarms: list[float]) -> None:
    started = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.3, 0.05)
    assert run(60, lambda: spin(0.1)) == "done"
    left, interval = signal.getitimer(signal.ITIMER_REAL)
    assert 0 < left <= 0.2
    assert interval == pytest.approx(0.05)
    while len(alarms) < 2:
        signal.pause()
    assert alarms[0] - started >= 0.29


def test_an_outer_alarm_that_is_due_meanwhile_rings_afterwards(alarms: list[float]) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.4)  # Long enough for a busy machine to begin the call.
    assert run(60, lambda: (spin(0.6), list(alarms))[1]) == []
    while not alarms:
        spin(0.001)
    assert len(alarms) == 1


def test_alarms_nest(alarms: list[float]) -> None:
    def outer() -> str:
        with pytest.raises(DeadlineExceeded):
            ALARM.call(SHORT, spin).send(None)
        return spin()

    with pytest.raises(DeadlineExceeded, match=r"0\.2 s"):
        run(0.2, outer)


ANY_MOMENT = """
import asyncio, random, signal
from quintain.executor import ALARM, DeadlineExceeded

rung = []
mine = lambda *_: rung.append(1)
signal.signal(signal.SIGALRM, mine)
late = 0

async def main():
    global late
    for n in range(20_000):
        try:
            assert await ALARM.call(10 ** random.uniform(-6, -4), lambda: sum(range(n % 60))) == sum(range(n % 60))
        except DeadlineExceeded:
            late += 1
        if n % 10 == 0:
            await asyncio.sleep(0)

asyncio.run(main())
assert signal.getsignal(signal.SIGALRM) is mine, "the handler was not given back"
assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
assert not rung, "an alarm of ours rang at somebody else's"
assert 0 < late < 20_000
"""


def test_an_alarm_at_any_moment_is_either_a_result_or_late() -> None:
    """In a process of its own: an alarm may also ring inside of what measures coverage, and leave that locked."""
    subprocess.run([sys.executable, "-c", ANY_MOMENT], check=True, timeout=60)


def test_an_alarm_of_somebody_else_rings_between_two_calls(alarms: list[float]) -> None:
    async def law() -> None:
        await ALARM.call(5.0, lambda: "done")
        signal.raise_signal(signal.SIGALRM)
        assert len(alarms) == 1

    asyncio.run(law())


def test_the_timer_of_an_ended_call_interrupts_neither_the_next_call_nor_its_owner(alarms: list[float]) -> None:
    async def law() -> None:
        await ALARM.call(SHORT, lambda: "done")
        assert await ALARM.call(60, spin, 2 * SHORT) == "done"
        await ALARM.call(SHORT, lambda: "done")
        spin(2 * SHORT)
        with pytest.raises(DeadlineExceeded):
            await ALARM.call(SHORT, spin)

    asyncio.run(law())
    assert not alarms
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_an_alarm_that_somebody_else_sets_between_two_calls_rings_after_the_second(alarms: list[float]) -> None:
    async def law() -> None:
        await ALARM.call(60, lambda: "done")
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert await ALARM.call(60, lambda: (spin(0.1), list(alarms))[1]) == []
        while not alarms:
            spin(0.001)
        await ALARM.call(60, lambda: "done")
        signal.setitimer(signal.ITIMER_REAL, 60)

    asyncio.run(law())
    assert len(alarms) == 1
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 50


def test_an_alarm_that_somebody_else_ignores_is_ignored_between_two_calls(alarms: list[float]) -> None:
    async def law() -> None:
        ring = signal.signal(signal.SIGALRM, signal.SIG_IGN)
        await ALARM.call(5.0, lambda: "done")
        signal.raise_signal(signal.SIGALRM)
        await asyncio.sleep(0)
        assert signal.signal(signal.SIGALRM, ring) is signal.SIG_IGN

    asyncio.run(law())
    assert not alarms


def test_without_an_event_loop_the_alarm_is_given_back_at_once(alarms: list[float]) -> None:
    ring = signal.getsignal(signal.SIGALRM)
    with pytest.raises(StopIteration, match="done"):
        ALARM.call(5.0, lambda: "done").send(None)
    assert signal.getsignal(signal.SIGALRM) is ring


def left() -> float:
    return end.get() - time.monotonic()


def test_running_code_can_read_the_end_of_its_limit() -> None:
    assert left() == float("inf")
    assert 50 < run(60, left) <= 60
    assert run(None, left) == float("inf")

    async def waiting() -> float:
        await asyncio.sleep(0)
        inner = await ALARM.call(5, left)
        assert inner <= 5 < left()
        return left()

    assert 50 < run(60, waiting) <= 60
    with pytest.raises(ValueError, match="broken"):
        run(60, lambda: (_ for _ in ()).throw(ValueError("broken")))
    assert left() == float("inf")


def test_in_another_thread_too() -> None:
    def patient() -> str:
        while left() > 0:
            pass
        return "done"

    with concurrent.futures.ThreadPoolExecutor() as pool, pytest.raises(DeadlineExceeded):
        pool.submit(run, SHORT, patient).result()


def test_a_plain_executor_lets_a_blocking_function_end_and_refuses_its_result() -> None:
    ended: list[str] = []
    with pytest.raises(DeadlineExceeded):
        asyncio.run(Plain().call(SHORT, lambda: ended.append(spin(2 * SHORT))))
    assert ended == ["done"]
