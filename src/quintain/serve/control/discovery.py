"""What there is: environments, tasks by name, episodes, and whether the server is well."""

from __future__ import annotations

from typing import Any

from quintain.environment import Environment
from quintain.serve.episodes import task_lists as lists
from quintain.serve.errors import Unknown
from quintain.task import Task

from . import metrics, telling
from .once import Said
from .routes import Asked
from .wire import EnvironmentsTold, EnvironmentTold, EpisodesTold, Health, TasksTold, TaskTold


async def list_environments(asked: Asked) -> EnvironmentsTold:
    """Every environment, the default first: splits, tools, criteria, configuration, digests."""
    return EnvironmentsTold(tuple(_told(asked, env) for env in asked.host.environments.values()))


async def get_environment(asked: Asked) -> EnvironmentTold:
    """One environment by its name, in any case; "-" is the server's first one."""
    return _told(asked, asked.host.environment(_name(asked)))


async def list_tasks(asked: Asked) -> TasksTold:
    """The names and tags of a split's tasks; what stands in a task does not leave the server."""
    host, query = asked.host, asked.query
    env = host.environment(_name(asked))
    if query.split and query.split not in env.splits:
        raise Unknown(f"{env.name} has no split {query.split!r}; it has {', '.join(env.splits)}")
    split = host.split(env, query.split)
    count = len(await host.tasks(env, split))
    part = slice(query.offset, query.offset + query.limit)
    return TasksTold(split, count, tuple(await lists.shown(host, env, split, part=part, tell=_named)))


async def list_episodes(asked: Asked) -> EpisodesTold:
    """The caller's episodes; an admin's are all."""
    query, lives = asked.query, asked.host.lives(asked.caller)
    part = lives[query.offset : query.offset + query.limit]
    return EpisodesTold(len(lives), tuple(telling.status(live, asked.caller) for live in part))


async def get_health(asked: Asked) -> Health:
    """Whether the process lives."""
    return Health("draining" if asked.host.draining else "ok")


async def get_readiness(asked: Asked) -> Health:
    """Whether new episodes are taken; 503 while the server drains, or cannot write its journal."""
    asked.host.check()
    return Health("ok")


async def get_metrics(asked: Asked) -> Said:
    """Counters and gauges for Prometheus."""
    return Said(200, metrics.text(asked.host), ((b"content-type", metrics.TYPE.encode()),))


def _told(asked: Asked, env: Environment[Any]) -> EnvironmentTold:
    return EnvironmentTold.of(env, everything=asked.has("trainer"), idle_s=asked.host.limits.idle_s)


def _named(task: Task[Any], _split: str, _place: int) -> TaskTold:
    return TaskTold(task.id, dict(task.tags), task.day)


def _name(asked: Asked) -> str:
    name = asked.names["environment"]
    return "" if name == "-" else name
