"""An MCP server that loses a tool, changes another and is late; `python changing_server.py` serves standard streams."""

from __future__ import annotations

import time

from mcp.server.mcpserver import MCPServer

server = MCPServer("changing")


@server.tool()
def add(one: int, two: int) -> int:
    """Add two numbers."""
    return one + two


@server.tool()
def lose() -> str:
    """Lose the tool `add`."""
    server.remove_tool("add")
    return "lost"


@server.tool()
def change() -> str:
    """Let `add` take other arguments."""
    server.remove_tool("add")

    def add(numbers: list[int]) -> int:
        return sum(numbers)

    server.add_tool(add, description="Add numbers.")
    return "changed"


@server.tool()
def sleep() -> str:
    """Answer late."""
    time.sleep(60)
    return "late"


@server.resource("notes://today")
def today() -> str:
    """Notes of today."""
    return "buy milk"


if __name__ == "__main__":
    server.run()
