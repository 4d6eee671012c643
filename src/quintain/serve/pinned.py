"""Connections that find their process: one that brings a request for another is handed over to it, as it stands.

What is handed over is the connection itself, with the bytes that were read of it. From then on the other process
answers as if the connection had come to it: streams and WebSockets cost nothing more. A client that asks for
episodes of two processes on one connection has it handed to and fro, at about half a millisecond each time. Only a
request that came behind another one, which is still being answered, is passed on and its answer passed back.
"""

from __future__ import annotations

import asyncio
import os
from http import HTTPStatus
from typing import Any

from .http import Http, parts
from .mail import Mail, Parcel
from .shard import ELSEWHERE, Shard
from .siblings import INNER

AGAIN_S = 0.02
"""Seconds until a connection is handed over again for which there was no room."""
WAIT_S = 15.0
"""Seconds until it is refused."""


class Pinned(Http):
    """A connection to one of several processes.

    Attributes:
        shard: Which.
        mail: How others are reached.
        brought: What was read of it before it came here.
        is_inner: Whether it is another process that asks.
    """

    shard: Shard
    mail: Mail
    brought = b""
    is_inner = False

    _head = b""
    _begun = 0
    _owner: int | None = None
    _until = 0.0

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
            self._until = self.loop.time() + WAIT_S
            self.transport.pause_reading()
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
        path, _, query = parts(self.url)
        owner = None if self.is_inner else self.shard.owner(path, query, self.headers)
        if self.is_inner:
            self.scope.setdefault("state", {})[INNER] = True
        if owner is None or owner == self.shard.number:
            super().on_headers_complete()
        elif self._begun == 1 and not self._is_answering:
            self._owner = owner
            self._in_head = self._in_message = False  # How long it is, and how late, is seen to where it goes.
        else:  # It came behind another one, which is being answered here.
            self.scope.setdefault("state", {})[ELSEWHERE] = owner
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

    def unreadable(self) -> None:
        """What comes is no request; what follows one for somebody else is his to read."""
        if self._owner is None:
            super().unreadable()

    @property
    def _is_answering(self) -> bool:
        """Whether an answer is not complete, or waits here until the client reads."""
        if self.transport.get_write_buffer_size():
            return True
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
        elif self.loop.time() < self._until:
            self._late = self.loop.call_later(AGAIN_S, self._hand_over, owner, data)
        else:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)


def pinned(shard: Shard, mail: Mail) -> type[Pinned]:
    """The connections of one process."""
    return type("PinnedHere", (Pinned,), {"shard": shard, "mail": mail})


def accept(server: Any, parcel: Parcel) -> None:
    """Go on with a connection that another process has handed over.

    Args:
        server: uvicorn's, which is running.
        parcel: The connection.
    """
    loop = asyncio.get_running_loop()

    def make() -> Pinned:
        protocol: Pinned = server.config.http_protocol_class(
            config=server.config, server_state=server.server_state, app_state=server.lifespan.state, _loop=loop
        )
        protocol.brought, protocol.is_inner = parcel.data, parcel.is_inner
        return protocol

    coming = loop.create_task(loop.connect_accepted_socket(make, parcel.connection))
    _coming.add(coming)
    coming.add_done_callback(_coming.discard)


_coming: set[asyncio.Task[Any]] = set()
