"""What a subject leaves running."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator

ENDING_S = 5.0
"""Seconds in which a thread may come to its end whose work is done, as asyncio's that has waited for a program."""


@contextlib.contextmanager
def no_thread_stays() -> Generator[None]:
    """Those that ran before may end meanwhile; none that began inside may outlive it."""
    before = set(threading.enumerate())
    yield
    began = set(threading.enumerate()) - before
    for one in began:
        one.join(ENDING_S)
    stayed = [one.name for one in began if one.is_alive()]
    assert not stayed, stayed
