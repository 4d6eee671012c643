"""Requests, bodies within bounds, JSON, and server-sent events: the ASGI code that all protocols share.

The paths of calls stay below a framework, because its routing and wrapping costs as much as an episode's step.
"""

from __future__ import annotations

import asyncio
import functools
import urllib.parse
from collections.abc import Awaitable, Callable, Coroutine, Generator, Hashable, Iterable, MutableMapping
from typing import Any, Generic, TypeVar, cast

import msgspec

from quintain import codec
from quintain.serve.errors import Denied, Full, Refused, ServeError, Starting, TooLarge, Unavailable

T = TypeVar("T")

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")

_detached: set[asyncio.Task[Any]] = set()


class HttpRequest:
    """One HTTP request, or the request that opens a WebSocket.

    Attributes:
        method: In capitals.
        path: Decoded, without the server's prefix.
        scope: The ASGI scope.
        started: True once a part of the answer was passed to the server.
    """

    __slots__ = ("_body", "_send", "method", "path", "receive", "scope", "started")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.method: str = scope.get("method", "GET")
        self.path: str = scope["path"]
        self.started = False
        self._send = send
        self._body: bytes | None = None

    @property
    def segments(self) -> list[str]:
        """The parts of the path, without empty ones."""
        return [part for part in self.path.split("/") if part]

    def header(self, name: bytes) -> str:
        """Returns the first header of a lower-case name, stripped; empty if absent."""
        for known, value in self.scope["headers"]:
            if known == name:
                found: str = value.decode("latin-1").strip()
                return found
        return ""

    def query(self, name: str) -> str:
        """Returns the first value of a query parameter; empty if absent."""
        values = urllib.parse.parse_qs(self.scope.get("query_string", b"").decode("latin-1")).get(name)
        return values[0] if values else ""

    async def body(self, most: int) -> bytes:
        """Returns the whole body.

        Args:
            most: Bytes.

        Raises:
            TooLarge: The body is longer.
            Refused: The client left before the end of the body.
        """
        if self._body is not None:
            return self._body
        event = await self.receive()
        data: bytes = event.get("body", b"")
        if event.get("more_body"):
            parts, size = [data], len(data)
            while event.get("more_body") and size <= most:
                event = await self.receive()
                parts.append(event.get("body", b""))
                size += len(parts[-1])
            data = b"".join(parts)
        if event["type"] != "http.request":
            raise Refused("the client left before the end of its request")
        if len(data) > most:
            raise TooLarge(f"the body is longer than {most} bytes")
        self._body = data
        return data

    async def json(self, type: type[T], most: int) -> T:
        """Returns the body as JSON of a type.

        Raises:
            TooLarge, Refused: As for `body`.
            msgspec.DecodeError: The body is not JSON; a ValidationError if it is JSON of another type.
        """
        return parsed(await self.body(most), type)

    def send(self, event: Event) -> Awaitable[None]:
        """Passes an event to the server."""
        self.started = True
        return self._send(event)

    async def answer(self, status: int, body: bytes, headers: Headers = (JSON,)) -> None:
        """Sends a whole answer; the opening of a WebSocket is refused with it."""
        kind = "websocket.http" if self.scope["type"] == "websocket" else "http"
        length = (b"content-length", str(len(body)).encode())
        await self.send({"type": f"{kind}.response.start", "status": status, "headers": [*headers, length]})
        await self.send({"type": f"{kind}.response.body", "body": body})

    async def reply(self, value: Any, status: int = 200, headers: Headers = (JSON,)) -> None:
        """Sends a value as JSON."""
        await self.answer(status, codec.json(value), headers)


def parsed(data: bytes, type: type[T]) -> T:
    """Returns JSON as a value of a type.

    Raises:
        msgspec.DecodeError: The data are not JSON or not of the type, have a lone surrogate or bytes outside UTF-8.
    """
    try:
        if not data.isascii():
            data.decode()  # msgspec.Raw keeps its bytes unread, and no later reader checks them.
        return cast(T, _decoder(cast(Hashable, type)).decode(data))
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(f"JSON is malformed: {error}") from error


@functools.cache
def _decoder(type: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type)


def again_headers(error: ServeError) -> list[tuple[bytes, bytes]]:
    """Returns the headers of a refusal that say when to retry, or with which credentials."""
    if isinstance(error, Denied):
        return [(b"www-authenticate", b'Bearer realm="quintain"')] if error.status == 401 else []
    if isinstance(error, Starting | Full | Unavailable):
        headers = [(b"retry-after", str(error.retry_after_s).encode())]
        return [*headers, (b"x-backend-state", b"starting")] if isinstance(error, Starting) else headers
    return []


async def abreast() -> None:
    """Yields to all other requests that can run, so that concurrent requests pass each stage together.

    This costs a fifth less CPU than one request after the other: each stage finds its code in the processor's caches,
    and a client with many sessions is woken once for all of them.
    """
    await asyncio.sleep(0)


def detached(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Starts work that goes on if its client leaves; the record of its episode has what comes of it."""
    task = asyncio.create_task(work)
    _detached.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _detached.discard(task)
    if not task.cancelled():
        task.exception()  # Retrieved: asyncio would log the error where no request waits.


class Events:
    """A stream of server-sent events, with comments as keep-alive while no event is sent.

    Args:
        request: The request that the stream answers.
        ping_s: Seconds between comments.
    """

    _HEADERS = (
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-cache"),
        (b"x-accel-buffering", b"no"),
    )

    def __init__(self, request: HttpRequest, *, ping_s: float = 10.0) -> None:
        self._request = request
        self._ping_s = ping_s
        self._pings: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def open(self, first: bytes) -> None:
        """Sends the headers and the first frame."""
        send = self._request.send
        await send({"type": "http.response.start", "status": 200, "headers": self._HEADERS})
        await send({"type": "http.response.body", "body": first, "more_body": True})

    def during(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Returns the work as an awaitable that sends comments while the work waits."""
        return _Accompanied(work, self._ping_s, self._ping)

    async def send(self, data: bytes) -> None:
        """Sends frames, of which others follow."""
        await self._request.send({"type": "http.response.body", "body": data, "more_body": True})

    async def close(self, data: bytes = b"") -> None:
        """Sends the last frames."""
        self._is_closed = True
        await self._request.send({"type": "http.response.body", "body": data})

    def _ping(self) -> None:
        ping = asyncio.ensure_future(self._live())
        self._pings.add(ping)
        ping.add_done_callback(self._pings.discard)

    async def _live(self) -> None:
        if not self._is_closed:  # Since this was scheduled.
            await self._request.send({"type": "http.response.body", "body": b": ping\r\n\r\n", "more_body": True})


class _Accompanied(Generic[T]):
    """Work with a callback at intervals. Work that never waits sets no timer, which would cost more than the work."""

    def __init__(self, work: Coroutine[Any, Any, T], seconds: float, beat: Callable[[], None]) -> None:
        self._work = work
        self._seconds = seconds
        self._beat = beat
        self._timer: asyncio.TimerHandle | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        resume: Callable[[Any], Any] = self._work.send
        sent: Any = None
        try:
            while True:
                try:
                    awaited = resume(sent)
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]  # what the work returned
                if self._timer is None:
                    self._again()
                try:
                    sent = yield awaited
                    resume = self._work.send
                except BaseException as error:  # noqa: BLE001  # thrown in from outside, and meant for the work
                    resume, sent = self._work.throw, error
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _again(self) -> None:
        if self._timer is not None:
            self._beat()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._again)
