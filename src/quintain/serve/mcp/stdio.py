"""One process, one episode: the protocol over stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import select
import signal
import sys
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.harness import Agent
from quintain.serve.episodes.actions import LEFT
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.episodes.live import Live
from quintain.serve.errors import Void
from quintain.serve.http.keys import ANYONE
from quintain.trace import Trace

from .handlers import Handlers, Target

_log = logging.getLogger(__name__)


async def play(
    env: Environment[Any], wanted: EpisodeSpec, *, user: Agent | None = None, to: Path | None = None
) -> Trace:
    """Serves one episode until its input ends; then ends it, scores it, and writes its trace.

    SIGTERM and SIGINT count as the end of the input, and end the process with status 0.

    Args:
        env: The environment.
        wanted: The episode.
        user: Plays the roles beside the agent's; None if there is none.
        to: A file of traces, to which this one is added; None if it is not kept.

    Raises:
        UsageError: The file cannot be written.
        Unknown, Refused: The task or the split is unknown.
        Void: The world could not be built.
    """
    with contextlib.ExitStack() as held:
        kept = held.enter_context(_opened(to)) if to is not None else None
        with contextlib.redirect_stdout(sys.stderr):  # The protocol's alone; what building a world prints is not.
            host = Host([env], user=user)
            live = await host.create(wanted, ANYONE)
            await live.ready()
        serving = asyncio.create_task(_serve(live))
        await _until_left(serving)
        with contextlib.suppress(Void):  # Its trace says so.
            await _end(live)
        if kept is not None:
            kept.write(live.trace.to_json() + b"\n")
            os.fsync(kept.fileno())
        if not serving.done():
            os._exit(0)  # A thread waits for input that no signal can call off; everything that matters is written.
        await serving
        host.executor.close()
        return live.trace


async def _end(live: Live) -> None:
    """Ends the episode: as invalid if the client vanished without a call or reads no more, else by the rules."""
    if not live.has_calls:
        await live.abandon("the client left before it made a call")
    elif _is_unread(sys.stdout.fileno()):
        await live.abandon("the client is gone: nothing reads the answers any more")
    else:
        await live.end(LEFT.reason)


def _is_unread(file: int) -> bool:
    poll = select.poll()
    poll.register(file, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


async def _serve(live: Live) -> None:
    target = Target(live, has_ids=True)
    server = Handlers(lambda _: target).server
    messages, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
    try:
        async with stdio_server() as (read, write), asyncio.TaskGroup() as tasks:
            tasks.create_task(_sort(read, messages, write.send))
            await server.run(received, write, server.create_initialization_options())
    except* BrokenPipeError:
        _log.info("the agent reads no answers any more, so it has left")


async def _sort(
    read: AsyncIterable[SessionMessage | Exception],
    messages: MemoryObjectSendStream[SessionMessage | Exception],
    answer: Callable[[SessionMessage], Awaitable[None]],
) -> None:
    """Passes messages on, and answers lines that are not messages, which the SDK would leave unanswered."""
    async with messages:
        async for one in read:
            if not isinstance(one, ValidationError):
                await messages.send(one)
            elif str((found := one.errors())[0]["input"]).strip():  # An empty line says nothing.
                await answer(SessionMessage(_mistake(found)))


def _mistake(found: Sequence[ErrorDetails]) -> types.JSONRPCError:
    is_json = all(one["type"] != "json_invalid" for one in found)
    code, words = (types.INVALID_REQUEST, "Invalid request") if is_json else (types.PARSE_ERROR, "Parse error")
    name = next((name for one in found if (name := _id(one["input"])) is not None), None)
    return types.JSONRPCError(jsonrpc="2.0", id=name, error=types.ErrorData(code=code, message=words))


def _id(said: Any) -> types.RequestId | None:
    """Returns the id in a line that the SDK cannot read, such as one with half a surrogate pair."""
    if isinstance(said, str):
        try:
            said = json.loads(said)
        except (ValueError, RecursionError):
            return None
    match said:
        case {"id": int() | str() as name} if not isinstance(name, bool):
            return name
        case _:
            return None


async def _until_left(serving: asyncio.Task[None]) -> None:
    """Waits for the end of the input, or for a signal."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    telling = asyncio.create_task(stopped.wait())
    await asyncio.wait({serving, telling}, return_when=asyncio.FIRST_COMPLETED)
    telling.cancel()


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("ab", buffering=0)
    except OSError as error:
        raise UsageError(f"cannot write the trace to {str(path)!r}: {error.strerror}") from error
