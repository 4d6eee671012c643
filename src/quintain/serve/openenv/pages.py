"""OpenEnv over HTTP: what there is, tasks, and episodes for those who open no socket.

The reference makes an environment for each request and forgets it. Here a step needs the name of its episode: the
X-Session-ID that /reset answers with, or the episode_id that it was given. What names none is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from quintain.environment import Environment
from quintain.errors import QuintainError
from quintain.serve.episodes import task_lists as lists
from quintain.serve.episodes.host import Host
from quintain.serve.episodes.request_secrets import brought
from quintain.serve.episodes.views import CallAnswer
from quintain.serve.errors import Refused, ServeError, TooLarge, Unknown, Void
from quintain.serve.http.asgi import JSON, HttpRequest, again_headers, parsed
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
        self.late: set[asyncio.Future[CallAnswer]] = set()
        """Steps that run on after their request timed out."""

    async def handle(self, request: HttpRequest, caller: Caller) -> None:
        """Answer a request, or serve a WebSocket."""
        try:
            await (self._socket if request.scope["type"] == "websocket" else self._http)(request, caller)
        except msgspec.DecodeError as error:
            await request.reply({"detail": problems(error, "body")}, 422)
        except ServeError as error:
            await _denied(request, error)
        except QuintainError as error:  # An author's tasks() that raises.
            await request.reply({"detail": f"{type(error).__name__}: {error}"}, 500)

    async def _socket(self, request: HttpRequest, caller: Caller) -> None:
        name, *rest = [*request.segments[1:], ""]
        env = self.host.environment(name)
        socket = Socket(self.sessions, env, request, caller=caller)
        session = request.query("session_id")
        match [part for part in rest if part]:
            case ["ws"]:
                await socket.episodes(session)
            case ["mcp"]:
                await socket.rpc(session)
            case _:
                raise Unknown("there is no WebSocket here: /ws plays episodes, /mcp calls tools")

    async def _http(self, request: HttpRequest, caller: Caller) -> None:
        segments = request.segments[1:]
        if not segments:
            await request.reply([f"/openenv/{name}" for name in self.host.environments])
            return
        env = self.host.environment(segments[0])
        if len(segments) == 3 and segments[2] in _TASKS:
            if self.host.environment(segments[1]) is not env:
                raise Unknown(f"unknown environment {segments[1]!r}")
            page = _TASKS[segments[2]]
        else:
            page = _PAGES.get("/".join(segments[1:]), _nowhere)
        method, answer = page
        if method and request.method != method:
            await request.reply({"detail": "Method Not Allowed"}, 405, [JSON, (b"allow", method.encode())])
            return
        await answer(PageRequest(self, request, caller, env))

    def forget(self, step: asyncio.Future[CallAnswer]) -> None:
        """Drop a late step that has ended; how it did, the episode's record knows."""
        self.late.discard(step)
        if not step.cancelled():
            step.exception()


class PageRequest(NamedTuple):
    """One request to one environment."""

    all: OpenEnv
    request: HttpRequest
    caller: Caller
    env: Environment[Any]

    async def body(self, type: type[T]) -> T:
        """The body as JSON of a type; none at all counts as an empty object.

        Raises:
            msgspec.DecodeError: It is not of that type.
            TooLarge: It is too long.
        """
        return parsed(await self.request.body(self.all.host.limits.body_bytes) or b"{}", type)

    @property
    def key(self) -> str:
        """Key of the request, under which it is done once; empty without one.

        Raises:
            Refused: The key is too long to be kept.
        """
        name = self.request.header(KEY)
        if len(name) > MOST_KEY:
            raise Refused(f"an Idempotency-Key has up to {MOST_KEY} characters, and this one {len(name):,}")
        return _key(name)

    async def session(self, id: str, label: str) -> EnvSession:
        """The session that the request names.

        Raises:
            Refused: It names none.
            Unknown: There is none of that name.
        """
        if id:
            return await self.all.sessions.find(id, self.env, self.caller)
        if label:
            return await self.all.sessions.labelled(label, self.env, self.caller)
        raise Refused("which episode? send the X-Session-ID that /reset answered with, or its episode_id")

    async def answer(self, body: bytes, session: EnvSession) -> None:
        """Answer about an episode."""
        await self.request.answer(200, body, (JSON, (SESSION, session.id.encode())))


# -- what there is


async def _not_found(_asked: PageRequest) -> None:
    raise Unknown("Not Found")


async def _health(call: PageRequest) -> None:
    await call.request.reply({"status": "healthy"})


async def _metadata(call: PageRequest) -> None:
    await call.request.reply(schemas.metadata(call.env))


async def _schema(call: PageRequest) -> None:
    await call.request.reply(schemas.schema(call.env))


async def _openapi(call: PageRequest) -> None:
    await call.request.reply(schemas.openapi(call.env))


async def _environments(call: PageRequest) -> None:
    await call.request.reply([call.env.name.lower()])


# -- tasks


async def _splits(call: PageRequest) -> None:
    await call.request.reply(lists.splits(call.env))


async def _tasks(call: PageRequest) -> None:
    split = (await call.body(lists.Split)).split
    await _shown(call, split, slice(None))


async def _num_tasks(call: PageRequest) -> None:
    split = (await call.body(lists.Split)).split
    await call.request.reply({"num_tasks": len(await call.all.host.tasks(call.env, split))})


async def _task(call: PageRequest) -> None:
    wanted = await call.body(lists.Index)
    shown = await lists.one(call.all.host, call.env, wanted, describe=_shown_task)
    await call.request.reply({"task": shown, "env_name": call.env.name.lower()})


async def _task_range(call: PageRequest) -> None:
    wanted = await call.body(lists.Range)
    await _shown(call, wanted.split, slice(wanted.start, wanted.stop))


async def _shown(call: PageRequest, split: str, part: slice) -> None:
    shown = await lists.shown(call.all.host, call.env, split, part=part, describe=_shown_task)
    await call.request.reply({"tasks": shown, "env_name": call.env.name.lower()})


def _shown_task(task: Task[Any], split: str, index: int) -> dict[str, Any]:
    """Returns a task for a list: its names and prompt, never its truth."""
    prompt = wire.readable(task.prompt)
    return {"id": task.id, "split": split, "index": index, "prompt": prompt, "tags": task.tags or None}


# -- episodes


async def _reset(call: PageRequest) -> None:
    wanted = await call.body(wire.ResetBody)
    secrets = brought(call.request, {})
    sessions, named = call.all.sessions, call.request.header(SESSION) or wanted.session_id or ""
    old = await call.session(named, "") if named else None
    session = old or sessions.open(call.env, call.caller)
    label = wanted.episode_id
    try:
        if label:
            await sessions.release(label, session)
        with sessions.labels.taken(label, session) if label else contextlib.nullcontext():
            session.secrets = secrets if secrets.names else session.secrets
            live = await session.reset(wanted)
            if session in sessions:  # It may have been closed meanwhile.
                sessions.labels.put(session)
    except BaseException:
        if old is None:
            await sessions.close(session)
        raise
    details = session.details | wire.ignored(await call.body(dict[str, msgspec.Raw]), wire.ResetBody)
    await call.answer(wire.opened(live, details), session)


async def _step(call: PageRequest) -> None:
    wanted = await call.body(wire.StepBody)
    move = _move(wanted.action)
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
    acting = asyncio.ensure_future(session.act(move, key=_key(wanted.request_id or "") or call.key))
    if wanted.timeout_s is not None and not (await asyncio.wait({acting}, timeout=wanted.timeout_s))[0]:
        call.all.late.add(acting)  # What was begun goes on; under its request_id the answer can be had later.
        acting.add_done_callback(call.all.forget)
        await call.request.reply({"detail": f"no answer after {wanted.timeout_s:g} s; the step goes on"}, 504)
        return
    await call.answer(wire.seen(move.name, await acting), session)


def _move(action: wire.Action) -> wire.AgentMove:
    try:
        return wire.move(action)
    except Refused as error:  # It stands in the body, and is a fault of the body's like any other.
        raise msgspec.ValidationError(f"{error} - at `$.action`") from error


async def _state(call: PageRequest) -> None:
    named = call.request.header(SESSION) or call.request.query("session_id")
    label = call.request.query("episode_id")
    if not named and not label:
        await call.request.reply({"episode_id": None, "step_count": 0})  # Nobody's: as before anything begins.
        return
    session = await call.session(named, label)
    await call.request.reply(session.state())


async def _rpc(call: PageRequest) -> None:
    try:
        body = await call.request.body(call.all.host.limits.body_bytes)
        secrets, key = brought(call.request, {}), call.key
    except (TooLarge, Refused) as error:
        await call.request.answer(200, failed(INVALID_REQUEST, str(error)))
        return
    answer = await Rpc(call.all.sessions, call.env, call.caller, secrets=secrets).answer(body, key=key)
    await call.request.answer(200, answer)


def _key(name: str) -> str:
    return f"openenv:{name}" if name else ""


# -- errors


async def _denied(request: HttpRequest, error: ServeError) -> None:
    details = {"metadata": wire.void(error.failure)} if isinstance(error, Void) else {}
    await request.reply({"detail": str(error), **details}, error.status, [JSON, *again_headers(error)])


Page = tuple[str, Callable[[PageRequest], Awaitable[None]]]

_nowhere: Page = ("", _not_found)

_PAGES: dict[str, Page] = {
    "health": ("GET", _health),
    "metadata": ("GET", _metadata),
    "schema": ("GET", _schema),
    "openapi.json": ("GET", _openapi),
    "list_environments": ("GET", _environments),
    "reset": ("POST", _reset),
    "step": ("POST", _step),
    "state": ("GET", _state),
    "mcp": ("POST", _rpc),
}

_TASKS: dict[str, Page] = {
    "splits": ("GET", _splits),
    "tasks": ("POST", _tasks),
    "num_tasks": ("POST", _num_tasks),
    "task": ("POST", _task),
    "task_range": ("POST", _task_range),
}
