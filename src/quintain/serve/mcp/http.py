"""`/e/{token}/mcp`: one SDK server, and one of its session managers, for all episodes of a host.

Nothing is kept per episode or per client. The SDK's manager runs without sessions, so that an episode is its address
alone: clients of both eras may connect, leave and come back, and none of them ends it by leaving.
"""

from __future__ import annotations

from typing import Any

from quintain import codec
from quintain.serve.episodes.live import Live
from quintain.serve.http import mcp_sdk as sdk
from quintain.serve.http.asgi import HttpRequest

from .handlers import Context, Handlers, Target

_TARGET = "dev.quintain.target"


class Address:
    """The protocol's part of a server's addresses.

    Args:
        most: Bytes of a request's body.
    """

    def __init__(self, most: int) -> None:
        self._manager = sdk.Manager(Handlers(_target).server, most=most)

    async def handle(self, request: HttpRequest, live: Live) -> None:
        """Answers one request, a POST to this episode's address."""
        key = request.header(b"idempotency-key")
        target = Target(live, codec.digest(key.encode()) if key else "")
        headers = [(name, value.strip(b" \t")) for name, value in request.scope["headers"]]
        await self._manager.handle(
            {**request.scope, "headers": headers, _TARGET: target}, request.receive, request.send
        )


def _target(context: Context) -> Target:
    carried: Any = context.request
    target: Target = carried.scope[_TARGET]
    return target
