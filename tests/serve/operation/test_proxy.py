"""Two servers behind nginx, with the file of docs/examples."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

import quintain as qn
from quintain.harness import Model
from quintain.models import Scripted
from quintain.trace import Message, Reply, ToolCall
from tests.serve.control.conftest import TALK
from tests.serve.openenv.frames import opened
from tests.serve.operation.again import Mortal, mortal
from tests.serve.operation.raw import dial, result
from tests.serve.serving import SECONDS

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
if NGINX is None:
    pytest.skip("nginx is not installed: apt-get install nginx-light", allow_module_level=True)

EXAMPLE = (Path(__file__).parents[3] / "docs" / "examples" / "nginx.conf").read_text()
WHOLE = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/quintain.conf;
}}
"""


NAMES = 40
"""So many names reach both servers. Each run hashes by other ports; six names all reached one server in 4 % of runs."""


class Proxied(NamedTuple):
    """Two servers, and the address of the proxy."""

    servers: list[Mortal]
    url: str

    def sessions(self) -> list[set[str]]:
        """Returns the ids of the episodes of each server."""
        lists = [json.loads(server.ask("GET", "/v1/episodes?limit=1000")[2]) for server in self.servers]
        return [{one["id"] for one in each["episodes"]} for each in lists]


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    folder = tmp_path_factory.mktemp("proxy")
    with (
        mortal(tmp_path_factory.mktemp("one"), "counter", f"{TALK}:shift", options=("--shard", "1")) as one,
        mortal(tmp_path_factory.mktemp("two"), "counter", f"{TALK}:shift", options=("--shard", "2")) as two,
    ):
        port = free()
        text = EXAMPLE
        for before, now in ((8081, one.port), (8082, two.port), (8080, port)):
            assert str(before) in text
            text = text.replace(str(before), str(now))
        (folder / "quintain.conf").write_text(text)
        (folder / "nginx.conf").write_text(WHOLE.format(folder=folder))
        process = subprocess.Popen([str(NGINX), "-p", str(folder), "-c", "nginx.conf", "-e", "error.log"])
        try:
            listening(port)
            yield Proxied([one, two], f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(SECONDS)


def free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listening(port: int) -> None:
    limit = time.monotonic() + SECONDS
    while True:
        try:
            dial(port).close()
        except ConnectionRefusedError:
            assert time.monotonic() < limit, "nginx does not listen"
            time.sleep(0.02)
        else:
            return


def test_sessions_of_ors_are_spread_and_stay_where_they_are(proxied: Proxied) -> None:
    with httpx.Client(base_url=proxied.url, timeout=SECONDS) as http:
        given = [http.post("/create_session").text.split("data: ")[1].split()[0] for _ in range(NAMES)]
        chosen = [f"run-{number}" for number in range(NAMES)]
        for number, name in enumerate((*given, *chosen)):
            mine = {"X-Session-ID": name}
            assert http.post("/create", json={"split": "train", "index": 0}, headers=mine).status_code == 200
            assert http.get("/counter/prompt", headers=mine).status_code == 200
            for count in range(1, 4):
                said = http.post("/counter/call", json={"name": "add", "input": {}}, headers=mine).text
                text = result(said.encode())["output"]["blocks"][0]["text"]
                assert text == f"The count is {count}.", (number, name)
    one, two = proxied.sessions()
    assert one | two >= {*given, *chosen}
    assert not one & two
    assert {name[:2] for name in one & {*given}} == {"1-"}
    assert {name[:2] for name in two & {*given}} == {"2-"}
    assert one & {*chosen}
    assert two & {*chosen}


def test_episodes_of_openenv_stay_where_they_are(proxied: Proxied) -> None:
    step = {"action": {"type": "call_tool", "tool_name": "add", "arguments": {}}}
    with httpx.Client(base_url=f"{proxied.url}/openenv/counter", timeout=SECONDS) as http:
        headers = [{"X-Session-ID": http.post("/reset", json={}).headers["x-session-id"]} for _ in range(3)]
        for count in range(1, 4):
            for mine in headers:
                answer = http.post("/step", json=step, headers=mine).json()
                assert answer["observation"]["result"] == f"The count is {count}."
        session = headers[0]["X-Session-ID"]  # A body says so, too.
        answer = http.post("/step", json={**step, "session_id": session}).json()
        assert answer["observation"]["result"] == "The count is 4."
    with contextlib.ExitStack() as closing:
        sockets = [closing.enter_context(opened(proxied.url, "counter")) for _ in range(NAMES)]
        for wire in sockets:
            wire.ask("reset")
        for count in range(1, 4):
            assert [wire.read("add") for wire in sockets] == [f"The count is {count}."] * len(sockets)
        held = proxied.sessions()
    assert all(any(name.startswith(f"{place}-") for name in names) for place, names in enumerate(held, 1))


def test_addresses_of_mcp_and_of_the_control_plane_lead_to_their_server(proxied: Proxied) -> None:
    with httpx.Client(timeout=SECONDS) as http:
        begun = [http.post(f"{proxied.url}/v1/episodes", json={}).json() for _ in range(NAMES)]
        assert {one["id"][:2] for one in begun} == {"1-", "2-"}
        for one in begun:
            assert one["mcp_url"].startswith(f"{proxied.url}/e/{one['id'][:2]}")
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {}}}
            more = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
            assert "The count is 1." in http.post(one["mcp_url"], json=call, headers=more).text
            assert http.get(f"{proxied.url}/v1/episodes/{one['id']}").json()["turns"] == 1


def test_a_repeated_request_reaches_the_server_that_has_done_it(proxied: Proxied) -> None:
    with httpx.Client(base_url=proxied.url, timeout=SECONDS) as http:
        for number in range(6):
            key = {"Idempotency-Key": f"key-{number}"}
            assert len({http.post("/v1/episodes", json={}, headers=key).json()["id"] for _ in range(3)}) == 1


class Taker:
    """An agent that takes as many coins as the customer has."""

    name = "taker"

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        call = ToolCall("c", "take", json.dumps({"coins": int(task.id[-1])}))
        return Scripted([Reply(Message("assistant", calls=(call,))), Reply(Message("assistant", "done"))])


def test_a_chain_of_tasks_goes_on_where_it_began(proxied: Proxied) -> None:
    async def play() -> list[qn.Trace]:
        async with qn.connect(proxied.url) as far:
            shift = await far.environment("shift")
            tasks = await shift.fetch("test")
            groups = qn.rollouts(shift, Taker(), tasks, group=4, split="test", ordered=True)
            return [trace async for group in groups for trace in group.traces]

    traces = asyncio.run(play())
    assert [trace.failure for trace in traces] == [None] * 12
    assert [trace.turns[0].steps[0].observation for trace in traces[-4:]] == ["6 in the till"] * 4


def test_a_server_that_restarts_has_its_sessions_again(proxied: Proxied) -> None:
    with httpx.Client(base_url=proxied.url, timeout=SECONDS) as http:
        names = [f"again-{number}" for number in range(NAMES)]
        for name in names:
            created = http.post("/create", json={"split": "train", "index": 0}, headers={"X-Session-ID": name})
            assert created.status_code == 200, created.text
        lost, others = ({*names} & ids for ids in proxied.sessions())
        assert lost
        assert others
        server = proxied.servers[0]
        server.kill()
        codes = {name: http.post("/ping", headers={"X-Session-ID": name}).status_code for name in names}
        # No session begins anew at the other server.
        assert codes == dict.fromkeys(lost, 502) | dict.fromkeys(others, 200)
        server.start()
        codes = {name: http.post("/ping", headers={"X-Session-ID": name}).status_code for name in names}
        assert codes == dict.fromkeys(names, 200)
