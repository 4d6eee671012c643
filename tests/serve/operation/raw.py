"""Bare sockets, for what no client sends."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

SECONDS = 30.0


def dial(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=SECONDS)


def rest(line: socket.socket) -> bytes:
    """All that comes until the other side closes the line."""
    parts: list[bytes] = []
    try:
        while part := line.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        return b"".join(parts)
    return b"".join(parts)


def until_end(line: socket.socket, last: bytes) -> bytes:
    """Returns what comes until the bytes that an answer ends with."""
    answer = b""
    while not answer.endswith(last):
        part = line.recv(65536)
        assert part, answer
        answer += part
    return answer


def ask(
    port: int, method: str, path: str, *, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """One request on a connection of its own: status, headers and body of the answer."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        line.request(method, path, data, {"content-type": "application/json", **(headers or {})})
        answer = line.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        line.close()


def result(stream: bytes) -> dict[str, Any]:
    """The document that a stream of the Open Reward Standard holds."""
    frames = [frame.split("\r\n") for frame in stream.decode().split("\r\n\r\n") if frame.startswith("event")]
    parts = [lines[1].removeprefix("data: ") for lines in frames if lines[0] in ("event: chunk", "event: end")]
    found: dict[str, Any] = json.loads("".join(parts))
    return found


def task_id(stream: bytes) -> str:
    """The key that a stream begins with."""
    first, _, rest = stream.decode().partition("\r\n")
    assert first == "event: task_id", stream
    return rest.partition("\r\n")[0].removeprefix("data: ")
