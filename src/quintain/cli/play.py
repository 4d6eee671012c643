"""Execution of a run from its first episode to its summary, with a progress bar on a terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from quintain.environment import Environment
from quintain.errors import RunStopped
from quintain.harness import Agent
from quintain.record import EpisodeRecord, RunFolder, read_traces
from quintain.report import Summary
from quintain.rollouts import rollouts
from quintain.task import Task
from quintain.trace import Timing

from .console import number, stderr


class Watcher(Protocol):
    """Callback for the progress of a run."""

    def __call__(self, episodes: int, summary: Summary) -> None:
        """So many further episodes are in the summary."""
        ...


class Played(NamedTuple):
    """Result of a run."""

    summary: Summary
    stopped: RunStopped | None
    """The failure gate's reason to end the run early; None if it did not."""


async def play(
    env: Environment[Any],
    agent: Agent,
    tasks: Iterable[Task[Any]],
    *,
    folder: RunFolder,
    watcher: Watcher,
    **names: Any,
) -> Played:
    """Play tasks into a folder and add them up.

    Args:
        env: The environment; closed at the end where it can be.
        agent: Who plays; closed, too.
        tasks: What to play.
        folder: Keeps what has finished.
        watcher: Is called after each group.
        names: As `rollouts` takes them: group, seed, split.
    """
    summary = Summary()
    seen: set[str] = set()
    try:
        async for group in rollouts(env, agent, tasks, folder=folder, **names):
            seen.add(group.task)
            summary.add(group.rollouts, group.earlier, kept=group.kept)
            watcher(len(group.rollouts), summary)
    except RunStopped as stopped:
        _add_rest(summary, folder, seen)
        return Played(summary, stopped)
    finally:
        for one in (agent, env):
            close: Callable[[], Awaitable[None]] | None = getattr(one, "aclose", None)
            if close is not None:
                await close()
    return Played(summary, None)


def _add_rest(summary: Summary, folder: RunFolder, seen: set[str]) -> None:
    """Count the finished episodes of groups that were still open."""
    rest: dict[tuple[str, int], list[EpisodeRecord]] = {}
    for trace in read_traces(folder.path):
        if trace.task not in seen:
            rest.setdefault((trace.task, trace.attempt), []).append(EpisodeRecord(trace, Timing()))
    for members in rest.values():
        summary.add(members)


@contextmanager
def progress(total: int, title: str) -> Generator[Watcher]:
    """Show a progress bar with the running mean and the failures on stderr, if stderr is a terminal."""
    console = stderr()
    if not console.is_terminal:
        yield lambda episodes, summary: None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("mean {task.fields[mean]}"),
        TextColumn("{task.fields[failed]}", style="red"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        place = bar.add_task(title, total=total, mean="-", failed="")

        def advance(episodes: int, summary: Summary) -> None:
            failed = f"{summary.failed} failed" if summary.failed else ""
            bar.update(place, advance=episodes, mean=number(summary.all.mean), failed=failed)

        yield advance
