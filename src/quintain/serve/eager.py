"""Work that begins at once, in the midst of a callback.

Most requests are answered without ever waiting; to make a task of each, and to come to it only when the event loop
comes round again, would cost more than many a tool.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Generator
from typing import Any

Work = Coroutine[Any, Any, None]


class Eager:
    """Begins work for one event loop, which must be the running one.

    A task is kept ready that is taken for the current one while work runs up to where it first waits, and that goes on
    with it from there. So whatever binds itself to the task that it runs in, such as a timeout, is bound to the right
    one. Each work has a context of its own, as each task has.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._spare = _Spare(self._loop)

    def begin(self, work: Work) -> asyncio.Task[None] | None:
        """Run some work up to where it first waits.

        Returns:
            The task that goes on with it; None where it has ended.

        Raises:
            Exception: What it raised before it waited.
        """
        if asyncio.current_task(self._loop) is not None:
            return self._loop.create_task(work)  # One task cannot run within another.
        spare, context = self._spare, self._context.copy()
        # Both are there for tasks that are not asyncio's own: see "Extending asyncio" in Python's documentation.
        asyncio._enter_task(self._loop, spare.task)
        try:
            wish = context.run(work.send, None)
        except StopIteration:
            return None
        finally:
            asyncio._leave_task(self._loop, spare.task)
        self._spare = _Spare(self._loop)
        spare.go_on(_Rest(work, wish, context.run))
        return spare.task

    def close(self) -> None:
        """Drop the task that is kept ready."""
        self._spare.task.cancel()


class _Spare:
    """A task that waits for what it will be the task of."""

    __slots__ = ("_given", "_rest", "task")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._given: asyncio.Future[None] = loop.create_future()
        self._rest: _Rest | None = None
        self.task = loop.create_task(self._run())

    def go_on(self, rest: _Rest) -> None:
        self._rest = rest
        self._given.set_result(None)

    async def _run(self) -> None:
        try:
            await self._given
        except asyncio.CancelledError as error:
            if self._rest is None:
                raise
            self._rest.error = error  # It is meant for the work, which was given just now.
        if self._rest is not None:
            await self._rest


class _Rest:
    """Work from where it first waited, as something that can be awaited.

    Attributes:
        error: Raise this where it waits, instead of waiting.
    """

    __slots__ = ("_run", "_wish", "_work", "error")

    def __init__(self, work: Work, wish: Any, run: Callable[..., Any]) -> None:
        self._work = work
        self._wish = wish
        self._run = run
        self.error: BaseException | None = None

    def __await__(self) -> Generator[Any, Any, None]:
        work, run, wish = self._work, self._run, self._wish
        try:
            if self.error is not None:
                wish = run(work.throw, self.error)
            while True:
                try:
                    what = yield wish
                except BaseException as error:  # noqa: BLE001  # thrown in from outside, and meant for the work
                    wish = run(work.throw, error)
                else:
                    wish = run(work.send, what)
        except StopIteration:
            return
