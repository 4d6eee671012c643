"""One process that serves: uvicorn, the line that says it is ready, and an end in order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

from .app import build
from .asgi import App
from .door import Door, Places
from .host import Host
from .journal import Past

if TYPE_CHECKING:
    import uvicorn

REAP_S = 5.0
"""Seconds between looks for episodes that nobody has asked for in a while."""
DRAIN_S = 20.0
"""Seconds that running calls get once the server is told to end."""
IDLE_S = 75
"""Seconds that a connection is kept without a request. Longer than clients keep theirs, so that it is they who close
it: a request that meets a closing connection looks to them like a broken server."""


def serve(
    host: Host,
    door: Door,
    places: Places,
    *,
    address: str,
    port: int,
    ready: Callable[[str], None],
    pasts: Iterable[Past] = (),
) -> None:
    """Serve until SIGTERM or SIGINT. SIGHUP has the keys read again.

    Args:
        host: What.
        door: To whom.
        places: From where they may ask.
        address: Where to listen.
        port: 0 for any that is free.
        ready: Told the URL once requests are taken.
        pasts: Episodes that were open when the process before ended.

    Raises:
        OSError: Nothing can listen there.
    """
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            """Leave signals to us: uvicorn raises them again at its end, and an orderly end has status 0."""
            yield

        async def startup(self, sockets: list[Any] | None = None) -> None:
            await super().startup(sockets)
            if not self.should_exit:
                where, number = self.servers[0].sockets[0].getsockname()[:2]
                ready(f"http://{f'[{where}]' if ':' in where else where}:{number}")

    config = _config(build(host, door, places), host, address=address, port=port)
    _collect_rarely()
    with asyncio.Runner(loop_factory=_loop) as runner:
        runner.run(_served(Server(config), host, door, pasts=pasts))


def _config(app: App, host: Host, *, address: str, port: int) -> uvicorn.Config:
    import uvicorn

    from .http import Http
    from .websocket import WebSocket

    return uvicorn.Config(
        app,
        host=address,
        port=port,
        loop="none",
        http=Http,
        ws=WebSocket,
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws_max_size=4 * host.limits.body_bytes,  # Longer than allowed is told in a frame; far longer ends the socket.
        ws_per_message_deflate=False,  # It costs more than a step.
        ws_ping_timeout=120.0,  # A trainer whose event loop computes for a minute keeps its sockets.
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=int(DRAIN_S),
        backlog=4096,
    )


def _collect_rarely() -> None:
    """Look for garbage a tenth as often as Python would, which saves a tenth of a call."""
    gc.collect()
    gc.freeze()  # Nothing that is loaded by now will ever go.
    gc.set_threshold(10_000, 10, 10)


def _loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


async def _served(server: Any, host: Host, door: Door, *, pasts: Iterable[Past]) -> None:
    await host.recover(pasts)
    loop = asyncio.get_running_loop()

    def leave() -> None:
        host.draining = True
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave)
    loop.add_signal_handler(signal.SIGHUP, door.look)
    reaping = asyncio.create_task(_reap(host))
    try:
        await server.serve()
    finally:
        reaping.cancel()
        host.crew.close()


async def _reap(host: Host) -> None:
    while True:
        await asyncio.sleep(REAP_S)
        await host.expire()
