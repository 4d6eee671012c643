"""Plan of a run: the command line resolved to an environment, tasks, an agent and a manifest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from quintain import plugins
from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.harness import Agent
from quintain.task import Task

from . import folders, options, programs, selection
from .oracle import check_solutions
from .selection import ORACLE

CHECKED = 200
"""Tasks whose solutions are checked before the first episode; those of others are checked as they are played."""


class RunArguments(msgspec.Struct, kw_only=True):
    """Arguments of `quintain run`."""

    env: str
    split: str | None = None
    agent: str = ORACLE
    base_url: str | None = None
    user: str | None = None
    harness: str | None = None
    allow_tools: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()
    any_process: bool = False
    tasks: str | None = None
    group: int = 1
    seed: int = 0
    concurrency: int | None = None
    config: Path | None = None
    settings: tuple[str, ...] = ()
    data: str | None = None
    nl_assertions: str | None = None
    twin: str | None = None
    scorer: str | None = None
    prompt_column: str | None = None
    answer_column: str | None = None
    options: tuple[str, ...] = ()
    out: Path | None = None
    debug: bool = False
    allow_partial: bool = False
    resume: bool = False
    as_json: bool = False
    silent: bool = False
    """Gives every agent without a `user` a silent one; `demo` does."""


class Plan(NamedTuple):
    """Run that has not begun."""

    wanted: RunArguments
    env: Environment[Any]
    split: str
    tasks: Sequence[Task[Any]]
    agent: Agent
    manifest: folders.Manifest

    def place(self) -> Path:
        """Returns the run folder; a new one is created to claim it.

        Raises:
            UsageError: The run to resume does not exist.
        """
        if self.wanted.out is not None:
            return self.wanted.out
        choose = folders.latest if self.wanted.resume else folders.fresh
        return choose(self.env.name, self.agent.name)


def _made_with(wanted: RunArguments) -> dict[str, str]:
    """Returns the options of the environment."""
    names = ("data", "nl_assertions", "twin", "prompt_column", "answer_column")
    scorer = selection.anchored(wanted.scorer) if wanted.scorer is not None else None
    return options.environment_options(wanted.options, scorer=scorer, **{name: getattr(wanted, name) for name in names})


def plan(wanted: RunArguments) -> Plan:
    """Resolves all arguments, so that wrong usage fails before the first episode.

    Raises:
        UsageError: A name or a value that does not exist.
        DefinitionError: The environment is broken.
    """
    made_with = _made_with(wanted)
    env = plugins.environment(wanted.env, **made_with)
    env = env.replace(config=selection.config_of(env, wanted.config, wanted.settings, concurrency=wanted.concurrency))
    program = programs.wanted(
        wanted.harness, tools=wanted.allow_tools, passed=wanted.pass_env, bound=not wanted.any_process
    )
    env = programs.played_by(env, program)
    if env.remote_begin is not None and wanted.agent == ORACLE:
        raise UsageError(
            f"the solutions of {env.name}'s tasks stay at its server, so no {wanted.agent} can play them from here: "
            "say who does, such as --agent random or --agent openai:MODEL"
        )
    split = selection.split_of(env, wanted.split)
    tasks = selection.tasks_of(env, split, wanted.tasks)
    first = list(selection.made(tasks[:CHECKED]))
    if wanted.agent == ORACLE:
        check_solutions(env, first)
    names = ("tasks", "agent", "user", "base_url", "group", "seed")
    fields = {name: getattr(wanted, name) for name in names}
    manifest = folders.Manifest.of(env, wanted.env, made_with, harness=program, split=split, **fields)
    agent = selection.agent_of(env, wanted.agent, wanted.user, base_url=wanted.base_url, silent=wanted.silent)
    return Plan(wanted, env, split, tasks, agent, manifest)
