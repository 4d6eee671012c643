"""Several processes behind one port are one server: its lists, its numbers, its limits, and OpenEnv's sessions."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.sync.client import connect

from quintain.serve.keys import add
from quintain.serve.shard import Shard
from tests.serve.operation.again import Mortal, mortal
from tests.serve.operation.raw import dial, rest

COUNT = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    with mortal(tmp_path_factory.mktemp("many"), "counter", options=("--workers", str(COUNT))) as many:
        yield many


def metrics(server: Mortal) -> dict[tuple[str, ...], float]:
    """What /metrics says, by name and values of labels."""
    status, _, said = server.ask("GET", "/metrics")
    assert status == 200, said
    families = list(text_string_to_metric_families(said.decode()))
    assert all(family.documentation for family in families)
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


@pytest.mark.slow
def test_lists_and_metrics_are_of_all_and_what_was_counted_outlives_who_counted(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter", "gated", options=("--workers", "3")) as server:
        names = [Shard(number % 3, 3).new_id() for number in range(6)]
        for name in names:
            server.create(name, index=0)
        for name in names[:4]:
            server.call(name, "submit", answer=1)

        def as_it_should_be() -> None:
            for _ in range(6):  # Whoever answers.
                said = json.loads(server.ask("GET", "/v1/episodes")[2])
                assert sorted(one["id"] for one in said["episodes"]) == sorted(names)
                told = metrics(server)
                assert told["quintain_episodes_begun_total", "counter"] == 6
                assert told["quintain_episodes_ended_total", "counter", "valid"] == 4
                assert told["quintain_episodes_ended_total", "counter", "invalid"] == 0
                assert told["quintain_turns_total", "counter"] == 4
                assert told["quintain_scores", "counter"] == 4
                assert told["quintain_episodes_begun_total", "gated"] == 0
                assert sum(value for name, value in told.items() if name[0] == "quintain_episodes") == 6
                assert told["quintain_workers",] == 3

        as_it_should_be()
        for pid in server.workers:
            before = len(server.said.splitlines())
            os.kill(pid, 9)
            while len(server.said.splitlines()) == before:
                time.sleep(0.02)
        as_it_should_be()


def test_limits_are_of_all_together_and_the_dead_take_up_no_room(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter", options=("--workers", "3", "--episodes", "4"), keeps=False) as server:

        def made() -> list[int]:
            names = [Shard(number % 3, 3).new_id() for number in range(6)]
            body = {"split": "train", "index": 0}
            return [server.ask("POST", "/create", name, body=body)[0] for name in names]

        assert made() == [200] * 4 + [429] * 2
        for pid in server.workers:
            os.kill(pid, 9)
        while server.said.count("another one takes its place") < 3:
            time.sleep(0.02)
        assert made() == [200] * 4 + [429] * 2


def test_a_rate_is_of_all_together(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter", options=("--workers", "3", "--rate", "5"), keeps=False) as server:
        names = [Shard(number % 3, 3).new_id() for number in range(18)]
        status = [server.ask("POST", "/ping", name)[0] for name in names]
        assert status[:10] == [404] * 10
        assert 429 in status


# --- OpenEnv


def test_sessions_of_openenv_are_everywhere_and_found_from_everywhere(server: Mortal) -> None:
    def rpc(method: str, **params: Any) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        found: dict[str, Any] = json.loads(server.ask("POST", "/openenv/counter/mcp", body=body)[2])
        return found

    made = [rpc("openenv/session/create", split="train", index=4)["result"]["session_id"] for _ in range(24)]
    assert len({Shard(0, COUNT).of(name) for name in made}) == COUNT
    with connect(f"ws://127.0.0.1:{server.port}/openenv/counter/mcp") as line:
        for name in made[:8]:
            for number in range(1, 5):
                said = rpc("tools/call", name="add", arguments={"by": 1}, session_id=name)
                assert f"The count is {2 * number - 1}." in json.dumps(said), said
                call = {"name": "add", "arguments": {}, "session_id": name}
                line.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}))
                assert f"The count is {2 * number}." in str(line.recv())
            assert server.told(f"{name}-1")["turns"] == 8
    for name in made:
        with connect(f"ws://127.0.0.1:{server.port}/openenv/counter/ws?session_id={name}") as line:
            line.send(json.dumps({"type": "state"}))
            assert json.loads(line.recv())["data"]["episode_id"] == f"{name}-1"
        assert rpc("openenv/session/close", session_id=name)["result"]["closed"]
    assert "Unknown session_id" in json.dumps(rpc("tools/list", session_id=made[0]))


def test_episodes_of_openenv_are_found_by_their_names_from_everywhere(server: Mortal) -> None:
    def post(path: str, **body: Any) -> tuple[int, dict[str, Any]]:
        status, _, said = server.ask("POST", f"/openenv/counter/{path}", body=body)
        return status, json.loads(said)

    add = {"type": "call_tool", "tool_name": "add", "arguments": {}}
    for number in range(8):
        label = f"label {number}"
        status, said = post("reset", split="train", index=4, episode_id=label)
        assert status == 200
        session = said["metadata"]["dev.quintain/session"]
        for count in range(1, 4):
            status, said = post("step", action=add, episode_id=label)
            assert (status, f"The count is {count}." in json.dumps(said)) == (200, True), said
        assert [post("reset", split="train", index=4, episode_id=label)[0] for _ in range(4)] == [409] * 4
        # A session may take another name, wherever that would fall.
        other = f"other {number}"
        assert post("reset", split="train", index=4, episode_id=other, session_id=session)[0] == 200
        assert [post("step", action=add, episode_id=other)[0] for _ in range(4)] == [200] * 4
        assert [post("step", action=add, episode_id=label)[0] for _ in range(2)] == [404] * 2
        assert [post("reset", split="train", index=4, episode_id=other)[0] for _ in range(4)] == [409] * 4


# --- keys


def test_nobody_but_a_process_of_the_server_may_say_who_asks(tmp_path: Path) -> None:
    keys = tmp_path / "keys.jsonl"
    rita, sam = add(keys, "rita", "agent"), add(keys, "sam", "agent")
    options = ("--workers", "2", "--keys", str(keys))
    with mortal(tmp_path, "counter", options=options, keeps=False) as server:
        names = [Shard(number, 2).new_id() for number in range(2)]
        for name in names:
            made = server.ask("POST", "/create", name, body={"split": "train", "index": 4}, headers={"x-api-key": rita})
            assert made[0] == 200
        said = "quintain-caller: rita admin\r\n"
        for key, status in ((rita, b"200"), (sam, b"404"), ("", b"401")):
            asked = "".join(
                f"GET /prompt HTTP/1.1\r\nhost: localhost\r\nx-session-id: {name}\r\nx-api-key: {key}\r\n{said}\r\n"
                for name in names
            )
            with dial(server.port) as line:
                line.sendall(f"{asked}GET / HTTP/1.0\r\n\r\n".encode())
                assert rest(line).count(b"HTTP/1.1 " + status) >= 2
