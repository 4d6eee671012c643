"""All protocols on one port, each below its first path segment; the Open Reward Standard has the root."""

from __future__ import annotations

from typing import Any, Protocol

from quintain import codec

from .asgi import JSON, App, Receive, Request, Scope, Send, again_headers
from .control.app import Control
from .door import NOBODY, Door, Keyed, Paces, Places
from .episodes.host import Host
from .errors import ServeError
from .keys import Caller
from .mcp import Mcp
from .names import CONTROL, reachable
from .openenv import OpenEnv
from .ors import Ors
from .shard import ELSEWHERE
from .siblings import Elsewhere, told

_NOTHING: dict[str, Any] = {}


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
    return _Front(host, door, places or Places("127.0.0.1"))


class _Front:
    """Where all requests come in."""

    def __init__(self, host: Host, door: Door, places: Places) -> None:
        rate = host.limits.requests_per_s
        self._host = host
        self._door = door
        self._places = places
        self._paces = None if rate is None else Paces(rate, host.common.held)
        self._root: Mount = Ors(host)
        self._mounts: dict[str, Mount] = {"openenv": OpenEnv(host)}
        self._mcp = Mcp(host)
        self._control = Control(host, keyed=isinstance(door, Keyed))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as an ASGI application does."""
        if scope["type"] == "lifespan":
            return
        request = Request(scope, receive, send)
        try:
            self._places.check(request)
            if (number := scope.get("state", _NOTHING).get(ELSEWHERE)) is not None:
                await self._host.siblings.forward(request, number)
            else:
                await self._route(request)
        except ServeError as error:
            if _first(request) in CONTROL:
                await self._control.refuse(request, error)
                return
            body = codec.json({"detail": str(error)})
            await request.answer(error.status, body, [JSON, *again_headers(error)])

    async def _route(self, request: Request) -> None:
        first = _first(request)
        if first == "e":  # Below this, an address is leave enough.
            owner = self._host.owner("".join(request.segments[1:2]))
            if owner is not None:
                _pace(self._paces, request, owner.name)
            await self._mcp.handle(request)
        elif first in CONTROL:  # It has its own words for who is refused.
            await self._control.enter(request, self._admit)
        else:
            caller = self._admit(request)
            try:
                await self._mounts.get(first, self._root).handle(request, caller)
            except Elsewhere as elsewhere:
                await self._host.siblings.forward(request, elsewhere.number, caller)

    def _admit(self, request: Request) -> Caller:
        if (known := told(request)) is not None:
            return known
        caller = self._door.admit(request)
        if caller is not NOBODY:
            _pace(self._paces, request, caller.name)
        return caller


def _first(request: Request) -> str:
    """The part of the path that says whose protocol is spoken."""
    return request.path[1:].partition("/")[0]


def _pace(paces: Paces | None, request: Request, name: str) -> None:
    """Hold somebody to the rate at which he may ask.

    Raises:
        Full: He asks too often.
    """
    if paces is not None:
        paces.take(name)
        if request.scope["type"] == "websocket":
            request.receive = paces.slowed(name, request.receive)
