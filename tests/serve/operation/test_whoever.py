"""It is all the same which of several processes is asked: for a next task, for a list, or by two names at once."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.harness import Model
from quintain.models import Scripted
from quintain.serve.shard import Shard
from quintain.trace import Message, Reply, ToolCall
from tests.serve.control.conftest import TALK
from tests.serve.operation.again import Mortal, mortal

COUNT = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    folder, options = tmp_path_factory.mktemp("many"), ("--workers", str(COUNT))
    with mortal(folder, "counter", f"{TALK}:shift", options=options) as many:
        yield many


class Taker:
    """Takes as many coins as the customer has."""

    name = "taker"

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        call = ToolCall("c", "take", json.dumps({"coins": int(task.id[-1])}))
        return Scripted([Reply(Message("assistant", calls=(call,))), Reply(Message("assistant", "done"))])


def test_a_day_goes_on_whoever_is_asked_for_its_next_task(server: Mortal) -> None:
    async def play() -> list[qn.Trace]:
        async with qn.connect(f"http://127.0.0.1:{server.port}") as far:
            shift = await far.environment("shift")
            tasks = await shift.fetch("test")
            groups = qn.rollouts(shift, Taker(), tasks, group=4, split="test", ordered=True)
            return [trace async for group in groups for trace in group.traces]

    traces = asyncio.run(play())
    assert [trace.failure for trace in traces] == [None] * 12
    assert [trace.turns[0].steps[0].observation for trace in traces[-4:]] == ["6 in the till"] * 4


def test_the_next_task_of_a_day_is_one_under_its_key_whoever_has_died(tmp_path: Path) -> None:
    with mortal(tmp_path, f"{TALK}:shift", options=("--workers", "2")) as server:

        def post(what: str, body: dict[str, Any], key: str = "") -> tuple[int, dict[str, Any]]:
            headers = {"idempotency-key": key} if key else {}
            status, _, said = server.ask("POST", f"/v1/episodes{what}", body=body, headers=headers)
            return status, json.loads(said)

        status, first = post("", {"task": "customer-1"})
        assert status == 201
        key = Shard(1 - Shard(0, 2).of(first["id"]), 2).new_id()
        following = {"task": "customer-2", "after": first["id"]}
        assert post("", following, key) == (409, post("", following)[1])
        assert post(f"/{first['id']}/calls", {"name": "take", "arguments": {"coins": 1}})[0] == 200
        assert post(f"/{first['id']}/terminate", {})[0] == 200
        made = [post("", following, key) for _ in range(3)]
        assert [status for status, _ in made] == [201] * 3
        name = made[0][1]["id"]
        server.again()
        made += [post("", following, key) for _ in range(3)]
        assert {told["id"] for _, told in made} == {name}
        assert post("", {**following, "seed": 1}, key)[0] == 409
        said = post(f"/{name}/calls", {"name": "take", "arguments": {"coins": 2}})[1]
        assert said["observation"] == "3 in the till"
        assert json.loads(server.ask("GET", "/v1/episodes")[2])["count"] == 2


def test_a_list_is_of_all_whoever_is_asked_for_a_page(server: Mortal) -> None:
    def page(offset: int, limit: int) -> tuple[int, list[str]]:
        told = json.loads(server.ask("GET", f"/v1/episodes?offset={offset}&limit={limit}")[2])
        return told["count"], [one["id"] for one in told["episodes"]]

    names = {Shard(number % COUNT, COUNT).new_id() for number in range(7)}
    for name in names:
        server.create(name, index=0)
    count, whole = page(0, 1000)
    assert (len(whole), len(set(whole))) == (count, count)
    assert names <= set(whole)
    for limit in (1, 3, count - 1):
        assert [one for offset in range(0, count, limit) for one in page(offset, limit)[1]] == whole
    assert page(count, 5) == (count, [])


def test_of_two_headers_the_first_counts_for_all(server: Mortal) -> None:
    names = [Shard(number, COUNT).new_id() for number in range(COUNT)]
    for place, name in enumerate(names):
        server.create(name, index=place)
    for name in names:
        for other in names:
            line = http.client.HTTPConnection("127.0.0.1", server.port)
            line.putrequest("GET", "/prompt")
            for one in (name, other):
                line.putheader("X-Session-ID", one)
            line.endheaders()
            assert f"Count to {names.index(name) + 1}".encode() in line.getresponse().read()
            line.close()
