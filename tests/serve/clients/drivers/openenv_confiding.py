"""Drives a server with OpenEnv's clients that bring a secret: `python openenv_confiding.py URL HEADER`.

HEADER is what `X-Secrets` is to say.
"""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import sys
from typing import Any

from _facts import tell
from openenv.core import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

URL = f"{sys.argv[1]}/openenv/confiding"
HEADERS = {"X-Secrets": sys.argv[2]}
READ: dict[str, Any] = {"type": "call_tool", "tool_name": "read", "arguments": {"of": "KEY"}}


def generic() -> list[str]:
    """In two episodes of a client, and in one of a client that brings nothing."""
    seen: list[str] = []
    for headers, episodes in ((HEADERS, 2), (None, 1)):
        with GenericEnvClient(base_url=URL, headers=headers).sync() as client:
            for _ in range(episodes):
                client.reset(split="train")
                seen.append(client.step(READ).observation["result"])
    return seen


def tools() -> list[str]:
    """By calls over HTTP, before and after a reset over the socket."""
    with MCPToolClient(base_url=URL, headers=HEADERS).sync() as client:
        first = client.call_tool("read", of="KEY")
        client.reset(split="train")
        return [first["result"], client.call_tool("read", of="KEY")["result"]]


tell({"generic": generic(), "tools": tools()})
