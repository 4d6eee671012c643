"""Bodies that are meant to do harm, sent to a product at its real address."""

from __future__ import annotations

import asyncio
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Generator

import pytest

from quintain import resource
from quintain.products import zendesk
from quintain.resources.web.door import Door, serving
from tests.products.conftest import basic, fresh

LONG = 10_000_000
SENT = 64 * 2**20
"""Bytes after which the sender of an endless body gives up."""


class Served:
    """An account at an address."""

    def __init__(self, address: str, world: zendesk.Zendesk, door: Door) -> None:
        self.address, self.world, self.door = address, world, door

    def send(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Sends a request; returns status and body."""
        asked = urllib.request.Request(f"{self.address}{path}", body, basic(), method=method)
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def digest(self) -> str:
        """Digest of the world."""
        return asyncio.run(resource.digest(self.world))


@pytest.fixture
def served() -> Generator[Served]:
    door, world = Door(), fresh()
    door.add("acme", world)
    with serving(door) as address:
        yield Served(address, world, door)
    assert door.failures == {}


@pytest.mark.parametrize("framing", ["transfer-encoding: chunked", f"content-length: {10**12}"])
def test_upload_without_end_is_refused(served: Served, framing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintain.resources.web.door.MAX_BODY", 2**20)
    before = served.digest()
    host, _, port = served.address.removeprefix("http://").partition(":")
    head = f"POST /api/v2/uploads.json?filename=a HTTP/1.1\r\nhost: {host}\r\n{framing}\r\n"
    credentials = f"authorization: {basic()['authorization']}\r\n\r\n"
    chunk = b"10000\r\n" + b"y" * 65_536 + b"\r\n"
    sent, received = 0, b""
    with socket.create_connection((host, int(port)), timeout=20) as line:
        line.sendall((head + credentials).encode())
        try:
            while sent < SENT:
                line.sendall(chunk)
                sent += len(chunk)
        except ConnectionError:
            received = line.recv(65_536)
    assert received.startswith(b"HTTP/1.1 413 ")
    assert sent < SENT
    assert served.digest() == before
    assert served.send("GET", "/api/v2/tickets/1.json")[0] == 200


def test_long_upload_is_stored_as_it_was_sent(served: Served) -> None:
    data = bytes(range(256)) * (LONG // 256)
    status, body = served.send("POST", "/api/v2/uploads.json?filename=a.bin", data)
    file = json.loads(body)["upload"]["attachment"]
    assert (status, file["size"]) == (201, len(data))
    path = file["content_url"].partition("/attachments/")
    assert served.send("GET", f"/attachments/{path[2]}") == (200, data)
    assert served.world.copy().db.digest() == served.world.db.digest()


def test_comment_is_kept_whole_or_refused(served: Served) -> None:
    bodies = [json.dumps({"ticket": {"comment": {"body": "x" * size}}}).encode() for size in (LONG, 65_536, 65_535)]
    assert [served.send("PUT", "/api/v2/tickets/1.json", one)[0] for one in bodies] == [422, 422, 200]
    comments = json.loads(served.send("GET", "/api/v2/tickets/1/comments.json")[1])["comments"]
    assert comments[-1]["body"] == "x" * 65_535


@pytest.mark.parametrize("body", [b"[" * LONG, b'{"ticket":' * (LONG // 10), b'{"ticket":"' + b"x" * LONG])
def test_long_body_that_is_no_ticket_is_refused(served: Served, body: bytes) -> None:
    before = served.world.db.digest()
    assert served.send("PUT", "/api/v2/tickets/1.json", body)[0] == (413 if body[0] == body[-1] else 422)
    assert served.world.db.digest() == before
