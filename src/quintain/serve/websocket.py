"""uvicorn's WebSockets, with an end to each: a connection that was closed here is not kept for a client who stays.

And what clients send wrongly is told to them, not to the log.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Opcode

from .unread import Reader

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent
    from websockets.frames import Frame

_UNREADABLE = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 24\r\n\r\n"
    b'{"detail":"Bad Request"}'
)
_PONG = bytes([0x80 | Opcode.PONG])


class WebSocket(Reader, WebSocketsSansIOProtocol):
    """One connection."""

    frames: list[Any]  # One: the message so far.
    _pong = b""

    def data_received(self, data: bytes) -> None:
        """Take bytes. A handshake that cannot be read is refused; uvicorn would leave it without any answer."""
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated and not self.transport.is_closing():
            self.transport.write(b"".join(self.conn.data_to_send()) or _UNREADABLE)
            self.transport.close()

    def handle_cont(self, event: Frame) -> None:
        """Take a part of a message: it is put together at once, for how many parts there are is the client's choice."""
        if not isinstance(self.frames[0], bytearray):
            self.frames[0] = bytearray(self.frames[0])
        self.frames[0] += event.data
        if event.fin:
            self.send_receive_event_to_app()

    def handle_ping(self) -> None:
        """Answer a sign of life; to a client that does not read, only the latest, when he does."""
        if self.writable.is_set():
            super().handle_ping()
            return
        for frame in self.conn.data_to_send():
            if frame[:1] == _PONG:
                self._pong = frame
            else:
                self.transport.write(frame)

    def resume_writing(self) -> None:
        """The client has read most of what waited for him."""
        super().resume_writing()
        pong, self._pong = self._pong, b""
        if pong and not self.transport.is_closing():
            self.transport.write(pong)

    def send_receive_event_to_app(self) -> None:
        """Take a message that is whole; text that is none breaks the protocol, and is no news for the log."""
        if self.curr_msg_data_type == "text":
            try:
                self.frames[0].decode()
            except UnicodeDecodeError:
                self.frames = []
                if not self.close_sent:
                    self.conn.send_close(1007)
                    self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

    async def send(self, message: ASGISendEvent) -> None:
        """Send; who is refused in HTTP's words gets no handshake, which uvicorn would log as a fault of ours."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """Let the connection go, when its client does not."""
        super().on_task_complete(task)
        self.must_read()  # Closing waits until all is.

    def keepalive_timeout(self) -> None:
        """Nothing has come from the client in a long while, not even a sign of life."""
        super().keepalive_timeout()
        self.must_read()
