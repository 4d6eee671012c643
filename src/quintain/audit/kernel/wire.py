"""Frames between the auditor and its worker: four bytes of length, then MessagePack."""

from __future__ import annotations

import os
import select
import time
from typing import Any

import msgspec

from quintain import codec

from .probe import Probe


class LoadFrame(msgspec.Struct, tag=True):
    """Worker's first frame: the subject's description or the error of loading it."""

    about: Any = None
    error: str = ""
    usage: bool = False


class PlayFrame(msgspec.Struct):
    """Frame to the worker.

    Attributes:
        known: Digests of the start states that the auditor knows.
        stays: Play the probe in the worker itself and not in a fork, and send only the last frame.
    """

    probe: Probe
    known: list[str] = []
    stays: bool = False


class StartStateFrame(msgspec.Struct, tag=True):
    """Frame with the start state of a task, if the auditor does not know it.

    Attributes:
        near: Digest of a start state that the auditor knows and from which `view` differs as it says; else empty.
    """

    digest: str
    view: dict[str, Any]
    near: str = ""


class StartFrame(msgspec.Struct, tag=True):
    """Frame at the start of a probe, with the id of its process."""

    pid: int


class ResultFrame(msgspec.Struct, tag=True):
    """Frame with the result of one op.

    Attributes:
        start: Digest of the start state from which a state differs as its value says; empty for other results.
    """

    seen: Any
    start: str = ""


class EndFrame(msgspec.Struct, tag=True):
    """Frame at the end of the probe's process.

    Attributes:
        status: Exit status from `waitpid`.
        left: Number of processes that the probe left behind.
    """

    status: int
    left: int = 0


Frame = LoadFrame | StartStateFrame | StartFrame | ResultFrame | EndFrame


def send(fd: int, message: Any) -> None:
    """Writes one whole frame."""
    body = codec.dumps(message, canonical=False)
    view = memoryview(len(body).to_bytes(4, "little") + body)
    while view:
        view = view[os.write(fd, view) :]


class Receiver:
    """Reader of frames from a pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = bytearray()

    def receive(self, type_: Any, until: float | None = None) -> Any:
        """Returns the next frame.

        Args:
            type_: Type of its content.
            until: Deadline on the monotonic clock; None waits without limit.

        Raises:
            TimeoutError: No frame came in time.
            EOFError: The other side closed the pipe.
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
