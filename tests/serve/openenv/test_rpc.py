"""JSON-RPC over POST /mcp, over a socket of its own, and within the frames of /ws."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("httpx", reason="pip install 'quintain[http]'")
pytest.importorskip("websockets", reason="pip install 'quintain[serve]'")

import httpx
from websockets.exceptions import ConnectionClosed

from tests.serve.openenv.conftest import client_of
from tests.serve.openenv.frames import opened
from tests.serve.serving import Served

KEY = "dev.quintain/"


class Rpc:
    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.last = 0

    def raw(self, body: Any, **headers: str) -> dict[str, Any]:
        sent: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
        answer = self.client.post("/mcp", headers=headers, **sent)
        assert answer.status_code == 200
        found: dict[str, Any] = answer.json()
        assert found["jsonrpc"] == "2.0"
        return found

    def ask(self, method: str, **params: Any) -> Any:
        self.last += 1
        found = self.raw({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        assert found["id"] == self.last
        return found["result"] if "result" in found else found["error"]["code"]

    def create(self, **params: Any) -> str:
        return str(self.ask("openenv/session/create", **params)["session_id"])

    def call(self, session: str, tool: str, **arguments: Any) -> Any:
        return self.ask("tools/call", session_id=session, name=tool, arguments=arguments)


@pytest.fixture(scope="module")
def rpc(served: Served) -> Iterator[Rpc]:
    with client_of(served, "counter") as client:
        yield Rpc(client)


def test_a_session_is_an_episode(rpc: Rpc) -> None:
    session = rpc.create(split="train", index=1)
    assert rpc.ask("tools/list", session_id=session)["tools"][0]["name"] == "add"
    seen = rpc.call(session, "add", by=2)
    assert (seen["tool_name"], seen["result"], seen["error"]) == ("add", "The count is 2.", None)
    assert (seen["reward"], seen["done"]) == (0.0, False)
    assert rpc.call(session, "fly")["error"]["error_type"] == "tool_not_found"
    last = rpc.call(session, "submit", answer=2)
    assert (last["reward"], last["done"], last["metadata"][f"{KEY}reward"]) == (1.0, True, 1.0)
    assert rpc.call(session, "add") == -32600
    assert rpc.ask("openenv/session/close", session_id=session) == {"session_id": session, "closed": True}
    assert rpc.ask("openenv/session/close", session_id=session) == -32602
    assert rpc.call(session, "add") == -32602


def test_sessions_are_apart(rpc: Rpc) -> None:
    one, two = rpc.create(), rpc.create()
    assert rpc.call(one, "add", by=5)["result"] == "The count is 5."
    assert rpc.call(two, "add", by=1)["result"] == "The count is 1."
    assert rpc.call(one, "add", by=1)["result"] == "The count is 6."


def test_a_session_of_one_environment_is_none_of_another(rpc: Rpc, served: Served) -> None:
    session = rpc.create()
    with client_of(served, "words") as client:
        assert Rpc(client).call(session, "look") == -32602


def test_a_call_without_a_session_is_refused(rpc: Rpc) -> None:
    assert rpc.ask("tools/call", name="add", arguments={}) == -32602
    assert rpc.ask("tools/list")["tools"]


def test_a_request_with_a_key_is_done_once(rpc: Rpc) -> None:
    session = rpc.create()
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"session_id": session, "name": "add"}}
    headers = {"Idempotency-Key": "k"}
    assert rpc.raw(ask, **headers) == rpc.raw(ask, **headers)
    assert rpc.raw(ask, **{"Idempotency-Key": "k" * 256})["error"]["code"] == -32600
    # An id names a request for its answer, not for ever: many clients send all requests with the same one.
    assert [rpc.raw(ask)["result"]["result"] for _ in range(2)] == ["The count is 2.", "The count is 3."]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b'{"jsonrpc": "2.0", "method": "\\ud800"}', -32700),
        (b"[]", -32600),
        (b"3", -32600),
        ({}, -32600),
        ({"jsonrpc": "1.0", "method": "tools/list"}, -32600),
        ({"jsonrpc": "2.0", "method": 3}, -32600),
        ({"jsonrpc": "2.0", "method": "tools/list", "id": {}}, -32600),
        ({"jsonrpc": "2.0", "method": "tools/list", "params": []}, -32600),
        ({"jsonrpc": "2.0", "method": "tools/list", "params": None}, -32600),
        ({"jsonrpc": "2.0", "method": "tools/list", "more": 1}, -32600),
        ({"jsonrpc": "2.0", "method": "initialize"}, -32601),
        ({"jsonrpc": "2.0", "method": "tools/call"}, -32602),
        ({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": ""}}, -32602),
        ({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "add", "arguments": []}}, -32602),
        ({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "add", "more": 1}}, -32602),
        ({"jsonrpc": "2.0", "method": "tools/list", "params": {"session_id": "nobody"}}, -32602),
        ({"jsonrpc": "2.0", "method": "openenv/session/close"}, -32602),
        ({"jsonrpc": "2.0", "method": "openenv/session/create", "params": {"split": "nowhere"}}, -32602),
        ({"jsonrpc": "2.0", "method": "openenv/session/create", "params": {"seed": "x"}}, -32602),
        (b'{"jsonrpc": "2.0", "method": "' + b"x" * (5 << 20), -32600),
    ],
)
def test_malformed_requests_have_their_codes(rpc: Rpc, body: Any, code: int) -> None:
    found = rpc.raw(body)
    assert found["error"]["code"] == code, found
    assert "Traceback" not in found["error"]["message"]


def test_a_failed_episode_is_an_internal_error(served: Served) -> None:
    with client_of(served, "rough") as client:
        rpc = Rpc(client)
        session = rpc.create(task="plain")
        ask = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"session_id": session, "name": "crash"}}
        error = rpc.raw(ask)["error"]
        assert (error["code"], error["data"]["metadata"][f"{KEY}validity"]) == (-32603, "invalid")
        assert rpc.raw(ask)["error"] == error
        assert rpc.ask("openenv/session/create", task="broken") == -32603


def test_one_socket_at_a_time_joins_a_session(rpc: Rpc, served: Served) -> None:
    session = rpc.create()
    with opened(served.url, "counter", session=session) as wire:
        wire.ask("reset", split="train", index=2)
        wire.call("add", by=1)
        assert rpc.call(session, "add", by=1)["result"] == "The count is 2."
        with opened(served.url, "counter", session=session) as second:
            assert second.receive()["data"]["code"] == "SESSION_ERROR"
            with pytest.raises(ConnectionClosed):
                second.receive()
        assert wire.read("peek") == "2"
    # The session outlives the socket, and with it the episode that was begun.
    assert rpc.call(session, "add", by=1)["result"] == "The count is 3."
    with opened(served.url, "counter", session=session) as wire:
        assert wire.call("submit", answer=3)["reward"] == 1.0
        assert wire.ask("state")["step_count"] == 5
        assert rpc.ask("openenv/session/close", session_id=session)["closing"]
    with opened(served.url, "counter", session=session) as wire:
        assert wire.receive()["data"]["code"] == "SESSION_ERROR"


def test_after_a_reset_that_was_refused_no_call_begins_anything(rpc: Rpc, served: Served) -> None:
    session = rpc.create()
    with opened(served.url, "counter", session=session) as wire:
        assert wire.refused("reset", split="nowhere")["code"] == "VALIDATION_ERROR"
        assert rpc.call(session, "add") == -32600
        wire.ask("reset")
        assert rpc.call(session, "add")["result"] == "The count is 1."


def test_frames_of_the_socket_carry_requests(served: Served) -> None:
    def ask(method: str, **params: Any) -> dict[str, Any]:
        wire.raw({"type": "mcp", "data": {"jsonrpc": "2.0", "id": "a", "method": method, "params": params}})
        answer = wire.receive()
        assert (answer["type"], answer["data"]["id"]) == ("mcp", "a")
        found: dict[str, Any] = answer["data"]
        return found

    with opened(served.url, "counter") as wire:
        session = ask("openenv/session/create")["result"]["session_id"]
        assert ask("tools/call", name="add")["error"]["code"] == -32600
        wire.ask("reset", split="train", index=0)
        assert ask("tools/call", name="add", arguments={"by": 1})["result"]["result"] == "The count is 1."
        assert ask("tools/call", name="submit", arguments={"answer": 1})["result"]["reward"] == 1.0
        assert ask("openenv/session/close", session_id=session)["error"]["code"] == -32600
        wire.raw({"type": "mcp", "data": {}})
        assert wire.receive()["data"]["error"]["code"] == -32600
        for data in ("[]", "null", '"x"'):  # That is no request, so it gets no response.
            wire.raw(f'{{"type": "mcp", "data": {data}}}')
            answer = wire.receive()
            assert (answer["type"], answer["data"]["code"]) == ("error", "VALIDATION_ERROR")


def test_a_socket_of_requests_alone(served: Served) -> None:
    def ask(body: Any) -> dict[str, Any]:
        wire.raw(body)
        return wire.receive()

    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {}}}
    with opened(served.url, "counter", path="mcp") as wire:
        assert ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})["result"]["tools"]
        assert ask(call)["result"]["result"] == "The count is 1."
        assert ask(json.dumps(call))["result"]["result"] == "The count is 2."
        assert ask("{")["error"]["code"] == -32700
        assert ask("{}")["error"]["code"] == -32600
    with opened(served.url, "counter", path="mcp") as wire:
        assert ask(call)["result"]["result"] == "The count is 1."
