"""Selection of environment, tasks, configuration and models from the options of `run`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from quintain import plugins
from quintain.config import Config, read
from quintain.environment import Environment
from quintain.errors import DefinitionError, UsageError, author_frames, describe, short
from quintain.harness import Agent, Harness, Model, Request
from quintain.harnesses import Dialogue
from quintain.models import Company
from quintain.models.cast import with_silent_user
from quintain.task import Task
from quintain.trace import Reply

from . import options

_FILE = re.compile(rf"(?P<path>.+(?:{'|'.join(map(re.escape, ('.py', *plugins.DATA)))}))(?P<attribute>[:@]\w+)?")


def anchored(spec: str) -> str:
    """Returns the name of an environment or scorer with an absolute file path, valid in any folder."""
    adapter, colon, text = spec.partition(":")
    if colon and adapter in plugins.names("adapters"):
        return f"{adapter}:{anchored(text)}"
    match = _FILE.fullmatch(spec)
    return os.path.abspath(match["path"]) + (match["attribute"] or "") if match else spec  # noqa: PTH100 (keeps links)


def split_of(env: Environment[Any], wanted: str | None) -> str:
    """Returns the wanted split; by default "test" if it exists, else the last one.

    Raises:
        UsageError: The environment has no such split.
    """
    if wanted is None:
        return "test" if "test" in env.splits else env.splits[-1]
    env.tasks(wanted)
    return wanted


def made(tasks: Iterable[Task[Any]]) -> Iterator[Task[Any]]:
    """Yields the tasks.

    Raises:
        DefinitionError: The code that makes a task raised; the message names its function, file and line.
    """
    iterator = iter(cast(Iterable[object], tasks))
    while True:
        try:
            task = next(iterator, None)
        except UsageError:
            raise
        except Exception as error:
            said = str(error) if isinstance(error, DefinitionError) else f"{type(error).__name__}: {error}"
            raise DefinitionError(f"T: a task cannot be made: {describe(said, author_frames(error))}") from error
        if task is None:
            return
        if not isinstance(task, Task):
            raise DefinitionError(f"T: the tasks function yields {short(task)}, expected a quintain.Task")
        yield task


def tasks_of(env: Environment[Any], split: str, wanted: str | None) -> Sequence[Task[Any]]:
    """Returns the tasks of `--tasks`: "20" the first 20, "20:40" a slice, "a,b" or "7," ids.

    Raises:
        UsageError: It selects nothing, or what is not there.
    """
    tasks = env.tasks(split)
    if wanted is None:
        chosen = tasks
    elif match := re.fullmatch(r"(\d*):(\d*)", wanted):
        chosen = tasks[slice(*(int(bound) if bound else None for bound in match.groups()))]
    elif not wanted.isdecimal():
        chosen = [env.task(split, name.strip()) for name in wanted.split(",") if name.strip()]
    elif int(wanted) > len(tasks):
        raise UsageError(f"--tasks {wanted}: split {split!r} of {env.name} has {len(tasks)} tasks")
    else:
        chosen = tasks[: int(wanted)]
    if not chosen:
        which = f"--tasks {wanted} selects no task; " if wanted is not None else ""
        raise UsageError(f"{which}split {split!r} of {env.name} has {len(tasks)} tasks")
    return chosen


def config_of(env: Environment[Any], file: Path | None, settings: Iterable[str], **dials: Any) -> Config:
    """Returns the configuration: the environment's, then a file's, `key=value` texts, and `dials` that are not None.

    Raises:
        UsageError: An unreadable file, an unknown field, or a value that cannot be used.
    """
    config = env.config.override(read(file)) if file is not None else env.config
    given = options.pairs("--set", settings, f"; known: {', '.join(Config.__struct_fields__)}")
    return config.override(given).override({name: value for name, value in dials.items() if value is not None})


ORACLE = "oracle"
"""Default agent; it plays the solutions of the tasks."""


class _WithoutUser(Company):
    """Agent that does not play the simulated user: a harness has a silent one, None an error that names --user."""

    def __init__(self, agent: Agent, harness: Harness | None) -> None:
        super().__init__(agent=agent)
        self.name = agent.name
        self._harness = harness

    def model(self, task: Task[Any], seed: int) -> Model:
        played = self._agents["agent"].model(task, seed)
        if self._harness is not None:
            return with_silent_user(played, self._harness)

        async def ask(request: Request) -> Reply:
            if request.role == "user":
                raise UsageError(_MISSING_USER.format(name="this environment"))
            return await played(request)

        return ask


_MISSING_USER = "{name} asks the role 'user', and no agent plays it: give --user AGENT"


def agent_of(env: Environment[Any], spec: str, user: str | None, *, base_url: str | None, silent: bool) -> Agent:
    """Returns the agent, combined with the simulated user if there is one.

    Without one, the oracle has a silent user, and so has each agent if `silent`. Other agents refuse to play the user,
    except a Company, which has roles of its own.

    Raises:
        UsageError: No model has that name, or the environment needs a user and none is given.
    """
    retries = env.config.retries
    endpoint: dict[str, Any] = {"retries": retries} | ({} if base_url is None else {"base_url": base_url})

    def made(name: str) -> Agent:
        # The baselines reach no endpoint.
        return plugins.agent(name, **(endpoint if name.startswith("openai:") else {}))

    if user is not None:
        return Company(agent=made(spec), user=made(user))
    agent = made(spec)
    if isinstance(agent, Company):
        return agent
    if silent or spec == ORACLE:
        return _WithoutUser(agent, env.harness)
    if isinstance(env.harness, Dialogue):
        raise UsageError(_MISSING_USER.format(name=env.name))
    return _WithoutUser(agent, None)
