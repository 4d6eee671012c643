"""Parts of MCP's official SDK that several protocols share. The SDK is large, so it is loaded at the first request."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from quintain.serve.episodes.actions import text
from quintain.serve.errors import Refused
from quintain.serve.http.asgi import Receive, Scope, Send
from quintain.tools import Tool
from quintain.trace import Content, Image


class Manager:
    """The SDK's manager, without sessions. It starts with its first request, and ends with its event loop or before.

    Args:
        server: The SDK's.
        most: Bytes of a request's body.
    """

    def __init__(self, server: Server[Any], *, most: int) -> None:
        self._manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=most)
        self._running: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        await self._opened.wait()
        await self._manager.handle_request(scope, receive, send)

    async def aclose(self) -> None:
        """Leave the manager."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        """Hold the manager open, which must be left by the task that entered it."""
        async with self._manager.run():
            self._opened.set()
            await asyncio.Event().wait()


def without_headers(name: str) -> None:
    """No tool of ours declares that arguments are repeated in headers."""


def tool(one: Tool) -> types.Tool:
    """A tool as it is listed."""
    return types.Tool(name=one.name, description=one.description, input_schema=one.parameters)


def arguments(params: types.CallToolRequestParams) -> str:
    """Returns the arguments of a call as JSON that a record can hold; the SDK also accepts other JSON.

    Raises:
        Refused: No record can hold the arguments.
    """
    try:
        return text(json.dumps(params.arguments or {}, ensure_ascii=False))
    except RecursionError:
        raise Refused("the arguments are nested too deeply") from None


def blocks(content: Content) -> list[types.ContentBlock]:
    """Returns content as blocks of the SDK; empty text becomes no block, since model endpoints refuse it."""
    if isinstance(content, str):
        return [types.TextContent(text=content)] if content else []
    return [
        types.ImageContent(data=base64.b64encode(block.data).decode(), mime_type=block.media_type)
        if isinstance(block, Image)
        else types.TextContent(text=block.text)
        for block in content
    ]
