"""Handlers of the protocol's requests, on whatever transport they come."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

import quintain
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.views import CallAnswer, answer_text, answer_tool
from quintain.serve.errors import Finished, Gone, Refused, Unavailable, Void
from quintain.serve.http import mcp_sdk as sdk

from . import wire

Context = ServerRequestContext[Any, Any]

BROKEN = "error: the environment is broken"
OVER = "This episode has ended; nothing more can be done in it."
ANOTHERS_TURN = "It is somebody else's turn in this episode."

_OPENING = ("initialize", "server/discover")


class Target(NamedTuple):
    """Episode of a request, and its idempotency key, or an empty text.

    With `has_ids` one client alone sends requests, so that a request's id is its key.
    """

    live: Live
    key: str = ""
    has_ids: bool = False


class Handlers:
    """Handlers of one SDK server, for one episode or for many; `target` returns the target of a request."""

    def __init__(self, target: Callable[[Context], Target]) -> None:
        self._target = target
        self._calls: set[asyncio.Task[CallAnswer]] = set()
        self.server: Server[Any] = Server(
            "quintain",
            version=quintain.__version__,
            get_tool_input_schema=sdk.without_headers,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )
        self.server.middleware.append(self._instruct)

    async def _instruct(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Adds the task to the first answer that a client reads."""
        result = await call_next(ctx)
        if ctx.method in _OPENING and isinstance(result, dict):
            live = await self._ready(ctx)
            return {**result, "instructions": wire.instructions(live.first)}
        return result

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        live = await self._ready(context)
        return types.ListToolsResult(tools=[*map(sdk.tool, live.tools), wire.spoken_tool(live.env)])

    async def _list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[wire.PROMPT])

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != wire.PROMPT.name:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
        return wire.prompt((await self._ready(context)).first)

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        target = self._target(context)
        live = target.live
        try:
            arguments = sdk.arguments(params)
            await live.ready()
            key = _key(target, context.request_id, (params.name, arguments))
            question = live.question
            if question is not None and question.role != "agent" and not live.knows(key):
                return wire.refusal(ANOTHERS_TURN, live)
            answer = await self._made(live, params.name, arguments, key=key)
        except Finished:
            return wire.refusal(OVER, live)
        except Void:
            return wire.refusal(BROKEN, live)
        except Refused as error:
            return wire.refusal(f"error: {error}", live)
        except Gone as error:
            raise MCPError(types.INVALID_REQUEST, str(error)) from error
        except Unavailable as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        return wire.result(answer)

    async def _made(self, live: Live, name: str, arguments: str, *, key: str) -> CallAnswer:
        """Makes a call, which goes on if its client leaves."""
        if not live.knows(key):
            live.room(2 * len(arguments))
        if name == answer_tool(live.env):
            making = live.answer(answer_text(arguments), key=key)
        else:
            making = live.call(name, arguments, key=key)
        call = asyncio.create_task(making)
        self._calls.add(call)
        call.add_done_callback(self._forget)
        return await asyncio.shield(call)

    async def _ready(self, context: Context) -> Live:
        """Returns the episode of a request once it has begun."""
        live = self._target(context).live
        try:
            await live.ready()
        except Void as error:
            raise MCPError(types.INTERNAL_ERROR, BROKEN, wire.unpaid(live)) from error
        except Gone as error:
            raise MCPError(types.INVALID_REQUEST, str(error)) from error
        return live

    def _forget(self, call: asyncio.Task[CallAnswer]) -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # The episode's record says what went wrong, also if the client has left.


def _key(target: Target, id: object, call: tuple[str, str]) -> str:
    """Returns the idempotency key of a call; empty if the request has none."""
    if target.key:
        return f"mcp/{target.key}"
    if not target.has_ids:  # Clients that connect one after the other all count their ids from the same number.
        return ""
    request = hashlib.blake2b(json.dumps(call).encode(), digest_size=16).hexdigest()
    return f"mcp/{json.dumps(id)}/{request}"
