"""uvicorn's WebSockets, with an end to each: a connection that was closed here is not kept for a client who stays."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

LINGER_S = 15.0
"""Seconds in which a client may still read what it was sent; the 10 of the closing handshake are among them."""


class WebSocket(WebSocketsSansIOProtocol):
    """One connection."""

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """Let the connection go, when its client does not."""
        super().on_task_complete(task)
        # Closing waits until all is read; without this a client that never reads would keep its connection forever.
        self.loop.call_later(LINGER_S, self.transport.abort)
