"""Interruption of a run: Ctrl-C in code that blocks, and a debugger at the first failure."""

from __future__ import annotations

import asyncio
import contextlib
import pdb  # noqa: T100  # what --debug opens
import signal
import threading
import traceback
from collections.abc import Coroutine, Generator
from types import FrameType
from typing import Any, TypeVar

import click

from quintain import errors

T = TypeVar("T")
PATIENCE_S = 1.0
"""Time that the event loop has to react to Ctrl-C before code that blocks it is interrupted."""


async def interruptible(coroutine: Coroutine[Any, Any, T]) -> T:
    """Awaits a coroutine; ends code that blocks the event loop after the first Ctrl-C, not only after the second."""
    cancel, main, loop = signal.getsignal(signal.SIGINT), threading.main_thread(), asyncio.get_running_loop()
    if not callable(cancel) or threading.current_thread() is not main or main.ident is None:
        return await coroutine
    repeat = threading.Timer(PATIENCE_S, signal.pthread_kill, (main.ident, signal.SIGINT))
    repeat.daemon = True

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, cancel)
        repeat.start()
        loop.call_soon_threadsafe(repeat.cancel)
        cancel(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        return await coroutine
    finally:
        repeat.cancel()
        signal.signal(signal.SIGINT, cancel)


@contextlib.contextmanager
def debugger() -> Generator[None]:
    """Opens the first failure in pdb, where its exception was raised; leaving pdb interrupts the run."""

    def inspect(error: BaseException) -> None:
        while not errors.author_frames(error) and error.__cause__ is not None:
            error = error.__cause__
        click.echo("".join(traceback.format_exception(error)), err=True)
        pdb.post_mortem(error.__traceback__)
        raise KeyboardInterrupt

    token = errors.post_mortem.set(inspect)
    try:
        yield
    finally:
        errors.post_mortem.reset(token)
