"""Time limits for code that isn't ours: a tool, a criterion, a model.

Real time decides here, so nothing of it enters the record but the failure itself. In the main thread a blocking
function is interrupted by a signal; in any other thread, and for code that swallows the interrupt, the delay is noticed
when the function returns: late, but never as a result. What looks at `end` while it works ends in time anywhere.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import math
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from types import FrameType
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class DeadlineExceeded(Exception):
    """The time limit passed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than {seconds:g} s")


end: contextvars.ContextVar[float] = contextvars.ContextVar("end", default=math.inf)
"""When the running tool or criterion must have ended, in seconds of `time.monotonic()`; infinite outside of one."""

watched = False
"""Set while somebody else interrupts what blocks the main thread: then no alarm is needed."""


class _Interrupt(BaseException):
    """Breaks into blocking code; not an Exception, so that `except Exception` in that code doesn't swallow it."""


async def guarded(seconds: float | None, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function, plain or async, within a time limit; None means no limit.

    Raises:
        DeadlineExceeded: It took longer, whatever it said or raised in the end.
        Exception: Whatever the function raises in time; a RuntimeError when it is cancelled and nobody asked for that.
    """
    started = time.monotonic()
    token = end.set(math.inf if seconds is None else started + seconds)
    try:
        if seconds is not None and not watched and threading.current_thread() is threading.main_thread():
            result = _interruptible(seconds, lambda: function(*args, **kwargs))
        else:
            result = function(*args, **kwargs)
        if inspect.isawaitable(result):
            result = await within(seconds, result)
    except Exception as error:
        if seconds is not None and time.monotonic() - started > seconds:
            raise DeadlineExceeded(seconds) from error
        raise
    finally:
        end.reset(token)
    if seconds is not None and time.monotonic() - started > seconds:
        raise DeadlineExceeded(seconds)
    return result


async def within(seconds: float | None, awaitable: Awaitable[T]) -> T:
    """Await within a time limit; None means no limit.

    Raises:
        DeadlineExceeded: It took longer and was cancelled, whatever it said or raised in the end.
        Exception: Whatever the awaitable raises in time; a RuntimeError when it is cancelled and nobody asked for that.
    """
    import asyncio  # 30 ms that `import quintain` need not take

    began = time.monotonic()
    scope = None
    try:
        started = _Started(awaitable)
        if not started.done:  # What never waits needs no timer, which would cost more than the rest.
            async with asyncio.timeout(seconds) as scope:
                await started
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("it was cancelled, and nobody asked for that") from error
    except Exception as error:
        if seconds is not None and ((scope and scope.expired()) or time.monotonic() - began > seconds):
            raise DeadlineExceeded(seconds) from error
        raise
    if seconds is not None and ((scope and scope.expired()) or time.monotonic() - began > seconds):
        raise DeadlineExceeded(seconds)
    return started.result


async def _plain(awaitable: Awaitable[T]) -> T:
    return await awaitable


class _Started(Generic[T]):
    """An awaitable that has run until it first waits or, when it is `done`, to its `result`."""

    result: T

    def __init__(self, awaitable: Awaitable[T]) -> None:
        self._rest = _plain(awaitable).__await__()
        self.done = False
        self._resume(self._rest.send, None)

    def _resume(self, how: Callable[[Any], Any], what: Any) -> None:
        try:
            self._wish = how(what)
        except StopIteration as end:
            self.done, self.result = True, end.value

    def __await__(self) -> Generator[Any, Any, T]:
        while not self.done:
            try:
                answer = yield self._wish
            except BaseException as error:  # noqa: BLE001  # thrown in from outside, and meant for the awaitable
                self._resume(self._rest.throw, error)
            else:
                self._resume(self._rest.send, answer)
        return self.result


class _Alarm:
    """SIGALRM. To take it and to give it back costs more than most calls, so it is kept until the event loop goes on.

    Attributes:
        armed: Whether a call is to be interrupted.
        busy: Whether an alarm may be ours; at any other time it is somebody else's.
        kept: Whether the event loop will give it back.
    """

    def __init__(self) -> None:
        self.armed = self.busy = self.kept = self._taken = False
        self._theirs: Any = None

    def take(self) -> None:
        import asyncio  # 30 ms that `import quintain` need not take

        if self._taken:
            return
        self._theirs, self._taken = signal.signal(signal.SIGALRM, self._ring), True
        with contextlib.suppress(RuntimeError):  # There is no loop.
            asyncio.get_running_loop().call_soon(self.give_back)
            self.kept = True

    def give_back(self) -> None:
        if self._taken:
            self.kept = self._taken = False
            signal.signal(signal.SIGALRM, self._theirs)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self.armed:
            raise _Interrupt
        if callable(self._theirs) and not self.busy:
            self._theirs(number, frame)


_alarm = _Alarm()


def _interruptible(seconds: float, function: Callable[[], Any]) -> Any:
    started = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, 0)  # Somebody else's alarm waits until we are done.
    nested = _alarm.busy
    _alarm.take()
    try:
        _alarm.busy = _alarm.armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            return function()
        finally:
            _alarm.armed = False  # An alarm from here on is too late to count.
    except _Interrupt:
        raise DeadlineExceeded(seconds) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _alarm.busy = _alarm.armed = nested
        if not nested and (left or not _alarm.kept):
            _alarm.give_back()
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - started), 1e-6), interval)
