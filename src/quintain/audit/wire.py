"""Frames between the auditor and its child: four bytes of length, then MessagePack."""

from __future__ import annotations

import os
import select
import time
from typing import Any

import msgspec

from quintain import codec


class Opening(msgspec.Struct, tag=True):
    """Child to auditor: what was loaded, or why it could not be."""

    about: Any = None
    error: str = ""
    usage: bool = False


class Begun(msgspec.Struct, tag=True):
    """A probe begins, in this process."""

    pid: int


class Saw(msgspec.Struct, tag=True):
    """One op is done."""

    seen: Any


class Over(msgspec.Struct, tag=True):
    """The probe's process is gone.

    Attributes:
        status: Of `waitpid`.
        left: Processes that it left behind.
    """

    status: int
    left: int = 0


Frame = Opening | Begun | Saw | Over


def send(fd: int, message: Any) -> None:
    """Write one frame whole."""
    body = codec.dumps(message, canonical=False)
    view = memoryview(len(body).to_bytes(4, "little") + body)
    while view:
        view = view[os.write(fd, view) :]


class Receiver:
    """Frames out of a pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = bytearray()

    def receive(self, type_: Any, until: float | None = None) -> Any:
        """The next frame.

        Args:
            type_: What it holds.
            until: On the monotonic clock; None waits for ever.

        Raises:
            TimeoutError: It did not come.
            EOFError: The other side is gone.
        """
        size = int.from_bytes(self._exactly(4, until), "little")
        return codec.loads(bytes(self._exactly(size, until)), type_)

    def _exactly(self, count: int, until: float | None) -> bytearray:
        while len(self._buffer) < count:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._fd], [], [], left)[0]:
                raise TimeoutError("nothing came in time")
            chunk = os.read(self._fd, 1 << 20)
            if not chunk:
                raise EOFError("the other side is gone")
            self._buffer += chunk
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found
