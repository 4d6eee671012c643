"""A real HTTP server on loopback that plays a script, bytes on sockets, no mock transport; and a model that asks it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

from quintain.errors import ModelError
from quintain.harness import Request
from quintain.models import OpenAI
from quintain.trace import Message, Reply

Action = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Answers request n with action n, and the last one for all that follow; remembers what it was sent."""

    def __init__(self, actions: tuple[Action, ...]) -> None:
        self._actions = actions
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {
                    name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)
                }
                body = await reader.readexactly(int(headers["content-length"]))
                self.headers.append({":request": head[0], **headers})
                self.requests.append(msgspec.json.decode(body))
                await self._actions[min(len(self.requests), len(self._actions)) - 1](writer)
                await writer.drain()


@contextlib.asynccontextmanager
async def serving(*actions: Action) -> AsyncGenerator[Server]:
    server = Server(actions)
    tasks: list[asyncio.Task[None]] = []
    listener = await asyncio.start_server(
        lambda reader, writer: tasks.append(asyncio.create_task(server.serve(reader, writer))), "127.0.0.1", 0
    )
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in server.writers:
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def raw(data: bytes) -> Action:
    async def act(writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return act


def answer(body: object, status: int = 200, **headers: str) -> Action:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    lines = [f"HTTP/1.1 {status} So", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return raw("\r\n".join([*lines, "", ""]).encode() + data)


def completion(content: str | None = "hello", **choice: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **choice.pop("message", {})}
    return {
        "id": "x",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
    }


async def hang(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def die(writer: asyncio.StreamWriter) -> None:
    writer.close()
    raise ConnectionResetError


async def die_in_the_middle(writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"choices": [')
    await writer.drain()
    await die(writer)


async def drip(writer: asyncio.StreamWriter) -> None:
    """Slow, but never silent for long."""
    data = msgspec.json.encode(completion("slow"))
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\n\r\n".encode())
    for start in range(0, len(data), 60):
        writer.write(data[start : start + 60])
        await writer.drain()
        await asyncio.sleep(0.01)


KEY = "sk-very-secret"
HELLO = Request(messages=[Message("user", "hi")], tools=[], seed=5)
GOOD = answer(completion())


def play(*actions: Action, request: Request = HELLO, **options: Any) -> tuple[Reply, Server]:
    async def run() -> tuple[Reply, Server]:
        async with serving(*actions) as server:
            settings: dict[str, Any] = {"api_key": KEY, "backoff_s": 0.001, "base_url": server.url} | options
            model = OpenAI("m", **settings)
            try:
                return await model(request), server
            except ModelError as error:
                error.add_note(str(len(server.requests)))
                raise
            finally:
                await model.aclose()

    return asyncio.run(run())


def fail(*actions: Action, **options: Any) -> tuple[ModelError, int]:
    """The error, and how many requests it took."""
    with pytest.raises(ModelError) as caught:
        play(*actions, **options)
    assert caught.value.component == "model"
    assert KEY not in str(caught.value)
    return caught.value, int(caught.value.__notes__[0])
