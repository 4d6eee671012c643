"""Adapter for MCP servers over streamable HTTP or a process's standard streams.

MCP has neither episodes nor scores: there is one task, "service", and `reset` opens another session, with standard
streams in another process. The official SDK runs in a thread of its own, because its connections belong to one event
loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import json
import os
import shlex
import tempfile
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from quintain.errors import UsageError
from quintain.plugins import package

from . import http
from .failure import SubjectFailure

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")

TASK = "service"
TIMEOUT_S = 30.0
AGENTS_FAULT = (-32601, -32602)  # JSON-RPC codes of client errors: unknown method, invalid arguments
_KINDS = {-32001: "transport_timeout", 408: "transport_timeout", -32000: "transport_peer_drop"}


def make(text: str) -> Callable[[], McpSubject]:
    """Returns a factory of sessions, for a URL, or for "stdio:" and a command line without a shell.

    Raises UsageError if the text is neither, or the SDK is not installed.
    """
    package("mcp", extra="audit-mcp")
    kind, _, command = text.partition(":")
    words = shlex.split(command) if kind == "stdio" else []
    if not words and kind not in {"http", "https"}:
        raise UsageError(f"mcp: takes http://HOST:PORT/PATH or stdio:COMMAND, not {text!r}")
    return functools.partial(McpSubject, words or text)


class McpSubject:
    """Session with a server; `reset` opens the next one."""

    absent = ("score",)

    def __init__(self, server: str | list[str]) -> None:
        self._server = server
        self._line: _ClientThread | None = None

    def tasks(self) -> list[str]:
        return [TASK]

    def tools(self) -> list[dict[str, Any]]:
        return [
            {"name": tool.name, "description": tool.description or "", "parameters": tool.input_schema}
            for tool in self._open().tools()
        ]

    def responses(self) -> dict[str, dict[str, Any]]:
        tools = [tool for tool in self._open().tools() if tool.output_schema is not None]
        return {tool.name: {"default": tool.output_schema} for tool in tools}

    def reset(self, task: str, seed: int) -> str:
        """Opens another session and returns the server's instructions."""
        http.only_task(task, TASK)
        self.close()
        return self._open().instructions

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Calls a tool and returns its structured answer, else its text, else its blocks; an error as "error"."""
        from mcp import MCPError

        try:
            # As the SDK writes it, which would lose its connection over what it cannot write.
            json.dumps([name, arguments], ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:
            return {"error": f"this cannot be sent: {error}"}
        try:
            result = self._open().ask(lambda client: client.call_tool(name, arguments))
        except MCPError as error:
            if error.code in AGENTS_FAULT:
                return {"error": error.message}
            kind = _KINDS.get(error.code, "quintain:tool_bug")
            raise SubjectFailure(f"{error.code}: {error.message}", kind=kind) from error
        blocks = [block.model_dump(mode="json", exclude_none=True) for block in result.content]
        said = http.said(blocks) if result.structured_content is None else result.structured_content
        return {"error": said} if result.is_error else said

    def score(self) -> None:
        """Does nothing: MCP has no score, and `absent` says so."""

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _open(self) -> _ClientThread:
        self._line = self._line or _ClientThread(self._server)
        return self._line


class _ClientThread:
    """Session in a thread with its own event loop."""

    def __init__(self, server: str | list[str]) -> None:
        self._server, self._trouble = server, "it was closed"
        self._loop = asyncio.new_event_loop()
        self._ready: concurrent.futures.Future[Client] = concurrent.futures.Future()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="mcp", daemon=True)
        self._thread.start()
        try:
            self._client = self._ready.result()
        except BaseException:
            self._thread.join()
            raise
        self.instructions = self._client.instructions or ""

    def tools(self) -> list[Any]:
        async def every(client: Client) -> list[Any]:
            page = await client.list_tools(cache_mode="bypass")
            found = list(page.tools)
            while page.next_cursor:
                page = await client.list_tools(cursor=page.next_cursor, cache_mode="bypass")
                found += page.tools
            return found

        return self.ask(every)

    def ask(self, question: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Returns the result of a client coroutine; raises SubjectFailure if the session has ended."""
        if self._thread.is_alive():
            try:
                return asyncio.run_coroutine_threadsafe(question(self._client), self._loop).result()
            except concurrent.futures.CancelledError:
                self._thread.join()
        raise SubjectFailure(f"the session has ended: {self._trouble}", kind="session_lost")

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _work(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._hold())
        except Exception as error:  # noqa: BLE001  # the next request raises it
            self._trouble = f"{type(error).__name__}: {_innermost(error)}"

    async def _hold(self) -> None:
        """Opens a session and keeps it until `close`, because the task that entered its scopes must leave them."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
            try:
                # The handshake of before 2026, where there is one, because only that one makes a session of its own.
                held = await self._connected("legacy", log) or await self._connected("auto", log)
            except Exception as error:  # noqa: BLE001  # whatever went wrong goes to who asked
                log.seek(0)
                words = f"{self._server}: {type(error).__name__}: {_innermost(error)} {log.read()[-1000:]}"
                self._ready.set_exception(SubjectFailure(words.strip(), kind="transport_unreachable"))
                return
            assert held is not None, "the second mode raises or connects"
            self._ready.set_result(held)
            try:
                await self._over.wait()
            finally:
                await held.__aexit__(None, None, None)

    async def _connected(self, mode: str, log: Any) -> Client | None:
        from mcp import Client, MCPError, StdioServerParameters, stdio_client

        server: Any = self._server
        if not isinstance(self._server, str):
            command, *rest = self._server
            server = stdio_client(StdioServerParameters(command=command, args=rest, env=dict(os.environ)), log)
        try:
            return await Client(server, mode=mode, read_timeout_seconds=TIMEOUT_S).__aenter__()
        except MCPError:
            if mode == "auto":
                raise
            return None


def _innermost(error: BaseException) -> BaseException:
    several: Any = error
    return _innermost(several.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
