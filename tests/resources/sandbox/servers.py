"""Hosts that a sandbox may reach or not, a resolver that leads to them, and a proxy between."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path
from typing import Any

from quintain.resources.sandbox.proxy import Bounds, Proxy, allow

OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"
GUARD = 60.0
"""Seconds after which a test hangs."""


class Server:
    """Answers each connection once it has read `until`, then listens on to its end; remembers all that it was sent."""

    def __init__(self, answer: bytes, until: bytes) -> None:
        self._answer, self._until = answer, until
        self.got: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place = len(self.got)
        self.got.append(b"")
        with contextlib.closing(writer), contextlib.suppress(ConnectionError):
            while self._until not in self.got[place] and (data := await reader.read(2**16)):
                self.got[place] += data
            writer.write(self._answer)
            if writer.can_write_eof():
                writer.write_eof()
                self.got[place] += await reader.read()


@contextlib.asynccontextmanager
async def serving(
    answer: bytes = OK, until: bytes = b"\r\n\r\n", tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Server]:
    server = Server(answer, until)
    tasks: list[asyncio.Task[None]] = []
    listener = await asyncio.start_server(
        lambda *ends: tasks.append(asyncio.create_task(server.serve(*ends))), "127.0.0.1", 0, ssl=tls
    )
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Names:
    """A resolver that remembers what it was asked; every name leads to the loopback unless said otherwise."""

    def __init__(self, **known: list[str]) -> None:
        self._known = {name.replace("_", "."): found for name, found in known.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return self._known.get(host, ["127.0.0.1"])


async def ask(path: Path, data: bytes, *, eof: bool = False) -> bytes:
    """Returns a proxy's answer to bytes on one connection, up to its end."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    with contextlib.closing(writer):
        writer.write(data)
        if eof:
            writer.write_eof()
        return await reader.read()


def play(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, GUARD))


@contextlib.asynccontextmanager
async def between(
    folder: Path, *entries: str, names: Names | None = None, bounds: Bounds | None = None
) -> AsyncGenerator[tuple[Proxy, Path]]:
    path = folder / "proxy"
    async with Proxy(allow(entries), path, resolve=names or Names(), bounds=bounds) as proxy:
        yield proxy, path
    assert not path.exists()
