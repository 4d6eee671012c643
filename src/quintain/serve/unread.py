"""Clients that do not read what they asked for: their connections are cut off, whatever protocol is spoken on them.

Who reads something now and then is served to the end, however slow he is. What our own buffer says of that is not
enough: the kernel takes nothing more from it for as long as most of its own, of megabytes, is full.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import sys
from typing import Any

READ_S = 75.0
"""Seconds in which a client must have read something of what waits for it."""
LOOKS = 5
"""So often it is looked at in that time."""

_ACKED = 120
"""Where Linux's `struct tcp_info` has tcpi_bytes_acked, 8 bytes, since 4.1."""

_log = logging.getLogger(__name__)


class Reader:
    """What any protocol of uvicorn's is given in front of it, so that its client must read."""

    transport: Any
    loop: asyncio.AbstractEventLoop

    _look_next: asyncio.TimerHandle | None = None
    _read = 0
    _since = 0.0

    def pause_writing(self) -> None:
        """The buffers are full."""
        super().pause_writing()  # type: ignore[misc]  # uvicorn's
        self.must_read()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, and with it what was not read."""
        self.look_away()
        super().connection_lost(exc)  # type: ignore[misc]  # uvicorn's

    def must_read(self) -> None:
        """See that the client reads what waits for it, if anything does, until nothing does."""
        if self._look_next is None and _waits(self.transport):
            self._read, self._since = _read(self.transport), self.loop.time()
            self._look_next = self.loop.call_later(READ_S / LOOKS, self._look)

    def look_away(self) -> None:
        """Have another one see to it."""
        if self._look_next is not None:
            self._look_next.cancel()
            self._look_next = None

    def cut_off(self) -> None:
        """End the connection; what waits in it is dropped."""
        self.transport.abort()

    def _look(self) -> None:
        self._look_next = None
        if not _waits(self.transport):
            return
        read, now = _read(self.transport), self.loop.time()
        if read > self._read:
            self._read, self._since = read, now
        elif now - self._since >= READ_S:
            _log.warning("a client has read nothing of its answer for %g s, and is cut off", READ_S)
            self.cut_off()
            return
        self._look_next = self.loop.call_later(READ_S / LOOKS, self._look)


def _waits(transport: Any) -> bool:
    """Whether anything waits for a client; on a line between our own processes, the other one sees to him."""
    line = transport.get_extra_info("socket")
    return bool(transport.get_write_buffer_size() and line.family != socket.AF_UNIX and line.fileno() >= 0)


def _read(transport: Any) -> int:
    """A number that grows when a client reads: bytes that its machine has acknowledged, where that is known."""
    if sys.platform != "linux":
        return -int(transport.get_write_buffer_size())
    line = transport.get_extra_info("socket")
    info = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKED + 8)
    return int(struct.unpack_from("=Q", info, _ACKED)[0])
