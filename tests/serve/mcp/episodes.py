"""Episodes behind their addresses, served by this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any, Self

import httpx
import uvicorn

import quintain as qn
from quintain.harness import Agent
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.episodes.live import Live
from quintain.serve.http.app import build
from quintain.serve.http.auth import NoAuth
from quintain.serve.http.keys import ANYONE
from quintain.serve.http.limits import Limits

MODES = ("legacy", "auto", "2026-07-28")
META = "io.modelcontextprotocol/"


class Served:
    """A host, and where it listens."""

    def __init__(self, host: Host, port: int) -> None:
        self.host = host
        self.port = port

    async def open(self, task: str | int = 0, *, env: str = "", split: str = "train") -> tuple[Live, str]:
        """A fresh episode and its address."""
        live = await self.host.create(EpisodeSpec(environment=env, task=task, split=split), ANYONE)
        return live, self.url(live.token)

    def url(self, token: str) -> str:
        return f"http://127.0.0.1:{self.port}/e/{token}/mcp"


@contextlib.asynccontextmanager
async def served(
    *environments: qn.Environment[Any], limits: Limits | None = None, user: Agent | None = None
) -> AsyncGenerator[Served]:
    host = Host(environments, limits=limits, user=user)
    config = uvicorn.Config(build(host, NoAuth()), port=0, lifespan="off", log_level="error", http="httptools")
    server = uvicorn.Server(config)
    listening = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield Served(host, server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        await listening
        host.executor.close()


async def until(there: Callable[[], object]) -> None:
    """Wait for what happens on another thread, or on the other side of a wire."""
    while not there():  # noqa: ASYNC110  # nobody would tell us
        await asyncio.sleep(0.005)


class Wire:
    """One connection of a client that says exactly what it is told to, in one of the two eras."""

    ACCEPT = "application/json, text/event-stream"

    def __init__(self, url: str, *, modern: bool) -> None:
        self.url = url
        self.modern = modern
        self.http = httpx.AsyncClient(timeout=60)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    def headers(self, method: str = "tools/call", name: str = "") -> dict[str, str]:
        """Returns the headers of a well-formed request."""
        said = {"accept": self.ACCEPT, "content-type": "application/json"}
        if not self.modern:
            return {**said, "mcp-protocol-version": "2025-11-25"}
        named = {"mcp-name": name} if name else {}
        return {**said, "mcp-protocol-version": "2026-07-28", "mcp-method": method, **named}

    def request(self, key: int | str, method: str, **params: Any) -> dict[str, Any]:
        if self.modern:
            params["_meta"] = {
                f"{META}protocolVersion": "2026-07-28",
                f"{META}clientInfo": {"name": "wire", "version": "1"},
                f"{META}clientCapabilities": {},
            }
        return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}

    async def call(self, key: int | str, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """A tool call's JSON-RPC answer."""
        asked = self.request(key, "tools/call", name=name, arguments=arguments or {})
        return parsed(await self.http.post(self.url, json=asked, headers=self.headers(name=name)))


def parsed(response: httpx.Response) -> dict[str, Any]:
    """The one message of an answer, which may be a stream."""
    if response.headers["content-type"].startswith("text/event-stream"):
        (line,) = [line for line in response.text.splitlines() if line.startswith("data: ")]
        response = httpx.Response(200, text=line.removeprefix("data: "))
    answer: dict[str, Any] = response.json()
    return answer
