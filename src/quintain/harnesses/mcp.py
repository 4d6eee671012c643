"""Tools of MCP servers, which a harness holds: the agent lists them, calls them and reads resources."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from quintain.errors import DefinitionError, EpisodeError, ToolError
from quintain.plugins import package
from quintain.state import State
from quintain.tools import tool

from .held import Errand, Host

if TYPE_CHECKING:
    from mcp import Client

    Act = Callable[[Client, list[Any]], Awaitable[Any]]
    """Takes a session and the tools that it offered when it was opened."""

REFUSED = (-32601, -32602)
"""JSON-RPC codes of a caller's mistake: an unknown method, invalid arguments."""
TIMEOUT = -32001


class Mcp(State):
    """MCP servers by name, for a harness to hold (stateful, not deterministic).

    An episode's first call opens a session with a server, and the end of the episode closes it. A server that cannot be
    reached, ends, is late or no longer has its tools is a failure of H.

    Attributes:
        servers: URL of each server's endpoint, or "stdio:" and a command line.
        only: Names of the tools that the agent may use, by server; all of a server that is not named.
    """

    servers: dict[str, str]
    only: dict[str, list[str]] = {}

    def __post_init__(self) -> None:
        package("mcp", extra="audit-mcp")
        if unknown := sorted(self.only.keys() - self.servers.keys()):
            raise DefinitionError(f"tools are chosen of {unknown[0]!r}; the servers are {', '.join(self.servers)}")

    @tool(writes=())
    def mcp_list(self, server: str) -> Errand:
        """List the tools and resources of a server.

        Args:
            server: Name of the server.
        """

        async def act(client: Client, offered: list[Any]) -> Any:
            can_read = client.server_capabilities.resources is not None
            found = (await client.list_resources()).resources if can_read else []
            tools = [
                {"name": one.name, "description": one.description or "", "parameters": one.input_schema}
                for one in offered
                if one.name in self.only.get(server, [one.name])
            ]
            return {"tools": tools, "resources": [{"uri": str(one.uri), "name": one.name} for one in found]}

        return self._errand(server, act)

    @tool(writes=())
    def mcp(self, server: str, name: str, arguments: dict[str, Any]) -> Errand:
        """Call a tool of a server.

        Args:
            server: Name of the server.
            name: Name of the tool.
            arguments: Arguments of the tool.
        """

        async def act(client: Client, offered: list[Any]) -> Any:
            if name not in (known := self.only.get(server) or [one.name for one in offered]):
                return f"error: {server} has no tool {name!r}; it has {', '.join(known)}"
            result = await client.call_tool(name, arguments)
            if result.is_error and name not in {one.name for one in await _listed(client)}:
                raise _broken(server, f"took its tool {name!r} away", "session_lost")
            return "error: " * bool(result.is_error) + _text(result.content)

        return self._errand(server, act)

    @tool(writes=())
    def mcp_read(self, server: str, uri: str) -> Errand:
        """Read a resource of a server.

        Args:
            server: Name of the server.
            uri: Address of the resource.
        """

        async def act(client: Client, _: list[Any]) -> Any:
            return _text((await client.read_resource(uri)).contents)

        return self._errand(server, act)

    def _errand(self, server: str, act: Act) -> Errand:
        if server not in self.servers:
            raise ToolError(f"no server is named {server!r}; known: {', '.join(self.servers)}")

        async def run(host: Host) -> Any:
            from mcp import MCPError

            try:
                client, offered = await host.keep(f"mcp:{server}", lambda: self._session(server, host))
            except Exception as error:
                raise _broken(server, f"cannot be reached: {_innermost(error)}", "transport_unreachable") from error
            if missing := sorted({*self.only.get(server, ())} - {one.name for one in offered}):
                raise _broken(server, f"has no tool {missing[0]!r}", "session_lost")
            try:
                return await act(client, offered)
            except MCPError as error:
                if error.code in REFUSED:
                    return f"error: {error.message}"
                kind = "transport_timeout" if error.code == TIMEOUT else "session_lost"
                raise _broken(server, f"did not answer: {error}", kind) from error

        return Errand(run)

    @contextlib.asynccontextmanager
    async def _session(self, server: str, host: Host) -> AsyncGenerator[tuple[Client, list[Any]]]:
        from mcp import Client, MCPError, StdioServerParameters, stdio_client

        wait = host.session.config.tool_timeout_s
        async with contextlib.AsyncExitStack() as stack:

            async def connected(mode: Any) -> Client:
                where: Any = self.servers[server]
                if where.startswith("stdio:"):
                    command, *rest = shlex.split(where.removeprefix("stdio:"))
                    where = stdio_client(StdioServerParameters(command=command, args=rest, env=dict(os.environ)))
                return await stack.enter_async_context(Client(where, mode=mode, read_timeout_seconds=wait))

            try:
                client = await connected("legacy")  # Only the handshake of before 2026 makes a session of its own.
            except MCPError:
                client = await connected("auto")
            yield client, await _listed(client)


async def _listed(client: Client) -> list[Any]:
    page = await client.list_tools(cache_mode="bypass")
    found = list(page.tools)
    while page.next_cursor:
        page = await client.list_tools(cursor=page.next_cursor, cache_mode="bypass")
        found += page.tools
    return found


def _text(blocks: list[Any]) -> str:
    """Returns the texts of content blocks or resources; what is no text is named by its type."""
    return "\n".join(getattr(one, "text", None) or f"[{one.mime_type or 'data'}]" for one in blocks)


def _broken(server: str, words: str, kind: str) -> EpisodeError:
    return EpisodeError(f"the MCP server {server!r} {words}", component="H", kind=kind)


def _innermost(error: BaseException) -> BaseException:
    several: Any = error
    return _innermost(several.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
