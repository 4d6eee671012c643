"""What somebody sends who means harm: connections that ask for much, read nothing, or are not what they seem."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.operation.raw import ask, dial, rest
from tests.serve.serving import Served, serve, until

READ_S = 0.5
HASTY = f"import quintain.serve.unread as unread\nunread.READ_S = {READ_S}"
HOST = b"host: 127.0.0.1\r\n"
CHUNKED = b"POST /create_session HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n"
SOCKET = (
    b"GET /openenv/counter/ws HTTP/1.1\r\n" + HOST + b"connection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve("counter", folder=tmp_path_factory.mktemp("malice"), before=HASTY) as server:
        yield server


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def test_what_follows_a_body_is_no_header(served: Served) -> None:
    """A proxy looks at the headers before it, and lets trailers through."""
    body = b"2\r\n{}\r\n0\r\nx-session-id: smuggled\r\n\r\n"
    with dial(served.port) as line:
        line.sendall(b"POST /delete_session HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n" + body)
        answer = line.recv(65536)
    assert status(answer) == 400, answer
    assert b"smuggled" not in answer


def test_trailers_without_end_are_not_kept(served: Served) -> None:
    before = served.memory
    with dial(served.port) as line:
        line.sendall(CHUNKED + b"\r\n2\r\n{}\r\n0\r\n")
        with contextlib.suppress(ConnectionError):  # Nor are they listened to for long.
            for _ in range(20):
                line.sendall(b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" * 20_000)
        assert served.memory - before < 20_000_000
        assert ask(served.port, "GET", "/health")[0] == 200


@pytest.mark.parametrize("body", [b"content-length: 5\r\n\r\nhello", b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n"])
def test_a_socket_that_brings_a_body_is_refused(served: Served, body: bytes) -> None:
    with dial(served.port) as line:
        line.sendall(SOCKET + body)
        assert status(rest(line)) == 400


def deaf(port: int, request: bytes, times: int) -> socket.socket:
    """A client that asks and asks, and reads nothing."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect(("127.0.0.1", port))
    line.settimeout(0.2)
    try:
        for _ in range(times):
            line.sendall(request)
            time.sleep(0.001)
    except OSError:
        return line
    return line


def connections(served: Served) -> int:
    """How many of its clients' connections a server holds."""
    own = {str(one.readlink()) for one in Path(f"/proc/{served.process.pid}/fd").iterdir() if one.is_symlink()}
    known = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    port = f"0100007F:{served.port:04X}"
    return sum(line[1] == port and line[3] != "0A" and f"socket:[{line[9]}]" in own for line in known)


def test_a_client_that_reads_nothing_is_cut_off(served: Served) -> None:
    """Whatever it asked for: small answers one behind the other, or a stream of small frames."""
    ask(served.port, "POST", "/create", headers={"X-Session-ID": "deaf"}, body={"split": "train", "index": 0})
    body = json.dumps({"name": "repeat", "input": {"text": "x" * 1000, "times": 9_000}}).encode()
    call = b"POST /call HTTP/1.1\r\n" + HOST + b"x-session-id: deaf\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    lines = [
        deaf(served.port, (b"GET /v1/environments HTTP/1.1\r\n" + HOST + b"\r\n") * 10, 1000),
        deaf(served.port, call, 1),
    ]
    try:
        assert connections(served)
        until(lambda: connections(served) == 0)
    finally:
        for line in lines:
            line.close()
    assert ask(served.port, "GET", "/health")[0] == 200


def test_what_waits_behind_a_request_is_not_begun_when_its_client_has_left(served: Served) -> None:
    """It would be answered into a connection that is closed; the fixture looks for the traceback of that."""
    for _ in range(5):
        line = deaf(served.port, b"GET /counter/tools HTTP/1.1\r\n" + HOST + b"\r\n", 300)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.close()
    assert ask(served.port, "GET", "/health")[0] == 200
