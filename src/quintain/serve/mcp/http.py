"""`/e/{token}/mcp`: one SDK server, and one of its session managers, for all episodes of a host.

Nothing is kept per episode or per client. The SDK's manager runs without sessions, so that an episode is its address
alone: clients of both eras may come, go and come back, and none of them can end it by saying goodbye.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Any

from quintain import codec
from quintain.serve import sdk
from quintain.serve.asgi import Request
from quintain.serve.live import Live

from .desk import Asked, Context, Desk

_ASKED = "dev.quintain.asked"
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"via")


class Address:
    """The protocol's part of a server's addresses.

    Args:
        most: Bytes of a request's body.
    """

    def __init__(self, most: int) -> None:
        self._lines = Lines()
        self._manager = sdk.Manager(Desk(_asked).server, most=most)

    async def handle(self, request: Request, live: Live) -> None:
        """Answer one request, a POST to this episode's address."""
        key = request.header(b"idempotency-key")
        named = codec.digest(key.encode()) if key else ""
        asked = Asked(live, self._lines.name(request), request.gone, named)
        headers = [(name, value.strip(b" \t")) for name, value in request.scope["headers"]]
        scope = {**request.scope, "headers": headers, _ASKED: asked}
        await self._manager.handle(scope, request.receive, request.send)


class Lines:
    """Names for the connections by which requests come, so that the ids of two clients are never taken for one's.

    The server gives all requests of a connection the same address object; while we hold it, no other object is it.
    """

    MOST = 4096

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[Any, str]] = OrderedDict()

    def name(self, request: Request) -> str:
        """A name that no other connection ever has; empty where a proxy may send the requests of many by one."""
        client = request.scope.get("client")
        if client is None or any(request.header(name) for name in _FORWARDED):
            return ""
        if id(client) not in self._known:
            self._known[id(client)] = (client, secrets.token_hex(8))
            if len(self._known) > self.MOST:
                self._known.popitem(last=False)
        self._known.move_to_end(id(client))
        return self._known[id(client)][1]


def _asked(context: Context) -> Asked:
    carried: Any = context.request
    asked: Asked = carried.scope[_ASKED]
    return asked
