"""Requests to a server: asked again while it is busy or away, under a key by which nothing is done twice."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import os
import random
import ssl
import time
import uuid
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from quintain import codec
from quintain.errors import EpisodeError, UsageError

from . import KEY

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

NONE: Mapping[str, str] = MappingProxyType({})

SILENCE_S = 660.0
"""Seconds without a byte after which a connection is given up: a tool may take long, and says nothing meanwhile."""
BUILDING_S = 660.0
"""Seconds for which a server is asked again that says each time that it is still building the episode's world."""
POOLS = 8
"""Number of connection pools: each request searches all connections of its pool."""
_KINDS = {
    # Name of httpx's exception, or of one of its bases, to ours; the most special one counts.
    "PoolTimeout": "transport_local_resource",
    "ConnectTimeout": "transport_unreachable",
    "ConnectError": "transport_unreachable",
    "ProxyError": "transport_unreachable",
    "TimeoutException": "transport_timeout",
}


class Refusal(UsageError):
    """The server says no.

    Attributes:
        status: In HTTP's numbers.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Lost(EpisodeError):
    """Failure of the server or of the way to it, which voids the episode."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message, component="S", kind=kind)


class Transport:
    """Speaks JSON with one server, over connections that belong to the running event loop.

    Args:
        base: The server's URL.
        key: API key; None takes the environment variable QUINTAIN_KEY.
        patience_s: For how long, from its first failure on, what may pass is asked again.

    Raises:
        UsageError: httpx is not installed, or the key can be no header.
    """

    def __init__(self, base: str, key: str | None, *, patience_s: float) -> None:
        if importlib.util.find_spec("httpx") is None:
            raise UsageError("a server is reached by an extra: pip install 'quintain[http]'")
        secret = (os.environ.get(KEY, "") if key is None else key).strip()
        if not (secret.isascii() and secret.isprintable()) or " " in secret:
            raise UsageError("an API key has only printable ASCII characters, and no space between them")
        self.base = base
        self._headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self._patience_s = patience_s
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[httpx.AsyncClient]] = (
            weakref.WeakKeyDictionary()
        )
        self._asked = 0

    async def get(self, path: str, of: type[T]) -> T:
        """Returns a resource.

        Raises:
            Refusal: The server refuses.
            Lost: The server does not answer any more.
        """
        return self._read(await self.ask("GET", path), of)

    async def post(self, path: str, of: type[T], body: Any = None, *, headers: Mapping[str, str] = NONE) -> T:
        """Have something done, once.

        Args:
            path: Behind the server's URL.
            of: Type of the answer.
            body: A value for JSON, or bytes as they are.
            headers: More of them.

        Raises:
            Refusal, Lost: As for `get`.
            UsageError: What is to be sent has signs that no text can have.
        """
        return self._read(await self.ask("POST", path, body, headers=headers), of)

    async def ask(self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] = NONE) -> bytes:
        """The body of the answer to a request, which is sent again while that may help.

        Raises:
            Refusal, Lost, UsageError: As for `post`.
        """
        import httpx

        is_raw = isinstance(body, bytes)
        content: bytes = body if is_raw else _written(body)
        headers = {**headers, "Content-Type": "application/octet-stream" if is_raw else "application/json"}
        if method == "POST":
            headers["Idempotency-Key"] = uuid.uuid4().hex
        fields: dict[str, Any] = {"headers": headers} | ({"content": content} if method == "POST" else {})
        waits = _Retries(self._patience_s)
        while True:
            wait, lost, building = 0.0, "", False
            try:
                response = await self._client().request(method, path, **fields)
            except httpx.TransportError as error:
                names = (base.__name__ for base in type(error).__mro__)
                kind = next((_KINDS[name] for name in names if name in _KINDS), "transport_peer_drop")
                lost = f"{method} {self.base}{path}: {type(error).__name__}: {error}".rstrip(": ")
            else:
                if response.status_code not in {429, 503}:
                    return self._good(response, f"{method} {path}")
                kind = "provider_unavailable"
                lost = f"{method} {self.base}{path}: {_said(response)}"
                wait, building = _seconds(response), response.headers.get("x-backend-state") == "starting"
            pause = waits.after(wait, building=building)
            if pause is None:
                raise Lost(lost, kind=kind)
            await asyncio.sleep(pause)

    def now(self, path: str, of: type[T]) -> T:
        """As `get`, for who has no event loop; asked once.

        Raises:
            UsageError: The server says no, or nothing.
        """
        import httpx

        try:
            response = httpx.get(f"{self.base}{path}", headers=self._headers, timeout=60.0)
        except httpx.HTTPError as error:
            why = f"{type(error).__name__}: {error}"
            raise UsageError(f"{self.base} cannot be reached; is `quintain serve` running there? {why}") from error
        return self._read(self._good(response, f"GET {path}"), of)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        for client in self._clients.pop(asyncio.get_running_loop(), ()):
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        import httpx

        clients = self._clients.setdefault(asyncio.get_running_loop(), [])
        if len(clients) < POOLS:
            # How many requests are under way at once is the rollout's business.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
            timeout = httpx.Timeout(SILENCE_S, connect=10.0)
            fields: dict[str, Any] = {"headers": self._headers, "timeout": timeout, "limits": limits}
            clients.append(httpx.AsyncClient(base_url=self.base, verify=self._tls, **fields))
        self._asked += 1
        return clients[self._asked % len(clients)]

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext | bool:
        """Made once, for that takes as long as many requests."""
        import httpx

        return httpx.create_ssl_context() if self.base.startswith("https:") else False

    def _good(self, response: httpx.Response, where: str) -> bytes:
        if response.status_code < 300:
            return response.content
        words = f"{self.base}: {where}: {_said(response)}"
        if response.status_code == 401:
            words += f"; give it to connect, or let the environment variable {KEY} hold it"
        if response.status_code >= 500:
            raise Lost(words, kind="provider_unavailable")
        raise Refusal(words, response.status_code)

    def _read(self, data: bytes, of: type[T]) -> T:
        try:
            return msgspec.json.decode(data, type=of)
        except msgspec.DecodeError as error:
            raise UsageError(f"{self.base} does not speak as this client does: {error}: {data[:300]!r}") from error


class _Retries:
    """Pauses before a request is sent again, and the end of all tries.

    Args:
        patience_s: Seconds that a server may be busy or away without a sign that it works on this very request.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._pause = 0.05
        self._until: float | None = None
        self._built: float | None = None

    def after(self, least: float, *, building: bool) -> float | None:
        """Returns the seconds to wait after a failure; None to give up.

        Args:
            least: Seconds that the server asks for.
            building: True if the server answers that it builds the world.
        """
        now = time.monotonic()
        if building:  # So it is there.
            self._until = None
            until = self._built = self._built or now + BUILDING_S
        else:
            until = self._until = self._until or now + self._patience_s
        # Those who were sent away together must not come back together.
        self._pause = min(2.0, self._pause * 2)
        wait = least + self._pause * (0.5 + random.random() / 2)  # noqa: S311 (no secret)
        return wait if now + wait <= until else None


def _written(body: Any) -> bytes:
    """A body as JSON.

    Raises:
        UsageError: None can hold it, and no record either.
    """
    try:
        return codec.json(body if body is not None else {})
    except UnicodeEncodeError as error:
        raise UsageError(f"no record can hold this: {error}") from error


def _said(response: httpx.Response) -> str:
    """The words of a refusal."""
    try:
        detail = msgspec.json.decode(response.content)["detail"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        detail = response.text[:300]
    return f"{response.status_code}: {detail}"


def _seconds(response: httpx.Response) -> float:
    try:
        return max(0.0, min(30.0, float(response.headers.get("retry-after", "0"))))
    except ValueError:
        return 0.0
