"""The WebSockets: frame in, frame out, one after the other. What is wrong with a frame is said; the socket stays."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from quintain.environment import Environment
from quintain.errors import QuintainError
from quintain.serve.episodes.actions import LEFT, LOST, SHUTDOWN, Stop
from quintain.serve.episodes.request_secrets import brought
from quintain.serve.errors import Finished, Full, Refused, Unavailable, Unknown
from quintain.serve.http.asgi import Event, HttpRequest, abreast
from quintain.serve.http.keys import Caller
from quintain.serve.http.problems import problems

from . import wire
from .rpc import Rpc
from .session import EnvSession, NoEpisode
from .sessions import Sessions
from .wire import CloseFrame, Frame, Reset, ResetFrame, RpcFrame, StateFrame, StepFrame

WATCH_S = 15.0
"""Most seconds between two looks at a socket, so that its episode does not expire."""
CLOSED = (1000, 1001, 1005)
"""Codes of closing frames by which a client says that it is done: normal, going away, none given."""
DEEP = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)

_frames = msgspec.json.Decoder(Frame)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])

Answers = Callable[[str], Awaitable[bytes | None]]


class Socket:
    """Accepted WebSocket; raises Refused if the secrets in its request cannot be read."""

    def __init__(self, sessions: Sessions, env: Environment[Any], request: HttpRequest, *, caller: Caller) -> None:
        self._sessions = sessions
        self._host = sessions.host
        self._env = env
        self._caller = caller
        self._secrets = brought(request, {})
        self._receive, self._send = request.receive, request.send
        self._watch: asyncio.TimerHandle | None = None

    async def serve(self, id: str, *, only_rpc: bool) -> None:
        """Serves /ws, or /mcp with JSON-RPC alone, until the client leaves.

        Without the id of a session, the socket's own ends with it.
        """
        await self._receive()  # That it wants to connect.
        await self._tell({"type": "websocket.accept"})
        session = await self._session(id)
        if session is None:
            return
        session.secrets = self._secrets if self._secrets.names else session.secrets
        rpc = Rpc(self._sessions, self._env, self._caller, own=session, begins=only_rpc)
        self._look(session)
        why: Stop = LOST
        try:
            why = await self._loop(rpc.answer if only_rpc else functools.partial(self._frame, session, rpc))
        except asyncio.CancelledError:
            if not self._host.draining:
                raise
        finally:
            await self._leave(session, SHUTDOWN if why is LOST and self._host.draining else why, owned=not id)

    async def _loop(self, answers: Answers) -> Stop:
        """Answers frames until the socket is closed; returns the end of an episode that goes on."""
        most = self._host.limits.body_bytes
        while True:
            event = await self._receive()
            if event["type"] != "websocket.receive":
                # A connection that is lost without a closing frame has code 1005, too, but no reason.
                return LEFT if event.get("code") in CLOSED and event.get("reason") is not None else LOST
            text = event.get("text")
            if text is None:
                answer: bytes | None = wire.error("INVALID_JSON", "Invalid JSON: this protocol has text frames only")
            elif len(text) > most:
                answer = wire.error("VALIDATION_ERROR", f"the frame is longer than {most} characters")
            else:
                answer = await answers(text)
            if answer is None:
                await self._tell({"type": "websocket.close", "code": 1000})
                return LEFT
            await abreast()  # Also, a client that sends many frames at once is not served alone.
            if not await self._tell({"type": "websocket.send", "text": answer.decode()}):
                return LOST

    async def _tell(self, event: Event) -> bool:
        """Sends an event; False if the client is gone, which a server says with an OSError."""
        try:
            await self._send(event)
        except OSError:
            return False
        return True

    async def _session(self, id: str) -> EnvSession | None:
        """Returns the session of this socket; None if it was refused one."""
        try:
            if not id:
                return self._sessions.open(self._env, self._caller, attached=True)
            session = await self._sessions.find(id, self._env, self._caller)
            if not session.attached:
                session.attached = True
                return session
            problem = wire.error("SESSION_ERROR", f"Session {id} already has an attached WebSocket")
        except (Full, Unavailable) as error:
            problem = self._full(error)
        except Unknown as error:
            problem = wire.error("SESSION_ERROR", str(error))
        await self._tell({"type": "websocket.send", "text": problem.decode()})
        await self._tell({"type": "websocket.close", "code": 1000})
        return None

    async def _leave(self, session: EnvSession, why: Stop, *, owned: bool) -> None:
        if self._watch is not None:
            self._watch.cancel()
        session.attached = False
        session.touch(session.caller)
        if owned or session.closing:
            await self._sessions.close(session, LEFT if session.closing else why)

    def _look(self, session: EnvSession) -> None:
        idle_s = self._host.limits.idle_s
        session.touch(session.caller)
        self._watch = asyncio.get_running_loop().call_later(min(WATCH_S, idle_s / 4), self._look, session)

    # -- one frame

    async def _frame(self, session: EnvSession, rpc: Rpc, text: str) -> bytes | None:
        try:
            frame = _frames.decode(text)
        except DEEP as error:
            return _unreadable(text, error)
        try:
            return await self._answer(session, rpc, frame, text=text)
        except (Refused, Unknown, NoEpisode, Finished) as error:  # The client's mistake.
            return wire.error("VALIDATION_ERROR", str(error), errors=problems(error))
        except Full as error:
            return self._full(error)
        except QuintainError as error:  # It failed, was closed meanwhile, or cannot go on; or tasks cannot be made.
            again = {"retry_after_s": error.retry_after_s} if isinstance(error, Unavailable) else {}
            return wire.error("EXECUTION_ERROR", str(error), **again, **wire.void(error))

    async def _answer(self, session: EnvSession, rpc: Rpc, frame: Frame, *, text: str) -> bytes | None:
        match frame:
            case StepFrame():
                move = wire.move(frame.data)
                if move.kind != "list":
                    return wire.frame("observation", wire.seen(move.name, await session.act(move)))
                session.listed()
                return wire.frame("observation", wire.listed(self._env, session.live))
            case ResetFrame():
                live = await session.reset(frame.data)
                sent = _fields.decode(_fields.decode(text).get("data", b"{}"))
                details = session.details | wire.ignored(sent, Reset)
                return wire.frame("observation", wire.opened(live, details))
            case StateFrame():
                return wire.frame("state", wire.encode(session.state()))
            case RpcFrame():
                if not bytes(frame.data).startswith(b"{"):
                    raise Refused("Invalid message: Expected `object` - at `$.data`")
                return wire.frame("mcp", await rpc.answer(bytes(frame.data)))
            case CloseFrame():
                return None

    def _full(self, error: Full | Unavailable) -> bytes:
        return wire.error("CAPACITY_REACHED", str(error), **self._sessions.counts, retry_after_s=error.retry_after_s)


def _unreadable(text: str, error: Exception) -> bytes:
    """Returns the error for a frame that is not JSON, has an unknown type, or does not fit its type."""
    try:
        kind = msgspec.json.decode(text, type=dict[str, Any]).get("type", "")
    except msgspec.ValidationError:
        return wire.error("VALIDATION_ERROR", "Invalid message: a frame is an object", errors=[])
    except DEEP as malformed:
        return wire.error("INVALID_JSON", f"Invalid JSON: {malformed}")
    if kind not in wire.FRAMES:
        return wire.error("UNKNOWN_TYPE", f"Unknown message type: {str(kind)[:200]}")
    found = problems(error) if isinstance(error, msgspec.ValidationError) else []
    return wire.error("VALIDATION_ERROR", f"Invalid message: {error}", errors=found)
