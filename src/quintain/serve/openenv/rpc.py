"""The JSON-RPC of /mcp. It looks like MCP and is not: no handshake, no headers, results of its own shape."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

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
T = TypeVar("T")


class RpcRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Request of the JSON-RPC dialect."""

    jsonrpc: Literal["2.0"]
    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")
    id: Id = None


class Create(Reset, forbid_unknown_fields=True):
    """Open a session; with a choice of task, its episode begins at once."""


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

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


_ask = msgspec.json.Decoder(RpcRequest)
MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Rpc:
    """Answers requests for one environment.

    Args:
        sessions: Of the server.
        env: The environment.
        caller: Of the requests.
        own: The session of the socket that carries the requests; None over HTTP.
        begins: Whether a call in the socket's own session, when nothing was begun there, begins an episode.
        secrets: Secrets of a request over HTTP for the session that it names or opens; a socket's own has its own.
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
        """Returns the response to a request, also to a wrong one; it is done once under its key."""
        request: Id = None
        try:
            ask = _decoded(data)
            request = ask.id
            result = await self._result(ask, key)
        except RpcError as error:
            return failed(error.code, str(error), id=request)
        except QuintainError as error:
            more = wire.void(error)
            if isinstance(error, Full):
                more = {**self._sessions.counts, "retry_after_s": error.retry_after_s}
            return failed(_code(error), str(error), more or None, id=request)
        return wire.encode({"jsonrpc": "2.0", "id": request, "result": result})

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
                return {"session_id": (await self._create(_params(ask, Create))).id}
            case "openenv/session/close":
                return await self._close(_params(ask, SessionParams).session_id)
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {ask.method}")

    async def _call(self, call: Call, key: str) -> dict[str, Any]:
        if not call.name:
            raise RpcError(INVALID_PARAMS, "Missing 'name' in params")
        move = AgentMove("call", call.name, wire.arguments(call.arguments))
        session = self._own if call.session_id is None else await self._session(call.session_id)
        if session is None:
            raise RpcError(INVALID_PARAMS, "params need a session_id: openenv/session/create gives one")
        if session is not self._own or self._begins:
            await session.ensure()
        return wire.rpc_seen(call.name, await session.act(move, key=key))

    async def _create(self, choice: Create) -> EnvSession:
        session = self._own or self._sessions.open(self._env, self._caller)
        if session is not self._own:
            session.secrets = self._secrets
        if any(getattr(choice, name) is not None for name in choice.__struct_fields__):
            try:
                await session.reset(choice)
            except BaseException:
                if session is not self._own:
                    await self._sessions.close(session)
                raise
        return session

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

    async def _session(self, id: str) -> EnvSession:
        session = await self._sessions.find(id, self._env, self._caller)
        session.secrets = self._secrets if self._secrets.names else session.secrets
        return session


def _decoded(data: bytes | str) -> RpcRequest:
    try:
        return _ask.decode(data)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_REQUEST, f"Invalid request: {error}") from error
    except MALFORMED as error:
        raise RpcError(PARSE_ERROR, f"Parse error: {error}") from error


def _code(error: QuintainError) -> int:
    if isinstance(error, Refused | Unknown):
        return INVALID_PARAMS
    if isinstance(error, NoEpisode | Finished):
        return INVALID_REQUEST
    # What is left: a failed episode, an author's tasks() that raises; or a limit, an episode that was closed meanwhile.
    return INTERNAL_ERROR if isinstance(error, Void) or not isinstance(error, ServeError) else SERVER_ERROR


def _params(ask: RpcRequest, type: type[T]) -> T:
    try:
        return msgspec.json.decode(ask.params, type=type)
    except MALFORMED as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params - {error}") from error


def failed(code: int, message: str, data: Any = None, *, id: Id = None) -> bytes:
    """Returns the response that is an error."""
    return wire.encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}})
