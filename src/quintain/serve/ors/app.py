"""The endpoints of the Open Reward Standard. Discovery and sessions; calls are in `calling`.

Where its two implementations differ, both kinds of clients are served: answers have the fields of the newer one, which
the older ignores, and requests may have the fields of either. An environment may be left out of a path; then, as at
its own servers, it is the first one, or the session's.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from quintain import __version__
from quintain.errors import QuintainError
from quintain.serve.episodes import task_lists as lists
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.request_secrets import brought
from quintain.serve.episodes.secrets import Secrets
from quintain.serve.errors import Refused, ServeError, Starting, Unknown
from quintain.serve.http.asgi import HttpRequest, again_headers, parsed
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
    """One request, and the environment that its path names, or an empty text."""

    request: HttpRequest
    caller: Caller
    env: str


Handler = Callable[["Ors", OrsRequest], Awaitable[None]]


class Ors:
    """The endpoints for one host."""

    def __init__(self, host: Host) -> None:
        self.host = host

    async def handle(self, request: HttpRequest, caller: Caller) -> None:
        """Answers one request; a refusal has the standard's form."""
        try:
            way = _way if len(request.path) <= LONGEST else _way.__wrapped__
            handler, env = way(request.method, request.path)
            if env:
                self.host.environment(env)  # One that is not there answers nothing, whatever the session.
            if handler is None:
                await _nobody(request, _methods(request.path))
                return
            await handler(self, OrsRequest(request, caller, env))
        except msgspec.DecodeError as error:
            await request.reply({"detail": problems(error, "body")}, 422)
        except ServeError as error:
            await request.reply({"detail": str(error)}, error.status, [*_JSON, *again_headers(error)])
        except QuintainError as error:  # An author's tasks() that raises.
            await request.reply({"detail": f"{type(error).__name__}: {error}"}, 500)

    def live(self, request: HttpRequest, caller: Caller) -> Live:
        """Returns the session that the request is about.

        Raises Refused if it names none, Unknown if none has the name.
        """
        try:
            return self.host.get(session(request), caller)
        except Unknown:
            raise Unknown("Active environment not found") from None

    async def body(self, request: HttpRequest, type: type[Any]) -> Any:
        """Returns the body of a request of this type, or raises DecodeError.

        An empty name of a split, which elsewhere means the default split, raises Refused.
        """
        said = await request.json(type, self.host.limits.body_bytes)
        if said.split == "":
            raise Refused("Invalid split ''")
        return said


def session(request: HttpRequest) -> str:
    """Returns the name of the session that a request is about; raises Refused if there is none."""
    name = request.header(SESSION)
    if not name:
        raise Refused("X-Session-ID header is required")
    return name


_JSON = [(b"content-type", b"application/json")]

# --- discovery ---


async def _health(_ors: Ors, asked: OrsRequest) -> None:
    await asked.request.reply({"status": "ok"})


async def _environments(ors: Ors, asked: OrsRequest) -> None:
    await asked.request.reply(list(ors.host.environments))


async def _version(_ors: Ors, asked: OrsRequest) -> None:
    await asked.request.reply({"version": __version__, "build_sha": None})


async def _tools(ors: Ors, asked: OrsRequest) -> None:
    await asked.request.reply(wire.listed(ors.host.environment(asked.env)))


async def _splits(ors: Ors, asked: OrsRequest) -> None:
    await asked.request.reply(lists.splits(ors.host.environment(asked.env)))


async def _tasks(ors: Ors, asked: OrsRequest) -> None:
    body = await ors.body(asked.request, lists.Split)
    await _list(ors, asked, body.split, part=slice(None))


async def _num_tasks(ors: Ors, asked: OrsRequest) -> None:
    body = await ors.body(asked.request, lists.Split)
    await asked.request.reply({"num_tasks": len(await ors.host.tasks(ors.host.environment(asked.env), body.split))})


async def _task(ors: Ors, asked: OrsRequest) -> None:
    body = await ors.body(asked.request, lists.Index)
    found = ors.host.environment(asked.env)
    shown = await lists.one(ors.host, found, body, describe=wire.task)
    await asked.request.reply({"task": shown, "env_name": asked.env or found.name.lower()})


async def _task_range(ors: Ors, asked: OrsRequest) -> None:
    body = await ors.body(asked.request, lists.Range)
    await _list(ors, asked, body.split, part=slice(body.start, body.stop))


async def _list(ors: Ors, asked: OrsRequest, split: str, *, part: slice) -> None:
    found = ors.host.environment(asked.env)
    shown = await lists.shown(ors.host, found, split, part=part, describe=wire.task)
    await asked.request.reply({"tasks": shown, "env_name": asked.env or found.name.lower()})


# --- sessions ---


async def _create_session(ors: Ors, asked: OrsRequest) -> None:
    body = await asked.request.body(ors.host.limits.body_bytes)
    if body.strip():
        parsed(body, dict[str, Any])
    data = frames.task(ors.host.ids.new()) + frames.end()
    headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
    await asked.request.answer(200, data, headers)


async def _create(ors: Ors, asked: OrsRequest) -> None:
    name = session(asked.request)
    if len(name) > MOST_NAME:
        raise Refused(f"X-Session-ID has {len(name):,} characters, and may have {MOST_NAME}")
    body: wire.Create = await ors.body(asked.request, wire.Create)
    by_place = body.split is not None or body.index is not None
    if (body.task_spec is not None) == by_place or (by_place and (body.split is None or body.index is None)):
        raise msgspec.ValidationError("exactly one of task_spec, or split and index, is wanted")
    if body.toolset_name:
        raise Refused(f"there is no toolset {body.toolset_name!r}; this server has none")
    split, place = (body.split or "", body.index or 0) if by_place else _specified(body.task_spec or {})
    if not split and isinstance(place, str):
        split = await _split_of(ors, body.env_name or "", place)
    wanted = EpisodeSpec(environment=body.env_name or "", split=split, task=place, id=name)
    try:
        secrets = brought(asked.request, body.secrets or {})
        if not await _was_begun(ors, wanted, asked.caller, secrets=secrets):
            await ors.host.create(wanted, asked.caller, secrets=secrets)
    except ServeError as error:
        if error.status == 409:  # The standard's own servers say 400.
            raise Refused(str(error)) from error
        if isinstance(error, Unknown) and by_place and body.env_name is None:
            raise Refused(str(error)) from error
        raise
    await asked.request.reply({"sid": name})


async def _was_begun(ors: Ors, wanted: EpisodeSpec, caller: Caller, *, secrets: Secrets) -> bool:
    """True if this very request made the session, in a process that was killed before its answer."""
    try:
        live = ors.host.get(wanted.id, caller)
    except Unknown:
        return False
    if not live.is_new:
        return False
    env = ors.host.environment(wanted.environment)
    split = ors.host.split(env, wanted.split)
    task = await ors.host.task(env, split, wanted.task)
    same = (live.env.name, live.split, live.task.id) == (env.name, split, task.id)
    if same and secrets.names:  # Those of before are gone with the process, so it begins once more.
        await ors.host.close(wanted.id, caller)
        return False
    return same


async def _split_of(ors: Ors, env: str, id: str) -> str:
    """Returns the first split that has a task of this id; raises Unknown."""
    found = ors.host.environment(env)
    for split in found.splits:
        with contextlib.suppress(Unknown):
            await ors.host.task(found, split, id)
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


async def _prompt(ors: Ors, asked: OrsRequest) -> None:
    """Sends all messages before the agent's first reply, system messages first: most clients read nothing else."""
    messages = sorted(await _begun(ors, asked.request, asked.caller), key=lambda one: one.role != "system")
    await asked.request.reply([block for one in messages for block in wire.blocks(one.content)])


async def _messages(ors: Ors, asked: OrsRequest) -> None:
    await asked.request.reply([wire.message(one) for one in await _begun(ors, asked.request, asked.caller)])


async def _begun(ors: Ors, request: HttpRequest, caller: Caller) -> list[Message]:
    live = ors.live(request, caller)
    try:
        await live.ready(SETUP_S)
    except Starting:
        raise Starting("Environment still starting.") from None
    return live.first


async def _task_tools(ors: Ors, asked: OrsRequest) -> None:
    live = ors.live(asked.request, asked.caller)
    await asked.request.reply(wire.listed(live.env.for_task(live.task)))


def _call(ors: Ors, asked: OrsRequest) -> Awaitable[None]:
    return call(ors.live(asked.request, asked.caller), asked.request, most=ors.host.limits.body_bytes)


async def _score_group(ors: Ors, asked: OrsRequest) -> None:
    ors.live(asked.request, asked.caller)
    raise Unknown("this environment scores each episode by itself")


async def _ping(ors: Ors, asked: OrsRequest) -> None:
    ors.live(asked.request, asked.caller)
    await asked.request.reply({"status": "ok"})


async def _delete(ors: Ors, asked: OrsRequest) -> None:
    name = session(asked.request)
    try:
        await ors.host.close(name, asked.caller)
    except Unknown:
        await asked.request.reply({"sid": name})  # By the standard, deleting what is not there is fine.
        return
    await asked.request.reply({"sid": name})


async def _delete_session(_ors: Ors, asked: OrsRequest) -> None:
    await asked.request.reply({"sid": session(asked.request)})


_ROOT: dict[tuple[str, str], Handler] = {
    ("GET", "health"): _health,
    ("GET", "list_environments"): _environments,
    ("GET", "version"): _version,
    ("POST", "create_session"): _create_session,
    ("POST", "create"): _create,
    ("POST", "ping"): _ping,
    ("POST", "delete"): _delete,
    ("POST", "delete_session"): _delete_session,
}

_OF_ENVIRONMENT: dict[tuple[str, str], Handler] = {
    ("GET", "tools"): _tools,
    ("GET", "splits"): _splits,
    ("POST", "tasks"): _tasks,
    ("POST", "num_tasks"): _num_tasks,
    ("POST", "task"): _task,
    ("POST", "task_range"): _task_range,
    ("GET", "prompt"): _prompt,
    ("GET", "messages"): _messages,
    ("GET", "task_tools"): _task_tools,
    ("POST", "call"): _call,
    ("POST", "score_group"): _score_group,
}


@functools.lru_cache(maxsize=1024)
def _way(method: str, path: str) -> tuple[Handler | None, str]:
    """Returns the handler of a path, and the environment that it names."""
    parts = [part for part in path.split("/") if part]
    if len(parts) == 1 and (method, parts[0]) in _ROOT:
        return _ROOT[method, parts[0]], ""
    env, action = ("", parts[0]) if len(parts) == 1 else (parts[0], parts[1]) if len(parts) == 2 else ("", "")
    return _OF_ENVIRONMENT.get((method, action)), env


def _methods(path: str) -> bytes:
    """Returns the method of a path; empty for an unknown path."""
    parts = [part for part in path.split("/") if part]
    routes = [*_OF_ENVIRONMENT, *(_ROOT if len(parts) == 1 else ())] if len(parts) in (1, 2) else []
    return b", ".join(method.encode() for method, name in routes if name == parts[-1])


async def _nobody(request: HttpRequest, methods: bytes) -> None:
    if methods:
        await request.reply({"detail": "Method Not Allowed"}, 405, [*_JSON, (b"allow", methods)])
    else:
        await request.reply({"detail": "Not Found"}, 404)
