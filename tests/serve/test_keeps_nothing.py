"""Requests are without number, and nothing that callers choose stays when they are answered."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from quintain.serve.episodes.host import Host
from quintain.serve.http.app import build
from quintain.serve.http.asgi import App, Event, Scope
from quintain.serve.http.auth import NoAuth
from tests.serve.environments import counter
from tests.serve.operation.raw import ask
from tests.serve.serving import serve

TIMES = 200
LONG = "x" * 4000


class Answer(NamedTuple):
    status: int
    session: str
    body: bytes


Ask = Callable[..., Awaitable[Answer]]


def asking(app: App) -> Ask:
    """Asks it without a client, which would keep something, too."""

    async def post(path: str, body: Any = None, *, session: str = "") -> Answer:
        events: list[Event] = []
        whole = {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}

        async def receive() -> Event:
            return whole

        async def send(event: Event) -> None:
            events.append(event)

        headers = [(b"host", b"127.0.0.1"), *([(b"x-session-id", session.encode())] if session else [])]
        scope: Scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
        await app(scope, receive, send)
        headers_back = dict(events[0]["headers"])
        sent = b"".join(event["body"] for event in events[1:])
        return Answer(events[0]["status"], headers_back.get(b"x-session-id", b"").decode(), sent)

    return post


async def a_path(post: Ask, number: int) -> None:
    assert (await post(f"/{number}/{LONG}")).status == 404


async def a_session(post: Ask, number: int) -> None:
    assert (await post("/ping", session=f"{number}{LONG}")).status == 404


async def a_token(post: Ask, number: int) -> None:
    assert (await post(f"/e/{number}{LONG}/mcp")).status == 404


async def a_task(post: Ask, number: int) -> None:
    spec = {"task_spec": {"split": "train", "id": f"{number}{LONG}"}}
    assert (await post("/create", spec, session="none")).status == 404


async def a_tool(post: Ask, number: int) -> None:
    assert (await post("/create", {"split": "train", "index": 0}, session=f"s{number}")).status == 200
    called = await post("/counter/call", {"name": f"{number}{LONG}", "input": {}}, session=f"s{number}")
    assert b"not a valid tool" in called.body
    assert (await post("/delete", session=f"s{number}")).status == 200


async def an_episode(post: Ask, number: int) -> None:
    begun = await post("/openenv/counter/reset", {"split": "train", "index": 0, "episode_id": f"{number}{LONG[:200]}"})
    close = {"jsonrpc": "2.0", "id": 1, "method": "openenv/session/close", "params": {"session_id": begun.session}}
    assert b'"closed":true' in (await post("/openenv/counter/mcp", close)).body


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in (a_session, a_token, a_task, a_tool)]


@pytest.mark.parametrize("kind", [a_path, *SLOW, an_episode])
def test_answered_requests_leave_no_entries(kind: Callable[[Ask, int], Awaitable[None]]) -> None:
    async def play() -> int:
        host = Host([counter])
        post = asking(build(host, NoAuth()))
        for number in range(TIMES // 4):
            await kind(post, number)
        gc.collect()
        tracemalloc.start()
        for number in range(TIMES, 2 * TIMES):
            await kind(post, number)
        gc.collect()
        host.executor.close()
        return tracemalloc.get_traced_memory()[0]

    try:
        kept = asyncio.run(play())
    finally:
        tracemalloc.stop()
    assert kept < TIMES * len(LONG) / 8


def test_unknown_mcp_addresses_do_not_load_the_sdk(tmp_path: Path) -> None:
    """The SDK takes as much memory again as the whole server."""
    with serve("counter", folder=tmp_path) as server:
        assert ask(server.port, "GET", "/health")[0] == 200
        before = server.memory
        for method, path in (("POST", "/e/nobody/mcp"), ("GET", "/e/nobody/mcp"), ("POST", "/e"), ("GET", "/e/a/b/c")):
            assert ask(server.port, method, path)[0] == 404
        assert server.memory - before < 10_000_000
