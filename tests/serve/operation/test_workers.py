"""Several processes behind one port: each has its own episodes, and requests find them."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from quintain.serve.shard import Shard
from tests.serve.operation.again import Mortal, mortal
from tests.serve.operation.raw import dial, rest, result
from tests.serve.serving import ENVIRONMENTS, environment, until

COUNT = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    with mortal(tmp_path_factory.mktemp("many"), "counter", "gated", options=("--workers", str(COUNT))) as many:
        yield many


def count_of(document: dict[str, Any]) -> str:
    return str(document["output"]["blocks"][0]["text"])


# --- names


def test_names_lead_to_who_gave_them() -> None:
    for number in range(COUNT):
        shard = Shard(number, COUNT)
        name = shard.new_id()
        token = shard.new_token(name)
        for path in (f"/e/{token}/mcp", f"/m/{token}/v1", f"/v1/episodes/{name}", f"/v1/episodes/{name}/calls"):
            assert Shard(0, COUNT).owner(path, b"", []) == number, path
        assert Shard(0, COUNT).owner("/call", b"", [(b"x-session-id", name.encode())]) == number


@pytest.mark.parametrize(
    "path", ["/", "*", "/health", "/v1/environments", "/v1/episodes", "/list_environments", "//", "/v1"]
)
def test_what_is_of_no_episode_is_anybodys(path: str) -> None:
    assert Shard(1, COUNT).owner(path, b"", []) is None


@pytest.mark.parametrize("path", ["/e/", "/e/x", "/e/\xff\ufffd", "/m/nothing-hex/mcp", "/e"])
def test_what_is_no_token_is_answered_at_once(path: str) -> None:
    assert Shard(1, COUNT).owner(path, b"", []) in (1, None)


# --- requests


def test_every_session_is_found_on_one_connection_and_on_many(server: Mortal) -> None:
    names = [f"a{number}" for number in range(12)]
    for name in names:
        server.create(name, index=4)
        assert count_of(server.call(name, "add", by=1)) == "The count is 1."
    line = http.client.HTTPConnection("127.0.0.1", server.port)
    for turn in range(2, 5):
        for name in names:
            line.request("POST", "/call", json.dumps({"name": "add", "input": {}}), {"x-session-id": name})
            assert count_of(result(line.getresponse().read())) == f"The count is {turn}."
            line.request("GET", "/list_environments")
            assert b"counter" in line.getresponse().read()
    line.close()


def test_long_bodies_and_slow_heads_are_handed_over_whole(server: Mortal) -> None:
    for number in range(6):
        name = f"long{number}"
        server.create(name, index=4)
        text = "é" * 300_000
        assert server.call(name, "echo", text=text)["output"]["blocks"][0]["text"] == text
        body = json.dumps({"name": "echo", "input": {"text": "slow"}})
        head = f"POST /call HTTP/1.1\r\nhost: localhost\r\nx-session-id: {name}\r\ncontent-length: {len(body)}"
        whole = f"{head}\r\n\r\n{body}"
        with dial(server.port) as line:
            for start in range(0, len(whole), 20):
                line.sendall(whole[start : start + 20].encode())
                time.sleep(0.001)
            said = b""
            while b"event: end" not in said or not said.endswith(b"0\r\n\r\n"):
                said += line.recv(65536)
        assert b'"text":"slow"' in said


def answers(stream: bytes) -> list[bytes]:
    """The answers of one connection, which has the length of each in its head, or sends it in one chunk."""
    found = []
    while stream:
        head, _, rest = stream.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        if b"content-length" in head:
            length = int(head.lower().partition(b"content-length: ")[2].split()[0])
            body, stream = rest[:length], rest[length:]
        else:
            body, _, stream = rest.partition(b"\r\n0\r\n\r\n")
        found.append(body)
    return found


def test_what_comes_behind_a_request_for_another_is_answered_in_its_place(server: Mortal) -> None:
    names = [Shard(number % COUNT, COUNT).new_id() for number in range(7)]
    asked = b""
    for name in names:
        server.create(name, index=4)
        head = f"\r\nhost: localhost\r\nx-session-id: {name}\r\n"
        body = json.dumps({"name": "echo", "input": {"text": name * 20}})
        asked += f"GET /prompt HTTP/1.1{head}\r\n".encode()
        asked += f"POST /call HTTP/1.1{head}content-length: {len(body)}\r\n\r\n{body}".encode()
        asked += f"POST /call HTTP/1.1{head}transfer-encoding: chunked\r\n\r\n".encode()
        asked += f"{len(body):x}\r\n{body}\r\n0\r\n\r\n".encode()
    asked += b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    with dial(server.port) as line:
        threading.Thread(target=line.sendall, args=(asked,)).start()
        said = answers(rest(line))
    assert len(said) == 3 * len(names) + 1
    for number, name in enumerate(names):
        prompt, *calls = said[3 * number : 3 * number + 3]
        assert b"Count to 5" in prompt
        assert [name.encode() * 20 in call for call in calls] == [True, True]
        assert server.told(name)["turns"] == 2
    assert b"ok" in said[-1]


def sockets(server: Mortal) -> int:
    """How many all of its processes hold."""
    return sum(
        str(one.readlink()).startswith("socket:") for pid in server.workers for one in Path(f"/proc/{pid}/fd").iterdir()
    )


def test_who_leaves_a_request_that_was_passed_on_may_ask_again(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated", options=("--workers", "2")) as server:
        names = [Shard(number, 2).new_id() for number in range(2)]
        asked = ""
        for name, gate in zip(names, "ab", strict=True):
            server.create(name, index=0)
            body = json.dumps({"name": "hold", "input": {"gate": gate}})
            asked += f"POST /call HTTP/1.1\r\nhost: localhost\r\nx-session-id: {name}\r\n"
            asked += f"content-length: {len(body)}\r\n\r\n{body}"
        before = sockets(server)
        server.gates.open("a")
        with dial(server.port) as line:
            line.sendall(asked.encode())
            server.gates.await_entry("b")
        while sockets(server) > before:
            time.sleep(0.01)
        server.gates.open("b")
        assert count_of(server.call(names[1], "hold", gate="b")) == "Through b."
        assert server.gates.entered("b") == 1


def test_websockets_and_control_planes_find_their_process(server: Mortal) -> None:
    from websockets.sync.client import connect

    for _ in range(6):
        with connect(f"ws://127.0.0.1:{server.port}/openenv/counter/ws") as line:
            line.send(json.dumps({"type": "reset", "data": {}}))
            assert json.loads(line.recv())["type"] == "observation"
        status, _, said = server.ask("POST", "/v1/episodes", body={"environment": "counter"})
        assert status == 201
        name = json.loads(said)["id"]
        for form in ("/v1/episodes", "http://127.0.0.1/v1/episodes", "/v1/%65pisodes"):
            assert {server.ask("GET", f"{form}/{name}")[0] for _ in range(4)} == {200}, form
        assert server.ask("DELETE", f"/v1/episodes/{name}")[0] == 204


def test_a_request_that_is_sent_again_is_one_whoever_gets_it(server: Mortal) -> None:
    key = {"Idempotency-Key": "one-and-the-same"}
    made = {
        json.loads(server.ask("POST", "/v1/episodes", body={"environment": "counter"}, headers=key)[2])["id"]
        for _ in range(6)
    }
    assert len(made) == 1
    assert server.told(made.pop())["status"] == "open"


def test_secret_addresses_lead_to_their_process(server: Mortal) -> None:
    from mcp import Client

    async def play(url: str) -> str:
        async with Client(url) as client:
            return str((await client.call_tool("add", {"by": 2})).content[0].text)  # type: ignore[union-attr]

    for _ in range(4):
        said = server.ask("POST", "/v1/episodes", body={"environment": "counter", "split": "train", "task": "train-5"})[
            2
        ]
        url = next(value for value in json.loads(said).values() if isinstance(value, str) and "/e/" in value)
        assert asyncio.run(play(url)) == "The count is 2."


# --- deaths


def test_who_dies_is_replaced_and_his_episodes_go_on(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter", options=("--workers", "2")) as server:
        names = [f"s{number}" for number in range(6)]
        for name in names:
            server.create(name, index=4)
            server.call(name, "add", by=2)
        before = server.workers
        os.kill(before[0], 9)
        limit = time.monotonic() + 30
        while len(set(server.workers) - {before[0]}) < 2:
            assert time.monotonic() < limit
            time.sleep(0.02)
        for name in names:
            assert count_of(server.call(name, "add", by=1)) == "The count is 3."
        assert "another one takes its place" in server.said
        server.again()  # All of them die with the one that started them.
        for name in names:
            assert count_of(server.call(name, "add", by=1)) == "The count is 4."
        assert server.process
        server.process.terminate()
        assert server.process.wait(30) == 0
        server.kill()
        with pytest.raises(AssertionError, match="--workers 2"):
            other = Mortal(tmp_path, "counter")
            try:
                other.start()
            finally:
                other.kill()


def test_what_one_of_them_cannot_use_is_said_and_ends_all(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "1.journal").write_bytes(b"something else entirely")
    options = ("--port", "0", "--workers", "3", "--journal", str(tmp_path / "journal"))
    command = [sys.executable, "-m", "quintain", "serve", f"{ENVIRONMENTS}:counter", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(tmp_path), timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: the journal in")
    assert "1.journal is no journal of this version" in line


def test_the_first_process_of_a_container_outlives_what_it_inherits(tmp_path: Path) -> None:
    before = "import subprocess\ninherited = subprocess.Popen(['sleep', '1'])"
    with mortal(tmp_path, "counter", options=("--workers", "2"), before=before) as server:
        assert server.process
        sleeping = psutil.Process(server.process.pid).children()
        until(lambda: not any(one.is_running() and one.name() == "sleep" for one in sleeping))
        server.create("s", index=0)
        server.process.terminate()
        assert server.process.wait(30) == 0


@pytest.mark.slow
def test_who_dies_in_a_call_is_replaced_and_the_others_do_not_notice(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated", options=("--workers", "2")) as server:
        names = [Shard(number, 2).new_id() for number in range(2)]
        for name in names:
            server.create(name, index=0)
        answers: dict[int, list[str]] = {0: [], 1: []}
        lost: list[Exception] = []

        def hold(number: int) -> None:
            """The call, sent again until it is answered."""
            while not answers[number]:
                try:
                    answers[number].append(count_of(server.call(names[number], "hold", gate=f"g{number}")))
                except (OSError, http.client.HTTPException, KeyError, AssertionError) as error:
                    lost.append(error)
                    time.sleep(0.05)

        callers = [threading.Thread(target=hold, args=(number,)) for number in range(2)]
        for caller in callers:
            caller.start()
        for number in range(2):
            server.gates.await_entry(f"g{number}")
        os.kill(min(server.workers), 9)  # The first one that was started.
        until(lambda: server.gates.entered("g0") == 2)
        for number in range(2):
            server.gates.open(f"g{number}")
        for caller in callers:
            caller.join()
        assert answers == {number: [f"Through g{number}."] for number in range(2)}
        assert lost
        assert server.gates.entered("g1") == 1
        for name in names:
            assert count_of(server.call(name, "mark", label="after")) == "Marked 2."


@pytest.mark.parametrize("told", ["first", "all"])
def test_all_end_in_order_while_a_call_runs(tmp_path: Path, told: str) -> None:
    """All are told by a terminal's Ctrl-C, and by what ends a group of processes."""
    with mortal(tmp_path, "gated", options=("--workers", "2")) as server:
        server.create("s", index=0)
        answers: list[dict[str, Any]] = []
        caller = threading.Thread(target=lambda: answers.append(server.call("s", "hold", gate="g")))
        caller.start()
        server.gates.await_entry("g")
        assert server.process
        for pid in [server.process.pid, *(server.workers if told == "all" else ())]:
            os.kill(pid, signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(0.5)
        server.gates.open("g")
        assert server.process.wait(30) == 0
        caller.join()
        assert count_of(answers[0]) == "Through g."


def test_told_twice_all_end_at_once(tmp_path: Path) -> None:
    with mortal(tmp_path, "gated", options=("--workers", "2")) as server:
        server.create("s", index=0)
        with dial(server.port) as line:
            body = json.dumps({"name": "hold", "input": {"gate": "g"}}).encode()
            head = f"POST /call HTTP/1.1\r\nhost: localhost\r\nx-session-id: s\r\ncontent-length: {len(body)}\r\n\r\n"
            line.sendall(head.encode() + body)
            server.gates.await_entry("g")
            assert server.process
            server.process.terminate()
            until(lambda: "ending: waiting" in server.said)
            server.process.terminate()
            assert server.process.wait(5) == 128 + signal.SIGTERM
