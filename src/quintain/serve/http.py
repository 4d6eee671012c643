"""uvicorn's HTTP with bounds on how requests come: each in time, and with a head no longer than heads are.

How long a body may be is known where it is read, see `asgi.Request.body`.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_S = 15.0
"""Seconds from a connection's first sign of a request, or from its beginning, to the end of the request's head."""
HEAD_BYTES = 64 << 10
BODY_S = 60.0
"""Seconds from there to the end of its body."""
LINGER_S = 5.0
"""Seconds that the rest of a request is listened to after its answer, so that the answer is read."""


class Http(HttpToolsProtocol):
    """One connection."""

    _size = 0
    _chunk = 0
    _in_head = False
    _in_message = False
    _late: asyncio.TimerHandle | None = None
    _status = HTTPStatus.BAD_REQUEST

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come; it is to say what it wants."""
        super().connection_made(transport)
        self._late = self.loop.call_later(HEAD_S, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left."""
        self._on_time()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have come; most often they are one whole request."""
        self._chunk = len(data)
        super().data_received(data)
        if not self._in_message:
            return
        self._size += len(data) if self._in_head else 0
        if self._size > HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_S if self._in_head else BODY_S, self._too_late)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head = self._in_message = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head of a request is there.

        Raises:
            ValueError: It is too long.
        """
        self._in_head = False
        self._on_time()
        if self._size + self._chunk > HEAD_BYTES:
            length = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if length > HEAD_BYTES:
                self._status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
                raise ValueError("the head of a request is too long")
        self._size = 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of a request is there."""
        self._in_message = False
        self._on_time()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A request was answered; one whose body still comes will not be listened to for long."""
        super().on_response_complete()
        if self._in_message and not self.transport.is_closing():
            self._on_time()
            self._late = self.loop.call_later(LINGER_S, self._too_late)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request."""
        self._refuse(self._status)

    def _too_late(self) -> None:
        self._late = None
        if self._in_head or (self._in_message and not self.cycle.response_started):
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        elif not self.transport.is_closing():
            self.transport.close()

    def _on_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _refuse(self, status: HTTPStatus) -> None:
        self._on_time()
        self._in_head = self._in_message = False
        if self.transport.is_closing():
            return
        body = b'{"detail":"%s"}' % status.phrase.encode()
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)
        self.transport.close()
