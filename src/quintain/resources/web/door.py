"""ASGI application that serves worlds at a real address, one request after the other, in the order of arrival.

The world of a request is found by the first label of its host, `<key>.<product>.localhost`, else by a token that stands
in its credentials or its path; a door with one world sends everything there.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from quintain.errors import UsageError

from .messages import MOST_ADDRESS, HttpRequest, HttpResponse, Refuse, answer, too_large
from .rates import Forced
from .world import Web

if TYPE_CHECKING:
    import uvicorn

MAX_BODY = 52_428_800
"""Bytes of a request's body; of more the client gets 413, at the latest after as many again."""
MAX_HEADERS = 65_536
"""Bytes of a request's headers."""
HEAD_S, BODY_S, ANSWER_S = 20.0, 60.0, 120.0
"""Seconds in which a request must begin, its body must arrive, and all must be over with the answer read."""
MOST_WAITING = 256
"""Connections without a request that stay open; of more, those are closed that wait longest."""
_TICK_S = 0.1
"""Seconds between two looks of uvicorn at itself."""
CONTROL = "/__control__/"
"""Beginning of the paths that only tests use."""

_Receive = Callable[[], Awaitable[dict[str, Any]]]
_Send = Callable[[dict[str, Any]], Awaitable[None]]


class Door:
    """ASGI application.

    Args:
        record: Called with the key of the world and each request before it is handled: these replay the episode.
        wall: Seconds of the world per second of the real clock; 0 leaves time to the pace of the world.
    """

    def __init__(self, record: Callable[[str, HttpRequest], None] | None = None, *, wall: float = 0.0) -> None:
        self.worlds: dict[str, Web] = {}
        self.failures: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        self._record = record
        self._wall = wall
        self._started: dict[str, tuple[float, float]] = {}

    def add(self, key: str, world: Web, tokens: Sequence[str] = ()) -> None:
        """Serves a world under a key; requests that hold one of the tokens are for it."""
        self.worlds[key] = world
        self._started[key] = (world.clock.now, time.monotonic())
        self._tokens |= dict.fromkeys(tokens, key)

    def find(self, asked: HttpRequest) -> str | None:
        """Returns the key of the world that a request is for."""
        key = asked.host.partition(".")[0]
        if key in self.worlds:
            return key
        if len(self.worlds) == 1:
            return next(iter(self.worlds))
        given = _credentials(asked.header("authorization")) + asked.path
        return next((key for token, key in self._tokens.items() if token in given), None)

    def respond(self, asked: HttpRequest) -> HttpResponse:
        """Handles a request in its world. A bug of the world answers 500 and is kept in `failures`."""
        key = self.find(asked)
        if key is None:
            return next(iter(self.worlds.values())).product.stranger.response()
        if key in self.failures:
            return answer({"error": "EpisodeFailed", "description": self.failures[key]}, 500)
        world = self.worlds[key]
        if asked.path.startswith(CONTROL):
            return self._control(world, asked)
        if self._wall:
            begin, real = self._started[key]
            moment = round(begin + self._wall * (time.monotonic() - real), 3)
            asked = msgspec.structs.replace(asked, moment=max(moment, world.clock.now))
        if self._record:
            self._record(key, asked)
        try:
            return world.respond(asked)
        except Exception as error:  # noqa: BLE001 (a bug of the world: its episode fails, and handles nothing more)
            self.failures[key] = f"{asked.method} {asked.path}: {type(error).__name__}: {error}"
            return self.respond(asked)

    def _control(self, world: Web, asked: HttpRequest) -> HttpResponse:
        query = dict(asked.query)
        try:
            if asked.path.endswith("/ratelimit"):
                forced = Forced(int(query.get("n", 1)), int(query.get("retry_after", 1)), query.get("match", ""))
                world.throttle.forced.append(forced)
            elif asked.path.endswith("/advance"):
                world.clock.advance(float(query.get("seconds", 0)))
            else:
                return answer({"error": "no such control", "known": ["ratelimit", "advance"]}, 404)
        except ValueError as error:
            return answer({"error": str(error)}, 400)
        return answer({"now": world.clock.now})

    async def __call__(self, scope: dict[str, Any], receive: _Receive, send: _Send) -> None:
        """Handles one connection's request."""
        if scope["type"] != "http":
            return
        is_ended = False
        try:
            async with asyncio.timeout(BODY_S):
                body, is_ended = await _read(receive)
            _check(scope, body)
            response = self.respond(_request(scope, bytes(body)))
        except ConnectionResetError:
            return
        except TimeoutError:
            words = f"The request took longer than {BODY_S:g} seconds to arrive"
            response = answer({"error": "RequestTimeout", "description": words}, 408)
        except Refuse as refusal:
            response = refusal.response()
        response.headers += [] if is_ended else [("connection", "close")]
        headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in response.headers]
        if response.status != 204:
            headers.append((b"content-length", str(len(response.body)).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})


async def _read(receive: _Receive) -> tuple[bytearray, bool]:
    """Returns the body, at most one byte more than it may have, and False if the client would send more."""
    body, size, more = bytearray(), 0, True
    while more and size <= 2 * MAX_BODY:  # Most clients read no answer before they have sent all.
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        chunk = message.get("body", b"")
        size, more = size + len(chunk), message.get("more_body", False)
        if len(body) <= MAX_BODY:
            body += chunk
        del body[MAX_BODY + 1 :]
    return body, not more


def _check(scope: dict[str, Any], body: bytearray) -> None:
    """Raises Refuse for a request that is too large in any of its parts."""
    if len(body) > MAX_BODY:
        raise too_large(f"At most {MAX_BODY} bytes")
    if len(scope["path"]) + len(scope["query_string"]) > MOST_ADDRESS:
        raise too_large(f"At most {MOST_ADDRESS} characters", 414)
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADERS:
        raise too_large(f"At most {MAX_HEADERS} bytes", 431)


def _request(scope: dict[str, Any], body: bytes) -> HttpRequest:
    headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"])
    host = next((value for name, value in headers if name == "host"), "")
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return HttpRequest(scope["method"], scope["path"], host, tuple(query), headers, body)


def _credentials(header: str) -> str:
    kind, _, value = header.partition(" ")
    if kind.lower() != "basic":
        return value
    with contextlib.suppress(binascii.Error, ValueError):
        return base64.b64decode(value, validate=True).decode("utf-8", "replace")
    return ""


@contextlib.contextmanager
def serving(door: Door, port: int = 0) -> Generator[str]:
    """Serves in a thread while the context is open, and yields the address.

    Raises:
        UsageError: The port is taken, or uvicorn is not installed.
    """
    server, line = _server(door, port)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [line]}, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        yield f"http://127.0.0.1:{line.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        line.close()


def run(door: Door, port: int, ready: Callable[[str], None]) -> None:
    """Serves until Ctrl-C; `ready` receives the address.

    Raises:
        UsageError: The port is taken, or uvicorn is not installed.
    """
    with serving(door, port) as address:
        ready(address)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


class _Waiting:
    """Connections of uvicorn, and for how long each has been waiting for a request, or for its end.

    uvicorn has no limit for either. Its `limit_concurrency` would refuse others and leave half-open connections as they
    are.
    """

    def __init__(self) -> None:
        self._since: dict[Any, tuple[Any, int]] = {}
        self._now = 0

    def look(self, connections: Iterable[Any]) -> None:
        """Closes those that have waited too long."""
        self._now += 1
        before, self._since, idle = self._since, {}, list[Any]()
        for one in [*connections]:
            cycle = one.cycle
            if cycle is not None and cycle.response_complete and not one.transport.get_write_buffer_size():
                cycle = None
            known = before.get(one)
            since = known[1] if known is not None and known[0] is cycle else self._now
            self._since[one] = cycle, since
            if cycle is None:
                idle.append(one)
            if (self._now - since) * _TICK_S > (HEAD_S if cycle is None else ANSWER_S):
                one.transport.abort()
        idle.sort(key=lambda one: self._since[one][1])
        for one in idle[:-MOST_WAITING]:
            one.transport.abort()


def _server(door: Door, port: int) -> tuple[uvicorn.Server, socket.socket]:
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        raise UsageError("a product at an address needs an extra: pip install 'quintain[web]'") from error

    class QuietServer(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            """Leaves Ctrl-C to the caller."""
            yield

        async def on_tick(self, counter: int) -> bool:
            """Closes the connections that take too long; what arrives while a request is handled costs no time."""
            waiting.look(self.server_state.connections)
            return await super().on_tick(counter)

    waiting = _Waiting()
    try:
        # asyncio sets TCP_NODELAY only on sockets whose protocol number is given.
        line = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        line.bind(("127.0.0.1", port))
    except OSError as error:
        raise UsageError(f"cannot listen on port {port}: {error.strerror}; choose another with --port") from error
    line.listen(1024)
    off: dict[str, Any] = dict.fromkeys(("access_log", "proxy_headers", "server_header", "date_header"), False)
    off["timeout_graceful_shutdown"] = 1  # A client that goes on sending does not keep the server.
    return QuietServer(uvicorn.Config(door, log_config=None, lifespan="off", ws="none", **off)), line
