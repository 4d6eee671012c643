"""The process that serves: uvicorn, the line that announces it, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

from quintain.errors import EpisodeError
from quintain.serve.episodes.actions import SHUTDOWN
from quintain.serve.episodes.host import Host
from quintain.serve.http.app import build
from quintain.serve.http.asgi import App
from quintain.serve.http.auth import Auth, HostCheck
from quintain.serve.http.keys import ANYONE
from quintain.serve.http.limits import Limits
from quintain.serve.journal.database import Past

if TYPE_CHECKING:
    import uvicorn

REAP_S = 5.0
"""Seconds between two searches for idle episodes and threads."""
LOOK_S = 0.05
"""Seconds between two looks whether calls still run."""
BACKLOG = 4096
"""Connections that may wait to be taken."""
DRAIN_S = 20.0
"""Seconds that running calls get after a signal to end."""
IDLE_S = 75
"""Seconds that a connection is kept without a request. Clients keep theirs for less, so that the client closes it: a
request that meets a closing connection looks like a broken server."""
HEADER_BYTES = 64 << 10
"""Longest header of a request that opens a WebSocket: secrets come in one."""
SPARE = 256
"""Descriptors that are left for files, when connections take all others."""


def listen(address: str, port: int) -> tuple[socket.socket, str]:
    """Returns a socket that listens at an address of this machine, and its URL; port 0 is any free one."""
    family, _, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    line = socket.create_server(where[:2], family=family, backlog=BACKLOG)
    name, number = line.getsockname()[:2]
    return line, f"http://{f'[{name}]' if ':' in name else name}:{number}"


def run(
    host: Host,
    door: Auth,
    places: HostCheck,
    *,
    line: socket.socket,
    ready: Callable[[], None],
    pasts: Iterable[Past] = (),
    drain_s: float = DRAIN_S,
) -> None:
    """Serves until SIGTERM or SIGINT; a second one ends the process at once. SIGHUP reads the keys again.

    Args:
        host: The environments and episodes.
        door: Admits callers.
        places: Checks hosts and origins.
        line: The listening socket.
        ready: Called once requests are taken.
        pasts: Episodes that were open when the process before ended.
        drain_s: Seconds that running calls get at the end.

    Raises:
        SystemExit: A second signal came.
    """
    import uvicorn

    class ReadyServer(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            """Leaves signals to `Leaving`: uvicorn raises them again at its end, and an orderly end has status 0."""
            yield

        async def startup(self, sockets: list[Any] | None = None) -> None:
            await super().startup(sockets)
            if not self.should_exit:
                ready()

    config = _config(build(host, door, places), host.limits, drain_s)
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    _collect_rarely()
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_served(ReadyServer(config), host, door, line=line, pasts=pasts, drain_s=drain_s))


def _config(app: App, limits: Limits, drain_s: float) -> uvicorn.Config:
    os.environ.setdefault("WEBSOCKETS_MAX_LINE_LENGTH", str(HEADER_BYTES))  # Read when `websockets` is loaded.
    import uvicorn

    return uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws_max_size=4 * limits.body_bytes,  # Up to here a frame that is too long gets an answer.
        ws_per_message_deflate=False,  # It costs more than a step.
        ws_ping_timeout=120.0,  # A trainer whose event loop computes for a minute keeps its sockets.
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=max(1, int(drain_s / 2)),
        limit_concurrency=_most_connections(),
        backlog=BACKLOG,
    )


def _is_news(record: logging.LogRecord) -> bool:
    """False for what uvicorn logs of clients that break a protocol, of refused WebSockets, and of answers cut short."""
    return not str(record.msg).startswith(("Invalid ", "ASGI callable returned without completing"))


def _collect_rarely() -> None:
    """Collects garbage a tenth as often as Python would, which saves a tenth of a call."""
    gc.collect()
    gc.freeze()  # What is loaded by now is never freed.
    gc.set_threshold(10_000, 10, 10)


async def _served(
    server: Any, host: Host, door: Auth, *, line: socket.socket, pasts: Iterable[Past], drain_s: float
) -> None:
    loop = asyncio.get_running_loop()
    leaving = Leaving(server, host, drain_s)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leaving.signalled, number)
    loop.add_signal_handler(signal.SIGHUP, door.look)
    await host.recover(pasts)
    reaping = asyncio.create_task(_reap(host))
    try:
        await server.serve(sockets=[line])
    finally:
        reaping.cancel()
        await _leave(host)
        host.executor.close()
    if leaving.status:
        raise SystemExit(leaving.status)


class Leaving:
    """An orderly end: no new episodes, then half of the seconds for running calls, and half for connections.

    `status` is the exit status of the process.
    """

    def __init__(self, server: Any, host: Host, seconds: float) -> None:
        self.status = 0
        self._server = server
        self._host = host
        self._seconds = seconds
        self._waiting: asyncio.Task[None] | None = None

    def signalled(self, number: int) -> None:
        """Begins the end at the first signal, and ends at once at the second."""
        if self._waiting is None:
            self._host.draining = True
            self._waiting = asyncio.create_task(self._wait())
        else:
            self.status = 128 + number
            self._server.should_exit = self._server.force_exit = True

    async def _wait(self) -> None:
        most = self._seconds / 2
        if calls := self._host.busy:
            line = f"ending: waiting up to {most:g} s for {calls} call{'s' * (calls > 1)}\n"
            print(line, end="", file=sys.stderr, flush=True)  # noqa: T201  # Feedback to Ctrl-C.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most):
                while self._host.busy:  # noqa: ASYNC110  # a call's end sets no event
                    await asyncio.sleep(LOOK_S)
        self._server.should_exit = True


def _most_connections() -> int | None:
    """Raises the limit of descriptors as far as allowed; returns the connections that it leaves room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # Some systems allow less than they report.
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else max(soft // 2, soft - SPARE)


async def _reap(host: Host) -> None:
    while True:
        await asyncio.sleep(REAP_S)
        await expire(host)
        host.executor.drop_idle()


async def expire(host: Host) -> None:
    """Closes idle episodes. One in which something runs is not idle."""
    seconds = host.limits.idle_s
    why = EpisodeError(f"nobody asked for it for {seconds:g} s", component="C", kind="session_expired")
    for live in host.lives(ANYONE):
        if live.is_busy:
            live.touched = time.monotonic()
        elif live.is_idle(seconds) and live.status != "closed":
            await host.close(live.id, live.owner, why)


async def _leave(host: Host) -> None:
    """Ends what still runs, since no client is left to read it, and closes the episodes that no journal keeps."""
    for task in asyncio.all_tasks() - host.closing - {asyncio.current_task()}:
        task.cancel()
    for live in () if host.log.keeps else host.lives(ANYONE):
        if live.status != "closed":
            await host.close(live.id, live.owner, SHUTDOWN)
    await host.wait_closed()
