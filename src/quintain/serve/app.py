"""All protocols on one port, each below its first path segment; the Open Reward Standard has the root."""

from __future__ import annotations

import logging
from typing import Protocol

from quintain import codec

from .asgi import JSON, App, Receive, Request, Scope, Send, Stalled, again_headers
from .control.app import Control
from .errors import ServeError
from .host import Host
from .keys import ANYONE, Caller
from .mcp import Mcp
from .openenv import OpenEnv
from .ors import Ors

_log = logging.getLogger(__name__)


class Door(Protocol):
    """Who lets callers in."""

    def admit(self, request: Request) -> Caller:
        """Who asks.

        Raises:
            Denied: Nobody who may.
        """
        ...


class Open:
    """Lets everybody in; for servers that only this machine can reach."""

    def admit(self, request: Request) -> Caller:
        return ANYONE


class Mount(Protocol):
    """A protocol."""

    async def handle(self, request: Request, caller: Caller) -> None:
        """Answer a request; for a WebSocket the scope's type says so."""
        ...


def build(host: Host, door: Door) -> App:
    """The application.

    Args:
        host: What is served.
        door: Who may ask.
    """
    root: Mount = Ors(host)
    mounts: dict[str, Mount] = {"openenv": OpenEnv(host)}
    secrets = {"e": Mcp(host)}  # Below these, an address is leave enough.
    control = Control(host)
    controlled = {"v1", "healthz", "readyz", "metrics"}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        request = Request(scope, receive, send)
        first = request.path[1:].partition("/")[0]
        try:
            if first in secrets:
                await secrets[first].handle(request)
            elif first in controlled:  # It has its own words for who is refused.
                await control.enter(request, door.admit)
            else:
                await mounts.get(first, root).handle(request, door.admit(request))
        except ServeError as error:
            body = codec.json({"detail": str(error)})
            await request.answer(error.status, body, [JSON, *again_headers(error)])
        except Stalled as stalled:
            _log.warning("%s", stalled)

    return app
