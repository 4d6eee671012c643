"""What an episode answers to the protocol's requests, on whatever transport they come."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

import quintain
from quintain.serve import sdk
from quintain.serve.episodes import undelivered as unheard
from quintain.serve.episodes import words
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.views import Answer, last_words
from quintain.serve.errors import Finished, Gone, Refused, Unavailable, Void

from . import wire

Context = ServerRequestContext[Any, Any]


class Asked(NamedTuple):
    """What a request is about.

    Attributes:
        live: The episode.
        gone: Whether the client has left.
        told: Takes the key of a call that has an answer now, and what was asked; it sees whether that is delivered.
        key: What the client calls this very request, whatever connection it comes by; empty where it says nothing.
        alone: Whether one client speaks here, and no other ever, so that an id names one request.
    """

    live: Live
    gone: Callable[[], bool]
    told: Callable[[str, bytes], None]
    key: str = ""
    alone: bool = False


BROKEN = "error: the environment is broken"
OVER = "This episode has ended; nothing more can be done in it."
ANOTHERS_TURN = "It is somebody else's turn in this episode."

_OPENING = ("initialize", "server/discover")


class Desk:
    """The handlers of one SDK server, for one episode or for many.

    Args:
        asked: What a request is about.

    Attributes:
        server: The SDK's.
    """

    def __init__(self, asked: Callable[[Context], Asked]) -> None:
        self._asked = asked
        self._calls: set[asyncio.Task[Answer]] = set()
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
        """Put the task into the first thing that a client reads."""
        told = await call_next(ctx)
        if ctx.method in _OPENING and isinstance(told, dict):
            live = await self._ready(ctx)
            return {**told, "instructions": wire.instructions(live.first)}
        return told

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        live = await self._ready(context)
        return types.ListToolsResult(tools=[*map(sdk.tool, live.tools), wire.words_tool(live.env)])

    async def _list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[wire.PROMPT])

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != wire.PROMPT.name:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
        return wire.prompt((await self._ready(context)).first)

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        asked = self._asked(context)
        try:
            arguments = sdk.arguments(params)
            request = hashlib.blake2b(json.dumps([params.name, arguments]).encode(), digest_size=16).digest()
            await asked.live.ready()
            key = f"mcp/{asked.key}" if asked.key else _lost(asked.live, request) or _key(asked, context, request)
            question = asked.live.question
            if question is not None and question.role != "agent" and not asked.live.knows(key):
                return wire.refusal(ANOTHERS_TURN, asked.live)
            answer = await self._made(asked, params.name, arguments, key=key, request=request)
        except Finished:
            return wire.refusal(OVER, asked.live)
        except Void:
            return wire.refusal(BROKEN, asked.live)
        except Refused as error:
            return wire.refusal(f"error: {error}", asked.live)
        except Gone as error:
            raise MCPError(types.INVALID_REQUEST, str(error)) from error
        except Unavailable as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        return wire.result(answer)

    async def _made(self, asked: Asked, name: str, arguments: str, *, key: str, request: bytes) -> Answer:
        """Make a call, which goes on when whoever waits for it leaves: a world cannot stop halfway."""
        live = asked.live
        if not live.knows(key):
            live.room(2 * len(arguments))
            if not asked.key:
                live.lost[key] = None
        if name == last_words(live.env):
            making = live.answer(words.said(arguments), key=key)
        else:
            making = live.call(name, arguments, key=key)
        call = asyncio.create_task(making)
        self._calls.add(call)
        call.add_done_callback(self._forget)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            live.asked[key] = (request, unheard.gone, unheard.FOREVER)
            call.add_done_callback(lambda _: unheard.left(live, key, request))
            raise
        finally:
            if call.done():
                asked.told(key, request)

    async def _ready(self, context: Context) -> Live:
        """The episode of a request, once there is something to show of it."""
        live = self._asked(context).live
        try:
            await live.ready()
        except Void as error:
            raise MCPError(types.INTERNAL_ERROR, BROKEN, wire.unpaid(live)) from error
        except Gone as error:
            raise MCPError(types.INVALID_REQUEST, str(error)) from error
        return live

    def _forget(self, call: asyncio.Task[Answer]) -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # Where nobody waits any more, the episode's record says what went wrong.


def _lost(live: Live, request: bytes) -> str:
    """The key of the same request that came before, when its answer never reached a client; else empty."""
    if not (live.asked or live.lost):
        return ""
    found = unheard.same(live, request, lambda key: key.endswith(f"/{request.hex()}")) or ""
    live.asked.pop(found, None)
    return found


def _key(asked: Asked, context: Context, request: bytes) -> str:
    """Names a call. Clients that come one after the other all count their ids from the same number."""
    name = json.dumps(context.request_id) if asked.alone else secrets.token_hex(8)
    return f"mcp/{name}/{request.hex()}"
