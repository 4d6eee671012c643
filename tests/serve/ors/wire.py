"""ORS as bytes: requests by httpx or by a bare socket, and events read as strictly as the field's clients read them."""

from __future__ import annotations

import contextlib
import json
import socket
import uuid
from collections.abc import Generator
from typing import Any, NamedTuple

import httpx
import pytest

Json = dict[str, Any]
PREFIX = "dev.quintain/"
TCP_REPAIR = 19
"""Linux's name for connections that are taken down, and put up elsewhere, without a word on the wire."""


class Frame(NamedTuple):
    """One event of a stream; `event` is empty for a comment."""

    event: str
    data: str


def frames(stream: bytes) -> list[Frame]:
    """The events of a stream, as the clients take them: they strip what a line begins with, and fail without a colon.

    What they damage arrives here damaged too, so that a test of what arrives is a test of what reaches an agent.
    """
    found: list[Frame] = []
    event, data = "", list[str]()
    for raw in stream.split(b"\n"):
        line = raw.decode("utf-8").rstrip("\r")
        if not line:
            if event:
                found.append(Frame(event, "\n".join(data)))
            event, data = "", []
        elif line.startswith(":"):
            found.append(Frame("", line))
        else:
            field, value = line.split(":", 1)
            if field == "event":
                event = value.lstrip()
            elif field == "data":
                data.append(value.lstrip())
    return found


def result(stream: bytes) -> Json:
    """The document that a stream of /call carries.

    Raises:
        AssertionError: The stream has no whole document; the message shows it.
    """
    events = [frame for frame in frames(stream) if frame.event]
    assert events, f"no events: {stream[:2000]!r}"
    assert events[0].event == "task_id", events
    assert [frame.event for frame in events[1:-1]] == ["chunk"] * (len(events) - 2), events
    assert events[-1].event == "end", events
    document: Json = json.loads("".join(frame.data for frame in events[1:]))
    return document


def text(document: Json) -> str:
    """The words of a result."""
    assert document["ok"], document
    return "".join(block["text"] for block in document["output"]["blocks"])


class Ors:
    """A client that hides nothing: each method is one request, and gives back the response as it came."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=30, trust_env=False)

    def get(self, path: str, sid: str | None = None) -> httpx.Response:
        return self.http.get(path, headers=header(sid))

    def post(self, path: str, body: object = None, sid: str | None = None, **headers: str) -> httpx.Response:
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.http.post(path, content=content, headers=header(sid) | headers)

    def open(self, env: str = "counter", *, split: str = "train", index: int = 0, **more: object) -> str:
        """A session with an episode in it."""
        sid = uuid.uuid4().hex
        answer = self.post("/create", {"env_name": env, "split": split, "index": index, **more}, sid)
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"sid": sid}
        return sid

    def call(self, sid: str, name: str, *, env: str = "counter", **arguments: object) -> Json:
        """The document that a call ends in."""
        answer = self.post(f"/{env}/call", {"name": name, "input": arguments}, sid)
        assert answer.status_code == 200, answer.text
        return result(answer.content)


def header(sid: str | None) -> dict[str, str]:
    return {} if sid is None else {"X-Session-ID": sid}


def request(path: str, body: object = None, *, method: str = "POST", **headers: str) -> bytes:
    """A request as bytes; names of headers are written with underscores."""
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"Host": "127.0.0.1", "Content-Length": str(len(content)), "Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + content


def call_request(sid: str, name: str, arguments: Json, *, env: str, **more: object) -> bytes:
    """A tool call as bytes."""
    return request(f"/{env}/call", {"name": name, "input": arguments, **more}, X_Session_ID=sid)


@contextlib.contextmanager
def connected(port: int) -> Generator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        yield connection


def vanish(connection: socket.socket) -> None:
    """Have a client that is gone without a word, as when its machine fails: the server's end stays open."""
    try:
        connection.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    except PermissionError:
        pytest.skip("only root can close a connection silently")
    connection.close()


def read_until(connection: socket.socket, mark: bytes) -> bytes:
    """What comes up to a mark, and whatever came with it."""
    received = b""
    while mark not in received:
        piece = connection.recv(65_536)
        assert piece, f"the connection ended before {mark!r}: {received!r}"
        received += piece
    return received


def read_answer(connection: socket.socket) -> tuple[int, bytes]:
    """The status and the body of one answer; an empty status means that the connection was closed without one."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65_536):
            received += piece
            if _whole(received):
                break
    if not received:
        return 0, b""
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), dechunked(body) if b"chunked" in head.lower() else body


def _whole(received: bytes) -> bool:
    head, mark, body = received.partition(b"\r\n\r\n")
    if not mark:
        return False
    if b"chunked" in head.lower():
        return body.endswith(b"0\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), None)
    return length is not None and len(body) >= length


def dechunked(body: bytes) -> bytes:
    """A chunked body without its lengths."""
    whole = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        if not (length := int(size or b"0", 16)):
            break
        whole, body = whole + rest[:length], rest[length + 2 :]
    return whole


def task_id(stream: bytes) -> str:
    """The id in a stream that has just begun; the stream may be a raw answer, head and chunk lengths and all."""
    mark = b"event: task_id\r\ndata: "
    return stream[stream.index(mark) + len(mark) :].split(b"\r\n")[0].decode()


def begun(connection: socket.socket, sid: str, tool: str, arguments: Json) -> str:
    """Begin a call of the environment `gated`, and read no more than its key."""
    connection.sendall(call_request(sid, tool, arguments, env="gated"))
    received = read_until(connection, b"event: task_id\r\ndata: ")
    while not received.partition(b"data: ")[2].count(b"\r\n"):
        received += connection.recv(4096)
    return task_id(received)
