"""Limits: how many sessions, how long an idle one lives, and a client that never reads."""

from __future__ import annotations

import contextlib
import json
import socket as sockets
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="pip install 'quintain[serve]'")
pytest.importorskip("websockets", reason="pip install 'quintain[serve]'")

import httpx
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

from quintain.serve.episodes.host import Host
from quintain.serve.errors import Denied
from quintain.serve.http.app import build
from quintain.serve.http.asgi import HttpRequest
from quintain.serve.http.auth import NoAuth
from quintain.serve.http.keys import ANYONE, Caller
from quintain.serve.http.limits import Limits
from quintain.serve.openenv import socket
from tests.audit.subjects.serving import serving
from tests.serve.environments import Gates, counter, gated
from tests.serve.openenv.frames import HANDSHAKE, opened
from tests.serve.ors.wire import vanish
from tests.serve.serving import serve, until


@contextlib.contextmanager
def limited(**limits: Any) -> Generator[tuple[str, Host]]:
    host = Host([counter], limits=Limits(**limits))
    with serving(build(host, NoAuth())) as url:
        yield url, host
    host.executor.close()


def test_more_sockets_than_allowed_are_refused_with_their_number() -> None:
    with limited(episodes=2) as (url, host), opened(url, "counter") as one:
        one.ask("reset")
        with opened(url, "counter") as two:
            two.ask("reset")
            with opened(url, "counter") as three:
                refusal = three.receive()["data"]
                assert (refusal["code"], refusal["active_sessions"], refusal["max_sessions"]) == (
                    "CAPACITY_REACHED",
                    2,
                    2,
                )
                with pytest.raises(ConnectionClosed):
                    three.receive()
            one.ask("reset")  # Whoever is in may go on.
        until(lambda: host.open == 1)
        with opened(url, "counter") as three:
            three.ask("reset")


def test_an_episode_that_another_protocol_holds_counts() -> None:
    with limited(episodes_per_key=1) as (url, _), httpx.Client(base_url=url) as http, opened(url, "counter") as wire:
        mine = {"X-Session-ID": "mine"}
        assert http.post("/create", json={"split": "train", "index": 0}, headers=mine).status_code == 200
        assert wire.refused("reset")["code"] == "CAPACITY_REACHED"
        with opened(url, "counter") as second:
            assert second.receive()["data"]["code"] == "CAPACITY_REACHED"
        http.post("/delete", headers=mine)
        wire.ask("reset")


def test_episodes_end_with_their_sockets() -> None:
    with limited() as (url, host):
        with opened(url, "counter") as wire:
            for _ in range(3):
                wire.ask("reset")
            assert host.open == 1
        until(lambda: host.open == 0)


@pytest.mark.slow
def test_episodes_end_when_a_client_is_gone_without_a_word() -> None:
    with limited() as (url, host), sockets.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as gone:
        gone.sendall(HANDSHAKE)
        assert gone.recv(1000).startswith(b"HTTP/1.1 101")
        gone.sendall(Frame(Opcode.TEXT, b'{"type": "reset"}').serialize(mask=True))
        assert b"observation" in gone.recv(65_536)
        assert host.open == 1
        vanish(gone)
        until(lambda: host.open == 0)


def test_an_episode_does_not_expire_while_its_socket_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "WATCH_S", 0.01)
    with limited(idle_s=100) as (url, host), opened(url, "counter") as wire:
        wire.ask("reset")
        (live,) = host.lives(ANYONE)
        live.touched -= 1000
        until(lambda: live.touched > time.monotonic() - 100)
        assert wire.read("peek") == "0"


def test_requests_to_a_session_keep_its_episode_alive() -> None:
    """Over HTTP, too, where no socket says that somebody is there."""
    with limited(idle_s=100) as (url, host), httpx.Client(base_url=f"{url}/openenv/counter") as http:
        session = http.post("/reset", json={"episode_id": "mine"}).headers["x-session-id"]
        (live,) = host.lives(ANYONE)
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"session_id": session}}
        tools = {"action": {"type": "list_tools"}, "session_id": session}
        asking: list[Callable[[], httpx.Response]] = [
            lambda: http.get("/state", params={"session_id": session}),
            lambda: http.get("/state", params={"episode_id": "mine"}),
            lambda: http.post("/mcp", json=rpc),
            lambda: http.post("/step", json=tools),
        ]
        for ask in asking:
            live.touched -= 1000
            assert ask().status_code == 200
            assert live.touched > time.monotonic() - 100


@pytest.mark.slow
def test_an_episode_in_use_over_http_does_not_expire(tmp_path: Path) -> None:
    before = "import quintain.serve.http.server as server\nserver.REAP_S = 0.1"
    with (
        serve("counter", folder=tmp_path, before=before, options=("--idle", "2")) as served,
        httpx.Client(base_url=f"{served.url}/openenv/counter") as http,
    ):
        mine = {"X-Session-ID": http.post("/reset", json={}).headers["x-session-id"]}
        for _ in range(30):
            assert http.get("/state", headers=mine).json()["episode_id"] is not None
            time.sleep(0.1)
        answer = http.post("/step", json={"action": {"tool_name": "add"}}, headers=mine)
        assert answer.json()["observation"]["result"] == "The count is 1."


def test_a_session_is_not_forgotten_over_a_long_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_TEST_FOLDER", str(tmp_path))
    host = Host([gated], limits=Limits(idle_s=1.0))
    with serving(build(host, NoAuth())) as url, httpx.Client(base_url=f"{url}/openenv/gated", timeout=30) as http:
        http.post("/reset", json={"episode_id": "long"})
        step = {"action": {"tool_name": "hold", "arguments": {"gate": "g"}}, "episode_id": "long"}
        held = threading.Thread(target=http.post, args=("/step",), kwargs={"json": step})
        held.start()
        Gates().await_entry("g")
        http.post("/reset", json={"episode_id": "unused"})
        until(lambda: host.room.open("sessions") == 1)
        found = {name: http.get("/state", params={"episode_id": name}).status_code for name in ("long", "unused")}
        assert found == {"long": 200, "unused": 404}
        Gates().open("g")
        held.join()
    host.executor.close()


class Names:
    """Lets in whoever says a name, each with a key of its own."""

    def admit(self, request: HttpRequest) -> Caller:
        name = request.header(b"x-api-key")
        if not name:
            raise Denied("who are you?")
        return Caller(name, "trainer")

    def look(self) -> None:
        pass


def test_episodes_of_one_key_are_unknown_to_another() -> None:
    host = Host([counter])
    with serving(build(host, Names())) as url, httpx.Client(base_url=f"{url}/openenv/counter") as http:
        ann, bob = {"X-API-Key": "ann"}, {"X-API-Key": "bob"}
        begun = http.post("/reset", json={"split": "train", "index": 0, "episode_id": "ours"}, headers=ann)
        session = begun.headers["x-session-id"]
        step = {"action": {"tool_name": "add"}}
        for named in ({"session_id": session}, {"episode_id": "ours"}, {"episode_id": f"{session}-1"}):
            assert http.post("/step", json={**step, **named}, headers=bob).status_code == 404
            assert http.get("/state", params=named, headers=bob).status_code == 404
        call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "add", "session_id": session}}
        assert http.post("/mcp", json=call, headers=bob).json()["error"]["code"] == -32602
        assert http.post("/reset", json={"session_id": session}, headers=bob).status_code == 404
        # The same name is another episode in other hands.
        assert http.post("/reset", json={"episode_id": "ours"}, headers=bob).status_code == 200
        assert (
            http.post("/step", json={**step, "episode_id": "ours"}, headers=ann)
            .json()["metadata"]["dev.quintain/episode"]
            .startswith(session)
        )
        with connect(
            f"{url.replace('http', 'ws')}/openenv/counter/ws?session_id={session}", additional_headers=bob
        ) as ws:
            assert json.loads(ws.recv())["data"]["code"] == "SESSION_ERROR"
        with pytest.raises(InvalidStatus) as refused, connect(f"{url.replace('http', 'ws')}/openenv/counter/ws"):
            pass
        assert refused.value.response.status_code == 401
    host.executor.close()


def test_a_session_goes_on_in_a_server_that_finds_its_episode_again() -> None:
    host = Host([counter])
    with serving(build(host, NoAuth())) as url, httpx.Client(base_url=f"{url}/openenv/counter") as http:
        session = http.post("/reset", json={"split": "train", "index": 0}).headers["x-session-id"]
        step = {"action": {"tool_name": "add"}}
        http.post("/step", json={**step, "session_id": session})
    # What protocols know of sessions is gone; the episodes are there.
    with serving(build(host, NoAuth())) as url, httpx.Client(base_url=f"{url}/openenv/counter") as http:
        assert http.get("/state", params={"session_id": session[:-1]}).status_code == 404
        assert http.get("/state", params={"session_id": session}).json()["step_count"] == 1
        answer = http.post("/step", json={**step, "episode_id": f"{session}-1"}).json()
        assert answer["observation"]["result"] == "The count is 2."
        begun = http.post("/reset", json={"session_id": session}).json()
        assert begun["metadata"]["dev.quintain/episode"] == f"{session}-2"
        assert host.open == 1
    host.executor.close()


def test_sessions_that_nobody_uses_are_forgotten_though_nobody_else_comes() -> None:
    with limited(idle_s=0.2) as (url, host), httpx.Client(base_url=f"{url}/openenv/counter") as http:
        with opened(url, "counter") as wire:
            for _ in range(2):
                assert http.post("/reset", json={"split": "train", "index": 0}).status_code == 200
            assert host.room.open("sessions") == 3
            until(lambda: host.room.open("sessions") == 1)
            wire.ask("reset")
        until(lambda: host.room.open("sessions") == 0)
        assert http.post("/reset", json={"split": "train", "index": 0}).status_code == 200
        until(lambda: host.room.open("sessions") == 0)


def test_a_server_ends_in_order_while_sockets_are_open(tmp_path: Path) -> None:
    with contextlib.ExitStack() as clients:
        with serve("counter", folder=tmp_path) as served:  # Which asserts how it ends.
            wires = [clients.enter_context(opened(served.url, "counter")) for _ in range(3)]
            for wire in wires[:2]:
                wire.ask("reset")
        for wire in wires:
            with pytest.raises(ConnectionClosed) as closed:
                wire.receive()
            assert closed.value.rcvd
            assert closed.value.rcvd.code == 1012
