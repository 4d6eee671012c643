"""`/e/{token}/mcp`: one SDK server, and one of its session managers, for all episodes of a host.

Nothing is kept per episode or per client. The SDK's manager runs without sessions, so that an episode is its address
alone: clients of both eras may come, go and come back, and none of them can end it by saying goodbye.
"""

from __future__ import annotations

from typing import Any

from quintain import codec
from quintain.serve import sdk
from quintain.serve.asgi import Request
from quintain.serve.live import Live

from .desk import Asked, Context, Desk

_ASKED = "dev.quintain.asked"


class Address:
    """The protocol's part of a server's addresses.

    Args:
        most: Bytes of a request's body.
    """

    def __init__(self, most: int) -> None:
        self._manager = sdk.Manager(Desk(_asked).server, most=most)

    async def handle(self, request: Request, live: Live) -> None:
        """Answer one request, a POST to this episode's address."""
        key = request.header(b"idempotency-key")
        named = codec.digest(key.encode()) if key else ""
        asked = Asked(live, request.gone, named)
        headers = [(name, value.strip(b" \t")) for name, value in request.scope["headers"]]
        scope = {**request.scope, "headers": headers, _ASKED: asked}
        await self._manager.handle(scope, request.receive, request.send)


def _asked(context: Context) -> Asked:
    carried: Any = context.request
    asked: Asked = carried.scope[_ASKED]
    return asked
