"""All protocols on one port, each below its first path segment; the Open Reward Standard has the root."""

from __future__ import annotations

import logging
from typing import Protocol

from quintain import codec

from .asgi import JSON, App, Receive, Request, Scope, Send, Stalled, again_headers
from .control.app import Control
from .door import Door, Keyed, Paces, Places
from .errors import ServeError, Unavailable
from .host import Host
from .keys import Caller
from .mcp import Mcp
from .names import CONTROL, reachable
from .openenv import OpenEnv
from .ors import Ors
from .shard import ELSEWHERE

_log = logging.getLogger(__name__)


class Mount(Protocol):
    """A protocol."""

    async def handle(self, request: Request, caller: Caller) -> None:
        """Answer a request; for a WebSocket the scope's type says so."""
        ...


def build(host: Host, door: Door, places: Places | None = None) -> App:
    """The application.

    Args:
        host: What is served.
        door: Who may ask.
        places: From where; None for what serves on loopback.

    Raises:
        UsageError: The name of an environment is a path of the server's own.
    """
    reachable(host.environments)
    places = places or Places("127.0.0.1")
    rate = host.limits.requests_per_s
    paces = None if rate is None else Paces(rate)
    root: Mount = Ors(host)
    mounts: dict[str, Mount] = {"openenv": OpenEnv(host)}
    secrets = {"e": Mcp(host)}  # Below these, an address is leave enough.
    control = Control(host, keyed=isinstance(door, Keyed))

    def admit(request: Request) -> Caller:
        caller = door.admit(request)
        _pace(paces, request, caller.name)
        return caller

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        request = Request(scope, receive, send)
        first = request.path[1:].partition("/")[0]
        try:
            places.check(request)
            if ELSEWHERE in scope.get("state", ()):
                raise Unavailable("this came behind another request, for another process: ask again", retry_after_s=1)
            if first in secrets:
                _pace(paces, request, "/".join(request.segments[:2]))
                await secrets[first].handle(request)
            elif first in CONTROL:  # It has its own words for who is refused.
                await control.enter(request, admit)
            else:
                await mounts.get(first, root).handle(request, admit(request))
        except ServeError as error:
            body = codec.json({"detail": str(error)})
            await request.answer(error.status, body, [JSON, *again_headers(error)])
        except Stalled as stalled:
            _log.warning("%s", stalled)

    return app


def _pace(paces: Paces | None, request: Request, name: str) -> None:
    """Hold somebody to the rate at which he may ask.

    Raises:
        Full: He asks too often.
    """
    if paces is not None:
        paces.take(name)
        if request.scope["type"] == "websocket":
            request.receive = paces.slowed(name, request.receive)
