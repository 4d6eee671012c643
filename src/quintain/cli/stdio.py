"""`quintain serve ENV --stdio`: one episode, played by the agent program that started this one."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from quintain import plugins
from quintain.environment import Environment
from quintain.errors import UsageError

from . import console


class StdioOptions(msgspec.Struct, kw_only=True):
    """Values of the options of `serve --stdio`."""

    split: str | None = None
    task: str | None = None
    seed: int | None = None
    trace: Path | None = None


def single(command: Any) -> Any:
    """Adds these options to a command."""
    for option in (
        click.option("--trace", type=click.Path(path_type=Path), metavar="FILE",
                     help="With --stdio: append the episode's trace to this file."),
        click.option("--seed", type=int, help="With --stdio: seed of the world.  [default: 0]"),
        click.option("--task", metavar="ID|N", help="With --stdio: task id or index.  [default: the first]"),
        click.option("--split", help='With --stdio: split of the tasks.  [default: "test", else the last split]'),
        click.option("--stdio", is_flag=True, help="Serve one episode over MCP on stdin and stdout."),
    ):  # fmt: skip
        command = option(command)
    return command


def serve(envs: tuple[str, ...], chosen: StdioOptions, *, user: str | None, options: dict[str, str]) -> None:
    """Serves one episode over MCP on stdin and stdout.

    Raises:
        UsageError: Not one environment, no such task, or a file that cannot be written.
    """
    if len(envs) != 1:
        raise UsageError(f"--stdio serves one episode of one environment, not of {len(envs)}")
    with contextlib.redirect_stdout(sys.stderr):  # Stdout is the protocol's; what an import prints is not for it.
        env = plugins.environment(envs[0], **options)
        player = plugins.agent(user) if user else None
    split = chosen.split or ("test" if "test" in env.splits else env.splits[-1])
    place = _place(env, split, chosen.task)
    from quintain.serve.episodes.host import EpisodeSpec
    from quintain.serve.mcp.stdio import play

    if sys.stdin.isatty():
        console.hint("waiting for an MCP client on stdin; Ctrl-D ends the episode")
    wanted = EpisodeSpec(split=split, task=place, seed=chosen.seed or 0)
    asyncio.run(play(env, wanted, user=player, to=chosen.trace))


def _place(env: Environment[Any], split: str, task: str | None) -> str | int:
    """Returns the id of a task; or its index, if no task has that id and it is a number.

    Raises:
        UsageError: The split or the task does not exist.
    """
    if task is None:
        return 0
    try:
        return env.task(split, task).id
    except UsageError:
        if not task.isdecimal() or not env.tasks(split)[int(task) : int(task) + 1]:
            raise
        return int(task)
