"""One WebSocket, without a network: what its client can have the server keep."""

from __future__ import annotations

import asyncio
import struct

import pytest

pytest.importorskip("uvicorn", reason="pip install 'quintain[serve]'")
pytest.importorskip("websockets", reason="pip install 'quintain[serve]'")

import uvicorn
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode

from quintain.serve.asgi import Event, Receive, Scope, Send
from quintain.serve.websocket import WebSocket
from tests.serve.operation.test_lines import Wire, played, settled
from tests.serve.operation.test_malice import SOCKET


def part(data: bytes = b"", *, of: Opcode = Opcode.CONT, last: bool = False) -> bytes:
    return Frame(of, data, fin=last).serialize(mask=True)


def ping(number: int) -> bytes:
    return part(struct.pack("!I", number), of=Opcode.PING, last=True)


class Heard:
    """An application that takes what comes."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while not self.events or self.events[-1]["type"] == "websocket.receive":
            self.events.append(await receive())


async def connected(app: Heard) -> tuple[WebSocket, Wire]:
    """A WebSocket of an application, in a loop that runs."""
    config = uvicorn.Config(app, ws=WebSocket, lifespan="off", log_config=None)
    config.load()
    line, wire = WebSocket(config, ServerState(), {}), Wire()
    line.connection_made(wire)
    line.data_received(SOCKET + b"\r\n")
    await settled()
    assert wire.data.startswith(b"HTTP/1.1 101 ")
    wire.data = b""
    return line, wire


@pytest.mark.parametrize("piece", [b"", b"ab"])
def test_a_message_in_parts_is_one_however_many_they_are(piece: bytes) -> None:
    async def play() -> None:
        app = Heard()
        line, _ = await connected(app)
        line.data_received(part("é".encode()[:1], of=Opcode.TEXT))
        line.data_received(part("é".encode()[1:]))
        for _ in range(1000):
            line.data_received(part(piece))
        assert len(line.frames) == 1
        line.data_received(part(b".", last=True))
        await settled()
        line.data_received(part(b"whole", of=Opcode.TEXT, last=True))
        await settled()
        assert [event["text"] for event in app.events] == [f"é{piece.decode() * 1000}.", "whole"]
        line.connection_lost(None)
        await settled()

    played(play)


def test_a_client_that_does_not_read_is_answered_one_ping() -> None:
    async def play() -> None:
        line, wire = await connected(Heard())
        line.data_received(ping(0))
        assert wire.data == Frame(Opcode.PONG, struct.pack("!I", 0)).serialize(mask=False)
        wire.data = b""
        line.pause_writing()
        for number in range(1000):
            line.data_received(ping(number) + ping(number + 1))
        assert not wire.data
        line.resume_writing()
        assert wire.data == Frame(Opcode.PONG, struct.pack("!I", 1000)).serialize(mask=False)
        line.pause_writing()
        line.resume_writing()
        assert wire.data.count(b"\x8a") == 1
        line.connection_lost(None)
        await asyncio.sleep(0)

    played(play)


def test_a_client_that_does_not_read_and_leaves_hears_the_end() -> None:
    async def play() -> None:
        line, wire = await connected(Heard())
        line.pause_writing()
        line.data_received(ping(1) + part(struct.pack("!H", 1000), of=Opcode.CLOSE, last=True))
        line.resume_writing()
        assert (wire.data, wire.closed) == (Frame(Opcode.CLOSE, struct.pack("!H", 1000)).serialize(mask=False), True)
        line.connection_lost(None)
        await settled()

    played(play)
