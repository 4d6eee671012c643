"""Connections that find their process: one that brings a request for another is handed over to it, as it stands.

What is handed over is the connection itself, with the bytes that were read of it. From then on the other process
answers as if the connection had come to it: streams and WebSockets cost nothing more. A client that asks for
episodes of two processes on one connection has it handed to and fro, at about half a millisecond each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from .http import Http
from .shard import ELSEWHERE, Shard

INLINE = 60_000
"""Bytes that go with a connection in one message; more of them go by a file that is only in memory."""


class Mail:
    """By which processes hand each other connections. Made before they are, so that it outlives each of them.

    Args:
        count: How many there are.
    """

    def __init__(self, count: int) -> None:
        self._boxes = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(count)]
        for pair in self._boxes:
            for end in pair:
                end.settimeout(0)

    def send(self, number: int, connection: int, data: bytes) -> bool:
        """Hand over a connection; whether there was room for it.

        Args:
            number: To whom.
            connection: Its descriptor, which stays the caller's to close.
            data: What was read of it.
        """
        with contextlib.ExitStack() as stack:
            descriptors = [connection]
            if len(data) > INLINE:
                descriptors.append(os.memfd_create("request"))
                stack.callback(os.close, descriptors[1])
                with os.fdopen(descriptors[1], "wb", closefd=False) as file:
                    file.write(data)
                data = b""
            try:
                socket.send_fds(self._boxes[number][1], [b"." + data], descriptors)
            except BlockingIOError:
                return False
        return True

    def read(self, number: int) -> tuple[socket.socket, bytes] | None:
        """The next connection for somebody, and what was read of it; None where there is none."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._boxes[number][0], INLINE + 1, 2)
        except BlockingIOError:
            return None
        connection = socket.socket(fileno=descriptors[0])
        connection.settimeout(0)
        if len(descriptors) == 1:
            return connection, data[1:]
        with os.fdopen(descriptors[1], "rb") as file:
            file.seek(0)
            return connection, file.read()

    def close(self) -> None:
        """Throw away what is still in the boxes."""
        for number, pair in enumerate(self._boxes):
            while (found := self.read(number)) is not None:
                found[0].close()
            for end in pair:
                end.close()

    def watch(self, number: int, loop: asyncio.AbstractEventLoop, take: Callable[[socket.socket, bytes], None]) -> None:
        """Have a function called for each connection that comes for somebody."""

        def come() -> None:
            while (found := self.read(number)) is not None:
                take(*found)

        loop.add_reader(self._boxes[number][0].fileno(), come)


class Pinned(Http):
    """A connection to one of several processes.

    Attributes:
        shard: Which.
        mail: How others are reached.
        brought: What was read of it before it came here.
    """

    shard: Shard
    mail: Mail
    brought = b""

    _head = b""
    _begun = 0
    _owner: int | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come, or was brought."""
        super().connection_made(transport)
        if self.brought:
            self.data_received(self.brought)
            self.brought = b""

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if not self._in_message:
            self._head, self._begun = b"", 0
        super().data_received(data)
        if self._owner is not None:
            self._hand_over(self._owner, self._head + data)
        elif self._in_head:
            self._head += data

    def on_message_begin(self) -> None:
        """A request begins."""
        if self._owner is None:
            self._begun += 1
            super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head of a request is there, and says whose it is."""
        if self._owner is not None:
            return
        owner = self.shard.owner(self.url, self.headers)
        if owner is None or owner == self.shard.number:
            super().on_headers_complete()
        elif self._begun == 1 and not self._is_answering:
            self._owner = owner
            self._in_head = self._in_message = False  # How long it is, and how late, is seen to where it goes.
        else:  # It came behind another one, which is being answered here.
            self.scope.setdefault("state", {})[ELSEWHERE] = True
            super().on_headers_complete()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of a request's head."""
        if self._owner is None:
            super().on_header(name, value)

    def on_url(self, url: bytes) -> None:
        """The target of a request, or a part of it."""
        if self._owner is None:
            super().on_url(url)

    def on_body(self, body: bytes) -> None:
        """A part of a request's body."""
        if self._owner is None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """All of a request is there."""
        if self._owner is None:
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """A WebSocket is asked for."""
        if self._owner is None:
            super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request; what follows one for somebody else is his to read."""
        if self._owner is None:
            super().send_400_response(msg)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _hand_over(self, owner: int, data: bytes) -> None:
        self._on_time()
        line = os.dup(self.transport.get_extra_info("socket").fileno())
        try:
            is_sent = self.mail.send(owner, line, data)
        finally:
            os.close(line)
        if is_sent:
            self._in_message = self._in_head = False
            self.transport.abort()  # This end of it; the other process has its own.
        else:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)


def pinned(shard: Shard, mail: Mail) -> type[Pinned]:
    """The connections of one process."""
    return type("PinnedHere", (Pinned,), {"shard": shard, "mail": mail})


def accept(server: Any, connection: socket.socket, data: bytes) -> None:
    """Go on with a connection that another process has brought.

    Args:
        server: uvicorn's, which is running.
        connection: The connection.
        data: What was read of it.
    """
    loop = asyncio.get_running_loop()

    def make() -> Pinned:
        protocol: Pinned = server.config.http_protocol_class(
            config=server.config, server_state=server.server_state, app_state=server.lifespan.state, _loop=loop
        )
        protocol.brought = data
        return protocol

    coming = loop.create_task(loop.connect_accepted_socket(make, connection))
    _coming.add(coming)
    coming.add_done_callback(_coming.discard)


_coming: set[asyncio.Task[Any]] = set()
