"""Servers of OpenEnv's protocol, over real sockets, as plain subjects: typed actions, tools, and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

pytest.importorskip("websockets", reason="pip install 'quintain[audit-openenv]'")

from quintain.audit.subjects import SubjectFailure, http, openenv
from quintain.errors import UsageError
from tests.audit.subjects.serving import serving
from tests.audit.subjects.threads import no_thread_stays

TYPED = {"type": "object", "properties": {"add": {"type": "integer"}}, "required": ["add"]}
TOOLS = {"type": "object", "properties": {"tool_name": {"type": "string"}, "arguments": {"type": "object"}}}
LISTED = [{"name": "guess", "description": "Guess.", "input_schema": {"type": "object", "properties": {}}}]


class Server:
    """Environment that counts, with an instance on each socket."""

    def __init__(self, action: dict[str, Any], *, tasks: int = 0, mcp: bool = True, room: int = 9) -> None:
        self.action, self.count, self.mcp, self.room = action, tasks, mcp, room
        self.sockets = 0
        routes = [
            Route("/v/schema", self.schema),
            Route("/v/list_environments", self.names),
            Route("/v/guess/splits", self.splits),
            Route("/v/guess/num_tasks", self.number, methods=["POST"]),
            Route("/v/guess/task", self.task, methods=["POST"]),
            WebSocketRoute("/v/ws", self.ws),
        ]
        self.app = Starlette(routes=routes)

    async def schema(self, request: Request) -> Response:
        return JSONResponse({"action": self.action, "observation": {}, "state": {}})

    # All are coroutines: for a plain function the server would begin a thread, which ends when it likes.

    async def names(self, request: Request) -> Response:
        return JSONResponse(["guess"])

    async def number(self, request: Request) -> Response:
        return JSONResponse({"num_tasks": self.count})

    async def splits(self, request: Request) -> Response:
        if not self.count:
            return PlainTextResponse("not implemented", 501)
        return JSONResponse([{"name": "train", "type": "train"}])

    async def task(self, request: Request) -> Response:
        return JSONResponse({"task": {"question": "?", "answer": (await request.json())["index"]}})

    async def ws(self, socket: WebSocket) -> None:
        await socket.accept()
        self.sockets += 1
        try:
            if self.sockets > self.room:
                await socket.send_json(_error("CAPACITY_REACHED", "full"))
                await socket.close()
                return
            total = {"total": 0}
            while True:
                message = await socket.receive_json()
                if (message.get("data") or {}).get("add") == 666:
                    await socket.close()
                    return
                if (message.get("data") or {}).get("add") == 77:
                    continue  # It never answers.
                await socket.send_text(self.answer(message, total))
        except WebSocketDisconnect:
            return
        finally:
            self.sockets -= 1

    def answer(self, message: dict[str, Any], total: dict[str, int]) -> str:
        kind, data = message["type"], message.get("data") or {}
        if kind == "reset":
            if data["seed"] < 0:
                return json.dumps(_error("VALIDATION_ERROR", "seed"))
            total["total"] = data.get("index", 0)
            return json.dumps(_observed({"result": "begin", "total": total["total"]}))
        if kind == "state":
            return json.dumps({"type": "state", "data": {"episode_id": "e", **total}})
        if kind == "mcp":
            listed = {"result": {"tools": LISTED}} if self.mcp else {"error": {"code": -32601, "message": "no"}}
            return json.dumps({"type": "mcp", "data": {"jsonrpc": "2.0", "id": 1, **listed}})
        return self.typed(data, total) if self.action is TYPED else self.tool(data)

    def typed(self, data: dict[str, Any], total: dict[str, int]) -> str:
        if not isinstance(data.get("add"), int):
            return json.dumps(_error("VALIDATION_ERROR", "Invalid message", errors=[{"loc": ["add"]}]))
        odd = {13: json.dumps(_error("EXECUTION_ERROR", "boom")), 14: "{", 15: "[]"}
        if data["add"] in odd:
            return odd[data["add"]]
        total["total"] += data["add"]
        reward = None if data["add"] == 0 else data["add"]
        return json.dumps(_observed({"total": total["total"]}, reward=reward, done=total["total"] > 5))

    def tool(self, data: dict[str, Any]) -> str:
        if data["type"] == "list_tools":
            return json.dumps(_observed({"tools": LISTED}))
        errors = {"nope": "tool_not_found", "lost": "transport_error"}
        if data["tool_name"] in errors:
            error = {"error_type": errors[data["tool_name"]], "message": data["tool_name"]}
            return json.dumps(_observed({"tool_name": data["tool_name"], "result": None, "error": error}))
        return json.dumps(_observed({"tool_name": "guess", "result": [1], "error": None}, reward=True, done=True))


def _observed(observation: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "observation", "data": {"observation": observation, "reward": None, "done": False, **more}}


def _error(code: str, message: str, **more: Any) -> dict[str, Any]:
    return {"type": "error", "data": {"code": code, "message": message, **more}}


def test_typed_actions_become_one_step_tool() -> None:
    server = Server(TYPED)
    with no_thread_stays(), serving(server.app) as url:
        subject = openenv.make(f"{url.replace('http', 'ws')}/v/ws")()
        assert subject.tasks() == ["episode"]
        assert subject.absent == ("hidden",)
        assert subject.tools() == [{"name": "step", "description": "Take an action.", "parameters": TYPED}]
        assert subject.reset("episode", 1)["observation"] == {"result": "begin", "total": 0}
        assert subject.score() == {"score": 0.0, "last": None}
        assert subject.call("step", {"add": 0}) == {"observation": {"total": 0}, "reward": None, "done": False}
        assert subject.score() is None
        assert subject.call("step", {"add": 2})["reward"] == 2
        assert subject.call("step", {"add": 4})["done"] is True
        assert subject.score() == {"score": 6.0, "last": 4.0}
        assert subject.state() == {"episode_id": "e", "total": 6}
        assert subject.call("step", {"add": "\ud800"})["errors"] == [{"loc": ["add"]}]
        assert subject.call("jump", {}) == {"error": "unknown tool 'jump'"}
        for add, words in ((13, "EXECUTION_ERROR: boom"), (14, "is not JSON"), (15, "is not an object")):
            with pytest.raises(SubjectFailure, match=words):
                subject.call("step", {"add": add})
        with pytest.raises(SubjectFailure, match="seed"):
            subject.reset("episode", -1)
        with pytest.raises(UsageError, match="one task"):
            subject.reset("other", 0)
        with pytest.raises(SubjectFailure, match="ConnectionClosed") as caught:
            subject.call("step", {"add": 666})
        assert caught.value.kind == "transport_peer_drop"
        subject.reset("episode", 0)
        assert subject.score() == {"score": 0.0, "last": None}
        subject.close()
    assert server.sockets == 0


@pytest.mark.parametrize("mcp", [True, False])
def test_tools_and_tasks_are_listed(mcp: bool) -> None:
    server = Server(TOOLS, tasks=3, mcp=mcp)
    with serving(server.app) as url:
        subject = openenv.make(f"{url}/v/")()
        assert subject.tasks() == ["train/0", "train/1", "train/2"]
        assert subject.absent == ()
        assert subject.hidden("train/2") == {"answer": 2}
        assert subject.tools()[0]["name"] == "guess"
        assert subject.reset("train/2", 1) == "begin"
        assert subject.state()["total"] == 2
        assert subject.call("guess", {}) == [1]
        assert subject.score() == {"score": 1.0, "last": 1.0}
        assert subject.call("nope", {}) == {"error": "nope", "error_type": "tool_not_found"}
        with pytest.raises(SubjectFailure, match="transport_error"):
            subject.call("lost", {})
        with pytest.raises(UsageError, match="a task is called train/0"):
            subject.reset("test/0", 0)
        subject.close()


def test_a_full_slow_or_missing_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(TYPED, room=1)
    with serving(server.app) as url:
        make = openenv.make(f"{url}/v")
        one, two = make(), make()
        one.reset("episode", 0)
        with pytest.raises(SubjectFailure, match="CAPACITY_REACHED") as caught:
            two.reset("episode", 0)
        assert caught.value.kind == "provider_quota_exhausted"
        monkeypatch.setattr(http, "TIMEOUT_S", 0.3)
        with pytest.raises(SubjectFailure, match=r"no answer in 0\.3 s") as late:
            one.call("step", {"add": 77})
        assert late.value.kind == "transport_timeout"
        one.close()
        two.close()
        with pytest.raises(UsageError, match="does not describe an OpenEnv"):
            openenv.make(url)
    with pytest.raises(UsageError, match="ConnectError"):
        openenv.make(f"{url}/v")
    with pytest.raises(UsageError, match="openenv: takes"):
        openenv.make("nowhere")
