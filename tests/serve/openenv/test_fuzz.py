"""Whatever comes over HTTP or down a socket, its sender is told, or cut off: never a 500, and never a traceback.

That the server wrote no traceback, and goes on, is looked at when it ends.
"""

from __future__ import annotations

import contextlib
import json
import random
import struct
from typing import Any

import pytest

pytest.importorskip("httpx", reason="pip install 'quintain[http]'")
pytest.importorskip("websockets", reason="pip install 'quintain[serve]'")

from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from tests.serve.openenv.conftest import client_of
from tests.serve.openenv.frames import opened
from tests.serve.ors.wire import connected
from tests.serve.serving import Served

WORDS = ["train", "counter", "add", "call_tool", "list_tools", "answer", "tools/call", "2.0", ""]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    *("split", "index", "task", "seed", "episode_id", "session_id", "action", "timeout_s", "request_id", "start"),
    *("type", "tool_name", "arguments", "text", "metadata", "jsonrpc", "method", "params", "id", "name"),
)
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5)
WHOLE: list[Any] = [
    {"split": "train", "index": 0, "episode_id": "e"},
    {"action": {"type": "call_tool", "tool_name": "add", "arguments": {"by": 1}, "metadata": {"a": "b"}}},
    {**CALL, "params": {"name": "add", "arguments": {"by": 1, "x": "y"}}},
]


def spoilt(body: object, place: int, piece: bytes) -> bytes:
    """A body with other bytes at some place of it."""
    whole = json.dumps(body).encode()
    place %= len(whole) + 1
    return whole[:place] + piece + whole[place + len(piece) // 2 :]


BODIES = st.one_of(
    st.binary(max_size=60),
    st.builds(spoilt, st.sampled_from(WHOLE), st.integers(0, 200), st.binary(max_size=4)),
    VALUES.map(json.dumps).map(str.encode),
    OBJECTS.map(json.dumps).map(str.encode),
    OBJECTS.map(lambda action: json.dumps({"action": action, "params": action}).encode()),
    OBJECTS.map(lambda params: json.dumps({**CALL, "params": params}).encode()),
)
PATHS = ["/reset", "/step", "/mcp", "/counter/tasks", "/counter/num_tasks", "/counter/task", "/counter/task_range"]


@given(path=st.sampled_from(PATHS), body=BODIES, named=st.booleans())
@settings(max_examples=250)
def test_fuzzed_bodies_are_somebodys_mistake(served: Served, path: str, body: bytes, *, named: bool) -> None:
    with client_of(served, "counter") as client:
        headers = {"X-Session-ID": client.post("/reset", json={}).headers["x-session-id"]} if named else {}
        answer = client.post(path, content=body, headers=headers)
    assert answer.status_code < 500, (path, body, answer.text)
    assert "Traceback" not in answer.text
    if answer.status_code != 200:
        assert answer.json()["detail"]


OPENING = (
    "GET /openenv/counter/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
RESET = b'{"type": "reset", "data": {"split": "train", "index": 0}}'


def text(data: bytes, **more: Any) -> bytes:
    return Frame(Opcode.TEXT, data, **more).serialize(mask=True)


BROKEN: dict[str, bytes] = {
    "no mask": Frame(Opcode.TEXT, RESET).serialize(mask=False),
    "a bit that nobody agreed on": b"\xc1" + text(RESET)[1:],
    "an opcode that is none": b"\x83\x80\x00\x00\x00\x00",
    "a part of nothing": Frame(Opcode.CONT, RESET).serialize(mask=True),
    "a beginning, and another": text(RESET[:9], fin=False) + text(RESET),
    "a ping in parts": b"\x09\x80\x00\x00\x00\x00",
    "a long ping": b"\x89\xfe" + struct.pack("!H", 200) + b"\x00" * 204,
    "a length beyond all memory": b"\x81\xff" + struct.pack("!Q", 2**63 - 1) + b"\x00" * 4,
    "no UTF-8": text(b"\xff\xfe"),
    "half a character": text("é".encode()[:1]),
    "a farewell of one byte": b"\x88\x81\x00\x00\x00\x00\x03",
    "a farewell with a number that is none": b"\x88\x82\x00\x00\x00\x00\x00\x05",
    "HTTP": b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "random bytes": random.Random(3).randbytes(4096),
}


@pytest.mark.parametrize("name", BROKEN)
def test_malformed_frames_end_their_socket_only(served: Served, name: str) -> None:
    with connected(served.port) as connection, opened(served.url, "counter") as wire:
        wire.ask("reset", split="train", index=0)
        connection.sendall(OPENING.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 101")
        connection.sendall(text(RESET))
        connection.recv(65_536)
        connection.sendall(BROKEN[name])
        received = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65_536):
                received += piece
                if received[:1] == b"\x88":  # It says farewell, and waits for ours.
                    connection.sendall(b"\x88\x82\x00\x00\x00\x00\x03\xe8")
        assert b"Traceback" not in received
        assert wire.read("add", by=1) == "The count is 1."


HANDSHAKES: dict[str, bytes] = {
    "no key": OPENING.replace("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", "").encode(),
    "a short key": OPENING.replace("AAAAAAAAAAAAAAAAAAAAAA==", "AAAA").encode(),
    "a key that is none": OPENING.replace("AAAAAAAAAAAAAAAAAAAAAA==", "\x01?").encode(),
    "another version": OPENING.replace("Version: 13", "Version: 8").encode(),
    "another method": OPENING.replace("GET", "POST").encode(),
    "no upgrade": OPENING.replace("Connection: Upgrade", "Connection: close").encode(),
    "a path of bytes": OPENING.replace("/ws", "/ws\xff", 1).encode("latin-1"),
    "a query of bytes": OPENING.replace("/ws", "/ws?session_id=\xff", 1).encode("latin-1"),
    "a header of bytes": OPENING.replace("Version: 13", "Version: 13\r\nX: \xff\xfe").encode("latin-1"),
    "an escape that is none": OPENING.replace("/ws", "/ws%zz%", 1).encode(),
    "an extension": OPENING.replace("Version: 13", "Version: 13\r\nSec-WebSocket-Extensions: ;;=,,").encode(),
    "a protocol": OPENING.replace("Version: 13", "Version: 13\r\nSec-WebSocket-Protocol: ,,").encode(),
}


@pytest.mark.parametrize("name", HANDSHAKES)
def test_odd_handshakes_are_answered(served: Served, name: str) -> None:
    with connected(served.port) as connection:
        connection.sendall(HANDSHAKES[name])
        received = connection.recv(65_536)
    assert received.startswith(b"HTTP/1.1 ")
    assert not received.startswith(b"HTTP/1.1 5"), received


def test_a_frame_in_many_parts_is_one_frame(served: Served) -> None:
    with connected(served.port) as connection:
        connection.sendall(OPENING.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 101")
        last = len(RESET) - 1
        for place in range(len(RESET)):
            opcode = Opcode.CONT if place else Opcode.TEXT
            part = Frame(opcode, RESET[place : place + 1], fin=place == last).serialize(mask=True)
            connection.sendall(part + Frame(Opcode.PING, b"x").serialize(mask=True))
        received = b""
        while b"Count to 1" not in received:
            received += connection.recv(65_536)
    assert received.count(b"\x8a\x01x") == len(RESET)
