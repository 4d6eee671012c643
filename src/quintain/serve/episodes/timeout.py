"""For how long work may take on its thread, but for what other roles' models take: it counts anew when one has replied.

So a tool that blocks for good is given up under a simulated user, too, who may take his time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class Leash:
    """Of one piece of work, for which an event loop waits.

    Args:
        scope: In which it does.
    """

    def __init__(self, scope: asyncio.Timeout) -> None:
        self._scope: asyncio.Timeout | None = scope
        self._loop = asyncio.get_running_loop()
        self._asked = 0

    @contextlib.contextmanager
    def put_on(self) -> Generator[None]:
        """Have what is begun meanwhile be this work."""
        token = _worn.set(self)
        try:
            yield
        finally:
            _worn.reset(token)

    def drop(self) -> None:
        """Nobody waits for it any more."""
        self._scope = None

    def lift(self) -> None:
        """Another role is asked."""
        self._asked += 1
        self._set(None)

    def hold(self, seconds: float | None) -> None:
        """It has replied; where it was not the only one, the time of the others goes on."""
        self._asked -= 1
        if not self._asked:
            self._set(seconds)

    def lengthen(self, seconds: float) -> None:
        """It has so much more to do than it was given time for."""
        self._tell(self._lengthen, seconds)

    def _set(self, seconds: float | None) -> None:
        self._tell(self._move, seconds)

    def _tell(self, what: Callable[[T], None], told: T) -> None:
        with contextlib.suppress(RuntimeError):  # The loop has ended, and with it the server.
            self._loop.call_soon_threadsafe(what, told)

    def _move(self, seconds: float | None) -> None:
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(None if seconds is None else self._loop.time() + seconds)

    def _lengthen(self, seconds: float) -> None:
        if self._scope is not None and not self._scope.expired() and (until := self._scope.when()) is not None:
            self._scope.reschedule(until + seconds)


_worn: ContextVar[Leash | None] = ContextVar("leash", default=None)


def lift() -> None:
    """The work that calls this asks another role's model, which may take any time."""
    if (leash := _worn.get()) is not None:
        leash.lift()


def hold(seconds: float | None) -> None:
    """It has replied: from now on the work may take so long; None means any time."""
    if (leash := _worn.get()) is not None:
        leash.hold(seconds)


def lengthen(seconds: float | None) -> None:
    """The work that calls this may take so much longer; None where it has any time already."""
    if seconds is not None and (leash := _worn.get()) is not None:
        leash.lengthen(seconds)
