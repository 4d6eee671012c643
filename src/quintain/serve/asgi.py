"""The part of HTTP that all protocols share: a request and its body within bounds, JSON, and server-sent events.

A framework's routing and wrapping costs as much as an episode's step; what is needed of it is a page.
"""

from __future__ import annotations

import asyncio
import functools
import urllib.parse
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Hashable,
    Iterable,
    MutableMapping,
)
from typing import Any, Generic, TypeVar, cast

import msgspec

from quintain import codec

from .errors import Denied, Full, Refused, ServeError, Starting, TooLarge, Unavailable

T = TypeVar("T")

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
GONE = "dev.quintain/gone"
"""Name of the extension of ASGI by which our own connections tell whether their client has left."""


class Request:
    """One HTTP request.

    Attributes:
        method: In capitals.
        path: Decoded, without the server's prefix.
        scope: As ASGI gives it.
    """

    __slots__ = ("_body", "method", "path", "receive", "scope", "send")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope.get("method", "GET")
        self.path: str = scope["path"]
        self._body: bytes | None = None

    @property
    def segments(self) -> list[str]:
        """The path's parts, without empty ones."""
        return [part for part in self.path.split("/") if part]

    def header(self, name: bytes) -> str:
        """A header by its lower-case name, stripped; empty where it is absent."""
        for known, value in self.scope["headers"]:
            if known == name:
                found: str = value.decode("latin-1").strip()
                return found
        return ""

    def query(self, name: str) -> str:
        """The first value of a parameter; empty where it is absent."""
        values = urllib.parse.parse_qs(self.scope.get("query_string", b"").decode("latin-1")).get(name)
        return values[0] if values else ""

    async def parts(self) -> AsyncGenerator[bytes]:
        """The body as it comes, or whole where it was read already."""
        event: Event = {"body": self._body} if self._body is not None else await self.receive()
        yield event.get("body", b"")
        while event.get("more_body"):
            event = await self.receive()
            yield event.get("body", b"")

    async def body(self, most: int) -> bytes:
        """The whole body.

        Args:
            most: Bytes.

        Raises:
            TooLarge: It is longer.
            Refused: The client left before its end.
        """
        if self._body is not None:
            return self._body
        event = await self.receive()
        data: bytes = event.get("body", b"")
        if event["type"] == "http.request" and not event.get("more_body"):
            if len(data) > most:
                raise TooLarge(f"the body is longer than {most} bytes")
            self._body = data
            return data
        parts, size = [data], len(data)
        while event.get("more_body"):
            if size > most:
                raise TooLarge(f"the body is longer than {most} bytes")
            event = await self.receive()
            parts.append(event.get("body", b""))
            size += len(parts[-1])
        if event["type"] != "http.request":
            raise Refused("the client left before the end of its request")
        if size > most:
            raise TooLarge(f"the body is longer than {most} bytes")
        self._body = b"".join(parts)
        return self._body

    async def json(self, type: type[T], most: int) -> T:
        """The body as JSON of a type.

        Raises:
            TooLarge, Refused: As for `body`.
            msgspec.DecodeError: It is none; a ValidationError where it is JSON that does not fit.
        """
        return parsed(await self.body(most), type)

    def gone(self) -> bool:
        """Whether the client has left already. What ASGI itself has for that would have to be waited for."""
        return bool(self.scope["extensions"][GONE]())

    async def answer(self, status: int, body: bytes, headers: Headers = (JSON,)) -> None:
        """Send a whole answer; to one who wants to open a WebSocket it is a refusal."""
        kind = "websocket.http" if self.scope["type"] == "websocket" else "http"
        length = (b"content-length", str(len(body)).encode())
        await self.send({"type": f"{kind}.response.start", "status": status, "headers": [*headers, length]})
        await self.send({"type": f"{kind}.response.body", "body": body})

    async def reply(self, value: Any, status: int = 200, headers: Headers = (JSON,)) -> None:
        """Send a value as JSON."""
        await self.answer(status, codec.json(value), headers)


def parsed(data: bytes, type: type[T]) -> T:
    """JSON of a type.

    Raises:
        msgspec.DecodeError: It is none, or does not fit; a lone surrogate or bytes that are no UTF-8 are neither.
    """
    try:
        if not data.isascii():
            data.decode()  # What is kept as it came, to be read later, is looked at by nobody else.
        return cast(T, _decoder(cast(Hashable, type)).decode(data))
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(f"JSON is malformed: {error}") from error


@functools.cache
def _decoder(type: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type)


def again_headers(error: ServeError) -> list[tuple[bytes, bytes]]:
    """What tells a client when to come again, or with what, where that helps."""
    if isinstance(error, Denied):
        return [(b"www-authenticate", b'Bearer realm="quintain"')] if error.status == 401 else []
    if isinstance(error, Starting | Full | Unavailable):
        headers = [(b"retry-after", str(error.retry_after_s).encode())]
        return [*headers, (b"x-backend-state", b"starting")] if isinstance(error, Starting) else headers
    return []


async def abreast() -> None:
    """Let all others who can go on come to where they wait or end, before this goes on.

    So what came together goes through the parts of its answer together. It costs a fifth less than one after the
    other: each part finds its code in the processor's caches, and a driver of many sessions is woken once for all.
    """
    await asyncio.sleep(0)


class Events:
    """A stream of server-sent events, kept alive by comments while nothing else is sent.

    Args:
        request: What it answers.
        ping_s: Seconds between comments.
    """

    _HEADERS = (
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-cache"),
        (b"connection", b"keep-alive"),
        (b"x-accel-buffering", b"no"),
    )

    def __init__(self, request: Request, *, ping_s: float = 10.0) -> None:
        self._request = request
        self._ping_s = ping_s
        self._pings: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def open(self, first: bytes) -> None:
        """Send the headers and the first frame."""
        send = self._request.send
        await send({"type": "http.response.start", "status": 200, "headers": self._HEADERS})
        await send({"type": "http.response.body", "body": first, "more_body": True})

    def during(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """The work, to be awaited, with comments sent while it takes its time."""
        return _Kept(work, self._ping_s, self._ping)

    async def send(self, data: bytes) -> None:
        """Send frames, of which others follow."""
        await self._request.send({"type": "http.response.body", "body": data, "more_body": True})

    async def close(self, data: bytes = b"") -> None:
        """Send the last frames."""
        self._is_closed = True
        await self._request.send({"type": "http.response.body", "body": data})

    def _ping(self) -> None:
        ping = asyncio.ensure_future(self._live())
        self._pings.add(ping)
        ping.add_done_callback(self._pings.discard)

    async def _live(self) -> None:
        if not self._is_closed:  # Since this was called for.
            await self.send(b": ping\r\n\r\n")


class _Kept(Generic[T]):
    """Work beside which something is done at intervals. What never waits needs no timer, which would cost more."""

    def __init__(self, work: Coroutine[Any, Any, T], seconds: float, beat: Callable[[], None]) -> None:
        self._work = work
        self._seconds = seconds
        self._beat = beat
        self._timer: asyncio.TimerHandle | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        resume: Callable[[Any], Any] = self._work.send
        what: Any = None
        try:
            while True:
                try:
                    wish = resume(what)
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]  # what the work returned
                if self._timer is None:
                    self._again()
                try:
                    what = yield wish
                    resume = self._work.send
                except BaseException as error:  # noqa: BLE001  # thrown in from outside, and meant for the work
                    resume, what = self._work.throw, error
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _again(self) -> None:
        if self._timer is not None:
            self._beat()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._again)
