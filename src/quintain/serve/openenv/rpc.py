"""The JSON-RPC of /mcp. It looks like MCP and is not: no handshake, no headers, results of its own shape."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from quintain.environment import Environment
from quintain.errors import QuintainError
from quintain.serve.episodes.secrets import NOTHING, Secrets
from quintain.serve.errors import Finished, Full, Refused, ServeError, Unknown, Void
from quintain.serve.http.keys import Caller

from . import wire
from .session import EnvSession, NoEpisode
from .sessions import Sessions
from .wire import AgentMove, Reset

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000

Id = str | int | None


class RpcRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Request of the JSON-RPC dialect."""

    jsonrpc: Literal["2.0"]
    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")
    id: Id = None


class Create(Reset, forbid_unknown_fields=True):
    """Open a session; with a choice of task, its episode begins at once."""

    @property
    def chooses(self) -> bool:
        """True if the request chooses anything of the episode."""
        return any(getattr(self, name) is not None for name in self.__struct_fields__)


class SessionParams(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters that name a session."""

    session_id: str | None = None


class Call(msgspec.Struct, forbid_unknown_fields=True):
    """A call of a tool."""

    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    session_id: str | None = None


class RpcError(Exception):
    """A request that gets an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


_ask = msgspec.json.Decoder(RpcRequest)


class Rpc:
    """Answers requests for one environment.

    Args:
        sessions: Of the server.
        env: The environment.
        caller: Who asks.
        own: The session of the socket that carries the requests; None over HTTP.
        begins: Whether a call in the socket's own session, when nothing was begun there, begins an episode.
        secrets: What a request over HTTP confides to the session that it names or opens; a socket's own has its own.
    """

    def __init__(
        self,
        sessions: Sessions,
        env: Environment[Any],
        caller: Caller,
        *,
        own: EnvSession | None = None,
        begins: bool = True,
        secrets: Secrets = NOTHING,
    ) -> None:
        self._sessions = sessions
        self._env = env
        self._caller = caller
        self._own = own
        self._begins = begins
        self._secrets = secrets

    async def answer(self, data: bytes | str, *, key: str = "") -> bytes:
        """The response to a request; raises for nothing that stands in it.

        Args:
            data: JSON.
            key: Names the request, which is done once under its key.
        """
        request: Id = None
        try:
            ask = _asked(data)
            request = ask.id
            result = await self._result(ask, key)
        except RpcError as failing:
            code, message, more = failing.code, str(failing), failing.data
        except QuintainError as error:
            code, message, more = _code(error), str(error), self._about(error)
        else:
            return wire.encode({"jsonrpc": "2.0", "id": request, "result": result})
        return failed(code, message, more, id=request)

    async def _result(self, ask: RpcRequest, key: str) -> Any:
        if not bytes(ask.params).lstrip().startswith(b"{"):
            raise RpcError(INVALID_REQUEST, "Invalid request: params are an object")
        match ask.method:
            case "tools/call":
                return await self._call(_params(ask, Call), key)
            case "tools/list":
                session_id = _params(ask, SessionParams).session_id
                session = await self._session(session_id) if session_id else self._own
                return {"tools": wire.tools(self._env, session.live if session else None)}
            case "openenv/session/create":
                return await self._create(_params(ask, Create))
            case "openenv/session/close":
                return await self._close(_params(ask, SessionParams).session_id)
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {ask.method}")

    async def _call(self, call: Call, key: str) -> wire.RpcSeen:
        if not call.name:
            raise RpcError(INVALID_PARAMS, "Missing 'name' in params")
        move = AgentMove("call", call.name, wire.arguments(call.arguments))
        session = self._own if call.session_id is None else await self._session(call.session_id)
        if session is None:
            raise RpcError(INVALID_PARAMS, "params need a session_id: openenv/session/create gives one")
        if session is not self._own or self._begins:
            await session.ensure()
        answer = await session.act(move, key=key)
        return wire.rpc_seen(call.name, answer)

    async def _create(self, choice: Create) -> dict[str, Any]:
        if self._own is not None:
            session = self._own
            if choice.chooses:
                await session.reset(choice)
            return {"session_id": session.id}
        session = self._sessions.open(self._env, self._caller)
        session.secrets = self._secrets
        if choice.chooses:
            try:
                await session.reset(choice)
            except BaseException:
                await self._sessions.close(session)
                raise
        return {"session_id": session.id}

    async def _close(self, id: str | None) -> dict[str, Any]:
        if not id:
            raise RpcError(INVALID_PARAMS, "Invalid params - 'session_id' is required")
        session = await self._session(id)
        if session is self._own:
            raise RpcError(INVALID_REQUEST, "a socket's own session is closed with the socket")
        if session.attached:
            session.closing = True
            return {"session_id": id, "closed": False, "closing": True}
        await self._sessions.close(session)
        return {"session_id": id, "closed": True}

    def _about(self, error: QuintainError) -> dict[str, Any] | None:
        """Returns the data of an error for programs."""
        if isinstance(error, Full):
            counts = {"active_sessions": len(self._sessions), "max_sessions": self._sessions.most}
            return {**counts, "retry_after_s": error.retry_after_s}
        if isinstance(error, Void):
            return {"metadata": wire.void(error.failure)}
        return None

    async def _session(self, id: str) -> EnvSession:
        session = await self._sessions.find(id, self._env, self._caller)
        session.secrets = self._secrets if self._secrets.names else session.secrets
        return session


def _asked(data: bytes | str) -> RpcRequest:
    try:
        return _ask.decode(data)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_REQUEST, f"Invalid request: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"Parse error: {error}") from error


def _code(error: QuintainError) -> int:
    if isinstance(error, Refused | Unknown):
        return INVALID_PARAMS
    if isinstance(error, NoEpisode | Finished):
        return INVALID_REQUEST
    # What is left: a failed episode, an author's tasks() that raises; or a limit, an episode that was closed meanwhile.
    return INTERNAL_ERROR if isinstance(error, Void) or not isinstance(error, ServeError) else SERVER_ERROR


def _params(ask: RpcRequest, type: type[Any]) -> Any:
    try:
        return msgspec.json.decode(ask.params, type=type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params - {error}") from error


def failed(code: int, message: str, data: Any = None, *, id: Id = None) -> bytes:
    """The response that is an error."""
    return wire.encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}})
