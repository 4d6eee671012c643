"""All protocols on one port, each below its first path segment; the Open Reward Standard has the root."""

from __future__ import annotations

import asyncio
import logging
import re

from quintain import codec
from quintain.serve.control.app import Control
from quintain.serve.episodes.host import Host
from quintain.serve.errors import ServeError, Unavailable
from quintain.serve.http.asgi import JSON, App, HttpRequest, Receive, Scope, Send, again_headers
from quintain.serve.http.auth import Auth, HostCheck, KeyAuth, RateLimit
from quintain.serve.http.keys import NOBODY, Caller
from quintain.serve.mcp import Mcp
from quintain.serve.names import CONTROL, reachable
from quintain.serve.openenv import OpenEnv
from quintain.serve.ors import Ors

_SECRET = re.compile(r"^(/+[em]/+)[^/]+")
_log = logging.getLogger(__name__)


def build(host: Host, door: Auth, places: HostCheck | None = None) -> App:
    """Returns the ASGI application; without `places` it accepts the hosts and origins of a server on loopback.

    Raises UsageError if the name of an environment is a path of the server's own.
    """
    reachable(host.environments)
    return _Front(host, door, places or HostCheck("127.0.0.1"))


class _Front:
    """Entry of all requests."""

    def __init__(self, host: Host, door: Auth, places: HostCheck) -> None:
        rate = host.limits.requests_per_s
        self._host = host
        self._door = door
        self._places = places
        self._paces = None if rate is None else RateLimit(rate)
        self._ors, self._openenv = Ors(host), OpenEnv(host)
        self._mcp = Mcp(host)
        self._control = Control(host, keyed=isinstance(door, KeyAuth))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, as an ASGI application."""
        if scope["type"] == "lifespan":
            return
        request = HttpRequest(scope, receive, send)
        try:
            self._places.check(request)
            await self._route(request)
        except ServeError as error:
            await self._refuse(request, error)
        except asyncio.CancelledError:  # The server ends before its calls; the client may ask its successor.
            if not request.started:
                await self._refuse(request, Unavailable("Service Unavailable", retry_after_s=1))
        except Exception:  # noqa: BLE001  # Logged; uvicorn would answer in plain text, and log the secret address.
            _log.exception("%s %s", request.method, _shown(request.path))
            if not request.started:
                await request.reply({"detail": "Internal Server Error"}, 500)

    async def _refuse(self, request: HttpRequest, error: ServeError) -> None:
        if _first(request) in CONTROL:
            await self._control.refuse(request, error)
            return
        await request.answer(error.status, codec.json({"detail": str(error)}), [JSON, *again_headers(error)])

    async def _route(self, request: HttpRequest) -> None:
        first = _first(request)
        if first == "e":  # Below this, the address itself is the credential.
            owner = self._host.owner("".join(request.segments[1:2]))
            if owner is not None:
                self._pace(request, owner.name)
            await self._mcp.handle(request)
        elif first in CONTROL:  # The control plane has refusals of its own format.
            await self._control.enter(request, self._admit)
        else:
            caller = self._admit(request)
            await (self._openenv if first == "openenv" else self._ors).handle(request, caller)

    def _admit(self, request: HttpRequest) -> Caller:
        caller = self._door.admit(request)
        if caller is not NOBODY:
            self._pace(request, caller.name)
        return caller

    def _pace(self, request: HttpRequest, name: str) -> None:
        """Holds a caller to the rate limit; raises Full over it."""
        if self._paces is not None:
            self._paces.take(name)
            if request.scope["type"] == "websocket":
                request.receive = self._paces.slowed(name, request.receive)


def _first(request: HttpRequest) -> str:
    """Returns the path segment that selects the protocol."""
    return request.path[1:].partition("/")[0]


def _shown(path: str) -> str:
    """Returns a path for the log, without the secret of an episode's address."""
    return _SECRET.sub(r"\1***", path)
