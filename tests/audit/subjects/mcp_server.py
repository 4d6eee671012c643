"""An MCP server with tools that behave, refuse and end; `python mcp_server.py` serves the standard streams."""

from __future__ import annotations

import os
import sys
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("notes", instructions="Write notes.")
counts: dict[Any, int] = {}


@server.tool()
def count(ctx: Context[Any, Any]) -> str:
    """Count the calls of this session."""
    request = ctx.request_context.request
    key = request.headers.get("mcp-session-id") if request is not None else None
    counts[key] = counts.get(key, 0) + 1
    return f"{counts[key]}"


@server.tool()
def add(one: int, two: int = 0) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": one + two}


@server.tool(structured_output=False)
def words() -> list[str]:
    """Say two words."""
    return ["a", "b"]


@server.tool()
def refuse() -> str:
    """Refuse the call."""
    raise ToolError("not today")


@server.tool()
def leave() -> str:
    """End the process."""
    os._exit(3)


if __name__ == "__main__":
    if "--broken" in sys.argv:
        sys.exit("no configuration")
    server.run()
