"""`quintain demo`: three agents on one environment side by side, and the proof that the runs replay."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from . import completion, console, exits, options

if TYPE_CHECKING:
    from quintain.report import Summary

AGENTS = ("oracle", "noop", "random")


class Row(NamedTuple):
    """Run of one agent."""

    agent: str
    place: Path
    summary: Summary
    wall_s: float


@click.command(short_help="Play an environment with three agents and replay it.")
@click.argument("env", default="sales", shell_complete=completion.environments)
@click.option("--tasks", default="36", show_default=True, metavar="N|A:B|IDS", help="Tasks of the test split.")
@options.processes
def demo(*, env: str, tasks: str, processes: int) -> None:
    """Play ENV (sales, if left out) with the oracle, noop and random agents, and replay it all in other processes."""
    from .folders import fresh
    from .replay import print_verdicts, replay_in_processes

    out = console.stdout()
    root = fresh("demo", env)
    rows = [_play(env, agent, tasks=tasks, root=root) for agent in AGENTS]
    episodes = console.plural(rows[0].summary.all.episodes, "task")
    out.print(f"{env}, {episodes} each: the solution (oracle), nothing (noop), anything (random)\n")
    _print_rows(rows)
    verdicts = replay_in_processes([row.place for row in rows], None, processes)
    out.print(
        f"All of it played again from the record, in {console.plural(processes, 'other process', 'other processes')}:\n"
    )
    print_verdicts(verdicts)
    out.print(f"\nRead a trace with `quintain show {rows[0].place}`.", soft_wrap=True)
    if any(verdict.diverged for verdict in verdicts):
        raise click.exceptions.Exit(exits.FAILED)


def _play(env: str, agent: str, *, tasks: str, root: Path) -> Row:
    from .folders import opened
    from .plan import RunArguments, plan
    from .play import play, progress

    chosen = plan(RunArguments(env=env, agent=agent, tasks=tasks, silent=True))
    place = root / agent
    started = time.perf_counter()
    with (
        opened(place, chosen.manifest) as folder,
        progress(len(chosen.tasks), agent) as watcher,
    ):
        running = play(chosen.env, chosen.agent, chosen.tasks, folder=folder, watcher=watcher, split=chosen.split)
        played = asyncio.run(running)
    if played.stopped is not None:
        raise played.stopped
    return Row(agent, place, played.summary, time.perf_counter() - started)


def _print_rows(rows: list[Row]) -> None:
    """Prints scores and effort, one agent per line; then the scores by each tag."""
    from quintain.report import indistinguishable

    from .summary import TAG_VALUES

    out = console.stdout()
    cells = [
        (
            row.agent,
            console.number(row.summary.all.mean),
            console.number(row.summary.standard_error),
            row.summary.failed,
            row.summary.turns,
            row.summary.calls,
            console.number(row.summary.all.episodes / row.wall_s, 0),
        )
        for row in rows
    ]
    out.print(console.grid("agent", ">mean", ">±", ">failed", ">turns", ">calls", ">episodes/s", rows=cells))
    out.print()
    for row in rows[1:] if any(row.summary.failed for row in rows) else ():
        if warning := indistinguishable(rows[0].summary, row.summary):
            out.print(f"{rows[0].agent} and {row.agent}: {warning}")
    for tag, values in sorted(rows[0].summary.by_tag.items()):
        if 1 < len(values) <= TAG_VALUES:
            means = [
                (value, *(console.number(row.summary.by_tag[tag][value].mean) for row in rows))
                for value in sorted(values, key=console.difficulty)
            ]
            out.print(console.grid(tag, *(f">{row.agent}" for row in rows), rows=means))
            out.print()
