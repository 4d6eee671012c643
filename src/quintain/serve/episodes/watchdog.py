"""Work that holds the main thread, and with it the event loop, for too long is interrupted."""

from __future__ import annotations

import math
import signal
import threading
import time
from types import FrameType

STALL_S = 0.5
"""Seconds that work may hold the event loop."""


class Interrupted(BaseException):
    """Raised in the midst of such work; not an Exception, so that an author's code lets it through."""


class Watchdog:
    """Looks, from a thread of its own, at the main thread. Wherever else it is made, it is not `here` and does nothing.

    It uses SIGUSR1: a signal reaches a thread that sleeps or waits, too.

    Attributes:
        here: Whether it can interrupt.
        since: When the work began that holds the main thread, in seconds of `time.monotonic()`; infinite where none
            does. Set by the main thread alone, which is also where the signal arrives: it cannot hit anything else.
    """

    def __init__(self) -> None:
        self.here = threading.current_thread() is threading.main_thread()
        self.since = math.inf
        self._main = threading.main_thread().ident or 0
        self._ended = threading.Event()
        if self.here:
            self._before = signal.signal(signal.SIGUSR1, self._interrupt)
            self._thread = threading.Thread(target=self._watch, name="quintain-watchdog", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Give the signal back."""
        if self.here:
            self.here = False
            self._ended.set()
            self._thread.join()
            signal.signal(signal.SIGUSR1, self._before)

    def _watch(self) -> None:
        while not self._ended.wait(STALL_S / 4):
            if time.monotonic() - self.since > STALL_S:
                signal.pthread_kill(self._main, signal.SIGUSR1)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if time.monotonic() - self.since > STALL_S:
            self.since = math.inf
            raise Interrupted
