"""One server on loopback for all programs of an event loop: there while one of them runs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import weakref
from collections.abc import AsyncGenerator, Generator
from typing import Any

from quintain.errors import UsageError

from .endpoint import Paths

ADDRESS = "127.0.0.1"


class Listener:
    """Server on which programs find their episodes.

    Attributes:
        paths: Its application.
        url: Its address, without a slash at the end.
    """

    def __init__(self) -> None:
        self.paths = Paths()
        self.url = ""
        self._users = 0
        self._changing = asyncio.Lock()
        self._server: Any = None
        self._serving: asyncio.Task[None] | None = None

    async def enter(self) -> None:
        async with self._changing:
            if not self._users:
                await self._start()
            self._users += 1

    async def leave(self) -> None:
        async with self._changing:
            self._users -= 1
            if not self._users:
                await self._stop()

    async def _start(self) -> None:
        server = self._server = _server(self.paths)
        # The protocol by its number: only then does asyncio switch off the delay that gathers small packets.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind((ADDRESS, 0))
        listening.listen(1024)
        self.url = f"http://{ADDRESS}:{listening.getsockname()[1]}"
        # It takes connections already; the server comes to them when the loop comes to it.
        self._serving = asyncio.create_task(server.serve(sockets=[listening]))

    async def _stop(self) -> None:
        assert self._serving is not None
        self._server.should_exit = True
        self._server.force_exit = True  # Whoever could be answered is gone.
        await self._serving
        await self.paths.aclose()


_doors: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Listener] = weakref.WeakKeyDictionary()


@contextlib.asynccontextmanager
async def opened() -> AsyncGenerator[Listener]:
    """The door of the running event loop.

    Raises:
        UsageError: The extra `serve` is not installed.
    """
    door = _doors.setdefault(asyncio.get_running_loop(), Listener())
    await door.enter()
    try:
        yield door
    finally:
        await door.leave()


def _server(paths: Paths) -> Any:
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        raise UsageError("programs as agents need an extra: pip install 'quintain[serve]'") from error

    class QuietServer(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            """Ctrl-C is the run's, not ours."""
            yield

    config = uvicorn.Config(
        paths,
        loop="none",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # Who asks is who is at the other end, whatever a header says.
        server_header=False,
        date_header=False,
        timeout_keep_alive=3600,
    )
    return QuietServer(config)
