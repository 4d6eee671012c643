"""What a subject leaves running."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator


@contextlib.contextmanager
def no_thread_stays() -> Generator[None]:
    """Those that ran before may end meanwhile; none that began inside may outlive it."""
    before = set(threading.enumerate())
    yield
    stayed = [one.name for one in set(threading.enumerate()) - before]
    assert not stayed, stayed
