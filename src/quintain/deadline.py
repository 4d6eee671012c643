"""Time limits for code that isn't ours: a tool, a criterion, a model.

Real time decides here, so nothing of it enters the record but the failure itself. In the main thread a blocking
function is interrupted by a signal; in any other thread, and for code that swallows the interrupt, the delay is noticed
when the function returns: late, but never as a result.
"""

from __future__ import annotations

import inspect
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


class DeadlineExceeded(Exception):
    """The time limit passed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than {seconds:g} s")


class _Interrupt(BaseException):
    """Breaks into blocking code; not an Exception, so that `except Exception` in that code doesn't swallow it."""


async def guarded(seconds: float | None, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function, plain or async, within a time limit; None means no limit.

    Raises:
        DeadlineExceeded: It took longer.
        Exception: Whatever the function raises.
    """
    if seconds is None:
        result = function(*args, **kwargs)
        return await result if inspect.isawaitable(result) else result
    started = time.monotonic()
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        result = _interruptible(seconds, lambda: function(*args, **kwargs))
    else:
        result = function(*args, **kwargs)
    if inspect.isawaitable(result):
        result = await within(seconds, result)
    if time.monotonic() - started > seconds:
        raise DeadlineExceeded(seconds)
    return result


async def within(seconds: float | None, awaitable: Awaitable[T]) -> T:
    """Await within a time limit.

    Raises:
        DeadlineExceeded: It took longer; the awaitable was cancelled.
    """
    if seconds is None:
        return await awaitable
    import asyncio  # 30 ms that `import quintain` need not take

    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            return await awaitable
    except TimeoutError as error:
        if scope.expired():
            raise DeadlineExceeded(seconds) from error
        raise


def _interruptible(seconds: float, function: Callable[[], Any]) -> Any:
    armed = True

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        if armed:
            raise _Interrupt

    started = time.monotonic()
    handler = signal.signal(signal.SIGALRM, interrupt)
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return function()
    except _Interrupt:
        raise DeadlineExceeded(seconds) from None
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:  # Somebody else's alarm: give it back, less the time that has passed.
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - started), 1e-6), interval)
