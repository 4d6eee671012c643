"""The episode's tools over MCP, by its official SDK, which is large and loaded only when a program asks for it."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

import quintain
from quintain.serve.asgi import Request
from quintain.tools import Tool
from quintain.trace import Block, Content, Text

from .asked import Refusal
from .conversation import Conversation

Context = ServerRequestContext[Any, Any]

_CONVERSATION = "dev.quintain.conversation"


class Actions:
    """One SDK server for the programs of all episodes in an event loop. It keeps nothing: an episode is its address."""

    def __init__(self, most: int) -> None:
        server: Server[Any] = Server(
            "quintain",
            version=quintain.__version__,
            get_tool_input_schema=_without_headers,
            on_list_tools=_list_tools,
            on_call_tool=_call_tool,
        )
        self._manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=most)
        self._running: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()

    async def handle(self, request: Request, conversation: Conversation) -> None:
        """Answer one request.

        Raises:
            Refusal: It is no POST; there is no stream of the server's own, and no session that a client could end.
        """
        if request.method != "POST":
            raise Refusal("this takes POST", status=405, code="method_not_allowed")
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        await self._opened.wait()
        scope = {**request.scope, _CONVERSATION: conversation}
        await self._manager.handle_request(scope, request.receive, request.send)

    async def _run(self) -> None:
        """Hold the manager open, which must be left by the task that entered it."""
        async with self._manager.run():
            self._opened.set()
            await asyncio.Event().wait()

    async def aclose(self) -> None:
        """Leave the manager."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)


def _conversation(context: Context) -> Conversation:
    assert context.request is not None
    found: Conversation = context.request.scope[_CONVERSATION]
    return found


async def _list_tools(context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    conversation = _conversation(context)
    conversation.listed = True
    return types.ListToolsResult(tools=[_tool(tool) for tool in conversation.tools])


async def _call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = json.dumps(params.arguments or {}, ensure_ascii=False)
    try:
        step = await _conversation(context).call(params.name, arguments)
    except Refusal as refusal:
        return types.CallToolResult(content=_content(f"error: {refusal}"), is_error=True)
    return types.CallToolResult(content=_content(step.observation), is_error=step.is_error)


def _tool(tool: Tool) -> types.Tool:
    return types.Tool(name=tool.name, description=tool.description, input_schema=tool.parameters)


def _content(content: Content) -> list[types.ContentBlock]:
    if isinstance(content, str):  # Models refuse empty texts, so that these are no block.
        return [types.TextContent(text=content)] if content else []
    return [_block(block) for block in content]


def _block(block: Block) -> types.ContentBlock:
    if isinstance(block, Text):
        return types.TextContent(text=block.text)
    return types.ImageContent(data=base64.b64encode(block.data).decode(), mime_type=block.media_type)


def _without_headers(name: str) -> None:
    """No tool of ours declares that arguments are repeated in headers."""
