"""Async code called from ordinary code, with one event loop per thread while it has users.

An environment's objects (a sandbox's sessions, a connection) may belong to the loop in which they were made, so the
loop survives between two calls. A loop holds three files; the last user's `release`, or the thread's end, frees them.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Loop:
    """Event loop and its users."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.users: weakref.WeakSet[Any] = weakref.WeakSet()
        self.close = weakref.finalize(self, self.loop.close)


class _Here(threading.local):
    held: _Loop | None = None


_here = _Here()


def run(user: object, coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in a loop that stays until each `user` has released it; raises RuntimeError inside a loop."""
    if asyncio._get_running_loop() is not None:
        coroutine.close()
        raise RuntimeError("a subject's methods are ordinary functions; call them outside of an event loop")
    held = _here.held
    if held is None:
        held = _here.held = _Loop()
    if user not in held.users:
        held.users.add(user)
    return held.loop.run_until_complete(coroutine)


def release(user: object) -> None:
    """Closes this thread's loop, unless it has other users."""
    held = _here.held
    if held is not None:
        held.users.discard(user)
        if not held.users:
            held.close()
            _here.held = None
