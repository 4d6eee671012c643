"""Requests and answers as bytes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from websockets.frames import Frame, Opcode

from quintain.serve.episodes.host import Host
from quintain.serve.http.app import build
from quintain.serve.http.asgi import Event, HttpRequest
from quintain.serve.http.auth import NoAuth
from quintain.serve.mcp import Mcp
from tests.serve.environments import counter
from tests.serve.operation.raw import SECONDS, dial, rest, result, until_end
from tests.serve.serving import Served, serve

HEAD = b"host: localhost\r\ncontent-type: application/json\r\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve("counter", folder=tmp_path_factory.mktemp("exchange")) as server:
        yield server


def post(path: str, body: bytes, *, headers: bytes = b"") -> bytes:
    length = b"content-length: %d\r\n\r\n" % len(body)
    return b"POST %b HTTP/1.1\r\n" % path.encode() + HEAD + headers + length + body


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


def test_a_client_that_expects_100_continue_gets_it(served: Served) -> None:
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
    before = "import quintain.serve.http.server as server\nserver.IDLE_S = 0.6"
    with serve("counter", folder=tmp_path, before=before) as server, dial(server.port) as line:
        for _ in range(20):  # Longer than that in all.
            time.sleep(0.05)
            line.sendall(ping)
            assert until_end(line, b"}").startswith(b"HTTP/1.1 200 OK")
        answered = time.monotonic()
        assert rest(line) == b""
        assert 0.5 < time.monotonic() - answered < SECONDS / 2


def test_a_connection_that_became_a_web_socket_has_a_time_of_its_own(tmp_path: Path) -> None:
    before = "import quintain.serve.http.server as server\nserver.IDLE_S = 0.3"
    upgrade = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    key = b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    with serve("counter", folder=tmp_path, before=before) as server, dial(server.port) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert until_end(line, b"}").startswith(b"HTTP/1.1 200 OK")
        line.sendall(b"GET /openenv/counter/ws HTTP/1.1\r\nhost: localhost\r\n" + upgrade + key)
        assert b" 101 " in line.recv(65536)
        line.settimeout(0.9)
        with pytest.raises(TimeoutError):  # Nothing comes, and the line is not closed.
            line.recv(1)
        line.settimeout(SECONDS)
        line.sendall(Frame(Opcode.TEXT, b'{"type": "reset"}').serialize(mask=True))
        assert b"observation" in line.recv(65536)


# --- the application by itself


Break = Callable[[HttpRequest], Awaitable[None]]


def answered(breaks: Break, monkeypatch: pytest.MonkeyPatch, *, path: str = "/e/hush/mcp") -> list[Event]:
    """Returns what the application sends where a protocol does something."""
    events: list[Event] = []

    async def handle(_mcp: Mcp, request: HttpRequest) -> None:
        await breaks(request)

    async def receive() -> Event:
        return {"type": "http.request", "body": b""}

    async def send(event: Event) -> None:
        events.append(event)

    async def run() -> None:
        host = Host([counter])
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": []}
        await build(host, NoAuth())(scope, receive, send)
        host.executor.close()

    monkeypatch.setattr(Mcp, "handle", handle)
    asyncio.run(run())
    return events


def test_a_request_that_the_end_of_the_server_cuts_may_come_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def waits(_request: HttpRequest) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()  # As the server does with all, when its time is over.
        await asyncio.sleep(0)

    async def begins(request: HttpRequest) -> None:
        await request.send({"type": "http.response.start", "status": 200, "headers": []})
        await waits(request)

    start, _ = answered(waits, monkeypatch)
    assert start["status"] == 503
    assert (b"retry-after", b"1") in start["headers"]
    assert [event["type"] for event in answered(begins, monkeypatch)] == ["http.response.start"]
    assert not caplog.messages


@pytest.mark.parametrize("path", ["/e/hush/mcp", "/e//hush/mcp", "/e/hush"])
def test_an_error_is_logged_without_the_secret_of_an_address(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(_request: HttpRequest) -> None:
        raise RuntimeError("broken")

    start, body = answered(breaks, monkeypatch, path=path)
    assert (start["status"], body["body"]) == (500, b'{"detail":"Internal Server Error"}')
    (said,) = caplog.messages
    assert "***" in said
    assert "hush" not in said
    assert "broken" in caplog.text
