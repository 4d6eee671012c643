"""One process, one episode: the protocol over stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO

from mcp.server.stdio import stdio_server

from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.harness import Agent
from quintain.serve.errors import Void
from quintain.serve.host import Host, Wanted
from quintain.serve.keys import ANYONE
from quintain.serve.live import Live
from quintain.serve.moves import LEFT
from quintain.trace import Trace

from .desk import Asked, Desk


async def play(env: Environment[Any], wanted: Wanted, *, user: Agent | None = None, to: Path | None = None) -> Trace:
    """Serve one episode until its input ends; then end it, score it, and keep its trace.

    SIGTERM and SIGINT count as the end of the input, and end the process with status 0.

    Args:
        env: The environment.
        wanted: The episode.
        user: Who plays the roles beside the agent's; None where nobody does.
        to: A file of traces, to which this one is added; None where it is not kept.

    Raises:
        UsageError: The file cannot be written.
        Unknown, Refused: There is no such task or split.
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
            await live.end(LEFT.reason)
        if kept is not None:
            kept.write(live.trace.to_json() + b"\n")
            os.fsync(kept.fileno())
        if not serving.done():
            os._exit(0)  # A thread waits for input that no signal can call off; everything that matters is written.
        await serving
        host.crew.close()
        return live.trace


async def _serve(live: Live) -> None:
    asked = Asked(live, "stdio", lambda: False)
    server = Desk(lambda _: asked).server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _until_left(serving: asyncio.Task[None]) -> None:
    """Wait for the end of the input, or to be told to stop."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    telling = asyncio.create_task(told.wait())
    await asyncio.wait({serving, telling}, return_when=asyncio.FIRST_COMPLETED)
    telling.cancel()


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("ab", buffering=0)
    except OSError as error:
        raise UsageError(f"cannot write the trace to {str(path)!r}: {error.strerror}") from error
