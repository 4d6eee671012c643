"""HTTP transport of the client: requests are retried under an idempotency key, so that nothing is done twice."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import time
import uuid
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import httpx
import msgspec

from quintain import codec
from quintain.errors import EpisodeError, UsageError

from . import KEY

T = TypeVar("T")

NONE: Mapping[str, str] = MappingProxyType({})

SILENCE_S = 660.0
"""Seconds without a byte after which a connection is given up; a running tool sends none."""
BUILDING_S = 660.0
"""Seconds for which a request is retried while each response says that the episode's world is being built."""
POOLS = 8
"""Connection pools per event loop; httpx looks at all connections of a pool with each request."""


class RequestRejected(UsageError):
    """Response with a status that a retry does not change, 300 to 499."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ConnectionFailure(EpisodeError):
    """Failure of the server or of the connection to it; the episode gets no reward."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message, component="S", kind=kind)


class Transport:
    """Client that exchanges JSON with one server, over connections that belong to the running event loop.

    The arguments are those of `quintain.connect`. Raises UsageError for a key that cannot be a header.
    """

    def __init__(self, base: str, key: str | None, *, patience_s: float) -> None:
        secret = (os.environ.get(KEY, "") if key is None else key).strip()
        if not (secret.isascii() and secret.isprintable()) or " " in secret:
            raise UsageError("an API key has only printable ASCII characters, and no space between them")
        self.base = base
        self._headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self._patience_s = patience_s
        self._pools = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[httpx.AsyncClient]]()
        self._numbers = itertools.count()
        # TLS settings of all pools; making them takes as long as many requests.
        self._tls = httpx.create_ssl_context() if base.startswith("https:") else False

    async def ask(self, method: str, path: str, type_: type[T], **options: Any) -> T:
        """Sends a request as `request` does, and returns the JSON of the response as a value of this type."""
        return self._decode(await self.request(method, path, **options), type_)

    async def request(self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] = NONE) -> bytes:
        """Sends a request, again while that may help, and returns the body of the response.

        A body is sent as JSON, or as it is if it is bytes.

        Raises:
            RequestRejected: The server answers with a status below 500.
            ConnectionFailure: The server cannot be reached, or breaks.
            UsageError: The body holds text that no record can hold.
        """
        fields: dict[str, Any] = {"headers": dict(headers)}
        if method == "POST":
            kind, fields["content"] = ("octet-stream", body) if isinstance(body, bytes) else ("json", _encode(body))
            fields["headers"] |= {"Content-Type": f"application/{kind}", "Idempotency-Key": uuid.uuid4().hex}
        pause_s, deadlines = 0.05, dict[bool, float]()
        while True:
            least_s, is_building = 0.0, False
            try:
                response = await self._client().request(method, path, **fields)
            except httpx.TransportError as error:
                words = f"{type(error).__name__}: {error}".rstrip(": ")
                kind = next((kind for types, kind in _KINDS if isinstance(error, types)), "transport_peer_drop")
            else:
                if response.status_code not in {429, 503}:
                    return self._content(response, f"{method} {path}")
                words, kind = _problem(response), "provider_unavailable"
                is_building = response.headers.get("x-backend-state") == "starting"
                with contextlib.suppress(ValueError):  # It may also be a date.
                    least_s = max(0.0, min(30.0, float(response.headers.get("retry-after", "0"))))
            now = time.monotonic()
            if is_building:  # So the server is there.
                deadlines.pop(False, None)
            until = deadlines.setdefault(is_building, now + (BUILDING_S if is_building else self._patience_s))
            pause_s = min(2.0, pause_s * 2)
            # Clients that were sent away together must not come back together.
            wait_s = least_s + pause_s * (0.5 + random.random() / 2)  # noqa: S311 (no secret)
            if now + wait_s > until:
                raise ConnectionFailure(f"{method} {self.base}{path}: {words}", kind=kind)
            await asyncio.sleep(wait_s)

    def get_now(self, path: str, type_: type[T]) -> T:
        """Returns what a path holds, without an event loop or a retry; raises UsageError if there is no answer."""
        try:
            response = httpx.get(f"{self.base}{path}", headers=self._headers, verify=self._tls, timeout=60.0)
        except httpx.HTTPError as error:
            why = f"{type(error).__name__}: {error}"
            raise UsageError(f"{self.base} cannot be reached; is `quintain serve` running there? {why}") from error
        return self._decode(self._content(response, f"GET {path}"), type_)

    async def aclose(self) -> None:
        """Closes the connections of the running event loop."""
        for client in self._pools.pop(asyncio.get_running_loop(), ()):
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        """Returns a client of the running event loop, each in turn."""
        clients = self._pools.setdefault(asyncio.get_running_loop(), [])
        if len(clients) < POOLS:
            # The rollout limits how many requests are under way at once.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
            fields: dict[str, Any] = {"timeout": httpx.Timeout(SILENCE_S, connect=10.0), "limits": limits}
            clients.append(httpx.AsyncClient(base_url=self.base, headers=self._headers, verify=self._tls, **fields))
        return clients[next(self._numbers) % len(clients)]

    def _content(self, response: httpx.Response, request: str) -> bytes:
        if response.status_code < 300:
            return response.content
        words = f"{self.base}: {request}: {_problem(response)}"
        if response.status_code == 401:
            words += f"; give it to connect, or let the environment variable {KEY} hold it"
        if response.status_code >= 500:
            raise ConnectionFailure(words, kind="provider_unavailable")
        raise RequestRejected(words, response.status_code)

    def _decode(self, data: bytes, type_: type[T]) -> T:
        try:
            return msgspec.json.decode(data, type=type_)
        except msgspec.DecodeError as error:
            raise UsageError(f"{self.base} does not speak as this client does: {error}: {data[:300]!r}") from error


def _encode(body: Any) -> bytes:
    try:
        return codec.json(body if body is not None else {})
    except UnicodeEncodeError as error:
        raise UsageError(f"no record can hold this: {error}") from error


_KINDS = (
    (httpx.PoolTimeout, "transport_local_resource"),
    ((httpx.ConnectTimeout, httpx.ConnectError, httpx.ProxyError), "transport_unreachable"),
    (httpx.TimeoutException, "transport_timeout"),
)
"""Kinds of failure that errors of the connection are; the first that fits counts."""


def _problem(response: httpx.Response) -> str:
    """Returns the status and the message of an error response."""
    try:
        detail = msgspec.json.decode(response.content)["detail"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        detail = response.text[:300]
    return f"{response.status_code}: {detail}"
