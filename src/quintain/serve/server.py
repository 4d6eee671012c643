"""One process that serves: uvicorn, the line that says it is ready, and an end in order."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from quintain.errors import EpisodeError

from .app import build
from .asgi import App
from .door import Door, Places
from .episodes.host import Host
from .journal.database import Past
from .keys import ANYONE
from .pinned import accept, pinned
from .workers import AT_ONCE

if TYPE_CHECKING:
    import uvicorn

REAP_S = 5.0
"""Seconds between looks for episodes that nobody has asked for in a while, and for threads that nobody needs."""
LOOK_S = 0.05
"""Seconds between looks whether calls still run."""
BACKLOG = 4096
"""Connections that may wait to be taken."""
DRAIN_S = 20.0
"""Seconds that running calls get once the server is told to end."""
IDLE_S = 75
"""Seconds that a connection is kept without a request. Longer than clients keep theirs, so that it is they who close
it: a request that meets a closing connection looks to them like a broken server."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a process serves.

    Attributes:
        line: On which it listens.
        orphaned: A descriptor that can be read when the process is to end at once; None where there is none.
        drain_s: Seconds that running calls get once it is told to end.
    """

    line: socket.socket
    orphaned: int | None = None
    drain_s: float = DRAIN_S


def listen(address: str, port: int) -> tuple[socket.socket, str]:
    """A line to listen on, and its URL.

    Args:
        address: Of this machine.
        port: 0 for any that is free.

    Raises:
        OSError: Nothing can listen there.
    """
    family, _, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    line = socket.create_server(where[:2], family=family, backlog=BACKLOG)
    name, number = line.getsockname()[:2]
    return line, f"http://{f'[{name}]' if ':' in name else name}:{number}"


def run(
    host: Host,
    door: Door,
    places: Places,
    *,
    place: Place,
    ready: Callable[[], None],
    pasts: Iterable[Past] = (),
) -> None:
    """Serve until SIGTERM or SIGINT; a second one ends it at once. SIGHUP has the keys read again.

    Args:
        host: What.
        door: To whom.
        places: From where they may ask.
        place: Where.
        ready: Called once requests are taken.
        pasts: Episodes that were open when the process before ended.

    Raises:
        SystemExit: It was told a second time.
    """
    import uvicorn

    mail = host.common.mail

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            """Leave signals to us: uvicorn raises them again at its end, and an orderly end has status 0."""
            yield

        async def startup(self, sockets: list[Any] | None = None) -> None:
            await super().startup(sockets)
            if mail is not None:
                mail.watch(host.shard.number, asyncio.get_running_loop(), functools.partial(accept, self))
            if not self.should_exit:
                ready()

    _allow_many_connections()
    config = _config(build(host, door, places), host, place)
    _collect_rarely()
    with asyncio.Runner(loop_factory=_loop) as runner:
        runner.run(_served(Server(config), host, door, place=place, pasts=pasts))


def _config(app: App, host: Host, place: Place) -> uvicorn.Config:
    import uvicorn

    from .http import Http
    from .websocket import WebSocket

    return uvicorn.Config(
        app,
        loop="none",
        http=Http if host.common.mail is None else pinned(host.shard, host.common.mail),
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
        timeout_graceful_shutdown=max(1, int(place.drain_s / 2)),
        backlog=BACKLOG,
    )


def _collect_rarely() -> None:
    """Look for garbage a tenth as often as Python would, which saves a tenth of a call."""
    gc.collect()
    gc.freeze()  # Nothing that is loaded by now will ever go.
    gc.set_threshold(10_000, 10, 10)


def _loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


async def _served(server: Any, host: Host, door: Door, *, place: Place, pasts: Iterable[Past]) -> None:
    loop = asyncio.get_running_loop()
    leaving = Leaving(server, host, place.drain_s)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leaving.told if place.orphaned is None else leaving.begin, number)
    loop.add_signal_handler(AT_ONCE, leaving.at_once, AT_ONCE)
    loop.add_signal_handler(signal.SIGHUP, door.look)
    if place.orphaned is not None:
        loop.add_reader(place.orphaned, os._exit, 1)
    await host.recover(pasts)
    reaping = asyncio.create_task(_reap(host))
    try:
        await server.serve(sockets=[place.line])
    finally:
        reaping.cancel()
        await _leave(host)
        host.crew.close()
    if leaving.status:
        raise SystemExit(leaving.status)


class Leaving:
    """An end in order: no new episodes, then the calls that run, then all connections.

    Args:
        server: uvicorn's.
        host: Whose episodes.
        seconds: At most, one half for calls, the other for connections.

    Attributes:
        status: Of the process.
    """

    def __init__(self, server: Any, host: Host, seconds: float) -> None:
        self.status = 0
        self._server = server
        self._host = host
        self._seconds = seconds
        self._waiting: asyncio.Task[None] | None = None

    def told(self, number: int) -> None:
        """A signal has come; the second one ends it at once."""
        if self._waiting is None:
            self.begin(number)
        else:
            self.at_once(number)

    def begin(self, _number: int) -> None:
        """A signal has come, to one of several processes, which may hear it more than once."""
        if self._waiting is None:
            self._host.draining = True
            self._waiting = asyncio.create_task(self._wait())

    def at_once(self, number: int) -> None:
        """End without waiting for anything."""
        self.status = 128 + number
        self._server.should_exit = self._server.force_exit = True

    async def _wait(self) -> None:
        most = self._seconds / 2
        if calls := self._host.busy:
            line = f"ending: waiting up to {most:g} s for {calls} call{'s' * (calls > 1)}\n"
            print(line, end="", file=sys.stderr, flush=True)  # noqa: T201  # Who has pressed Ctrl-C wants to know.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most):
                while self._host.busy:  # noqa: ASYNC110  # calls end without telling anybody
                    await asyncio.sleep(LOOK_S)
        self._server.should_exit = True


def _allow_many_connections() -> None:
    """Have as many descriptors as this process may: each idle client needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # What may be had is not always what is said.
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _reap(host: Host) -> None:
    while True:
        await asyncio.sleep(REAP_S)
        await expire(host)
        host.crew.rest()


async def expire(host: Host) -> None:
    """Close what nobody has asked for in a while. Where something is being done, somebody waits for it."""
    seconds = host.limits.idle_s
    why = EpisodeError(f"nobody asked for it for {seconds:g} s", part="C", kind="session_expired")
    for live in host.lives(ANYONE):
        if live.is_busy:
            live.touched = time.monotonic()
        elif live.is_idle(seconds) and live.status != "closed":
            await host.close(live.id, live.owner, why)


async def _leave(host: Host) -> None:
    """Close what does not outlive the process, and keep what is to be kept.

    Nobody is there any more to hear of what still runs. So it ends here, and no record waits for it.
    """
    for task in asyncio.all_tasks() - host.closing.tasks - {asyncio.current_task()}:
        task.cancel()
    why = EpisodeError("the server was shut down", part="C", kind="shutdown")
    for live in () if host.log.keeps else host.lives(ANYONE):
        if live.status != "closed":
            await host.close(live.id, live.owner, why)
    await host.closing.end()
