"""Drives a server with the clients of OpenEnv, old or new: `python openenv_sdk.py URL`."""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import sys
from typing import Any

from _facts import error, tell
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

URL = sys.argv[1]


def called(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "call_tool", "tool_name": tool, "arguments": arguments}


def plain(result: Any) -> dict[str, Any]:
    return {"observation": result.observation, "reward": result.reward, "done": result.done}


def episode() -> dict[str, Any]:
    """One episode from its beginning to its end, and a step too many."""
    with GenericEnvClient(base_url=f"{URL}/openenv/counter").sync() as client:
        early = error(lambda: client.step(called("peek")))
        return {
            "early": early,
            "begun": plain(client.reset(split="train", index=2, seed=1, episode_id="mine")),
            "tools": [tool["name"] for tool in client.step({"type": "list_tools"}).observation["tools"]],
            "first": plain(client.step(called("add", by=3))),
            "mistake": plain(client.step(called("add", by="many"))),
            "last": plain(client.step(called("submit", answer=3))),
            "state": client.state(),
            "late": error(lambda: client.step(called("submit", answer=3))),
        }


def words() -> dict[str, Any]:
    """An episode that ends by an answer."""
    with GenericEnvClient(base_url=f"{URL}/openenv/words").sync() as client:
        client.reset(split="train", index=0)
        word = client.step(called("look")).observation["result"]
        return plain(client.step({"type": "answer", "text": word}))


def tools() -> dict[str, Any]:
    """The client of tools."""
    with MCPToolClient(base_url=f"{URL}/openenv/counter").sync() as client:
        listed = client.list_tools()
        begun = client.reset(split="train", index=1)
        return {
            "listed": [tool.name for tool in listed],
            "schema": listed[0].input_schema,
            "begun": begun.observation.result,
            "called": client.call_tool("add", by=2),
            "ended": client.call_tool("submit", answer=2),
            "late": error(lambda: client.call_tool("peek")),
            "steps": client.state().step_count,
        }


if __name__ == "__main__":
    tell({"episode": episode(), "words": words(), "tools": tools()})
