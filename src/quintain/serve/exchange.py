"""One request and its answer as ASGI has them, without the parts that an ordinary answer never needs.

It stands where uvicorn's own `RequestResponseCycle` does, and has of it what uvicorn's connections look at.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from collections.abc import Awaitable, Callable, Generator, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from .asgi import GONE

if TYPE_CHECKING:
    from uvicorn.protocols.http.flow_control import FlowControl

    from .asgi import App, Event, Scope

_log = logging.getLogger(__name__)


class _Sent:
    """What needs not be waited for."""

    def __await__(self) -> Generator[Any, Any, None]:
        return _NOTHING


_SECRET = re.compile(r"^(/+[em]/+)[^/]+")
_NOTHING = cast("Generator[Any, Any, None]", iter(()))
_SENT = _Sent()
_LEFT = {GONE: lambda: True}
_STAYED = {GONE: lambda: False}


class Exchange:
    """One request and its answer.

    Args:
        scope: Of the request, as ASGI has it.
        transport: Of its connection.
        flow: How much of that may be read and written now.
        keep_alive: Whether the connection stays.
        expects: Whether the client waits to be told to send the body.
        on_response: Called once the answer is complete.

    Attributes:
        body: What has come and was not received yet.
        more_body: Whether more will.
        disconnected: Whether the client has left.
        response_started, response_complete: How far the answer is.
    """

    def __init__(
        self,
        scope: Scope,
        transport: asyncio.Transport,
        flow: FlowControl,
        *,
        keep_alive: bool,
        expects: bool,
        on_response: Callable[[], None],
    ) -> None:
        self.scope = scope
        scope["extensions"] = {GONE: self._is_gone}
        self.body = b""
        self.more_body = True
        self.disconnected = False
        self.keep_alive = keep_alive
        self.response_started = False
        self.response_complete = False
        self._transport = transport
        self._flow = flow
        self._expects = expects
        self._on_response: Callable[[], None] | None = on_response
        self._is_new = False
        self._waiter: asyncio.Future[None] | None = None
        self._head = b""
        self._left: int | None = None

    async def run(self, app: App) -> None:
        """Have it answered; what raises is a bug of ours, which is logged and told to nobody."""
        try:
            await app(self.scope, self.receive, self.send)
        except asyncio.CancelledError:  # The process ends before its calls do; who asks the next one may go on.
            await self._give_up(HTTPStatus.SERVICE_UNAVAILABLE, (b"retry-after", b"1"))
        except BaseException as error:  # noqa: BLE001  # as uvicorn does: one request ends neither others nor us
            _log.error("%s %s", self.scope["method"], _shown(self.scope["path"]), exc_info=error)
            await self._give_up(HTTPStatus.INTERNAL_SERVER_ERROR)
        else:
            if not self.response_complete and not self.disconnected:
                _log.error("%s %s: the answer was not completed", self.scope["method"], _shown(self.scope["path"]))
                await self._give_up(HTTPStatus.INTERNAL_SERVER_ERROR)
        finally:  # Nothing leads back here, or each request would wait for the garbage collector with all it brought.
            self._on_response = None
            self.scope["extensions"] = _LEFT if self.disconnected else _STAYED

    @property
    def message_event(self) -> Exchange:
        """What uvicorn's connection sets when it is lost."""
        return self

    def set(self) -> None:
        """Something has come, or the client has left."""
        self._is_new = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def feed(self, data: bytes) -> int:
        """A part of the body has come; returns how much of it waits to be received."""
        self.body = self.body + data if self.body else data
        self.set()
        return len(self.body)

    # -- what the application calls

    async def receive(self) -> Event:
        """The next part of the body, or that the client has left or has its answer."""
        if self._expects:
            self._expects = False
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self._is_new or self.disconnected or self.response_complete):
            self._flow.resume_reading()
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        self._is_new = False
        body, self.body = self.body, b""
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    def send(self, event: Event) -> Awaitable[None]:
        """Send the head of the answer, or a part of its body: at once, where the client reads as it should.

        Raises:
            RuntimeError: That is not what comes next.
        """
        if self._flow.write_paused and not self.disconnected:
            return self._send_later(event)
        if not self.disconnected:
            self._send(event)
        return _SENT

    # -- inside

    def _is_gone(self) -> bool:
        return self.disconnected

    async def _send_later(self, event: Event) -> None:
        await self._flow.drain()
        if not self.disconnected:
            self._send(event)

    def _send(self, event: Event) -> None:
        kind = event["type"]
        if kind == "http.response.body" and self.response_started and not self.response_complete:
            self._write(event.get("body", b""), is_last=not event.get("more_body"))
        elif kind == "http.response.start" and not self.response_started:
            self._expects = False
            self._begin(event["status"], event.get("headers", ()))
            self.response_started = True
        else:
            raise RuntimeError(f"{kind} does not come next in an answer")

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        if not isinstance(headers, tuple):
            headers = tuple((name, value) for name, value in headers)
        lines, self._left, closes = _lines(status, headers)
        if closes:
            self.keep_alive = False
        elif not self.keep_alive:
            lines += b"connection: close\r\n"
        if self.scope["method"] == "HEAD" or status in (204, 304):
            self._left = -1
        elif self._left is None and self.scope["http_version"] != "1.0":
            lines += b"transfer-encoding: chunked\r\n"
        self._head = lines + b"\r\n"

    def _write(self, data: bytes, *, is_last: bool) -> None:
        """Send a part of the body, the first one with the head before it."""
        left = self._left
        if left is None and self.scope["http_version"] != "1.0":
            data = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            if is_last:
                data += b"0\r\n\r\n"
        elif left is not None and left < 0:
            data = b""
        elif left is not None:
            self._left = left = left - len(data)
            if left < 0 or (is_last and left):
                raise RuntimeError(
                    f"the body is {abs(left)} bytes {'short of' if left > 0 else 'over'} its content-length"
                )
        if self._head:
            data, self._head = self._head + data, b""
        self._transport.write(data)
        if is_last:
            self._end()

    def _end(self) -> None:
        self.response_complete = True
        self.set()
        if not self.keep_alive or self.scope["http_version"] == "1.0":
            self._transport.close()
        if self._on_response is not None:
            self._on_response()

    async def _give_up(self, status: HTTPStatus, *more: tuple[bytes, bytes]) -> None:
        if self.response_started:
            self._transport.close()
            return
        body = b'{"detail":"%b"}' % status.phrase.encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *more]
        await self.send({"type": "http.response.start", "status": int(status), "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def _shown(path: str) -> str:
    """A path as a log may have it: without the part that is a secret by which an episode can be played."""
    return _SECRET.sub(r"\1***", path)


@functools.lru_cache(maxsize=256)
def _lines(status: int, headers: tuple[tuple[bytes, bytes], ...]) -> tuple[bytes, int | None, bool]:
    """The first lines of an answer, how long its body will be, and whether the connection is to be closed after it.

    Raises:
        RuntimeError: A header has a line break in it.
    """
    lines = [b"HTTP/1.1 %d %b" % (status, _phrase(status))]
    length, closes = None, False
    for name, value in headers:
        lines.append(b"%b: %b" % (name, value))
        lowered = name.lower()
        if lowered == b"content-length":
            length = int(value)
        elif lowered == b"connection":
            closes = b"close" in (part.strip() for part in value.lower().split(b","))
    if any(b"\n" in line or b"\r" in line for line in lines):
        raise RuntimeError(f"a header of an answer has a line break: {headers!r}")
    return b"\r\n".join([*lines, b""]), length, closes


def _phrase(status: int) -> bytes:
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b""
