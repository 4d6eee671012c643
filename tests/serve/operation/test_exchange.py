"""Requests and answers as bytes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.frames import Frame, Opcode

from quintain.serve.asgi import App, Event, Receive, Scope, Send
from quintain.serve.exchange import Exchange
from tests.serve.operation.raw import SECONDS, dial, rest, result
from tests.serve.serving import Served, serve

HEAD = b"host: localhost\r\ncontent-type: application/json\r\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve("counter", folder=tmp_path_factory.mktemp("exchange")) as server:
        yield server


def post(path: str, body: bytes, *, headers: bytes = b"", version: bytes = b"1.1") -> bytes:
    length = b"content-length: %d\r\n\r\n" % len(body)
    return b"POST %b HTTP/%b\r\n" % (path.encode(), version) + HEAD + headers + length + body


def opened(port: int, name: bytes) -> bytes:
    """Open a session; the header that names it."""
    session = b"x-session-id: " + name + b"\r\n"
    with dial(port) as line:
        line.sendall(post("/create", b'{"split":"train","index":0}', headers=session + b"connection: close\r\n"))
        assert b" 200 " in rest(line)
    return session


def said(port: int, *requests: bytes) -> list[bytes]:
    """All answers to requests that are sent in one piece, the last of which closes the line."""
    with dial(port) as line:
        line.sendall(b"".join(requests))
        return rest(line).split(b"HTTP/1.1 ")[1:]


def test_requests_in_one_piece_are_answered_in_their_order(served: Served) -> None:
    session = opened(served.port, b"piece")
    call = b'{"name":"add","input":{"by":%d}}'
    requests = [post("/counter/call", call % by, headers=session) for by in (1, 10, 100)]
    last = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    *calls, health = said(served.port, *requests, last)
    texts = [result(_unchunked(one))["output"]["blocks"][0]["text"] for one in calls]
    assert texts == [f"The count is {count}." for count in (1, 11, 111)]
    assert health.startswith(b"200 OK\r\n")
    assert health.endswith(b'{"status":"ok"}')


def _unchunked(answer: bytes) -> bytes:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head
    parts = b""
    while not body.startswith(b"0\r\n"):
        size, _, body = body.partition(b"\r\n")
        parts, body = parts + body[: int(size, 16)], body[int(size, 16) + 2 :]
    assert body == b"0\r\n\r\n"
    return parts


def test_a_client_of_http_1_0_reads_to_the_end_of_the_line(served: Served) -> None:
    session = opened(served.port, b"old")
    (answer,) = said(served.port, post("/counter/call", b'{"name":"add","input":{}}', headers=session, version=b"1.0"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert result(body)["output"]["blocks"][0]["text"] == "The count is 1."


def test_who_asks_whether_to_send_the_body_is_told_to(served: Served) -> None:
    session = opened(served.port, b"polite")
    head, body = post("/counter/call", b'{"name":"add","input":{}}', headers=session).split(b"\r\n\r\n")
    with dial(served.port) as line:
        line.sendall(head + b"\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n")
        assert line.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        line.sendall(body)
        assert b"event: end" in rest(line)


def test_a_body_may_come_byte_by_byte(served: Served) -> None:
    session = opened(served.port, b"slow")
    with dial(served.port) as line:
        whole = post("/counter/call", b'{"name":"add","input":{}}', headers=session + b"connection: close\r\n")
        for place in range(len(whole)):
            line.sendall(whole[place : place + 1])
        assert b"event: end" in rest(line)


def test_a_connection_is_let_go_when_nothing_was_asked_on_it_in_a_while(tmp_path: Path) -> None:
    ping = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    before = "import quintain.serve.server as server\nserver.IDLE_S = 0.6"
    with serve("counter", folder=tmp_path, before=before) as server, dial(server.port) as line:
        for _ in range(20):  # Longer than that in all.
            time.sleep(0.05)
            line.sendall(ping)
            assert b"200 OK" in line.recv(65536)
        answered = time.monotonic()
        assert rest(line) == b""
        assert 0.5 < time.monotonic() - answered < SECONDS / 2


def test_a_connection_that_became_a_web_socket_has_a_time_of_its_own(tmp_path: Path) -> None:
    before = "import quintain.serve.server as server\nserver.IDLE_S = 0.3"
    upgrade = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    key = b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    with serve("counter", folder=tmp_path, before=before) as server, dial(server.port) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert b"200 OK" in line.recv(65536)
        line.sendall(b"GET /openenv/counter/ws HTTP/1.1\r\nhost: localhost\r\n" + upgrade + key)
        assert b" 101 " in line.recv(65536)
        line.settimeout(0.9)
        with pytest.raises(TimeoutError):  # Nothing comes, and the line is not closed.
            line.recv(1)
        line.settimeout(SECONDS)
        line.sendall(Frame(Opcode.TEXT, b'{"type": "reset"}').serialize(mask=True))
        assert b"observation" in line.recv(65536)


# --- an exchange by itself


class Wire(asyncio.Transport):
    """Takes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += bytes(data)

    def close(self) -> None:
        self.closed = True


def exchanged(app: App, *, method: str = "GET", version: str = "1.1", path: str = "/") -> tuple[bytes, bool]:
    """What an application's answer looks like on the wire, and whether the line was closed after it."""
    from uvicorn.protocols.http.flow_control import FlowControl

    wire = Wire()

    async def run() -> None:
        scope = {"type": "http", "method": method, "path": path, "http_version": version, "headers": []}
        exchange = Exchange(scope, wire, FlowControl(wire), keep_alive=True, expects=False, on_response=lambda: None)
        exchange.more_body = False
        exchange.set()
        await exchange.run(app)

    asyncio.run(run())
    return wire.data, wire.closed


def answering(*events: Event) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for event in events:
            await send(event)

    return app


START: Event = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}


def test_the_answer_to_head_has_no_body() -> None:
    app = answering(START, {"type": "http.response.body", "body": b"ab"})
    assert exchanged(app, method="HEAD") == (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", False)


@pytest.mark.parametrize("parts", [[b"a"], [b"abc"], [b"ab", b"c"], [b""]])
def test_a_body_of_another_length_than_was_said_closes_the_line(parts: list[bytes]) -> None:
    last = len(parts) - 1
    bodies: list[Event] = [
        {"type": "http.response.body", "body": part, "more_body": place < last} for place, part in enumerate(parts)
    ]
    assert exchanged(answering(START, *bodies))[1]


@pytest.mark.parametrize(
    "events", [(), ({"type": "http.response.body", "body": b""},), ({**START, "headers": [(b"x", b"a\r\nb: c")]},)]
)
def test_no_answer_and_one_that_is_none_are_a_server_error(events: tuple[Event, ...]) -> None:
    data, _ = exchanged(answering(*events))
    assert data.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert data.endswith(b'\r\n\r\n{"detail":"Internal Server Error"}')


def test_who_is_not_answered_before_the_end_may_come_again(caplog: pytest.LogCaptureFixture) -> None:
    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            await send(START)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()  # As the server does with all, when its time is over.
        await asyncio.sleep(0)

    data, _ = exchanged(waits)
    assert data.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nretry-after: 1\r\n" in data
    assert exchanged(waits, method="POST") == (b"", True)
    assert not caplog.messages


@pytest.mark.parametrize("path", ["/e/hush/mcp", "//e//hush/mcp", "/m/hush/v1/models", "/e/hush"])
def test_what_breaks_is_logged_without_the_secret_of_an_address(path: str, caplog: pytest.LogCaptureFixture) -> None:
    async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("broken")

    exchanged(breaks, path=path)
    exchanged(answering(), path=path)
    assert len(caplog.messages) == 2
    assert all("***" in said and "hush" not in said for said in caplog.messages)
    assert "broken" in caplog.text
