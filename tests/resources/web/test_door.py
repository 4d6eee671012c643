"""Clients that do not finish what they began, at the address of a small product."""

from __future__ import annotations

import contextlib
import select
import socket
import time
import urllib.request
from collections.abc import Generator

import pytest

from quintain.resources.web import door as doors
from quintain.resources.web.door import Door, serving
from tests.resources.web import library

HEAD = b"POST /books HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n"
LONG = 30_000_000
BODY = b'{"book": {"title": "Emma"}}'


@pytest.fixture
def address() -> Generator[tuple[str, int]]:
    door = Door()
    door.add("one", library())
    with serving(door) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        yield host, int(port)
    assert door.failures == {}


def trickle(line: socket.socket, data: bytes, seconds: float = 10.0) -> bytes:
    """Sends a byte each 20 ms until the server answers or closes; returns what it answered."""
    line.settimeout(0.02)
    end = time.monotonic() + seconds
    for number in range(len(data)):
        with contextlib.suppress(TimeoutError):
            return line.recv(65_536)
        assert time.monotonic() < end, "the server waits on"
        line.sendall(data[number : number + 1])
    raise AssertionError("the server took all")


def served(address: tuple[str, int]) -> bool:
    with urllib.request.urlopen(f"http://{address[0]}:{address[1]}/books/count", timeout=20) as found:
        return bool(found.status == 200)


def test_body_that_trickles_in_gets_408(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "BODY_S", 0.3)
    with socket.create_connection(address) as line:
        line.sendall(HEAD)
        found = trickle(line, b" " * 100)
        assert found.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in found
        line.settimeout(5)
        assert line.recv(1) == b""
    assert served(address)


def test_head_that_trickles_in_is_closed(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "HEAD_S", 0.3)
    with socket.create_connection(address) as line, contextlib.suppress(ConnectionError):
        assert trickle(line, b"GET /" + b"x" * 1000) == b""
    assert served(address)


def test_answer_that_is_not_read_is_dropped(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "ANSWER_S", 0.3)
    data = b'{"book": {"title": "%s"}}' % (b"x" * LONG)
    asked = urllib.request.Request(f"http://{address[0]}:{address[1]}/books", data, {"host": "a"})
    with urllib.request.urlopen(asked, timeout=20) as found:
        target = found.headers["location"].removeprefix("http://a")
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(address)
        line.sendall(f"GET {target} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
        time.sleep(1.5)
        line.settimeout(5)
        received = 0
        with contextlib.suppress(ConnectionError):
            while chunk := line.recv(65_536):
                received += len(chunk)
    assert received < LONG
    assert served(address)


def test_half_open_connections_make_room_for_others(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "MOST_WAITING", 10)
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(socket.create_connection(address)) for _ in range(40)]
        lines[-1].sendall(HEAD + BODY)  # A request has begun, so its connection does not wait for one.
        until = time.monotonic() + 5
        while len(gone := select.select(lines, [], [], 0.1)[0]) < 29 and time.monotonic() < until:
            time.sleep(0.05)
        assert len(gone) == 29
        assert served(address)
        lines[-1].sendall(b" " * (100 - len(BODY)))
        assert lines[-1].recv(65_536).startswith(b"HTTP/1.1 201 ")


def test_server_ends_though_a_body_is_awaited() -> None:
    door = Door()
    door.add("one", library())
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(serving(door)).removeprefix("http://").split(":")
        line = socket.create_connection((address[0], int(address[1])))
        line.sendall(HEAD)
        time.sleep(0.3)
        began = time.monotonic()
    line.close()
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("target", "header", "status"),
    [("/books?" + "a=1&" * 2_500_000, "", 414), ("/books/" + "x" * 20_000, "", 414), ("/books", "x" * 10_000_000, 431)],
)
def test_long_address_or_header_is_refused(address: tuple[str, int], target: str, header: str, status: int) -> None:
    with socket.create_connection(address) as line:
        with contextlib.suppress(ConnectionError):
            line.sendall(f"GET {target} HTTP/1.1\r\nhost: a\r\nx-a: {header}\r\n\r\n".encode())
        line.settimeout(20)
        with contextlib.suppress(ConnectionError):
            found = line.recv(65_536)
            # h11, which serves where httptools is not installed, answers 400 to a head of more than 64 KiB.
            assert found.startswith((b"HTTP/1.1 %d " % status, b"HTTP/1.1 400 "))
    assert served(address)
