"""Async code called from ordinary code: one event loop per thread, for as long as somebody there uses it.

What an environment holds (a sandbox's sessions, a connection) may belong to the loop in which it was made, so the loop
stays between two calls. A loop holds three files; the last user's `release` gives them back, and so does the thread's
end.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Loop:
    """A loop and who uses it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.users: weakref.WeakSet[Any] = weakref.WeakSet()
        self.close = weakref.finalize(self, self.loop.close)


class _Here(threading.local):
    held: _Loop | None = None


_here = _Here()


def run(user: object, coroutine: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns.

    Args:
        user: Whose call it is; the loop stays until each user has released it.
        coroutine: What is to be done.

    Raises:
        RuntimeError: This thread is inside an event loop already.
    """
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
    """Close this thread's loop, unless there are other users."""
    held = _here.held
    if held is not None:
        held.users.discard(user)
        if not held.users:
            held.close()
            _here.held = None
