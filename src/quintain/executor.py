"""Executors: call tools and scoring functions within a time limit.

Real time decides here, so nothing of it enters the record but the failure itself. `Plain` notices a late result when
the function returns, and never accepts it. `Alarm` also interrupts a blocking function in the main thread. A function
that looks at `end` while it works ends in time under any executor.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
import signal
import threading
import time
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import FrameType
from typing import Any, Protocol, TypeVar, cast

T = TypeVar("T")


class DeadlineExceeded(Exception):
    """The time limit passed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than {seconds:g} s")


end: contextvars.ContextVar[float] = contextvars.ContextVar("end", default=math.inf)
"""When the running tool or criterion must have ended, in seconds of `time.monotonic()`; infinite outside of one."""


_OURS = 2.0**24
"""Interval of the timer that an `Alarm` sets, in seconds: another owner's timer has another one."""


GRACE_S = 1.0
"""Least time, in seconds, before async code that blocks is interrupted; a cancelled awaitable cleans up in it."""


class _Interrupt(BaseException):
    """Breaks into blocking code; not an Exception, so that `except Exception` in that code doesn't swallow it."""


class Executor(Protocol):
    """Object that runs the code of an environment's author: its tools and scoring functions."""

    async def call(self, limit_s: float | None, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Calls a function, plain or async, within a time limit; None means no limit.

        Raises:
            DeadlineExceeded: It took longer, whatever it returned or raised in the end.
            Exception: Any exception of the function in time; a RuntimeError if it was cancelled without a request.
        """
        ...


class Plain:
    """Executor that calls functions inline and cancels awaitables in time."""

    async def call(self, limit_s: float | None, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        started = time.monotonic()
        token = end.set(math.inf if limit_s is None else started + limit_s)
        try:
            result = self._start(limit_s, function, *args, **kwargs)
            if hasattr(result, "__await__"):
                result = await within(limit_s, result, self._start)
        except Exception as error:
            if limit_s is not None and time.monotonic() - started > limit_s:
                raise DeadlineExceeded(limit_s) from error
            raise
        finally:
            end.reset(token)
        if limit_s is not None and time.monotonic() - started > limit_s:
            raise DeadlineExceeded(limit_s)
        return result

    def _start(self, limit_s: float | None, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)


class Alarm(Plain):
    """Executor that also interrupts a function that blocks the main thread, by SIGALRM.

    To take signal and timer and to give them back costs more than most calls, so they are kept until the event loop
    goes on. The timer of a call that ended goes on for the next call, and is set anew when it rings too early for it.
    """

    def __init__(self) -> None:
        self._deadline = math.inf  # Of the running call.
        self._rings = math.inf  # When the timer rings, if it is ours.
        self._is_kept = self._is_taken = False  # Kept: the event loop will give the signal back.
        self._other_handler: Any = None

    def _start(self, limit_s: float | None, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if limit_s is None or threading.get_ident() != threading.main_thread().ident:
            return function(*args, **kwargs)
        started, outer, left, interval = time.monotonic(), self._deadline, 0.0, 0.0
        if signal.getitimer(signal.ITIMER_REAL)[1] != _OURS:
            self._rings = math.inf
            left, interval = signal.setitimer(signal.ITIMER_REAL, 0)  # Another owner's alarm waits for the call's end.
        if not self._is_taken:
            self._take()
        try:
            try:
                self._deadline = started + limit_s
                if self._rings > self._deadline:
                    self._wind()
                return function(*args, **kwargs)
            finally:
                self._deadline = math.inf  # An alarm from here on is too late to count.
        except _Interrupt as interrupt:
            raise DeadlineExceeded(limit_s) from interrupt
        finally:
            self._deadline = outer
            if self._rings > outer:
                self._wind()
            if outer == math.inf and (left or not self._is_kept):
                self._give_back()
            if left:
                signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - started), 1e-6), interval)

    def _wind(self) -> None:
        """Sets the timer to the deadline."""
        self._rings = self._deadline
        signal.setitimer(signal.ITIMER_REAL, max(self._deadline - time.monotonic(), 1e-6), _OURS)

    def _take(self) -> None:
        import asyncio  # 30 ms that `import quintain` need not take

        self._other_handler, self._is_taken = signal.signal(signal.SIGALRM, self._ring), True
        with contextlib.suppress(RuntimeError):  # No loop is running.
            asyncio.get_running_loop().call_soon(self._give_back)
            self._is_kept = True

    def _give_back(self) -> None:
        if self._is_taken:
            self._is_kept = self._is_taken = False
            if signal.getitimer(signal.ITIMER_REAL)[1] == _OURS:
                signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._other_handler)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        is_ours = now >= self._rings
        if is_ours:
            # An alarm that came while the timer was wound again leaves one to come, which is ours, too.
            left, interval = signal.getitimer(signal.ITIMER_REAL)
            self._rings = now + left if interval == _OURS and left < _OURS / 2 else math.inf
        if now >= self._deadline:
            self._deadline = math.inf  # It is raised once.
            raise _Interrupt
        if is_ours:
            if self._rings > self._deadline:
                self._wind()
        elif callable(self._other_handler):
            self._other_handler(number, frame)


ALARM = Alarm()
"""The executor of an environment that has none of its own."""


async def within(seconds: float | None, awaitable: Awaitable[T], resume: Callable[..., Any] | None = None) -> T:
    """Awaits within a time limit; None means no limit.

    Args:
        seconds: The limit.
        awaitable: What is awaited.
        resume: Called with the seconds left, a function and its argument each time the awaitable goes on.

    Raises:
        DeadlineExceeded: It took longer and was cancelled, whatever it returned or raised in the end.
        Exception: Any exception of the awaitable in time; a RuntimeError if it was cancelled without a request.
    """
    import asyncio  # 30 ms that `import quintain` need not take

    began = time.monotonic()
    run = resume and functools.partial(_resume, resume=resume, end=seconds and began + seconds)
    try:
        is_plain = isinstance(awaitable, types.CoroutineType)
        rest = cast(Coroutine[Any, Any, T], awaitable) if is_plain else _plain(awaitable)
        try:
            wish = run(rest.send, None) if run else rest.send(None)
        except StopIteration as stop:  # What never waits needs no timer, which would cost more than the rest.
            result: T = stop.value
        else:
            async with asyncio.timeout(seconds):
                result = await _go_on(rest, wish, run)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("it was cancelled, and nobody asked for that") from error
    except Exception as error:
        if seconds is not None and time.monotonic() - began > seconds:
            raise DeadlineExceeded(seconds) from error
        raise
    if seconds is not None and time.monotonic() - began > seconds:
        raise DeadlineExceeded(seconds)
    return result


def _resume(function: Callable[[Any], Any], argument: Any, *, resume: Callable[..., Any], end: float | None) -> Any:
    return resume(end and max(GRACE_S, end - time.monotonic()), function, argument)


async def _plain(awaitable: Awaitable[T]) -> T:
    return await awaitable


@types.coroutine
def _go_on(rest: Coroutine[Any, Any, T], wish: Any, run: Callable[..., Any] | None) -> Generator[Any, Any, T]:
    """Awaits a coroutine that has run until it first waits."""
    while True:
        try:
            how, what = rest.send, (yield wish)
        except BaseException as error:  # noqa: BLE001  # thrown in from outside, and meant for the coroutine
            how, what = rest.throw, error
        else:
            if run is None:
                return (yield from rest)  # type: ignore[no-any-return]
        try:
            wish = run(how, what) if run else how(what)
        except StopIteration as stop:
            return cast(T, stop.value)
