"""Server of the Open Reward Standard with one environment, in which a word is to be guessed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

TASKS = [{"question": "Which pet barks?", "answer": "dog"}, {"question": "Which pet purrs?", "answer": "cat"}]


class Guess:
    """Environment with a log of the requests to it."""

    def __init__(self, *, counts: bool = True, terminal: bool = True) -> None:
        self.sessions: dict[str, dict[str, Any]] = {}
        self.deleted: list[str] = []
        self.starting = 2
        self.counts = counts
        self.terminal = terminal
        self._made = 0
        routes = [
            Route("/list_environments", self.listed),
            Route("/guess/splits", self.splits),
            Route("/guess/num_tasks", self.number, methods=["POST"]),
            Route("/guess/tasks", self.tasks, methods=["POST"]),
            Route("/guess/task", self.task, methods=["POST"]),
            Route("/guess/tools", self.tools),
            Route("/guess/task_tools", self.task_tools),
            Route("/create_session", self.create_session, methods=["POST"]),
            Route("/create", self.create, methods=["POST"]),
            Route("/guess/prompt", self.prompt),
            Route("/guess/call", self.call, methods=["POST"]),
            Route("/delete", self.delete, methods=["POST"]),
            Route("/delete_session", self.delete_session, methods=["POST"]),
        ]
        self.app = Starlette(routes=routes)

    async def listed(self, request: Request) -> Response:
        return JSONResponse(["guess"])

    async def splits(self, request: Request) -> Response:
        return JSONResponse([{"name": "train", "type": "train"}, {"name": "test", "type": "test"}])

    async def number(self, request: Request) -> Response:
        if not self.counts:
            return JSONResponse({"detail": "Not Found"}, 404)
        return JSONResponse({"num_tasks": len(TASKS)})

    async def tasks(self, request: Request) -> Response:
        return JSONResponse({"tasks": TASKS, "env_name": "guess"})

    async def task(self, request: Request) -> Response:
        index = (await request.json())["index"]
        if index >= len(TASKS):
            return JSONResponse({"detail": "Invalid index"}, 400)
        return JSONResponse({"task": TASKS[index]})

    async def tools(self, request: Request) -> Response:
        schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
        tools = [{"name": "guess", "description": "Guess.", "input_schema": schema}]
        more = {"terminal_tool": {"name": "finish", "arg": "text", "description": None}} if self.terminal else {}
        return JSONResponse({"tools": tools, **more})

    async def task_tools(self, request: Request) -> Response:
        hint = {"name": "hint", "description": "A hint.", "input_schema": None}
        return JSONResponse({"tools": [hint]})

    async def create_session(self, request: Request) -> Response:
        self._made += 1
        return _stream([("task_id", f"s{self._made}"), ("end", "")])

    async def create(self, request: Request) -> Response:
        body = await request.json()
        if body["index"] >= len(TASKS):
            return JSONResponse({"detail": "Invalid index"}, 400)
        self.sessions[request.headers["X-Session-ID"]] = {"index": body["index"]}
        return JSONResponse({"sid": request.headers["X-Session-ID"]})

    async def prompt(self, request: Request) -> Response:
        if self.starting:
            self.starting -= 1
            return JSONResponse({"detail": "Environment still starting."}, 503, {"Retry-After": "0"})
        session = self.sessions[request.headers["X-Session-ID"]]
        return JSONResponse([{"text": TASKS[session["index"]]["question"], "detail": None, "type": "text"}])

    async def call(self, request: Request) -> Response:
        session = self.sessions.get(request.headers["X-Session-ID"])
        if session is None:
            return JSONResponse({"detail": "Active environment not found"}, 404)
        body = await request.json()
        given = body["input"]
        word = given.get("word", given.get("text", ""))
        if body["name"] not in {"guess", "finish"}:
            return _answer({"ok": False, "error": f"'{body['name']}' is not a valid tool"})
        if word in _BROKEN:
            return _BROKEN[word]()
        blocks: list[dict[str, Any]] = [{"text": "  " + "x" * 9000, "detail": None, "type": "text"}]
        if word == "picture":
            blocks.append({"type": "image", "data": "", "mimeType": "image/png", "detail": None})
        right = word == TASKS[session["index"]]["answer"]
        reward = None if word == "look" else 1.0 if right else -0.25
        output = {"blocks": blocks, "metadata": None, "reward": reward, "finished": right}
        return _answer({"ok": True, "output": output})

    async def delete(self, request: Request) -> Response:
        self.deleted.append(request.headers["X-Session-ID"])
        self.sessions.pop(request.headers["X-Session-ID"], None)
        return JSONResponse({"sid": request.headers["X-Session-ID"]})

    async def delete_session(self, request: Request) -> Response:
        return JSONResponse({"sid": request.headers["X-Session-ID"]})


def _answer(document: dict[str, Any]) -> Response:
    text = json.dumps(document)
    cuts = [text[start : start + 4096] for start in range(0, len(text), 4096)]
    return _stream([("task_id", "t"), *(("chunk", cut) for cut in cuts[:-1]), ("end", cuts[-1])])


def _stream(events: list[tuple[str, str]]) -> Response:
    async def written() -> AsyncGenerator[str]:
        for name, data in events:
            yield f"event: {name}\r\n" + "".join(f"data: {line}\r\n" for line in data.split("\n")) + "\r\n"
            yield ": ping - now\r\n\r\n"
            await asyncio.sleep(0)

    return StreamingResponse(written(), media_type="text/event-stream")


_BROKEN: dict[str, Callable[[], Response]] = {
    "crash": lambda: _stream([("task_id", "t"), ("error", "RuntimeError: two\nlines")]),
    "break off": lambda: _stream([("task_id", "t"), ("chunk", '{"ok"')]),
    "nonsense": lambda: _stream([("task_id", "t"), ("end", "{")]),
    "500": lambda: PlainTextResponse("oops", 500),
    "422": lambda: JSONResponse({"detail": "bad"}, 422),
}
