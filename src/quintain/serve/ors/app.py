"""The endpoints of the Open Reward Standard. Discovery and sessions; calls are in `calling`.

Where its two implementations differ, both kinds of clients are served: answers have the fields of the newer one, which
the older ignores, and requests may have the fields of either. An environment may be left out of a path; then, as at
its own servers, it is the first one, or the session's.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from quintain import __version__
from quintain.environment import Environment
from quintain.errors import QuintainError
from quintain.serve.episodes import task_lists as lists
from quintain.serve.episodes.actions import LEFT
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.request_secrets import brought
from quintain.serve.errors import Finished, Gone, Refused, ServeError, Starting, Unknown, Void
from quintain.serve.http.asgi import JSON, HttpRequest, again_headers, parsed
from quintain.serve.http.keys import Caller
from quintain.serve.http.problems import problems
from quintain.trace import Message

from . import frames, wire
from .calling import SETUP_S, call

SESSION = b"x-session-id"
MOST_NAME = 255
"""Characters of a session's name, which is the client's to choose."""
LONGEST = 256
"""Characters of a path that is remembered with where it leads."""


class OrsRequest(NamedTuple):
    """Request, with the environment that its path names, or an empty text."""

    host: Host
    http: HttpRequest
    caller: Caller
    env: str

    @property
    def environment(self) -> Environment[Any]:
        """The environment of the path, or the first one; raises Unknown."""
        return self.host.environment(self.env)

    @property
    def session(self) -> str:
        """The name of the session that the request is about; raises Refused if there is none."""
        name = self.http.header(SESSION)
        if not name:
            raise Refused("X-Session-ID header is required")
        return name

    def live(self) -> Live:
        """Returns the session of the request; raises Refused if it names none, Unknown if none has the name."""
        try:
            return self.host.get(self.session, self.caller)
        except Unknown:
            raise Unknown("Active environment not found") from None

    async def body(self, type: type[Any]) -> Any:
        """Returns the body of a request of this type, or raises DecodeError.

        An empty name of a split, which elsewhere means the default split, raises Refused.
        """
        said = await self.http.json(type, self.host.limits.body_bytes)
        if said.split == "":
            raise Refused("Invalid split ''")
        return said


class Ors:
    """The endpoints for one host."""

    def __init__(self, host: Host) -> None:
        self.host = host

    async def handle(self, request: HttpRequest, caller: Caller) -> None:
        """Answers one request; a refusal has the standard's form."""
        try:
            way = _way if len(request.path) <= LONGEST else _way.__wrapped__
            method, handler, env = way(request.path)
            if env:
                self.host.environment(env)  # One that is not there answers nothing, whatever the session.
            if handler is None:
                await request.reply({"detail": "Not Found"}, 404)
            elif method != request.method:
                headers = [JSON, (b"allow", method.encode())]
                await request.reply({"detail": "Method Not Allowed"}, 405, headers)
            else:
                value = handler(OrsRequest(self.host, request, caller, env))
                if inspect.isawaitable(value):
                    value = await value
                if value is not None:
                    await request.reply(value)
        except msgspec.DecodeError as error:
            await request.reply({"detail": problems(error, "body")}, 422)
        except ServeError as error:
            await request.reply({"detail": str(error)}, error.status, [JSON, *again_headers(error)])
        except QuintainError as error:  # An author's tasks() that raises.
            await request.reply({"detail": f"{type(error).__name__}: {error}"}, 500)


async def _tasks(asked: OrsRequest) -> Any:
    return await _list(asked, await asked.body(lists.Split), slice(None))


async def _task_range(asked: OrsRequest) -> Any:
    body = await asked.body(lists.Range)
    return await _list(asked, body, slice(body.start, body.stop))


async def _list(asked: OrsRequest, body: lists.Split, part: slice) -> Any:
    env = asked.environment
    shown = await lists.shown(asked.host, env, body.split, part=part, describe=wire.task)
    return {"tasks": shown, "env_name": asked.env or env.name.lower()}


async def _num_tasks(asked: OrsRequest) -> Any:
    body = await asked.body(lists.Split)
    return {"num_tasks": len(await asked.host.tasks(asked.environment, body.split))}


async def _task(asked: OrsRequest) -> Any:
    body, env = await asked.body(lists.Index), asked.environment
    shown = await lists.one(asked.host, env, body, describe=wire.task)
    return {"task": shown, "env_name": asked.env or env.name.lower()}


async def _create_session(asked: OrsRequest) -> None:
    body = await asked.http.body(asked.host.limits.body_bytes)
    if body.strip():
        parsed(body, dict[str, Any])
    data = frames.task(asked.host.ids.new()) + frames.end()
    headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
    await asked.http.answer(200, data, headers)


async def _create(asked: OrsRequest) -> Any:
    host, name = asked.host, asked.session
    if len(name) > MOST_NAME:
        raise Refused(f"X-Session-ID has {len(name):,} characters, and may have {MOST_NAME}")
    body: wire.Create = await asked.body(wire.Create)
    by_place = body.split is not None or body.index is not None
    if (body.task_spec is not None) == by_place or (by_place and (body.split is None or body.index is None)):
        raise msgspec.ValidationError("exactly one of task_spec, or split and index, is wanted")
    if body.toolset_name:
        raise Refused(f"there is no toolset {body.toolset_name!r}; this server has none")
    split, place = (body.split or "", body.index or 0) if by_place else _specified(body.task_spec or {})
    if not split and isinstance(place, str):
        split = await _split_of(host, body.env_name or "", place)
    wanted = EpisodeSpec(environment=body.env_name or "", split=split, task=place, id=name)
    try:
        await host.create(wanted, asked.caller, secrets=brought(asked.http, body.secrets or {}))
    except ServeError as error:
        # The standard's own servers say 400 instead of 409.
        if error.status == 409 or (isinstance(error, Unknown) and by_place and body.env_name is None):
            raise Refused(str(error)) from error
        raise
    return {"sid": name}


async def _split_of(host: Host, env: str, id: str) -> str:
    """Returns the first split that has a task of this id; raises Unknown."""
    found = host.environment(env)
    for split in found.splits:
        with contextlib.suppress(Unknown):
            await host.task(found, split, id)
            return split
    raise Unknown(f"{found.name} has no task {id!r}")


def _specified(spec: dict[str, Any]) -> tuple[str, str | int]:
    """Returns split and task of a spec, as a list of tasks holds it; raises ValidationError for any other."""
    split, name, index = spec.get("split", ""), spec.get("id"), spec.get("index")
    if not isinstance(split, str) or not (isinstance(name, str) or type(index) is int):
        raise msgspec.ValidationError(
            f"a task_spec has an id or an index, and may have a split: {json.dumps(spec)[:200]}"
        )
    return split, name if isinstance(name, str) else int(index or 0)


async def _prompt(asked: OrsRequest) -> Any:
    """Returns all messages before the agent's first reply, system messages first: most clients read nothing else."""
    messages = sorted(await _begun(asked.live()), key=lambda one: one.role != "system")
    return [block for one in messages for block in wire.blocks(one.content)]


async def _messages(asked: OrsRequest) -> Any:
    messages = await _begun(asked.live())
    return [{"role": one.role, "blocks": wire.blocks(one.content), "detail": None} for one in messages]


async def _begun(live: Live) -> list[Message]:
    try:
        await live.ready(SETUP_S)
    except Starting:
        raise Starting("Environment still starting.") from None
    return live.first


def _task_tools(asked: OrsRequest) -> Any:
    live = asked.live()
    return wire.listed(live.env.for_task(live.task))


def _score_group(asked: OrsRequest) -> Any:
    asked.live()
    raise Unknown("this environment scores each episode by itself")


def _ping(asked: OrsRequest) -> Any:
    asked.live()
    return {"status": "ok"}


async def _delete(asked: OrsRequest) -> Any:
    closed: dict[str, Any] = {"sid": asked.session}
    with contextlib.suppress(Unknown):  # By the standard, deleting what is not there is fine.
        closed |= await _scored(asked.live())
        await asked.host.close(asked.session, asked.caller)
    return closed


async def _scored(live: Live) -> dict[str, Any]:
    """Returns the score and the metadata of a session that is about to be closed; nothing if no call was made in it.

    A session that goes on is ended first, unless a call runs in it.
    """
    with contextlib.suppress(Finished, Gone, Starting, Void):  # It has no score, and is closed all the same.
        if not (live.is_new or live.finished):
            await live.woken(SETUP_S)
            if live.has_calls and not live.is_busy:
                await live.end(LEFT.reason)
    return {"reward": live.reward, "metadata": live.meta} if live.has_calls else {}


Handler = Callable[[OrsRequest], Any]
"""Returns the JSON value of an answer, or an awaitable of it; None if the answer was sent already."""

_ROOT: dict[str, tuple[str, Handler]] = {
    "health": ("GET", lambda _: {"status": "ok"}),
    "list_environments": ("GET", lambda asked: list(asked.host.environments)),
    "version": ("GET", lambda _: {"version": __version__, "build_sha": None}),
    "create_session": ("POST", _create_session),
    "create": ("POST", _create),
    "ping": ("POST", _ping),
    "delete": ("POST", _delete),
    "delete_session": ("POST", lambda asked: {"sid": asked.session}),
}

_OF_ENVIRONMENT: dict[str, tuple[str, Handler]] = {
    "tools": ("GET", lambda asked: wire.listed(asked.environment)),
    "splits": ("GET", lambda asked: lists.splits(asked.environment)),
    "tasks": ("POST", _tasks),
    "num_tasks": ("POST", _num_tasks),
    "task": ("POST", _task),
    "task_range": ("POST", _task_range),
    "prompt": ("GET", _prompt),
    "messages": ("GET", _messages),
    "task_tools": ("GET", _task_tools),
    "call": ("POST", lambda asked: call(asked.live(), asked.http, most=asked.host.limits.body_bytes)),
    "score_group": ("POST", _score_group),
}


@functools.lru_cache(maxsize=1024)
def _way(path: str) -> tuple[str, Handler | None, str]:
    """Returns the method and the handler of a path, and the environment that it names."""
    parts = [part for part in path.split("/") if part]
    if len(parts) not in (1, 2):
        return "", None, ""
    routes = _OF_ENVIRONMENT if len(parts) == 2 else _ROOT | _OF_ENVIRONMENT
    method, handler = routes.get(parts[-1], ("", None))
    return method, handler, parts[0] if len(parts) == 2 else ""
