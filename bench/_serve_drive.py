"""The other side of a served environment: connections that ask as fast as one process can, and time each answer.

Requests are made once, as bytes, and of an answer no more is read than shows that it is whole and good. So a call costs
this side less than it costs the barest of servers, and what is measured is the server.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

END = b"\r\n0\r\n\r\n"


class BrokenError(RuntimeError):
    """The server answered something else than what was asked for."""


class Lane(asyncio.Protocol):
    """One kept-alive HTTP connection with at most one request on its way.

    Attributes:
        took: Seconds that each answer of the last `ask` took.
        answer: The last one.
    """

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.took: list[float] = []
        self.answer = b""
        self._buffer = b""
        self._request = b""
        self._left = 0
        self._sent = 0.0
        self._done: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one without being derived from it

    def connection_lost(self, exc: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(BrokenError(f"the connection was closed after {self._buffer[-200:]!r}: {exc}"))

    def data_received(self, data: bytes) -> None:
        self._buffer = buffer = self._buffer + data if self._buffer else data
        if not self.whole(buffer):
            return
        now = time.perf_counter()
        self.took.append(now - self._sent)
        if self._left > 1 and self.good(buffer):
            self._left -= 1
            self._buffer = b""
            self._sent = now
            self.transport.write(self._request)
            return
        done, self._done = self._done, None
        if done is None or done.done():
            return
        if self.good(buffer):
            self.answer = buffer
            done.set_result(buffer)
        else:
            done.set_exception(BrokenError(buffer[-600:].decode(errors="replace")))

    def ask(self, request: bytes, times: int = 1) -> asyncio.Future[bytes]:
        """Send a request so many times, each after the answer to the one before; results in the last answer."""
        self._done = asyncio.get_running_loop().create_future()
        self._buffer, self._request, self._left, self.took = b"", request, times, []
        self._sent = time.perf_counter()
        self.transport.write(request)
        return self._done

    def whole(self, buffer: bytes) -> bool:
        """True if an answer is complete."""
        if buffer.endswith(END):
            return True
        head, found, body = buffer.partition(b"\r\n\r\n")
        _, sized, rest = head.lower().partition(b"content-length: ")
        return bool(found and sized) and len(body) >= int(rest.split(b"\r\n", 1)[0])

    def good(self, buffer: bytes) -> bool:
        """True if an answer reports success; a stream of events must end with its result."""
        return buffer.startswith(b"HTTP/1.1 200") and (b"event: " not in buffer or b"event: end" in buffer)


class Socket(Lane):
    """The same over a WebSocket; each message, a text, has one answer, a text."""

    def whole(self, buffer: bytes) -> bool:
        if buffer.startswith(b"HTTP/1.1"):
            return buffer.endswith(b"\r\n\r\n")
        if len(buffer) < 4:
            return False
        size, start = (buffer[1], 2) if buffer[1] < 126 else (int.from_bytes(buffer[2:4], "big"), 4)
        return len(buffer) >= start + size

    def good(self, buffer: bytes) -> bool:
        return (buffer[:1] == b"\x81" and b'"type":"error"' not in buffer) or buffer.startswith(b"HTTP/1.1 101")


Kind = TypeVar("Kind", bound=Lane)


async def connect(port: int, kind: Callable[[], Kind], patience_s: float = 30.0) -> Kind:
    """A connection to a server of this machine, which may be about to start."""
    loop = asyncio.get_running_loop()
    until = time.monotonic() + patience_s
    while True:
        try:
            return (await loop.create_connection(kind, "127.0.0.1", port))[1]
        except OSError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)


async def everyone(lanes: Sequence[Lane], requests: Sequence[bytes], times: int = 1) -> list[bytes]:
    """All lanes ask at once, each its own request so many times; their last answers."""
    return await asyncio.gather(*(lane.ask(request, times) for lane, request in zip(lanes, requests, strict=True)))


class Pace(NamedTuple):
    """Rates and latencies of a server."""

    rate: float
    p50_ms: float
    p99_ms: float
    server_us: float
    driver_us: float


async def pace(lanes: Sequence[Lane], requests: Sequence[bytes], times: int, cpu: Callable[[], float]) -> Pace:
    """Let all lanes ask, each so many times.

    Args:
        lanes: One per session.
        requests: One per lane.
        times: So often is each sent.
        cpu: Seconds of CPU of the server, so far.
    """
    before, mine, started = cpu(), time.process_time(), time.perf_counter()
    await everyone(lanes, requests, times)
    wall, mine, spent = time.perf_counter() - started, time.process_time() - mine, cpu() - before
    count = len(lanes) * times
    took = [one for lane in lanes for one in lane.took]
    per_call = 1e6 / count
    return Pace(count / wall, quantile(took, 0.5), quantile(took, 0.99), spent * per_call, mine * per_call)


def best(rounds: Sequence[Pace]) -> Pace:
    """The best of several rounds in each respect: on a shared machine everything else adds."""
    columns = list(zip(*rounds, strict=True))
    return Pace(max(columns[0]), *map(min, columns[1:]))


def quantile(seconds: Sequence[float], share: float) -> float:
    """The duration, in milliseconds, that this share stays below."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3


def post(path: str, body: Any = None, session: str = "") -> bytes:
    """A request with a JSON body."""
    text = b"" if body is None else msgspec.json.encode(body)
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", "Accept: text/event-stream"]
    lines += [f"Content-Length: {len(text)}", *([f"X-Session-ID: {session}"] if session else [])]
    return "\r\n".join([*lines, "", ""]).encode() + text


def get(path: str, session: str) -> bytes:
    """A request without a body."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Session-ID: {session}\r\n\r\n".encode()


def upgrade(path: str) -> bytes:
    """The request that makes a connection a WebSocket."""
    return (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


def frame(message: Any) -> bytes:
    """A WebSocket message as a client sends it; a mask of zeros leaves its text as it is."""
    text = msgspec.json.encode(message)
    size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack(">H", len(text))
    return b"\x81" + size + bytes(4) + text
