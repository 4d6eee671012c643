"""Answers that nobody got: the same request, sent again without a key, is that one, in the next process too."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from quintain.serve.episodes import undelivered as unheard
from quintain.serve.episodes.host import Host, Wanted
from quintain.serve.keys import ANYONE
from tests.serve.environments import counter
from tests.serve.operation.again import DYING, Mortal, mortal
from tests.serve.operation.raw import dial, task_id
from tests.serve.operation.test_recovery import output
from tests.serve.ors.confiding import named
from tests.serve.serving import until

CONFIDING = Path(__file__).parents[1] / "ors" / "confiding.py"


def sent(server: Mortal, tool: str, **arguments: Any) -> socket.socket:
    """A connection by which a call was asked for in the session "s", and nothing was read."""
    body = json.dumps({"name": tool, "input": arguments})
    line = dial(server.port)
    line.sendall(
        f"POST /call HTTP/1.1\r\nhost: localhost\r\nx-session-id: s\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    )
    line.sendall(body.encode())
    return line


def reset(line: socket.socket) -> None:
    """Close so that the other side is told at once, by a reset."""
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.close()


def names(server: Mortal) -> set[str]:
    """What stands in the journal."""
    data = (server.folder / "journal" / "0.journal").read_bytes()
    return {name for name in ("acted", "done", "missed", "met") if b"\xa4type" + _text(name) in data}


def _text(name: str) -> bytes:
    return bytes([0xA0 + len(name)]) + name.encode()


@pytest.fixture
def server(tmp_path: Path) -> Any:
    with mortal(tmp_path, "gated") as gated:
        gated.create("s", index=0)
        yield gated


def mark(server: Mortal, label: str = "x") -> str:
    return output(server.call("s", "mark", label=label))


@pytest.mark.slow
def test_a_call_in_which_its_server_was_killed_is_the_one_that_comes_again(server: Mortal) -> None:
    with sent(server, "hold", gate="g"):
        server.gates.await_entry("g")
        server.kill()
    server.gates.open("g")
    server.start()
    assert mark(server) == "Marked 2."  # Another one is another one.
    assert output(server.call("s", "hold", gate="g")) == "Through g."
    assert mark(server) == "Marked 3."  # It had been done by then.
    assert output(server.call("s", "hold", gate="g")) == "Through g."
    assert mark(server) == "Marked 5."  # The second one was meant.
    server.again()
    assert output(server.call("s", "hold", gate="g")) == "Through g."
    assert mark(server) == "Marked 7."


@pytest.mark.slow
def test_a_call_that_was_asked_for_by_its_key_is_not_taken_for_the_next(server: Mortal) -> None:
    with sent(server, "hold", gate="g") as line:
        server.gates.await_entry("g")
        first = b""
        while not first.endswith(b"\r\n\r\n\r\n"):
            first += line.recv(65_536)
        key = task_id(first.partition(b"\r\n\r\n")[2].partition(b"\r\n")[2])
        server.kill()
    server.gates.open("g")
    server.start()
    asked = {"name": "hold", "input": {"gate": "g"}, "task_id": key}
    assert b"Through g." in server.ask("POST", "/call", "s", body=asked)[2]
    for count in (3, 5):  # The answer is known to have been told, also to the process after this one.
        assert output(server.call("s", "hold", gate="g")) == "Through g."
        assert mark(server) == f"Marked {count}."
        server.again()


def test_an_answer_that_found_nobody_is_kept_for_who_asks_again(server: Mortal) -> None:
    with sent(server, "hold", gate="g") as line:
        server.gates.await_entry("g")
        reset(line)
    server.gates.open("g")
    until(lambda: names(server) == {"acted", "done", "missed"})
    server.again()
    assert output(server.call("s", "hold", gate="g")) == "Through g."
    assert mark(server) == "Marked 2."
    assert "met" in names(server)
    server.again()
    assert output(server.call("s", "hold", gate="g")) == "Through g."
    assert mark(server) == "Marked 4."


HASTY = "import quintain.serve.episodes.undelivered as unheard\nunheard.AGAIN_S = 2.0"


def lose(server: Mortal, gate: str) -> None:
    """A call that goes on when its client has left."""
    with sent(server, "hold", gate=gate) as line:
        server.gates.await_entry(gate)
        reset(line)
    server.gates.open(gate)


@pytest.mark.slow
def test_what_was_not_asked_for_again_in_time_is_no_others(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated", before=HASTY) as server:
        server.create("s", index=0)
        lose(server, "g")
        until(lambda: "missed" in names(server))
        assert output(server.call("s", "hold", gate="g")) == "Through g."
        assert mark(server) == "Marked 2."  # It was in time.
        lose(server, "g")
        assert mark(server) == "Marked 4."
        time.sleep(2.2)
        assert output(server.call("s", "hold", gate="g")) == "Through g."
        assert mark(server) == "Marked 6."
        server.again()
        assert output(server.call("s", "hold", gate="g")) == "Through g."
        assert mark(server) == "Marked 8."


@pytest.mark.slow
def test_after_a_restart_there_is_as_much_time_again(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated", before=HASTY) as server:
        server.create("s", index=0)
        with sent(server, "hold", gate="g"):
            server.gates.await_entry("g")
            server.kill()
        server.gates.open("g")
        server.start()
        assert mark(server) == "Marked 2."
        time.sleep(2.2)
        assert output(server.call("s", "hold", gate="g")) == "Through g."
        assert mark(server) == "Marked 4."
        server.again()
        assert output(server.call("s", "hold", gate="g")) == "Through g."
        assert mark(server) == "Marked 6."


def test_calls_that_nobody_asks_for_again_are_kept_in_bounds() -> None:
    async def play() -> None:
        host = Host([counter])
        live = await host.create(Wanted(environment="counter", split="train", task=0), ANYONE)
        await live.ready()
        for number in range(3 * unheard.MOST):
            live.asked[f"under way {number}"] = (b"", lambda: False, unheard.FOREVER)
            unheard.left(live, f"key {number}", b"%d" % number)
        kept = [number for number in range(3 * unheard.MOST) if f"key {number}" in live.asked]
        assert kept == list(range(2 * unheard.MOST, 3 * unheard.MOST))
        assert unheard.same(live, b"%d" % kept[0], lambda _: False) == f"key {kept[0]}"
        assert unheard.same(live, b"0", lambda _: False) is None
        assert len(live.asked) == 4 * unheard.MOST  # Those that run are not touched.
        host.crew.close()

    asyncio.run(play())


def test_calls_are_asked_for_without_their_keys_while_there_is_time() -> None:
    async def play() -> None:
        host = Host([counter])
        live = await host.create(Wanted(environment="counter", split="train", task=0), ANYONE)
        await live.ready()
        live.asked = {"too late": (b"", unheard.gone, time.monotonic() - 1)}
        live.lost = {"too late as well": time.monotonic() - 1, "in time": unheard.deadline()}
        assert unheard.same(live, b"", lambda _: True) == "in time"
        assert (live.asked, live.lost) == ({}, {"in time": None})  # It has come, and is nobody else's.
        assert unheard.same(live, b"", lambda _: True) is None
        host.crew.close()

    asyncio.run(play())


@pytest.mark.slow
def test_an_answer_that_was_read_is_no_others(server: Mortal) -> None:
    for count in (1, 2, 3):
        assert mark(server) == f"Marked {count}."
        server.again()
    assert names(server) == {"acted", "done"}


def test_a_session_whose_creation_was_not_answered_is_created_once(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter", before=DYING) as server:
        server.wish("after Created")
        with pytest.raises(OSError, match=r"reset|closed"):
            server.create("s")
        server.start()
        other = {"split": "train", "index": 1}
        assert server.ask("POST", "/create", "s", body=other)[0] == 400
        server.create("s")
        server.create("s")  # As long as nothing was done in it.
        assert output(server.call("s", "add", by=1)) == "The count is 1."
        assert server.ask("POST", "/create", "s", body={"split": "train", "index": 2})[0] == 400
        server.again()
        assert server.ask("POST", "/create", "s", body={"split": "train", "index": 2})[0] == 400
        assert output(server.call("s", "add", by=1)) == "The count is 2."


@pytest.mark.slow
def test_what_was_confided_with_a_lost_creation_is_confided_again(tmp_path: Path) -> None:
    with mortal(tmp_path, f"{CONFIDING}:env", before=DYING) as server:
        server.wish("after Created")
        with pytest.raises(OSError, match=r"reset|closed"):
            server.create("s", index=0, secrets={"KEY": "value"})
        server.start()
        server.create("s", index=0, secrets={"KEY": "value"})
        assert output(server.call("s", "read", of="KEY")) == named("value")
