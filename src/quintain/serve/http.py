"""uvicorn's HTTP with bounds on how requests come: each in time, and with a head no longer than heads are.

How long a request's body may be is known where it is read, see `asgi.Request.body`.
"""

from __future__ import annotations

import asyncio
import functools
import urllib.parse
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .asgi import App
from .exchange import Exchange
from .unread import Reader

HEAD_S = 15.0
"""Seconds from a connection's first sign of a request, or from its beginning, to the end of the request's head."""
HEAD_BYTES = 64 << 10
BODY_S = 60.0
"""Seconds from there to the end of its body."""
LINGER_S = 5.0
"""Seconds that the rest of a request is listened to after its answer, so that the answer is read."""

SHORT = 256
"""Bytes of an address whose parts are remembered."""
BEHIND = 4000
"""Requests that may wait behind another one on its connection; all are there before the first is answered."""

_BODY = (b"content-length", b"transfer-encoding")


class _Trailers(list[tuple[bytes, bytes]]):
    """Headers that come after a body: nobody here wants them, and they must not be taken for those before it."""

    def append(self, _header: tuple[bytes, bytes]) -> None:
        """Forget it."""


_TRAILERS = _Trailers()


class Http(Reader, HttpToolsProtocol):
    """One connection."""

    app: Any  # Ours, whose types are not uvicorn's.
    cycle: Any  # An Exchange, or None before the first one.
    parser: Any
    pipeline: Any  # Exchanges that wait, the next one last.

    _size = 0
    _chunk = 0
    _in_head = False
    _in_message = False
    _has_fed = False
    _late: asyncio.TimerHandle | None = None
    _rested = 0.0
    _running: Any = None  # An Exchange: that which is being answered.
    _status = HTTPStatus.BAD_REQUEST

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come; it is to say what it wants."""
        super().connection_made(transport)
        self._late = self.loop.call_later(HEAD_S, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left; what it asked for behind the running request is not begun any more."""
        self._on_time()
        self._drop()
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have come; most often they are one whole request."""
        self._chunk = len(data)
        self._has_fed = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
        except httptools.HttpParserError:
            self.unreadable()
        if self._in_message:
            self._watch(len(data))

    def cut_off(self) -> None:
        """The client does not read what it asked for."""
        self._drop()
        super().cut_off()

    def handle_websocket_upgrade(self) -> None:
        """A WebSocket is asked for, whose own connection it will be."""
        self.look_away()
        self._unset_keepalive_if_required()
        super().handle_websocket_upgrade()

    def timeout_keep_alive_handler(self) -> None:
        """Look whether nothing was asked for in a long while."""
        left = self._rested + self.timeout_keep_alive - self.loop.time()
        if self._in_message or not self.cycle.response_complete:
            self._rest(self.timeout_keep_alive)
        elif left > 0:
            self._rest(left)
        else:
            super().timeout_keep_alive_handler()
            self.must_read()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head = self._in_message = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head of a request is there.

        Raises:
            ValueError: It is too long, or asks for another protocol with a body, which the parser would not read, or
                for a WebSocket before an answer was read; or too many wait already.
        """
        self._on_time()
        if self._size + self._chunk > HEAD_BYTES:
            length = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if length > HEAD_BYTES:
                self._status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
                raise ValueError("the head of a request is too long")
        self._size = 0
        self._locate()
        if self.parser.should_upgrade() and any(name in _BODY and value != b"0" for name, value in self.headers):
            raise ValueError("a request for another protocol has no body")
        if self.parser.should_upgrade() and self._should_upgrade():
            if self.flow.write_paused or (self.cycle is not None and not self.cycle.response_complete):
                raise ValueError("a WebSocket is asked for when what was asked before has been answered, and read")
            self._in_head = False
            return
        if len(self.pipeline) == BEHIND:
            raise ValueError("too many requests at once")
        self._in_head = False
        self.headers = _TRAILERS
        before, self.cycle = self.cycle, self._exchange()
        if before is None or before.response_complete:
            self._running = self.cycle
            self._answer(self.cycle)
        else:  # It came behind another one, and waits until that is answered.
            self.flow.pause_reading()
            self.pipeline.appendleft(self.cycle)

    def on_body(self, body: bytes) -> None:
        """A part of a request's body is there."""
        self._has_fed = True
        if self._is_for_us and self.cycle.feed(body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """All of a request is there."""
        self._in_message = False
        self._on_time()
        if self._is_for_us:
            self.cycle.more_body = False
            self.cycle.set()

    def on_response_complete(self) -> None:
        """A request was answered; one whose body still comes will not be listened to for long."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self.must_read()
            return
        if self.pipeline:
            self._running = self.pipeline.pop()
            self._answer(self._running)
        else:
            self.flow.resume_reading()
            self._rested = self.loop.time()
            if self.timeout_keep_alive_task is None:  # One for many requests: to set and to drop it costs more.
                self._rest(self.timeout_keep_alive)
        if self._in_message and not self._in_head and self.cycle.response_complete:
            self._on_time()
            self._late = self.loop.call_later(LINGER_S, self._too_late)

    def unreadable(self) -> None:
        """What comes is no request."""
        self._refuse(self._status)

    @property
    def _is_for_us(self) -> bool:
        """Whether what comes is of a request that is still to be answered, here."""
        return not ((self.parser.should_upgrade() and self._should_upgrade()) or self.cycle.response_complete)

    def _locate(self) -> None:
        """Say in the scope what is asked for.

        Raises:
            HttpParserInvalidURLError: That is no address.
        """
        scope: Any = self.scope
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = self.parser.get_http_version()
        scope["path"], scope["raw_path"], scope["query_string"] = parts(self.url)

    def _exchange(self) -> Exchange:
        scope: Any = self.scope
        return Exchange(
            scope,
            self.transport,
            self.flow,
            keep_alive=scope["http_version"] != "1.0" and self.parser.should_keep_alive(),
            expects=self.expect_100_continue,
            on_response=self.on_response_complete,
        )

    def _answer(self, exchange: Exchange) -> None:
        app: App = self.app
        task = self.loop.create_task(exchange.run(app))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _rest(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _watch(self, size: int) -> None:
        """See that the rest of a request comes in time, and that nothing but its body grows for ever."""
        self._size = 0 if self._has_fed else self._size + size
        if self._size > HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_S if self._in_head else BODY_S, self._too_late)

    def _drop(self) -> None:
        """Have nothing more written; uvicorn tells so the request that came last, not the one that runs."""
        if self._running is not None:
            self._running.disconnected = True
            self._running.set()

    def _too_late(self) -> None:
        self._late = None
        if self.flow.read_paused:  # It is we who do not listen.
            self._late = self.loop.call_later(HEAD_S, self._too_late)
        elif self._in_head or (self._in_message and not self.cycle.response_started):
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        elif not self.transport.is_closing():
            self.transport.close()
            self.must_read()

    def _on_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _refuse(self, status: HTTPStatus) -> None:
        """Say so, and close; not in the midst of another answer, after which the connection ends without a word."""
        running: Any = self._running
        is_own = self.cycle is running and self._in_message and not self._in_head
        self._on_time()
        self._in_head = self._in_message = False
        if self.transport.is_closing():
            return
        if running is not None and not running.response_complete and not is_own:
            self.pipeline.clear()
            self.flow.pause_reading()
            running.keep_alive = False
            return
        if running is not None and is_own and running.response_started:
            self.transport.close()
            self.must_read()
            return
        body = b'{"detail":"%s"}' % status.phrase.encode()
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)
        self.transport.close()
        self.must_read()


def parts(url: bytes) -> tuple[str, bytes, bytes]:
    """What is asked for: the path decoded, the path as it came, and the query.

    Raises:
        HttpParserInvalidURLError: That is no address.
    """
    return (_parts if len(url) <= SHORT else _parts.__wrapped__)(url)


@functools.lru_cache(maxsize=256)
def _parts(url: bytes) -> tuple[str, bytes, bytes]:
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return urllib.parse.unquote(path) if "%" in path else path, parsed.path, parsed.query or b""
