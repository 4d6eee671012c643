"""Who does not read is cut off; who reads a little now and then gets all of it, in every protocol."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from websockets.frames import Frame, Opcode

from quintain.serve.shard import Shard
from tests.serve.operation.raw import ask, rest, result, task_id
from tests.serve.operation.test_malice import SOCKET, connections
from tests.serve.serving import Served, serve, until

READ_S = 0.5
HASTY = f"import quintain.serve.unread as unread\nunread.READ_S = {READ_S}"
HOST = "host: 127.0.0.1"
LONG = {"text": "x" * 1000, "times": 9_000}
MUCH = 9_000_000
"""More than the buffers of both kernels take."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve("counter", folder=tmp_path_factory.mktemp("slow"), before=HASTY) as server:
        yield server


def posted(path: str, body: object, *lines: str) -> bytes:
    data = json.dumps(body)
    head = "\r\n".join((f"POST {path} HTTP/1.1", HOST, "content-type: application/json", *lines))
    return f"{head}\r\ncontent-length: {len(data)}\r\n\r\n{data}".encode()


def ors(served: Served, line: socket.socket) -> None:
    """A stream of events."""
    ask(served.port, "POST", "/create", headers={"X-Session-ID": "ors"}, body={"split": "train", "index": 0})
    line.sendall(posted("/call", {"name": "repeat", "input": LONG}, "x-session-id: ors"))


def control(served: Served, line: socket.socket) -> None:
    """One big answer."""
    made = json.loads(ask(served.port, "POST", "/v1/episodes", body={"environment": "counter"})[2])
    line.sendall(posted(f"/v1/episodes/{made['id']}/calls", {"name": "repeat", "arguments": LONG}))


def openenv(served: Served, line: socket.socket) -> None:
    _, headers, _ = ask(served.port, "POST", "/openenv/counter/reset", body={})
    step = {"action": {"tool_name": "repeat", "arguments": LONG}, "session_id": headers["x-session-id"]}
    line.sendall(posted("/openenv/counter/step", step))


def mcp(served: Served, line: socket.socket) -> None:
    made = json.loads(ask(served.port, "POST", "/v1/episodes", body={"environment": "counter"})[2])
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "repeat", "arguments": LONG}}
    path = "/e/" + made["mcp_url"].partition("/e/")[2]
    line.sendall(posted(path, call, "accept: application/json, text/event-stream"))


def frames(served: Served, line: socket.socket) -> None:
    """A WebSocket."""
    step = {"type": "step", "data": {"tool_name": "repeat", "arguments": LONG}}
    line.sendall(SOCKET + b"\r\n")
    assert line.recv(4096).startswith(b"HTTP/1.1 101")
    for told in ({"type": "reset"}, step):
        line.sendall(Frame(Opcode.TEXT, json.dumps(told).encode()).serialize(mask=True))


WAYS = pytest.mark.parametrize("way", [ors, control, openenv, mcp, frames])


def dial(port: int) -> socket.socket:
    """With so little room that what is not read waits on the other side."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.settimeout(5)
    line.connect(("127.0.0.1", port))
    return line


@WAYS
def test_who_reads_slowly_gets_all_of_it(served: Served, way: Callable[[Served, socket.socket], None]) -> None:
    with dial(served.port) as line:
        way(served, line)
        began, size = time.monotonic(), 0
        while time.monotonic() - began < 2 * READ_S:
            size += len(line.recv(4096))
            time.sleep(READ_S / 5)  # Now and then.
        assert 0 < size < MUCH / 10
        while size < MUCH:
            part = line.recv(1 << 20)
            assert part, f"cut off after {size} bytes"
            size += len(part)


@WAYS
def test_who_reads_nothing_is_cut_off(served: Served, way: Callable[[Served, socket.socket], None]) -> None:
    with dial(served.port) as line:
        way(served, line)
        until(lambda: connections(served) > 0)
        until(lambda: connections(served) == 0)
    assert ask(served.port, "GET", "/health")[0] == 200


def test_an_answer_that_was_not_read_can_be_asked_for_again(served: Served) -> None:
    """The same request without a key is the same call, as long as its answer has not gone out whole."""
    mine = {"X-Session-ID": "unread"}
    ask(served.port, "POST", "/create", headers=mine, body={"split": "train", "index": 0})
    wanted = {"name": "repeat", "input": LONG}
    with dial(served.port) as line:
        line.sendall(posted("/call", wanted, "x-session-id: unread"))
        until(lambda: connections(served) > 0)
        until(lambda: connections(served) == 0)
    for expected in (0, 1):  # Read by now, so the next is another.
        again = result(ask(served.port, "POST", "/call", headers=mine, body=wanted)[2])
        assert again["output"]["metadata"]["dev.quintain/seq"] == expected


def test_an_answer_that_was_had_by_its_key_is_not_kept_for_the_next(served: Served) -> None:
    """Who asked for it first does not read it, and leaves after whoever has asked for it by its key has read it all."""
    mine = {"X-Session-ID": "stuck"}
    ask(served.port, "POST", "/create", headers=mine, body={"split": "train", "index": 0})
    wanted = {"name": "repeat", "input": LONG}
    with dial(served.port) as line:
        line.sendall(posted("/call", wanted, "x-session-id: stuck"))
        first = b""
        while b"\r\n\r\n" not in first.partition(b"event: ")[2]:
            first += line.recv(100)
        key = task_id(b"event: " + first.partition(b"event: ")[2])
        resumed = result(ask(served.port, "POST", "/call", headers=mine, body={**wanted, "task_id": key})[2])
        assert resumed["output"]["metadata"]["dev.quintain/seq"] == 0
        until(lambda: connections(served) == 0)
    again = result(ask(served.port, "POST", "/call", headers=mine, body=wanted)[2])
    assert again["output"]["metadata"]["dev.quintain/seq"] == 1


def test_what_nobody_reads_is_not_kept(served: Served) -> None:
    kept = {"X-Session-ID": "kept"}
    ask(served.port, "POST", "/create", headers=kept, body={"split": "train", "index": 0})
    assert ask(served.port, "POST", "/call", headers=kept, body={"name": "repeat", "input": LONG})[0] == 200
    _ask_and_be_cut_off(served)
    before = served.memory
    _ask_and_be_cut_off(served)
    assert served.memory - before < MUCH * 4  # Of ten answers; what the first ones needed is used again.


def _ask_and_be_cut_off(served: Served) -> None:
    lines = [dial(served.port) for _ in range(10)]
    for line in lines:
        line.sendall(f"GET /v1/episodes/kept/trace HTTP/1.1\r\n{HOST}\r\n\r\n".encode())
    until(lambda: connections(served) > 0)
    until(lambda: connections(served) == 0)
    for line in lines:
        line.close()


def test_a_socket_behind_an_answer_that_waits_is_refused(served: Served) -> None:
    """Nobody would notice any more that the buffers are full. The answer ends first, and then the connection."""
    with dial(served.port) as line:
        ors(served, line)
        line.sendall(SOCKET + b"\r\n")
        said = rest(line)
    assert said.count(b"HTTP/1.1 ") == 1
    assert said.endswith(b"\r\n0\r\n\r\n")


def test_an_answer_that_waits_is_not_lost_when_the_next_one_is_another_process_to_give(tmp_path: Path) -> None:
    with serve("counter", folder=tmp_path, options=("--workers", "2")) as served:
        names: list[str] = []
        while len(names) < 4:  # By turns of the one and the other process.
            made = json.loads(ask(served.port, "POST", "/v1/episodes", body={"environment": "counter"})[2])["id"]
            if Shard(0, 2).of(made) == len(names) % 2:
                names.append(made)
                call = {"name": "repeat", "arguments": LONG}
                assert ask(served.port, "POST", f"/v1/episodes/{made}/calls", body=call)[0] == 200
        with dial(served.port) as line:
            for name in names:
                line.sendall(f"GET /v1/episodes/{name}/trace HTTP/1.1\r\n{HOST}\r\n\r\n".encode())
                first = line.recv(12, socket.MSG_PEEK)  # It is being answered by now.
                assert first == b"HTTP/1.1 200"
                time.sleep(0.2)
            line.sendall(f"GET /health HTTP/1.1\r\n{HOST}\r\nconnection: close\r\n\r\n".encode())
            said = rest(line)
        assert said.count(b"HTTP/1.1 200") == 5
        assert len(said) > 4 * MUCH
