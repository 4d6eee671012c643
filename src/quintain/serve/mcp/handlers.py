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
from quintain.serve.episodes import views
from quintain.serve.episodes.live import Live
from quintain.serve.errors import Finished, Gone, Refused, Unavailable, Void
from quintain.serve.http import mcp_sdk as sdk
from quintain.serve.http.asgi import detached
from quintain.trace import plain

from . import TARGET

Context = ServerRequestContext[Any, Any]

BROKEN = "error: the environment is broken"
OVER = "This episode has ended; nothing more can be done in it."
ANOTHERS_TURN = "It is somebody else's turn in this episode."

PROMPT = types.Prompt(name="task", description="What is to be done in this episode.")
"""The one prompt that an episode has."""

_OPENING = ("initialize", "server/discover")


class Target(NamedTuple):
    """Episode of a request, and its idempotency key, or an empty text.

    With `has_ids` one client alone sends requests, so that a request's id is its key.
    """

    live: Live
    key: str = ""
    has_ids: bool = False


def manager(most: int) -> sdk.Manager:
    """Returns the manager of one SDK server for all episodes; their `TARGET` in the scope is an episode and a key.

    Nothing is kept per episode or per client, so clients may connect, leave and come back.
    """

    def target(context: Context) -> Target:
        carried: Any = context.request
        return Target(*carried.scope[TARGET])

    return sdk.Manager(Handlers(target).server, most=most)


class Handlers:
    """Handlers of one SDK server, for one episode or for many; `target` returns the target of a request."""

    def __init__(self, target: Callable[[Context], Target]) -> None:
        self._target = target
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
            first = (await self._ready(ctx)).first
            texts = [plain(one.content) for one in first if one.role in ("system", "user") and one.content]
            return {**result, "instructions": "\n\n".join(texts)}
        return result

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        live = await self._ready(context)
        answer = types.Tool(
            name=views.answer_tool(live.env), description=views.ANSWER_DESCRIPTION, input_schema=views.ANSWER_SCHEMA
        )
        return types.ListToolsResult(tools=[*map(sdk.tool, live.tools), answer])

    async def _list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[PROMPT])

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != PROMPT.name:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
        live = await self._ready(context)
        messages = [
            types.PromptMessage(role="assistant" if message.role == "assistant" else "user", content=block)
            for message in live.first  # The protocol has no system messages.
            if message.role != "tool" and message.content
            for block in sdk.blocks(message.content)
        ]
        return types.GetPromptResult(description=PROMPT.description, messages=messages)

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        target = self._target(context)
        live = target.live
        try:
            arguments = sdk.arguments(params)
            await live.ready()
            key = _key(target, context.request_id, (params.name, arguments))
            question = live.question
            if question is not None and question.role != "agent" and not live.knows(key):
                return _refusal(ANOTHERS_TURN, live)
            if not live.knows(key):
                live.room(2 * len(arguments))
            if params.name == views.answer_tool(live.env):
                call = live.answer(views.answer_text(arguments), key=key)
            else:
                call = live.call(params.name, arguments, key=key)
            answer = await asyncio.shield(detached(call))
        except Finished:
            return _refusal(OVER, live)
        except Void:
            return _refusal(BROKEN, live)
        except Refused as error:
            return _refusal(f"error: {error}", live)
        except Gone as error:
            raise MCPError(types.INVALID_REQUEST, str(error)) from error
        except Unavailable as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        return _result(answer)

    async def _ready(self, context: Context) -> Live:
        """Returns the episode of a request once it has begun."""
        live = self._target(context).live
        try:
            await live.ready()
        except Void as error:
            raise MCPError(types.INTERNAL_ERROR, BROKEN, _unpaid(live)) from error
        except Gone as error:
            raise MCPError(types.INVALID_REQUEST, str(error)) from error
        return live


def _key(target: Target, id: object, call: tuple[str, str]) -> str:
    """Returns the idempotency key of a call; empty if the request has none."""
    if target.key:
        return f"mcp/{target.key}"
    if not target.has_ids:  # Clients that connect one after the other all count their ids from the same number.
        return ""
    request = hashlib.blake2b(json.dumps(call).encode(), digest_size=16).hexdigest()
    return f"mcp/{json.dumps(id)}/{request}"


def _result(answer: views.CallAnswer) -> types.CallToolResult:
    """Returns the result of a call; the score stands in the metadata, which agents do not show to their models."""
    meta = {**_bare(answer.meta), f"{views.PREFIX}finished": answer.finished, f"{views.PREFIX}reward": answer.reward}
    content, data = sdk.blocks(answer.content), answer.data or None
    return types.CallToolResult(content=content, structured_content=data, is_error=answer.is_error, _meta=meta)


def _refusal(words: str, live: Live) -> types.CallToolResult:
    return types.CallToolResult(content=sdk.blocks(words), is_error=True, _meta=_unpaid(live))


def _unpaid(live: Live) -> dict[str, Any]:
    """Returns the metadata of an episode without the score, which only the call that ended it carries."""
    return {**_bare(live.meta), f"{views.PREFIX}reward": None}


def _bare(meta: dict[str, Any]) -> dict[str, Any]:
    """Returns the metadata as an agent may read it, because the address is given to agents' programs."""
    bare = dict(meta)
    bare.pop(views.STATE_DIGEST, None)
    if views.FAILURE in meta:
        bare[views.FAILURE] = {**meta[views.FAILURE], "message": views.WITHHELD}
    if (rewards := bare.pop(views.REWARDS, None)) and meta.get(f"{views.PREFIX}finished"):
        bare[views.REWARDS] = [{name: value for name, value in one.items() if name != "reason"} for one in rewards]
    return bare
