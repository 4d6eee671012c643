"""OpenEnv over HTTP: what there is, tasks, and episodes for those who open no socket.

The reference makes an environment for each request and forgets it. Here a step needs the name of its episode: the
X-Session-ID that /reset answers with, or the episode_id that it was given. What names none is refused.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from quintain.environment import Environment
from quintain.errors import QuintainError
from quintain.serve.episodes import task_lists as lists
from quintain.serve.episodes.host import Host
from quintain.serve.episodes.request_secrets import brought
from quintain.serve.errors import Refused, ServeError, TooLarge, Unknown
from quintain.serve.http.asgi import JSON, HttpRequest, again_headers, detached, parsed
from quintain.serve.http.keys import Caller
from quintain.serve.http.problems import problems
from quintain.task import Task

from . import schemas, wire
from .rpc import INVALID_REQUEST, Rpc, failed
from .session import EnvSession
from .sessions import Sessions
from .socket import Socket

SESSION = b"x-session-id"
KEY = b"idempotency-key"
MOST_KEY = 255

T = TypeVar("T")


class OpenEnv:
    """The protocol, below /openenv/{env}.

    Args:
        host: What is served.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.sessions = Sessions(host)

    async def handle(self, request: HttpRequest, caller: Caller) -> None:
        """Answer a request, or serve a WebSocket."""
        try:
            await (self._socket if request.scope["type"] == "websocket" else self._http)(request, caller)
        except msgspec.DecodeError as error:
            await request.reply({"detail": problems(error, "body")}, 422)
        except ServeError as error:
            refusal = {"detail": str(error), **wire.void(error)}
            await request.reply(refusal, error.status, [JSON, *again_headers(error)])
        except QuintainError as error:  # An author's tasks() that raises.
            await request.reply({"detail": f"{type(error).__name__}: {error}"}, 500)

    async def _socket(self, request: HttpRequest, caller: Caller) -> None:
        name, *rest = request.segments[1:] or [""]
        socket = Socket(self.sessions, self.host.environment(name), request, caller=caller)
        session = request.query("session_id")
        match rest:
            case ["ws" | "mcp" as kind]:
                await socket.serve(session, only_rpc=kind == "mcp")
            case _:
                raise Unknown("there is no WebSocket here: /ws plays episodes, /mcp calls tools")

    async def _http(self, request: HttpRequest, caller: Caller) -> None:
        name, *rest = request.segments[1:] or [""]
        if not name:
            await request.reply([f"/openenv/{name}" for name in self.host.environments])
            return
        env = self.host.environment(name)
        if len(rest) == 2 and rest[1] in _TASKS:
            if self.host.environment(rest[0]) is not env:
                raise Unknown(f"unknown environment {rest[0]!r}")
            method, page = _TASKS[rest[1]]
        elif (path := "/".join(rest)) in _PAGES:
            method, page = _PAGES[path]
        else:
            raise Unknown("Not Found")
        if request.method != method:
            await request.reply({"detail": "Method Not Allowed"}, 405, [JSON, (b"allow", method.encode())])
            return
        value = page(PageRequest(self, request, caller, env))
        if inspect.isawaitable(value):
            value = await value
        if value is not None:
            await request.reply(value)


class PageRequest(NamedTuple):
    """One request to one environment."""

    all: OpenEnv
    request: HttpRequest
    caller: Caller
    env: Environment[Any]

    async def body(self, type: type[T]) -> T:
        """Returns the body as JSON of a type; none at all counts as an empty object. Raises as `HttpRequest.json`."""
        return parsed(await self.request.body(self.all.host.limits.body_bytes) or b"{}", type)

    @property
    def key(self) -> str:
        """Key of the request, under which it is done once; empty without one. Raises Refused if it is too long."""
        name = self.request.header(KEY)
        if len(name) > MOST_KEY:
            raise Refused(f"an Idempotency-Key has up to {MOST_KEY} characters, and this one {len(name):,}")
        return _key(name)

    async def session(self, id: str, label: str) -> EnvSession:
        """Returns the session that the request names; raises Refused for no name, Unknown for an unknown one."""
        if id:
            return await self.all.sessions.find(id, self.env, self.caller)
        if label:
            return await self.all.sessions.labelled(label, self.env, self.caller)
        raise Refused("which episode? send the X-Session-ID that /reset answered with, or its episode_id")

    async def answer(self, body: bytes, session: EnvSession) -> None:
        """Answers about an episode."""
        await self.request.answer(200, body, (JSON, (SESSION, session.id.encode())))


async def _num_tasks(call: PageRequest) -> Any:
    return {"num_tasks": len(await call.all.host.tasks(call.env, (await call.body(lists.Split)).split))}


async def _task(call: PageRequest) -> Any:
    shown = await lists.one(call.all.host, call.env, await call.body(lists.Index), describe=_shown_task)
    return {"task": shown, "env_name": call.env.name.lower()}


async def _shown(call: PageRequest, type: type[lists.Split | lists.Range]) -> Any:
    wanted = await call.body(type)
    part = slice(wanted.start, wanted.stop) if isinstance(wanted, lists.Range) else slice(None)
    shown = await lists.shown(call.all.host, call.env, wanted.split, part=part, describe=_shown_task)
    return {"tasks": shown, "env_name": call.env.name.lower()}


def _shown_task(task: Task[Any], split: str, index: int) -> dict[str, Any]:
    """Returns a task for a list: its names and prompt, never its truth."""
    prompt = wire.readable(task.prompt)
    return {"id": task.id, "split": split, "index": index, "prompt": prompt, "tags": task.tags or None}


async def _reset(call: PageRequest) -> None:
    wanted = await call.body(wire.ResetBody)
    secrets = brought(call.request, {})
    sessions, named = call.all.sessions, call.request.header(SESSION) or wanted.session_id or ""
    old = await call.session(named, "") if named else None
    session = old or sessions.open(call.env, call.caller)
    try:
        async with sessions.taken(wanted.episode_id or "", session):
            session.secrets = secrets if secrets.names else session.secrets
            live = await session.reset(wanted)
            sessions.name(session)
    except BaseException:
        if old is None:
            await sessions.close(session)
        raise
    details = session.details | wire.ignored(await call.body(dict[str, msgspec.Raw]), wire.ResetBody)
    await call.answer(wire.opened(live, details), session)


async def _step(call: PageRequest) -> None:
    wanted = await call.body(wire.StepBody)
    try:
        move = wire.move(wanted.action)
    except Refused as error:  # It stands in the body, and is a fault of the body's like any other.
        raise msgspec.ValidationError(f"{error} - at `$.action`") from error
    named, label = call.request.header(SESSION) or wanted.session_id or "", wanted.episode_id or ""
    if move.kind == "list" and not named and not label:
        await call.request.answer(200, wire.listed(call.env, None))  # This works before any reset.
        return
    session = await call.session(named, label)
    live = session.current
    if move.kind == "list":
        session.listed()
        await call.answer(wire.listed(call.env, live), session)
        return
    acting = detached(session.act(move, key=_key(wanted.request_id or "") or call.key))
    if wanted.timeout_s is not None and not (await asyncio.wait({acting}, timeout=wanted.timeout_s))[0]:
        # What was begun goes on; under its request_id the answer can be had later.
        await call.request.reply({"detail": f"no answer after {wanted.timeout_s:g} s; the step goes on"}, 504)
        return
    await call.answer(wire.seen(move.name, await acting), session)


async def _state(call: PageRequest) -> Any:
    named = call.request.header(SESSION) or call.request.query("session_id")
    label = call.request.query("episode_id")
    if not named and not label:
        return {"episode_id": None, "step_count": 0}  # As before anything begins.
    return (await call.session(named, label)).state()


async def _rpc(call: PageRequest) -> None:
    try:
        body = await call.request.body(call.all.host.limits.body_bytes)
        rpc = Rpc(call.all.sessions, call.env, call.caller, secrets=brought(call.request, {}))
        answer = await rpc.answer(body, key=call.key)
    except (TooLarge, Refused) as error:
        answer = failed(INVALID_REQUEST, str(error))
    await call.request.answer(200, answer)


def _key(name: str) -> str:
    return f"openenv:{name}" if name else ""


Page = tuple[str, Callable[[PageRequest], Any]]
"""Method of a page, and its handler, which returns JSON, or None if it has answered."""

_PAGES: dict[str, Page] = {
    "health": ("GET", lambda call: {"status": "healthy"}),
    "metadata": ("GET", lambda call: schemas.metadata(call.env)),
    "schema": ("GET", lambda call: schemas.schema(call.env)),
    "openapi.json": ("GET", lambda call: schemas.openapi(call.env)),
    "list_environments": ("GET", lambda call: [call.env.name.lower()]),
    "reset": ("POST", _reset),
    "step": ("POST", _step),
    "state": ("GET", _state),
    "mcp": ("POST", _rpc),
}

_TASKS: dict[str, Page] = {
    "splits": ("GET", lambda call: lists.splits(call.env)),
    "tasks": ("POST", lambda call: _shown(call, lists.Split)),
    "num_tasks": ("POST", _num_tasks),
    "task": ("POST", _task),
    "task_range": ("POST", lambda call: _shown(call, lists.Range)),
}
