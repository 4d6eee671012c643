"""A client of the protocol that hides nothing: what it sends is what is written, what it gets is what came."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator
from typing import Any

from websockets.sync.client import ClientConnection, connect

SECONDS = 30.0
HANDSHAKE = b"""\
GET /openenv/counter/ws HTTP/1.1\r
Host: 127.0.0.1\r
Connection: Upgrade\r
Upgrade: websocket\r
Sec-WebSocket-Version: 13\r
Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r
\r
"""


class Wire:
    """Client that sends and returns raw frames."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def send(self, kind: str, **data: Any) -> None:
        self.raw({"type": kind, **({"data": data} if data or kind == "step" else {})})

    def raw(self, frame: Any) -> None:
        self.connection.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))

    def receive(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.connection.recv(timeout=SECONDS))
        return found

    def ask(self, kind: str, **data: Any) -> dict[str, Any]:
        """The data of an answer that is no error."""
        self.send(kind, **data)
        answer = self.receive()
        assert answer["type"] != "error", answer
        found: dict[str, Any] = answer["data"]
        return found

    def refused(self, kind: str, **data: Any) -> dict[str, Any]:
        """The data of an answer that is an error."""
        self.send(kind, **data)
        answer = self.receive()
        assert answer["type"] == "error", answer
        found: dict[str, Any] = answer["data"]
        return found

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("step", type="call_tool", tool_name=tool, arguments=arguments)

    def read(self, tool: str, **arguments: Any) -> Any:
        return self.call(tool, **arguments)["observation"]["result"]


@contextlib.contextmanager
def opened(
    url: str, env: str, *, path: str = "ws", session: str = "", headers: dict[str, str] | None = None
) -> Generator[Wire]:
    query = f"?session_id={session}" if session else ""
    address = f"{url.replace('http', 'ws', 1)}/openenv/{env}/{path}{query}"
    options: dict[str, Any] = {"open_timeout": SECONDS, "max_size": None, "proxy": None}
    with connect(address, additional_headers=headers, **options) as connection:
        yield Wire(connection)
