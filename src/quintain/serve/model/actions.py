"""Episode tools over MCP, by the official SDK, which is loaded when a program first needs it."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

import quintain
from quintain.serve.errors import Refused
from quintain.serve.http import mcp_sdk as sdk

from .api import Refusal
from .conversation import SCOPE_KEY, Conversation

Context = ServerRequestContext[Any, Any]


def manager(most: int) -> sdk.Manager:
    """Returns the SDK's manager for all programs of an event loop, for bodies of at most so many bytes."""
    server: Server[Any] = Server(
        "quintain",
        version=quintain.__version__,
        get_tool_input_schema=sdk.without_headers,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )
    return sdk.Manager(server, most=most)


def _conversation(context: Context) -> Conversation:
    assert context.request is not None
    found: Conversation = context.request.scope[SCOPE_KEY]
    return found


async def _list_tools(context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    conversation = _conversation(context)
    conversation.listed = True
    return types.ListToolsResult(tools=[sdk.tool(tool) for tool in conversation.session.tools])


async def _call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    try:
        step = await _conversation(context).call(params.name, sdk.arguments(params))
    except (Refusal, Refused) as refusal:
        return types.CallToolResult(content=sdk.blocks(f"error: {refusal}"), is_error=True)
    return types.CallToolResult(content=sdk.blocks(step.observation), is_error=step.is_error)
