"""By which processes behind one port hand each other connections."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections.abc import Callable
from typing import NamedTuple

INLINE = 60_000
"""Bytes that go with a connection in one message; more of them go by a file that is only in memory."""

_log = logging.getLogger(__name__)

_CLIENT, _SIBLING = b".", b"!"
_NO_ROOM = {errno.EAGAIN, errno.ENOBUFS, errno.ETOOMANYREFS}


class Parcel(NamedTuple):
    """A connection that was handed over.

    Attributes:
        connection: It.
        data: What was read of it.
        is_inner: Whether the process that sent it made it, and asks by it; else it is a client's.
    """

    connection: socket.socket
    data: bytes
    is_inner: bool


class Mail:
    """A box for each process. Made before they are, so that it outlives each of them.

    Args:
        count: How many there are.
    """

    def __init__(self, count: int) -> None:
        self._boxes = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(count)]
        for pair in self._boxes:
            for end in pair:
                end.settimeout(0)

    def send(self, number: int, connection: int, data: bytes, *, is_inner: bool = False) -> bool:
        """Hand over a connection; whether there was room for it.

        Args:
            number: To whom.
            connection: Its descriptor, which stays the caller's to close.
            data: What was read of it.
            is_inner: Whether it is this process that asks.
        """
        kind = _SIBLING if is_inner else _CLIENT
        with contextlib.ExitStack() as stack:
            descriptors = [connection]
            if len(data) > INLINE:
                descriptors.append(os.memfd_create("request"))
                stack.callback(os.close, descriptors[1])
                with os.fdopen(descriptors[1], "wb", closefd=False) as file:
                    file.write(data)
                data = b""
            try:
                socket.send_fds(self._boxes[number][1], [kind + data], descriptors)
            except OSError as error:
                if error.errno in _NO_ROOM:
                    return False
                raise
        return True

    def read(self, number: int) -> Parcel | None:
        """What is next in somebody's box; None where it is empty."""
        try:
            data, descriptors, flags, _ = socket.recv_fds(self._boxes[number][0], INLINE + 1, 2)
        except BlockingIOError:
            return None
        for one in descriptors:
            os.set_inheritable(one, False)  # noqa: FBT003  # Programs that start here must not hold a client's line.
        if flags & socket.MSG_CTRUNC:
            for one in descriptors:
                os.close(one)
            _log.warning("a connection was lost on its way between two processes: too many descriptors are open")
            return self.read(number)
        connection = socket.socket(fileno=descriptors[0])
        connection.settimeout(0)
        is_inner = data[:1] == _SIBLING
        if len(descriptors) == 1:
            return Parcel(connection, data[1:], is_inner)
        with os.fdopen(descriptors[1], "rb") as file:
            file.seek(0)
            return Parcel(connection, file.read(), is_inner)

    def close(self) -> None:
        """Throw away what is still in the boxes."""
        for number, pair in enumerate(self._boxes):
            while (found := self.read(number)) is not None:
                found.connection.close()
            for end in pair:
                end.close()

    def watch(self, number: int, loop: asyncio.AbstractEventLoop, take: Callable[[Parcel], None]) -> None:
        """Have a function called for everything that comes for somebody."""

        def come() -> None:
            while (found := self.read(number)) is not None:
                take(found)

        loop.add_reader(self._boxes[number][0].fileno(), come)
