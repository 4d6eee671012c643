"""The Model Context Protocol, by its official SDK: every episode is an MCP server of its own.

Over HTTP it has an address that cannot be guessed, `/e/{token}/mcp`; over stdin and stdout it has a process. An agent
sees tools, a prompt named `task`, and nothing of rewards: these stand in the metadata of results, under our prefix.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING

from quintain import codec
from quintain.serve.episodes.host import Host
from quintain.serve.errors import Unavailable, Unknown
from quintain.serve.http.asgi import JSON, HttpRequest

if TYPE_CHECKING:
    from quintain.serve.http.mcp_sdk import Manager

TARGET = "dev.quintain.target"
"""Name in the scope of a request for its episode and its idempotency key."""


class Mcp:
    """Handler of `/e/{token}/mcp`, which loads the SDK with the first request.

    Args:
        host: The host whose episodes are served.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._manager: Manager | None = None
        self._loading = asyncio.Lock()

    async def handle(self, request: HttpRequest) -> None:
        """Answers one request. The token in its path is its permission."""
        if request.scope["type"] != "http":
            await request.send({"type": "websocket.close"})
            return
        if words := too_old():
            raise Unavailable(words)
        try:
            token = "".join(request.segments[1:2])
            live = self._host.by_token(token if request.segments == ["e", token, "mcp"] else "")
        except Unknown:  # Before the SDK is loaded: who knows no address has no use of it.
            await _refuse(request, 404, "Not Found")
            return
        if live.led:
            await _refuse(request, 409, "A harness elsewhere plays this episode")
            return
        if request.method != "POST":  # The server has neither streams of its own nor sessions that a client could end.
            await _refuse(request, 405, "Method Not Allowed")
            return
        manager = await self._loaded()
        key = request.header(b"idempotency-key")
        headers = [(name, value.strip(b" \t")) for name, value in request.scope["headers"]]
        target = (live, codec.digest(key.encode()) if key else "")
        scope = {**request.scope, "headers": headers, TARGET: target}
        await manager.handle(scope, request.receive, request.send)

    async def _loaded(self) -> Manager:
        async with self._loading:
            if self._manager is None:
                await asyncio.to_thread(importlib.import_module, f"{__name__}.handlers")
                from .handlers import manager

                self._manager = manager(self._host.limits.body_bytes)
            return self._manager


@functools.cache
def too_old() -> str:
    """Returns the refusal if another package has installed an SDK older than version 2, else an empty text."""
    installed = version("mcp")
    if int(installed.partition(".")[0]) >= 2:
        return ""
    return (
        f"MCP is served by mcp 2 or newer, and here is mcp {installed}, which another package wants: "
        "install 'quintain[serve]' into an environment of its own"
    )


async def _refuse(request: HttpRequest, status: int, words: str) -> None:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": words}}
    await request.answer(status, codec.json(body), (JSON, (b"allow", b"POST")) if status == 405 else (JSON,))
