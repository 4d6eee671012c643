"""Runs the work of episodes: on the event loop while its kind is quick, on threads otherwise.

Tools are an author's code and may block. A kind of work that was quick in its first runs and never waited runs on the
event loop, because a thread costs more than the work. Any other kind runs on a thread with an event loop of its own.
Nothing is interrupted and nothing is run twice: slow work on the event loop finishes, is logged, and its kind moves to
threads. Work on a thread that exceeds its limit is abandoned with its thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Generator, Hashable
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import msgspec

from quintain.errors import EpisodeError

from .secrets import NOTHING, Secrets, shown

T = TypeVar("T")

QUICK_S = 0.002
"""Longest average, in seconds, of a kind of work that runs on the event loop."""
TRIALS = 8
"""Runs on threads before a kind of work may run on the event loop."""
STALL_S = 0.5
"""Seconds on the event loop after which a kind of work counts as slow for good."""
IDLE_S = 30.0
"""Seconds without work after which a thread ends."""
MIN_THREADS = 4
"""Idle threads that do not end."""
EXIT_STATUS = 75
"""Exit status of a server whose event loop is blocked for good: EX_TEMPFAIL of sysexits.h."""
_WEIGHT = 1 / 16
"""Weight of the latest run in the average."""

_log = logging.getLogger(__name__)


class ToolTimeout(EpisodeError):
    """Work that exceeded its limit and was abandoned with its thread."""

    def __init__(self) -> None:
        super().__init__("it did not end in time", component="S", kind="quintain:tool_timeout")


class Affinity:
    """Event loop to which the work of one episode, with its secrets, is bound once it has waited there."""

    def __init__(self, secrets: Secrets = NOTHING) -> None:
        self.secrets = secrets if secrets.names else NOTHING
        self.thread: _WorldThread | None = None
        self.on_loop = False


class EpisodeExecutor:
    """Runs work for one event loop.

    Args:
        threads: Most threads at once, at least 1; more work than that waits.
        exits: Whether the process exits when its event loop is blocked beyond the limit of the work that blocks it, so
            that a supervisor starts it again. Without a journal that would lose all episodes.
    """

    def __init__(self, threads: int = 64, *, exits: bool = False) -> None:
        self._max_threads = threads
        self._threads: list[_WorldThread] = []
        self._abandoned: list[_WorldThread] = []
        self._paces: dict[Hashable, _Pace] = {}
        self._watchdog = Watchdog(exits=exits)

    async def run(
        self,
        affinity: Affinity,
        kind: Hashable,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        limit_s: float | None = None,
        paused: bool = False,
    ) -> T:
        """Runs some work once and returns its result.

        Args:
            affinity: Of the episode that the work belongs to.
            kind: Groups work that takes alike, such as the calls of one tool.
            work: Begins it.
            limit_s: Seconds that it may take on a thread; None for any time. ToolTimeout is raised after them.
            paused: Whether the limit counts only from the first reply of another role's model on.
        """
        if affinity.secrets is not shown():
            with affinity.secrets.shown():
                return await self.run(affinity, kind, work, limit_s=limit_s, paused=paused)
        pace = self._paces.get(kind) or self._paces.setdefault(kind, _Pace())
        if not (affinity.on_loop or (affinity.thread is None and pace.is_quick)):
            return await self._run_on_thread(affinity, work, pace=pace, limit=_Timeout(limit_s, paused=paused))
        if self._watchdog.ident is None:
            self._watchdog.start()
        watched = _MeasuredWork(work, pace, self._watchdog, (kind, limit_s))
        try:
            return await watched
        finally:
            affinity.on_loop = affinity.on_loop or watched.waited
            pace.note(watched.held_s)
            if watched.held_s > STALL_S:
                pace.is_slow = True
                _log.warning("%s held the event loop for %.1f s; it runs on threads from now on", kind, watched.held_s)

    async def _run_on_thread(
        self, affinity: Affinity, work: Callable[[], Coroutine[Any, Any, T]], *, pace: _Pace, limit: _Timeout
    ) -> T:
        if affinity.thread is not None and affinity.thread.is_abandoned:
            affinity.thread = None
        thread = affinity.thread or self._free_thread()
        thread.load += 1
        watched = _MeasuredWork(work, pace)
        token = _timeout.set(limit)
        future = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_awaited(watched), thread.loop))
        _timeout.reset(token)
        try:
            while not future.done():
                await asyncio.wait({future}, timeout=limit.check_s)
                if time.monotonic() >= limit.until and not future.done():
                    self._withdraw(thread)
                    if not thread.is_abandoned:
                        thread.is_abandoned = True
                        self._abandoned.append(thread)
                    _stop(thread.loop)
                    raise ToolTimeout
        except asyncio.CancelledError:
            future.cancel()
            self._withdraw(thread)  # The work may block; no other work may wait for it.
            raise
        finally:
            thread.load -= 1
            thread.used = time.monotonic()
            if watched.waited:
                affinity.thread = thread
            pace.note(watched.held_s)
        if future.cancelled():
            raise RuntimeError("the work cancelled itself, which nothing outside of it had asked for")
        return future.result()

    @property
    def abandoned(self) -> int:
        """Number of threads that hang in work which exceeded its limit."""
        self._abandoned = [thread for thread in self._abandoned if thread.thread.is_alive()]
        return len(self._abandoned)

    @property
    def is_exhausted(self) -> bool:
        """True if a quarter of the threads hang, so that the process should be restarted."""
        return self.abandoned >= max(1, self._max_threads // 4)

    def close(self) -> None:
        """Stops all idle threads; the others end with the process."""
        self._watchdog.close()
        for thread in self._threads:
            _stop(thread.loop)
        self._threads = []

    def drop_idle(self) -> None:
        """Drops threads that have been idle for long, except a few and those that an episode is bound to."""
        before = time.monotonic() - IDLE_S
        busy = [thread for thread in self._threads if thread.load or thread.used > before]
        idle = [thread for thread in self._threads if thread not in busy]
        self._threads = busy + idle[: max(0, MIN_THREADS - len(busy))]

    def _free_thread(self) -> _WorldThread:
        best = min(self._threads, key=lambda thread: thread.load, default=None)
        if best is None or (best.load and len(self._threads) < self._max_threads):
            best = _WorldThread()
            self._threads.append(best)
        return best

    def _withdraw(self, thread: _WorldThread) -> None:
        """Gives a thread no other work."""
        self._threads = [other for other in self._threads if other is not thread]


class _Timeout:
    """Time limit of work on a thread, paused while the model of another role is awaited."""

    def __init__(self, seconds: float | None, *, paused: bool) -> None:
        self.seconds = seconds
        self.until = math.inf if seconds is None or paused else time.monotonic() + seconds
        self.waits = 0

    @property
    def check_s(self) -> float | None:
        """Seconds after which it may be over, at the earliest; None if it has no limit."""
        until = self.until
        return self.seconds if math.isinf(until) else max(until - time.monotonic(), 0.001)


_timeout: ContextVar[_Timeout | None] = ContextVar("timeout", default=None)


@contextlib.contextmanager
def unlimited(then_s: Callable[[], float | None]) -> Generator[None]:
    """Pauses the limit of the running work within; afterwards `then_s` returns the seconds that it may take."""
    timeout = _timeout.get() or _Timeout(None, paused=True)
    timeout.waits += 1
    timeout.until = math.inf
    try:
        yield
    finally:
        timeout.waits -= 1
        if not timeout.waits and (seconds := then_s()) is not None:
            timeout.until = time.monotonic() + seconds


class _Pace(msgspec.Struct):
    """Seconds that work of one kind takes, and whether any of it waited."""

    runs: int = 0
    average_s: float = 0.0
    waits: bool = False
    is_slow: bool = False

    @property
    def is_quick(self) -> bool:
        return self.runs >= TRIALS and self.average_s <= QUICK_S and not (self.waits or self.is_slow)

    def note(self, seconds: float) -> None:
        self.runs += 1
        weight = _WEIGHT if self.runs * _WEIGHT > 1 else 1 / self.runs
        self.average_s += (seconds - self.average_s) * weight


class _WorldThread:
    """Thread with an event loop; it ends when neither the executor nor an episode refers to it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.is_abandoned = False
        self.load = 0
        self.used = time.monotonic()
        self.thread = threading.Thread(target=_run_loop, args=(self.loop,), name="quintain-world", daemon=True)
        self.thread.start()
        weakref.finalize(self, _stop, self.loop).atexit = False


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(RuntimeError):  # It has ended already.
        loop.call_soon_threadsafe(loop.stop)


class Watchdog(threading.Thread):
    """Thread that reports work which blocks the event loop, and exits the process after the work's limit if it may.

    `held` says since when, by `time.monotonic()`, which kind of work runs on the event loop, and its limit.
    """

    def __init__(self, *, exits: bool) -> None:
        super().__init__(name="quintain-watchdog", daemon=True)
        self.held: tuple[float, Hashable, float | None] = _NOT_HELD
        self._exits = exits
        self._ended = threading.Event()

    def close(self) -> None:
        """Ends the thread."""
        self._ended.set()

    def run(self) -> None:
        """Watches until `close`."""
        reported = math.inf
        while not self._ended.wait(STALL_S / 2):
            since, kind, limit_s = self.held
            seconds = time.monotonic() - since
            if seconds > STALL_S and since != reported:
                _log.warning("%s blocks the event loop; nothing else is answered meanwhile", kind)
                reported = since
            if self._exits and limit_s is not None and seconds > limit_s:
                _log.critical("%s blocks the event loop for %.1f s, at most %g are allowed: exiting, so that the "
                              "supervisor starts the server again", kind, seconds, limit_s)  # fmt: skip
                logging.shutdown()
                os._exit(EXIT_STATUS)


_NOT_HELD = (math.inf, None, None)


class _MeasuredWork(msgspec.Struct, Generic[T]):
    """Awaitable that measures the longest time for which work held its thread, and whether it waited."""

    work: Callable[[], Coroutine[Any, Any, T]]
    pace: _Pace
    watchdog: Watchdog | None = None
    named: tuple[Hashable, float | None] = (None, None)
    held_s: float = 0.0
    waited: bool = False

    def __await__(self) -> Generator[Any, Any, T]:
        work = self.work().__await__()  # Here, because work that is cancelled before must not be begun.
        resume: Callable[[Any], Any] = work.send
        value: Any = None
        while True:
            started = time.monotonic()
            if self.watchdog is not None:
                self.watchdog.held = (started, *self.named)
            try:
                pending = resume(value)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # what the work returned
            except (Exception, SystemExit, asyncio.CancelledError):
                raise
            except BaseException as error:
                if error is value:
                    raise
                # Nothing that an author's code raises may end a thread or the server.
                raise RuntimeError(f"{type(error).__name__} was raised, which is not an Exception: {error}") from error
            finally:
                if self.watchdog is not None:
                    self.watchdog.held = _NOT_HELD
                self.held_s = max(self.held_s, time.monotonic() - started)
            self.waited = self.pace.waits = True
            try:
                value = yield pending
                resume = work.send
            except BaseException as error:  # noqa: BLE001  # thrown in from outside, and meant for the work
                resume, value = work.throw, error


async def _awaited(watched: _MeasuredWork[T]) -> T:
    return await watched
