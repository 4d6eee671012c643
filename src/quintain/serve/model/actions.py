"""Episode tools over MCP, by the official SDK, which is loaded when a program first needs it."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

import quintain
from quintain.serve.errors import Refused
from quintain.serve.http import mcp_sdk as sdk
from quintain.serve.http.asgi import HttpRequest

from .api import Refusal
from .conversation import Conversation

Context = ServerRequestContext[Any, Any]

_CONVERSATION = "dev.quintain.conversation"


class Actions:
    """SDK server for the programs of all episodes in an event loop, without state of its own."""

    def __init__(self, most: int) -> None:
        server: Server[Any] = Server(
            "quintain",
            version=quintain.__version__,
            get_tool_input_schema=sdk.without_headers,
            on_list_tools=_list_tools,
            on_call_tool=_call_tool,
        )
        self._manager = sdk.Manager(server, most=most)

    async def handle(self, request: HttpRequest, conversation: Conversation) -> None:
        """Answers a POST; raises Refusal for other methods, because the server has no streams and no sessions."""
        if request.method != "POST":
            raise Refusal("this takes POST", status=405, code="method_not_allowed")
        scope = {**request.scope, _CONVERSATION: conversation}
        await self._manager.handle(scope, request.receive, request.send)

    async def aclose(self) -> None:
        """Ends the SDK's session manager."""
        await self._manager.aclose()


def _conversation(context: Context) -> Conversation:
    assert context.request is not None
    found: Conversation = context.request.scope[_CONVERSATION]
    return found


async def _list_tools(context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    conversation = _conversation(context)
    conversation.listed = True
    return types.ListToolsResult(tools=[sdk.tool(tool) for tool in conversation.tools])


async def _call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    try:
        step = await _conversation(context).call(params.name, sdk.arguments(params))
    except (Refusal, Refused) as refusal:
        return types.CallToolResult(content=sdk.blocks(f"error: {refusal}"), is_error=True)
    return types.CallToolResult(content=sdk.blocks(step.observation), is_error=step.is_error)
