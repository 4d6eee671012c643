"""Handlers of environments, tasks, the list of episodes, health and metrics."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from quintain.environment import Environment
from quintain.serve.episodes import task_lists as lists
from quintain.serve.errors import Unavailable, Unknown
from quintain.task import Task

from . import metrics, views
from .answers import CriterionInfo, EnvironmentInfo, EnvironmentList, EpisodePage, Health, TaskInfo, TaskPage, ToolInfo
from .routes import ApiCall


async def list_environments(call: ApiCall) -> EnvironmentList:
    """Every environment, the default first: splits, tools, criteria, configuration, digests."""
    return EnvironmentList(tuple(_told(call, env) for env in call.host.environments.values()))


async def get_environment(call: ApiCall) -> EnvironmentInfo:
    """One environment by its name, in any case; "-" is the server's first one."""
    return _told(call, call.host.environment(_name(call)))


async def list_tasks(call: ApiCall) -> TaskPage:
    """The names and tags of a split's tasks; what stands in a task does not leave the server."""
    host, query = call.host, call.query
    env = host.environment(_name(call))
    if query.split and query.split not in env.splits:
        raise Unknown(f"{env.name} has no split {query.split!r}; it has {', '.join(env.splits)}")
    split = host.split(env, query.split)
    count = len(await host.tasks(env, split))
    part = slice(query.offset, query.offset + query.limit)
    return TaskPage(split, count, tuple(await lists.shown(host, env, split, part=part, describe=_named)))


async def list_episodes(call: ApiCall) -> EpisodePage:
    """The caller's episodes; an admin's are all."""
    query, lives = call.query, call.host.lives(call.caller)
    part = lives[query.offset : query.offset + query.limit]
    return EpisodePage(len(lives), tuple(views.status(live, call.caller) for live in part))


async def get_health(call: ApiCall) -> Health:
    """Returns 200 while the process lives."""
    return Health("draining" if call.host.draining else "ok")


async def get_readiness(call: ApiCall) -> Health:
    """Returns 200 if new episodes are taken; 503 if the server ends, cannot write its journal, or lost many threads."""
    call.host.check()
    if call.host.executor.is_exhausted:
        raise Unavailable(f"{call.host.executor.abandoned} threads hang in tools: restart the server")
    return Health("ok")


async def get_metrics(call: ApiCall) -> Response:
    """Counters and gauges for Prometheus."""
    return Response(metrics.text(call.host), media_type=metrics.TYPE)


def _told(call: ApiCall, env: Environment[Any]) -> EnvironmentInfo:
    """Returns the description of an environment, for a trainer with the tools of other roles."""
    tools = env.tools.values() if call.has("trainer") else env.tools_of("agent")
    return EnvironmentInfo(
        **{name: getattr(env, name) for name in ("name", "splits", "fingerprint", "tools_digest", "config")},
        tools=msgspec.convert(tuple(tools), tuple[ToolInfo, ...], from_attributes=True),
        criteria=msgspec.convert(env.verifier.criteria, tuple[CriterionInfo, ...], from_attributes=True),
        combine=env.verifier.combine,
        idle_s=call.host.limits.idle_s,
    )


def _named(task: Task[Any], _split: str, _place: int) -> TaskInfo:
    return TaskInfo(task.id, dict(task.tags), task.day)


def _name(call: ApiCall) -> str:
    name = call.names["environment"]
    return "" if name == "-" else name
