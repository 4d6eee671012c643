"""Where worlds run. Tools are an author's code, and may block: the event loop must not wait for them.

Work whose kind has been quick so far, and has never waited, is done on the event loop itself, for going to a thread
costs more than the work. Any other goes to a thread, which has an event loop of its own for what it awaits. An episode
that has once waited for real is bound to the loop on which it did, and goes on there: that is the event loop itself
only for one in which a kind of work has waited for the first time after it had come to be done there. Whatever stalls
on the event loop is interrupted, and done again from its beginning on a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import math
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Generator, Hashable
from typing import Any, Generic, TypeVar

from quintain import deadline

from .secrets import NOTHING, Secrets, shown
from .timeout import Leash
from .watchdog import Interrupted, Watchdog

T = TypeVar("T")

QUICK_S = 0.002
"""Work that holds its thread no longer, on average, may be done on the event loop."""
TRIALS = 8
"""Times it is done on a thread before."""
IDLE_S = 30.0
"""Seconds after which a thread without work is let go."""
FEW = 4
"""Threads that are kept nevertheless."""
_FADE = 1 / 16
"""Weight of the latest time in the average: one hiccup of the machine is not taken for slow work, a hang is."""


class Overdue(BaseException):
    """Raised in the thread that works for longer than was allowed; not an Exception, so that tools let it through."""


class GivenUp(TimeoutError):
    """Work took longer than it may."""


_OURS = (Exception, SystemExit, asyncio.CancelledError, Overdue, Interrupted)
"""What goes through as it is: what is expected of an author's code, and what is raised in it from here."""


class Place:
    """Where the work of one episode is done: anywhere, until it has waited on some loop.

    Args:
        secrets: What that work may read.

    Attributes:
        off_loop: Whether it may not be done on the event loop, because it cannot be done anew.
    """

    __slots__ = ("hand", "off_loop", "on_main", "secrets")

    def __init__(self, secrets: Secrets = NOTHING) -> None:
        self.secrets = secrets if secrets.names else NOTHING  # What is shown where nobody shows any.
        self.hand: _Hand | None = None
        self.on_main = False
        self.off_loop = False


class Crew:
    """Runs work for one event loop.

    Args:
        threads: Most threads at once; more work than that waits.
    """

    def __init__(self, threads: int = 64) -> None:
        self._threads = threads
        self._hands: list[_Hand] = []
        self._paces: dict[Hashable, _Pace] = {}
        self._watchdog = Watchdog()
        self.lost = 0
        """Threads that hang in work whose time is over."""

    async def run(
        self,
        place: Place,
        kind: Hashable,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        limit_s: float | None = None,
        redo: Callable[[], Coroutine[Any, Any, T]] | None = None,
    ) -> T:
        """Do some work and wait for it.

        Args:
            place: Of the episode that it belongs to.
            kind: What is done, such as the name of a tool: work of one kind is expected to take alike.
            work: Begins it.
            limit_s: Seconds that it may take on a thread, until it says otherwise, see `Leash`; None means any time.
            redo: Begins it anew after it was interrupted anywhere; None where `work` does.

        Raises:
            GivenUp: It took longer. Its thread is told to stop, and is not used again.
            Exception: Whatever it raises.
        """
        if place.secrets is not shown():
            with place.secrets.shown():
                return await self.run(place, kind, work, limit_s=limit_s, redo=redo)
        pace = self._paces.get(kind) or self._paces.setdefault(kind, _Pace())
        if place.on_main or (place.hand is None and pace.quick and self._watchdog.here and not place.off_loop):
            watched = _Watched(work(), pace, self._watchdog)
            try:
                return await watched
            except Interrupted:
                watched.waited = False  # What comes of it has not.
                place.on_main = place.on_main and redo is None  # In a world that is made anew nothing has waited.
                work = redo or work
            finally:
                pace.note(watched.held_s)
                place.on_main = place.on_main or watched.waited
        return await self._on_thread(place, work, pace=pace, limit_s=limit_s)

    async def _on_thread(
        self, place: Place, work: Callable[[], Coroutine[Any, Any, T]], *, pace: _Pace, limit_s: float | None
    ) -> T:
        if place.hand is not None and place.hand.lost:
            place.hand = None  # What waits there waits for ever.
        hand = place.hand or self._idle()
        hand.load += 1
        watched = _Watched(work(), pace)
        leash = Leash(scope := asyncio.timeout(limit_s))
        with leash.put_on():
            future = asyncio.run_coroutine_threadsafe(_plain(watched), hand.loop)
        try:
            async with scope:
                result = await asyncio.wrap_future(future)
        except TimeoutError as error:
            if future.done() and not future.cancelled():
                raise  # The work's own.
            self._give_up(hand)
            raise GivenUp("it did not end in time") from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and not task.cancelling():
                raise RuntimeError("it cancelled itself, and nobody asked for that") from error
            if hand in self._hands:  # It may hang in what nobody waits for any more: nobody else is sent there.
                self._hands.remove(hand)
            raise
        finally:
            leash.drop()
            hand.load -= 1
            hand.used = time.monotonic()
            if watched.waited:
                place.hand = hand
            pace.note(watched.held_s)
        return result

    def close(self) -> None:
        """Stop all threads that are not at work; the others end with the process."""
        self._watchdog.close()
        for hand in self._hands:
            _stop(hand.loop)
        self._hands = []

    def rest(self) -> None:
        """Let go of threads that nobody has needed in a while, but for a few; one that an episode needs goes on."""
        before = time.monotonic() - IDLE_S
        kept = [hand for hand in self._hands if hand.load or hand.used > before]
        idle = [hand for hand in self._hands if not (hand.load or hand.used > before)]
        self._hands = kept + idle[: max(0, FEW - len(kept))]

    def _idle(self) -> _Hand:
        best = min(self._hands, key=lambda hand: hand.load, default=None)
        if best is None or (best.load and len(self._hands) < self._threads):
            best = _Hand()
            self._hands.append(best)
        return best

    def _give_up(self, hand: _Hand) -> None:
        if hand in self._hands:
            self._hands.remove(hand)
            self.lost += 1
        hand.lost = True
        hand.interrupt()


class _Pace:
    """How long work of one kind has taken, and whether any of it ever waited."""

    __slots__ = ("average_s", "times", "waits")

    def __init__(self) -> None:
        self.times = 0
        self.average_s = 0.0
        self.waits = False

    @property
    def quick(self) -> bool:
        return self.times >= TRIALS and self.average_s <= QUICK_S and not self.waits

    def note(self, seconds: float) -> None:
        self.times += 1
        share = _FADE if self.times * _FADE > 1 else 1 / self.times
        self.average_s += (seconds - self.average_s) * share


class _Hand:
    """A thread with an event loop. It ends when nobody holds this any more: neither the crew nor an episode."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.lost = False
        self.load = 0
        self.used = time.monotonic()
        self._thread = threading.Thread(target=_turn, args=(self.loop,), name="quintain-world", daemon=True)
        self._thread.start()
        weakref.finalize(self, _stop, self.loop).atexit = False

    def interrupt(self) -> None:
        """Raise Overdue in the thread, as soon as it runs Python; then its loop ends."""
        ident = self._thread.ident
        if ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(Overdue))
        _stop(self.loop)


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    except Overdue:
        return  # It came between two pieces of work; there is nothing to undo.
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(RuntimeError):  # It has ended already.
        loop.call_soon_threadsafe(loop.stop)


class _Watched(Generic[T]):
    """Work that is awaited: for how long it held its thread at a stretch, and whether it ever waited."""

    def __init__(self, work: Coroutine[Any, Any, T], pace: _Pace, watchdog: Watchdog | None = None) -> None:
        self._work = work.__await__()
        self._pace = pace
        self._watchdog = watchdog
        self.held_s = 0.0
        self.waited = False

    def __await__(self) -> Generator[Any, Any, T]:
        resume: Callable[[Any], Any] = self._work.send
        what: Any = None
        while True:
            started = time.monotonic()
            if self._watchdog is not None:
                self._watchdog.since = started
                deadline.watched = True
            try:
                wish = resume(what)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # what the work returned
            except _OURS:
                raise
            except BaseException as error:
                if error is what:
                    raise
                # An author's code may run what others wrote. Nothing they raise ends a thread, or what is served on it.
                raise RuntimeError(f"{type(error).__name__} was raised, which is no Exception: {error}") from error
            finally:
                if self._watchdog is not None:
                    self._watchdog.since = math.inf
                    deadline.watched = False
                self.held_s = max(self.held_s, time.monotonic() - started)
            self.waited = self._pace.waits = True
            try:
                what = yield wish
                resume = self._work.send
            except BaseException as error:  # noqa: BLE001  # thrown in from outside, and meant for the work
                resume, what = self._work.throw, error


async def _plain(watched: _Watched[T]) -> T:
    return await watched
