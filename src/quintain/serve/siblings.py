"""Asking the other processes behind the port: for what they have, and to answer a request that came to the wrong one.

It is asked by HTTP, on connections that are made here and handed over like a client's. What stands in a request there
can be believed: nobody else can make such a connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from http import HTTPStatus
from typing import NamedTuple, TypeVar, cast

import httptools
import msgspec

from .asgi import JSON, Headers, Request
from .errors import Unavailable
from .journal.entries import Log
from .keys import Caller, Role
from .mail import Mail
from .passed import PassedOn
from .shard import Shard

T = TypeVar("T")

INNER = "quintain.inner"
"""In the state of a request that another process of the server makes."""
ASK_S = 5.0
"""Seconds until another process must have answered about itself."""
PIECE = 65_536

_CALLER = b"quintain-caller"
_OF_THE_LINE = frozenset(
    {b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"expect", b"upgrade", b"te", _CALLER}
)
"""Headers that are of one connection only; each process says its own."""


class Elsewhere(Exception):
    """Another process must answer this request.

    Attributes:
        number: Which.
        instead: What the request would make here, where it is known by that, see `PassedOn`; else empty.
    """

    def __init__(self, number: int, instead: str = "") -> None:
        super().__init__(number, instead)
        self.number = number
        self.instead = instead


class Said(NamedTuple):
    """An answer of another process."""

    status: int
    body: bytes


class Siblings:
    """They.

    Args:
        shard: Which process this is.
        mail: By which others are reached; None where there are none.
        log: Where it is written down what they were given to answer.

    Attributes:
        passed: That.
    """

    def __init__(self, shard: Shard, mail: Mail | None, log: Log) -> None:
        self._shard = shard
        self._mail = mail
        self.passed = PassedOn(log)

    def belongs(self, name: str, *, instead: str = "", request: str = "") -> None:
        """Nothing, if what has this name is here.

        Args:
            name: It.
            instead: What a request with a key, which leads here, would make here; empty for one without.
            request: Its digest.

        Raises:
            Elsewhere: It is another process's.
            Unavailable: It cannot be written down that the request is given to that one.
        """
        if self._shard.owns(name):
            return
        if instead:
            self.passed.add(instead, request)
        raise Elsewhere(self._shard.of(name), instead)

    async def all(self, path: str, type: type[T], caller: Caller) -> dict[int, T | None]:
        """What each of the others answers to a GET; None for who says that there is no such thing.

        Raises:
            Unavailable: One of them did not answer in time.
        """
        others = [number for number in range(self._shard.count) if number != self._shard.number]
        said = await asyncio.gather(*(self.one(number, path, type=type, caller=caller) for number in others))
        return dict(zip(others, said, strict=True))

    async def one(self, number: int, path: str, *, type: type[T], caller: Caller) -> T | None:
        """What one of the others answers to a GET; None where it says that there is no such thing.

        Raises:
            Unavailable: It did not answer in time.
        """
        try:
            async with asyncio.timeout(ASK_S):
                said = await self.ask(number, "GET", path, caller=caller)
        except TimeoutError:
            raise _silent(number) from None
        if said.status == HTTPStatus.NOT_FOUND:
            return None
        if said.status != HTTPStatus.OK:
            raise _silent(number)
        return msgspec.json.decode(said.body, type=type)

    async def ask(self, number: int, method: str, path: str, *, caller: Caller, body: bytes = b"") -> Said:
        """One request.

        Args:
            number: Whom to ask.
            method: Of HTTP.
            path: With the query.
            caller: Who asks.
            body: JSON.

        Raises:
            Unavailable: There was no answer.
        """
        answer = _Answer()
        async with self._line(number) as (reader, writer):
            writer.write(_head(method, path, (JSON,), caller=caller, length=len(body)) + body)
            parts = [part async for part in answer.parts(reader)]
        if not answer.is_whole:
            raise _silent(number)
        return Said(answer.status, b"".join(parts))

    async def forward(self, request: Request, number: int, caller: Caller | None = None) -> int:
        """Have another process answer a request; returns the answer's status.

        Args:
            request: It.
            number: Whom.
            caller: Who asks, if that is known; else whoever answers sees to it.

        Raises:
            Unavailable: It ended before it answered.
        """
        scope = request.scope
        path = cast(bytes, scope["raw_path"]).decode("latin-1")
        if scope["query_string"]:
            path += "?" + scope["query_string"].decode("latin-1")
        headers = [(name, value) for name, value in scope["headers"] if name not in _OF_THE_LINE]
        is_long = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
        async with self._line(number) as (reader, writer):
            writer.write(_head(request.method, path, headers, caller=caller, length=None if is_long else 0))
            bringing = asyncio.create_task(_bring(request, writer, is_long=is_long))
            try:
                return await _pass_on(reader, request, number)
            finally:
                bringing.cancel()
                with contextlib.suppress(asyncio.CancelledError, ConnectionError):  # It is told by what is missing.
                    await bringing

    @contextlib.asynccontextmanager
    async def _line(self, number: int) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        if self._mail is None:
            raise RuntimeError("a process that is alone asks nobody")
        own, its = socket.socketpair()
        with its:
            if not self._mail.send(number, its.fileno(), b"", is_inner=True):
                own.close()
                raise _silent(number)
        own.settimeout(0)
        reader, writer = await asyncio.open_unix_connection(sock=own, limit=PIECE)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()


class _Answer:
    """What another process answers, read as it comes."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_whole = False
        self._ready: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._ready.append(body)

    def on_message_complete(self) -> None:
        self.is_whole = True

    async def parts(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        """Its body; the first part, which may be empty, comes when the head is there."""
        is_begun = False
        while not self.is_whole:
            try:
                data = await reader.read(PIECE)
            except ConnectionError:
                return
            if not data:
                return
            self._parser.feed_data(data)
            if self.status and (self._ready or not is_begun):
                is_begun = True
                yield b"".join(self._ready)
                self._ready.clear()


def is_inner(request: Request) -> bool:
    """Whether another process of this server makes a request."""
    return INNER in request.scope.get("state", ())


def told(request: Request) -> Caller | None:
    """Who makes a request, as the process says that sent it here; None where none says so."""
    name, _, role = request.header(_CALLER).partition(" ") if is_inner(request) else ("", "", "")
    return Caller(name, cast(Role, role)) if role else None


def _silent(number: int) -> Unavailable:
    return Unavailable(f"process {number} of this server does not answer", retry_after_s=1)


def _head(method: str, path: str, headers: Headers, *, caller: Caller | None, length: int | None) -> bytes:
    given = [*headers, (b"connection", b"close")]
    given.append((b"transfer-encoding", b"chunked") if length is None else (b"content-length", b"%d" % length))
    if caller is not None:
        given.append((_CALLER, f"{caller.name} {caller.role}".encode()))
    lines = [f"{method} {path} HTTP/1.1".encode("latin-1"), *(b"%s: %s" % one for one in given)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def _bring(request: Request, writer: asyncio.StreamWriter, *, is_long: bool) -> None:
    """Send the body as it comes, and end the connection when the client ends his."""
    if is_long:
        async for part in request.parts():
            if part:
                writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                await writer.drain()
        writer.write(b"0\r\n\r\n")
    while (await request.receive())["type"] != "http.disconnect":
        continue
    writer.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, request: Request, number: int) -> int:
    answer = _Answer()
    is_begun = False
    async for part in answer.parts(reader):
        if not is_begun:
            is_begun = True
            headers = [(name, value) for name, value in answer.headers if name not in _OF_THE_ANSWER]
            await request.send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await request.send({"type": "http.response.body", "body": part, "more_body": True})
    if not is_begun:
        raise _silent(number)
    if answer.is_whole or request.method == "HEAD":
        await request.send({"type": "http.response.body", "body": b""})
    return answer.status


_OF_THE_ANSWER = _OF_THE_LINE - {b"content-length"}
