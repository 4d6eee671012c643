"""Fixture that detects threads which a subject leaves running."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator

ENDING_S = 5.0
"""Seconds in which a finished thread may end, such as asyncio's after waiting for a program."""


@contextlib.contextmanager
def no_thread_stays() -> Generator[None]:
    """Fails if a thread that began inside the test outlives it."""
    before = set(threading.enumerate())
    yield
    began = set(threading.enumerate()) - before
    for one in began:
        one.join(ENDING_S)
    stayed = [one.name for one in began if one.is_alive()]
    assert not stayed, stayed
