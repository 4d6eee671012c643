"""Way out of a sandbox: an HTTP proxy on this side that connects to hosts on a list, and to no others.

    program  --tcp-->  127.0.0.1:3128, forward.py  --unix socket-->  Proxy  --tcp-->  an allowed host and port
    [       in the sandbox, without network      ]                   [          on this machine           ]

The program has a network of its own that ends at `lo`, so the unix socket is its only door. It asks for a tunnel with
`CONNECT host:port` (https, and any other protocol), or for `GET http://host/...`. The host is compared with the list
before it is resolved; it is resolved here, and the address that was checked is the one that is connected to. An address
that is not on the public internet (this machine, its network, a cloud's metadata) is refused unless it is on the list
itself: a name whose owner points it inwards reaches nothing. A connection carries one request, parsed by `hosts.py`.

Bytes in a tunnel are not inspected: a server that has several names serves all of them to its clients. And the program
may send anything to an allowed host: keep secrets out of its reach.

**Replay.** Answers of a network are not part of the world. An episode in which a program used it cannot be played again
byte for byte unless the answers are kept, and nothing here keeps them. `Proxy.log` records that it was used, and how
much. If bytes must repeat, put the files (a wheel, a data set) into the workspace or behind `Policy.readable`.

**Use in a sandbox.** On this side, in a folder of mode 711 (700 if the sandbox runs as the same user):

    async with Proxy(allow(policy.network), folder / "proxy") as proxy:
        os.chown(folder / "proxy", uid, -1)  # if the sandbox runs as another user: a client must own it
        ...                                  # start bubblewrap, wait for the program
    proxy.log

The event loop that started it serves it; work that blocks the loop blocks it too. To bubblewrap, besides
`--unshare-net` (which also brings `lo` up; the kernel alone does not):

    --bind <folder>/proxy /run/proxy --ro-bind <forward.py> /run/forward.py
    -- <python> -I -S /run/forward.py /run/proxy <program> <arguments...>

`forward.py` sets the variables that clients read, and becomes the program. It needs the standard library of Python 3.9
or newer, one process of `Limits.processes`, and of a seccomp filter AF_UNIX, AF_INET and `pidfd_open`.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Self

import msgspec

from quintain.errors import UsageError

from . import hosts
from .hosts import Allowed, allow

__all__ = ["Allowed", "Bounds", "Contact", "Proxy", "allow"]

_CHUNK = 2**16
_BACKLOG = 128
"""Connections that may wait: more than forward.py carries at once."""
_PAUSE = 1.0
"""Seconds until the next look whether this process has descriptors again."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host and a port to addresses, the best first; raises OSError where there are none."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a proxy, over all connections unless noted. Seconds are real time.

    Attributes:
        connections: Connections at once; the next is accepted when one ends.
        requests: Answered requests; further ones are refused, and not logged.
        up_bytes: Bytes passed on to hosts.
        down_bytes: Bytes passed on to the program.
        header_bytes: Bytes of one request, without its body.
        header_seconds: Time to read the head of one request; also to send a refusal.
        connect_seconds: Time to resolve a name and to connect.
        idle_seconds: Time of one connection in which neither side sends or receives.
    """

    connections: int = 32
    requests: int = 10_000
    up_bytes: int = 64 * 2**20
    down_bytes: int = 2**30
    header_bytes: int = 2**14
    header_seconds: float = 10.0
    connect_seconds: float = 10.0
    idle_seconds: float = 60.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 < getattr(self, name) < 2**62:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")


class Contact(msgspec.Struct):
    """Record of one connection, and so of one request.

    Attributes:
        host: The requested host; empty if it could not be read.
        port: The port; 0 if it could not be read.
        is_allowed: True if the host is on the list, and does not lead to a private address that is not.
        up_bytes: Bytes passed on to the host.
        down_bytes: Bytes passed on to the program from the host.
        note: Reason for a refusal or an early end; else empty.
    """

    host: str = ""
    port: int = 0
    is_allowed: bool = False
    up_bytes: int = 0
    down_bytes: int = 0
    note: str = ""


class _Refusal(Exception):
    """Refusal of a request. The message becomes the reason phrase, the only part that most clients show.

    The note is for the log alone.
    """

    def __init__(self, status: int, message: str, note: str = "") -> None:
        super().__init__(message)
        self.status, self.note = status, note or message


class _Ended(Exception):
    """Too late to say so: the connection is closed."""


class _Relay:
    """Relay of bytes between a program and a host."""

    def __init__(
        self, client: socket.socket, server: socket.socket, *, bounds: Bounds, left: dict[str, int], contact: Contact
    ) -> None:
        self._client, self._server = client, server
        self._bounds, self._left, self._contact = bounds, left, contact
        self._loop = asyncio.get_running_loop()
        self._scope = asyncio.timeout(bounds.idle_seconds)

    async def run(self, first: bytes, more: int | None) -> None:
        """Until both have ended. `first` goes to the host, with `more` bytes after it, or all when that is None."""
        up = self._loop.create_task(self._up(first, more))
        down = self._loop.create_task(self._down())
        if more is not None:  # An answer may be complete before its question is.
            down.add_done_callback(lambda _: up.cancel())
        try:
            async with self._scope:
                await asyncio.wait((up, down), return_when=asyncio.FIRST_EXCEPTION)
        except TimeoutError as error:
            raise _Ended(f"nothing moved for {self._bounds.idle_seconds:g} s") from error
        finally:
            up.cancel()
            down.cancel()
            ends = await asyncio.gather(up, down, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _up(self, first: bytes, more: int | None) -> None:
        await self._send(first, self._server, "up_bytes")
        while more != 0:
            data = await self._loop.sock_recv(self._client, min(_CHUNK, more or _CHUNK))
            if not data:
                if more:
                    raise _Ended("the body ended early")
                self._server.shutdown(socket.SHUT_WR)
                return
            await self._send(data, self._server, "up_bytes")
            more = more and more - len(data)

    async def _down(self) -> None:
        while data := await self._loop.sock_recv(self._server, _CHUNK):
            await self._send(data, self._client, "down_bytes")
        self._client.shutdown(socket.SHUT_WR)

    async def _send(self, data: bytes, target: socket.socket, count: str) -> None:
        granted = data[: self._left[count]]
        self._left[count] -= len(granted)
        setattr(self._contact, count, getattr(self._contact, count) + len(granted))
        await self._loop.sock_sendall(target, granted)
        if len(granted) < len(data):
            raise _Ended(f"there is a limit of {getattr(self._bounds, count)} {count} in all")
        if not self._scope.expired():
            self._scope.reschedule(self._loop.time() + self._bounds.idle_seconds)


class Proxy:
    """Serves one sandbox from `start` to `close`, as `async with` does.

    Args:
        allowed: What may be reached; see `allow`.
        path: The unix socket that it makes, at most 107 bytes long, and removes. Nothing may be there.
        bounds: What it bears.
        resolve: Where addresses of names come from.
        mode: Permissions of the socket.
    """

    def __init__(
        self,
        allowed: Sequence[Allowed],
        path: Path,
        *,
        bounds: Bounds | None = None,
        resolve: Resolve = hosts.resolve,
        mode: int = 0o600,
    ) -> None:
        self._allowed, self._path, self._mode = tuple(allowed), path, mode
        self._bounds, self._resolve = bounds or Bounds(), resolve
        self._left = {"up_bytes": self._bounds.up_bytes, "down_bytes": self._bounds.down_bytes}
        self._log: list[Contact] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken: list[BaseException] = []
        self._listener: socket.socket | None = None
        self._is_open = False
        self._pause: asyncio.TimerHandle | None = None

    @property
    def log(self) -> tuple[Contact, ...]:
        """Returns all connections up to now, in the order in which they came."""
        return tuple(map(copy.copy, self._log))

    async def start(self) -> None:
        """Listen.

        Raises:
            UsageError: It was started before.
            OSError: The socket cannot be made.
        """
        if self._listener is not None:
            raise UsageError(f"the proxy at {self._path} was started already")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            listener.bind(str(self._path))
            self._path.chmod(self._mode)  # Before it listens, connections are impossible.
            listener.listen(_BACKLOG)
        except BaseException:
            listener.close()
            raise
        self._listener, self._is_open = listener, True
        self._go_on()

    async def close(self) -> None:
        """Ends all connections; no task, descriptor or file is left. A proxy that is closed stays so.

        Raises:
            Exception: What broke a connection and is neither the program's nor the network's fault.
        """
        if self._listener is not None and self._is_open:
            self._wait(self._listener)
            self._is_open = False
            self._listener.close()
            self._path.unlink(missing_ok=True)
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._broken:
            raise self._broken.pop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # -- connections

    def _go_on(self) -> None:
        if self._listener is not None and self._is_open and len(self._tasks) < self._bounds.connections:
            asyncio.get_running_loop().add_reader(self._listener, self._accept, self._listener)

    def _wait(self, listener: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(listener)
        if self._pause is not None:
            self._pause.cancel()

    def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            client, _ = listener.accept()
        except BlockingIOError:  # It went away meanwhile.
            return
        except OSError:  # Something else in this process has taken all descriptors.
            self._wait(listener)
            self._pause = loop.call_later(_PAUSE, self._go_on)
            return
        client.settimeout(0)
        task = loop.create_task(self._serve(client))
        self._tasks.add(task)
        # Not the task closes it, since one that is cancelled early never begins.
        task.add_done_callback(lambda task: self._on_end(task, client))
        if len(self._tasks) >= self._bounds.connections:
            self._wait(listener)

    def _on_end(self, task: asyncio.Task[None], client: socket.socket) -> None:
        client.close()
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._broken.append(error)
        self._go_on()

    async def _serve(self, client: socket.socket) -> None:
        contact = Contact()
        try:
            await self._answer(client, contact)
        except _Refusal as refusal:
            contact.note, contact.is_allowed = refusal.note, contact.is_allowed and refusal.status != 403
            await self._refuse(client, refusal)
        except (OSError, _Ended) as error:
            contact.note = str(error)

    async def _answer(self, client: socket.socket, contact: Contact) -> None:
        if len(self._log) >= self._bounds.requests or not all(self._left.values()):
            raise _Refusal(429, f"this sandbox has used up its network: {self._bounds}")
        self._log.append(contact)
        async with _within(self._bounds.header_seconds, 408, "the request took too long"):
            head, rest = await self._head(client)
        try:
            request = hosts.read(head)
        except ValueError as error:
            raise _Refusal(400, str(error)) from error
        contact.host, contact.port = request.host, request.port
        allowed = next((one for one in self._allowed if one.matches(request.host, request.port)), None)
        if allowed is None:
            raise _Refusal(403, f"{hosts.shown(request.host, request.port)} is not allowed in this sandbox")
        contact.is_allowed = True
        async with _within(self._bounds.connect_seconds, 504, f"{request.host} did not answer in time"):
            host, port = allowed.place or (request.host, request.port)
            found = hosts.address(host) if allowed.place else None
            addresses = [found] if found else await self._addresses(host, port)
            try:
                server = await hosts.connect(addresses, port)
            except OSError as error:
                raise _Refusal(502, f"{request.host} cannot be reached: {error.strerror}") from error
        with server:
            relay = _Relay(client, server, bounds=self._bounds, left=self._left, contact=contact)
            if request.body is None:
                await asyncio.get_running_loop().sock_sendall(client, b"HTTP/1.1 200 Connection established\r\n\r\n")
                await relay.run(rest, None)
            else:
                rest = rest[: request.body]
                await relay.run(request.head + rest, request.body - len(rest))
        await self._let_go(client)

    async def _head(self, client: socket.socket) -> tuple[bytes, bytes]:
        data, most = b"", self._bounds.header_bytes
        while (end := data.find(b"\r\n\r\n")) < 0:
            if len(data) >= most:
                raise _Refusal(431, f"the header has more than {most} bytes")
            chunk = await asyncio.get_running_loop().sock_recv(client, most - len(data))
            if not chunk:
                raise _Ended("it ended before its request did")
            data += chunk
        return data[:end], data[end + 4 :]

    async def _addresses(self, host: str, port: int) -> list[hosts.Address]:
        try:
            texts = [host] if hosts.address(host) else await self._resolve(host, port)
        except OSError as error:
            raise _Refusal(502, f"{host} cannot be resolved: {error.strerror}") from error
        found = [one for one in map(hosts.address, texts) if one]
        listed = {one.host for one in self._allowed if one.port == port and not one.is_wild}
        good = [one for one in found if str(one) in listed or hosts.is_public(one)]
        if not good:
            inner = ", ".join(hosts.shown(str(one), port) for one in found) or "no address"
            why = f"{host} leads to {{}}, neither public nor allowed by itself"
            raise _Refusal(403, why.format("an address"), note=why.format(inner))
        return good

    async def _refuse(self, client: socket.socket, refusal: _Refusal) -> None:
        reach = ", ".join(one.shown for one in self._allowed) or "nothing"
        body = f"{refusal}\nThis sandbox may reach: {reach}\n".encode()
        fields = f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
        head = f"HTTP/1.1 {refusal.status} {refusal}\r\n{fields}\r\n\r\n".encode()
        with contextlib.suppress(OSError):  # It needs no answer any more, or takes none.
            async with asyncio.timeout(self._bounds.header_seconds):
                await asyncio.get_running_loop().sock_sendall(client, head + body)
                client.shutdown(socket.SHUT_WR)
                await self._let_go(client)

    async def _let_go(self, client: socket.socket) -> None:
        # What it still says is not heard; closed at once, it might be cut off before it has read its answer.
        with contextlib.suppress(OSError):
            async with asyncio.timeout(self._bounds.header_seconds):
                while await asyncio.get_running_loop().sock_recv(client, _CHUNK):
                    continue


@contextlib.asynccontextmanager
async def _within(seconds: float, status: int, message: str) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise _Refusal(status, message) from error
