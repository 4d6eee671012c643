"""One connection, without a network: requests behind requests, what ends them, and what must not grow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="pip install 'quintain[serve]'")

import uvicorn
from uvicorn.server import ServerState

from quintain.serve import http
from quintain.serve.asgi import App, Receive, Scope, Send
from quintain.serve.http import Http

PING = b"GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n"
CHUNKED = b"POST /ping HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


class Wire(asyncio.Transport):
    """Takes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""
        self.closed = False
        self.paused = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Where it comes from, and where it leads."""
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += bytes(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Gated:
    """An application that answers when it is let."""

    def __init__(self) -> None:
        self.gate = asyncio.Semaphore(0)
        self.begun = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun += 1
        await self.gate.acquire()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def let(self) -> None:
        """Have one more answered."""
        self.gate.release()
        await settled()


async def settled() -> None:
    """Wait until everything that can go on has."""
    for _ in range(10):
        await asyncio.sleep(0)


def connected(app: App) -> tuple[Http, Wire]:
    """A connection to an application, in a loop that runs."""
    config = uvicorn.Config(app, http=Http, lifespan="off", log_config=None, proxy_headers=False, timeout_keep_alive=60)
    config.load()
    line, wire = Http(config, ServerState(), {}), Wire()
    line.connection_made(wire)
    return line, wire


def played(play: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(play())


def test_nothing_more_is_read_while_requests_wait() -> None:
    async def play() -> None:
        app = Gated()
        line, wire = connected(app)
        line.data_received(3 * PING)
        for number in range(1, 4):
            await settled()
            assert (app.begun, wire.paused) == (number, True)
            await app.let()
            assert wire.data.count(b"200 OK") == number
        assert not wire.paused

    played(play)


def test_requests_that_come_at_once_are_not_without_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BEHIND", 2)

    async def play() -> None:
        app = Gated()
        line, wire = connected(app)
        line.data_received(4 * PING)
        assert not wire.data
        await app.let()
        assert (app.begun, wire.data.count(b"HTTP/1.1 "), wire.closed) == (1, 1, True)

    played(play)


@pytest.mark.parametrize("then", [b"\0\1\2\r\n\r\n", PING + b"GET\r\n\r\n", PING[:-2] + b"x" * (70 << 10)])
def test_an_answer_is_whole_whatever_comes_behind_its_request(then: bytes) -> None:
    async def play() -> None:
        app = Gated()
        line, wire = connected(app)
        line.data_received(PING)
        line.data_received(then)
        await settled()
        assert (wire.data, wire.closed) == (b"", False)
        await app.let()
        assert wire.data == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
        assert wire.closed

    played(play)


def test_a_body_that_is_none_is_told_and_not_into_its_own_answer() -> None:
    async def early(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            continue

    async def play() -> None:
        line, wire = connected(Gated())
        line.data_received(CHUNKED)
        line.data_received(b"zz\r\n")
        assert wire.data.startswith(b"HTTP/1.1 400")
        line, wire = connected(early)
        line.data_received(CHUNKED)
        await settled()
        before = wire.data
        line.data_received(b"zz\r\n")
        assert (wire.data, wire.closed) == (before, True)
        line.connection_lost(None)
        await settled()

    played(play)


def test_who_waits_for_more_hears_that_the_client_left_though_others_wait_behind() -> None:
    heard: list[str] = []

    async def listening(scope: Scope, receive: Receive, send: Send) -> None:
        while (event := await receive())["type"] != "http.disconnect":
            continue
        heard.append(event["type"])

    async def play() -> None:
        line, _ = connected(listening)
        line.data_received(2 * PING)
        await settled()
        line.connection_lost(None)
        await settled()
        assert heard == ["http.disconnect"]

    played(play)


@pytest.mark.parametrize("head", [b"0\r\nx: ", b"1;x="])
def test_a_line_that_is_no_body_has_an_end(head: bytes) -> None:
    async def play() -> None:
        line, wire = connected(Gated())
        line.data_received(CHUNKED)
        for _ in range(1000):  # Small pieces of a body may be as many as they like.
            line.data_received(b"1\r\n")
            line.data_received(b"a\r\n")
        line.data_received(head)
        for _ in range(4):
            assert not wire.closed
            line.data_received(b"y" * (16 << 10))
        assert (wire.data[:12], wire.closed) == (b"HTTP/1.1 431", True)

    played(play)


def test_another_protocol_is_not_asked_for_with_a_body() -> None:
    upgrade = b"host: localhost\r\nconnection: upgrade\r\nupgrade: h2c\r\n"

    async def play() -> None:
        app = Gated()
        line, wire = connected(app)
        line.data_received(b"POST /ping HTTP/1.1\r\n" + upgrade + b"content-length: 2\r\n\r\n{}")
        assert (wire.data[:12], wire.closed, app.begun) == (b"HTTP/1.1 400", True, 0)
        line, wire = connected(app)
        line.data_received(b"POST /ping HTTP/1.1\r\n" + upgrade + b"content-length: 0\r\n\r\n")
        await app.let()
        assert wire.data.startswith(b"HTTP/1.1 200 OK")

    played(play)


def test_a_request_that_was_answered_before_its_end_leaves_no_line_open_for_ever() -> None:
    async def play() -> None:
        app = Gated()
        line, wire = connected(app)
        line.timeout_keep_alive = 0.05  # type: ignore[assignment]  # seconds
        line.data_received(b"POST /ping HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n")
        await app.let()
        await asyncio.sleep(0.08)  # Longer than a line is kept: its request is still coming.
        assert not wire.closed
        line.data_received(b"{}")
        async with asyncio.timeout(10):
            while not wire.closed:  # noqa: ASYNC110  # it tells nobody
                await asyncio.sleep(0.01)

    played(play)


def test_who_sends_behind_an_answered_request_has_time_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LINGER_S", 0.02)

    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["more_body"]:
            continue
        await app(scope, receive, send)

    app = Gated()

    async def play() -> None:
        line, wire = connected(reading)
        line.data_received(PING + b"POST /ping HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n")
        await settled()
        await app.let()
        await asyncio.sleep(0.06)
        line.data_received(b"{}")
        await app.let()
        await settled()
        assert (wire.data.count(b"HTTP/1.1 200 OK"), wire.closed) == (2, False)

    played(play)


def test_what_is_not_read_here_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "HEAD_S", 0.02)

    async def play() -> None:
        app = Gated()
        line, wire = connected(app)
        line.data_received(2 * PING + PING[:20])
        await asyncio.sleep(0.06)
        await app.let()
        await app.let()
        line.data_received(PING[20:])
        await app.let()
        assert wire.data.count(b"HTTP/1.1 200 OK") == 3

    played(play)
