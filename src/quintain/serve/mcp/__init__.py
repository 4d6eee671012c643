"""The Model Context Protocol, by its official SDK: every episode is an MCP server of its own.

Over HTTP it has an address that cannot be guessed, `/e/{token}/mcp`; over stdin and stdout it has a process. An agent
sees tools, a prompt named `task`, and nothing of rewards: these stand in the metadata of results, under our prefix.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quintain.serve.asgi import Request
from quintain.serve.host import Host

if TYPE_CHECKING:
    from .http import Address


class Mcp:
    """`/e/{token}/mcp`. The SDK is large, and is loaded, beside what else is served, when it is first asked for.

    Args:
        host: Whose episodes.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._address: Address | None = None
        self._loading = asyncio.Lock()

    async def handle(self, request: Request) -> None:
        """Answer one request. The token in its path is leave enough, whoever asks."""
        if request.scope["type"] != "http":
            await request.send({"type": "websocket.close"})
            return
        await (await self._loaded()).handle(request)

    async def _loaded(self) -> Address:
        async with self._loading:
            if self._address is None:
                await asyncio.to_thread(_load)
                from .http import Address

                self._address = Address(self._host)
            return self._address


def _load() -> None:
    from . import http as http
