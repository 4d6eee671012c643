"""An agent program that knows nothing of us is pointed at an episode; its model follows a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from quintain.serve.http.asgi import App, HttpRequest, Receive, Scope, Send
from tests.serve.environments import counter
from tests.serve.mcp.episodes import served, until
from tests.serve.mcp.node import NODE, installed, said

pytestmark = pytest.mark.slow

PACKAGE = "@qwen-code/qwen-code@0.24.4"
SCRIPT = (("add", {"by": 5}), ("submit", {"answer": 5}))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("agent"), PACKAGE) / ".bin" / "qwen"


@asynccontextmanager
async def listening(app: App) -> AsyncGenerator[int]:
    """Serve an application beside the test; yields its port."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_level="error"))
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await serving


class Model:
    """A chat-completions endpoint that calls the tools of a script, one a reply, and then has done."""

    def __init__(self, script: Sequence[tuple[str, dict[str, Any]]], prefix: str) -> None:
        self.script = script
        self.prefix = prefix
        self.asked: list[dict[str, Any]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive, send)
        asked = await request.json(dict[str, Any], 10_000_000)
        self.asked.append(asked)
        chunks = [self.chunk(self.delta(asked)), self.chunk({}, "stop")]
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        await request.answer(200, body.encode(), [(b"content-type", b"text/event-stream")])

    def delta(self, asked: dict[str, Any]) -> dict[str, Any]:
        done = sum(bool(message.get("tool_calls")) for message in asked["messages"])
        if done >= len(self.script):
            return {"role": "assistant", "content": "Done."}
        name, arguments = self.script[done]
        function = {"name": f"{self.prefix}{name}", "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call_{done}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    @staticmethod
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def test_an_agent_program_plays_an_episode_by_its_address(program: Path, tmp_path: Path) -> None:
    model = Model(SCRIPT, "mcp__counter__")

    async def play() -> None:
        async with served(counter) as here, listening(model) as port:
            live, url = await here.open("train-5")
            config = {"mcpServers": {"counter": {"httpUrl": url, "trust": True}}}
            endpoint = ("--auth-type", "openai", "--openai-base-url", f"http://127.0.0.1:{port}/v1", "--model", "m")
            words = ("-p", "Do your task.", "--approval-mode", "yolo", "--mcp-config", json.dumps(config))
            told = await said(NODE, program, *words, *endpoint, "--openai-api-key", "none", home=tmp_path)
            assert "Done." in told
            assert [turn.reply.message.calls[0].name for turn in live.trace.turns] == ["add", "submit"]
            assert live.trace.score == 1.0

    asyncio.run(play())
    results = [message["content"] for message in model.asked[-1]["messages"] if message["role"] == "tool"]
    assert "The count is 5." in str(results)
    assert "reward" not in str(results)
