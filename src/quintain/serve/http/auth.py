"""Access to the server: keys, rate limits, host names and origins."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import re
import time
import urllib.parse
from collections.abc import Collection
from typing import Protocol

from quintain.errors import UsageError
from quintain.serve.errors import Denied, Full
from quintain.serve.http.asgi import Event, HttpRequest, Receive
from quintain.serve.http.keys import ANYONE, NOBODY, Caller, Keys

FREE = frozenset({"health", "healthz", "readyz"})
"""Paths without a key; their answers say nothing of an episode."""

_PLACE = frozenset({b"host", b"origin"})
_LOCAL = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


class HostCheck:
    """Host names under which the server answers, and origins whose pages may call it.

    Otherwise a foreign web page could reach the server through a user's browser: by a request across origins, or by a
    host name that the page's owner points at this machine.

    Args:
        address: Where the server listens.
        names: More host names; on loopback, names of this machine are always allowed, and all others are not.
        origins: Allowed origins, such as "https://lab.example.com". The server's own origin is always allowed and, on
            loopback, those of this machine.

    Raises:
        UsageError: A value is not a host name or not an origin, so that no request could match it.
    """

    def __init__(self, address: str, *, names: Collection[str] = (), origins: Collection[str] = ()) -> None:
        for name in names:
            if not name or _name(f"//[{name}]" if ":" in name else f"//{name}") != name.lower():
                raise UsageError(
                    f"--name {name!r} is no name of a host: without scheme, port and path, as env.example.com"
                )
        for origin in origins:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#@\s]+/?", origin):
                raise UsageError(
                    f"--origin {origin!r} is no origin: scheme, host and port alone, as https://lab.example.com"
                )
        self._is_local = is_loopback(address)
        self._names = {name.lower() for name in names}
        self._origins = {origin.lower().rstrip("/") for origin in origins}
        self._known: set[tuple[tuple[bytes, bytes], ...]] = set()

    def check(self, request: HttpRequest) -> None:
        """Raises Denied if a request is for another host, or from pages of another origin."""
        sent = tuple(pair for pair in request.scope["headers"] if pair[0] in _PLACE)
        if sent in self._known:
            return
        host, origin = request.header(b"host"), request.header(b"origin")
        name = _name(f"//{host}")
        if host and (self._is_local or self._names) and name not in self._names and not self._is_here(name):
            raise Denied(f"this server is not called {host!r}: start it with --name if it is", status=403)
        if origin and not self._may_ask(origin.lower(), host.lower()):
            raise Denied(f"pages of {origin!r} may not ask this server: start it with --origin if they may", status=403)
        if len(self._known) < 1000 and sum(len(value) for _, value in sent) < 1000:
            self._known.add(sent)

    def _is_here(self, name: str) -> bool:
        return self._is_local and is_loopback(name)

    def _may_ask(self, origin: str, host: str) -> bool:
        own = origin.partition("://")[2] == host and host != ""
        return own or origin in self._origins or self._is_here(_name(origin))


class Auth(Protocol):
    """Authentication of requests."""

    def admit(self, request: HttpRequest) -> Caller:
        """Returns the caller of a request; raises Denied without a valid key."""
        ...

    def look(self) -> None:
        """Reads the keys again if they have changed."""
        ...


class KeyAuth:
    """Authentication by a file of keys."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def admit(self, request: HttpRequest) -> Caller:
        if request.path.strip("/") in FREE:  # The whole of it: what is below may be an environment's.
            return NOBODY
        caller = self._keys.caller(presented(request))
        if caller is None:
            raise Denied("a valid key is wanted, as `Authorization: Bearer KEY` or `X-API-Key: KEY`")
        return caller

    def look(self) -> None:
        self._keys.look()


class NoAuth:
    """Authentication that accepts all requests, for a server that only this machine can reach."""

    def admit(self, request: HttpRequest) -> Caller:
        return ANYONE

    def look(self) -> None:
        pass


class RateLimit:
    """Rate limit of each key; twice the rate may be saved up.

    Args:
        rate: Requests per second. Messages of a WebSocket count like requests, and so do requests to the secret
            addresses of the key's episodes.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._full: dict[str, float] = {}
        """Time at which the whole burst is available again, by key."""

    def take(self, name: str) -> None:
        """Counts a request; raises Full if the key is over its rate."""
        wait = self._wait(name)
        if wait:
            raise Full(f"more than {self._rate:g} requests per second", retry_after_s=math.ceil(wait))
        self._count(name)

    def slowed(self, name: str, receive: Receive) -> Receive:
        """Returns a `receive` that reads messages no faster than the rate, so that early ones wait."""

        async def receive_in_time() -> Event:
            wait = self._wait(name)
            self._count(name)
            await asyncio.sleep(wait)
            return await receive()

        return receive_in_time

    def _wait(self, name: str) -> float:
        """Returns the seconds until a key may ask again."""
        now = time.monotonic()
        full = max(now, self._full.get(name, 0.0))
        return max(0.0, full + 1 / self._rate - now - max(1.0, 2 * self._rate) / self._rate)

    def _count(self, name: str) -> None:
        self._full[name] = max(time.monotonic(), self._full.get(name, 0.0)) + 1 / self._rate


def is_loopback(name: str) -> bool:
    """True if only this machine can reach a name or address."""
    if name.lower().rstrip(".") in _LOCAL:
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _name(url: str) -> str:
    """The host's name of a URL; empty where there is none."""
    try:
        return urllib.parse.urlsplit(url).hostname or ""
    except ValueError:
        return ""


def presented(request: HttpRequest) -> str:
    """Returns the key of a request; empty if it has none."""
    scheme, _, key = request.header(b"authorization").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else request.header(b"x-api-key")
