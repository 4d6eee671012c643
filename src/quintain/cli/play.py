"""Execution of a run from its first episode to its summary, with a progress bar on a terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from quintain.environment import Environment
from quintain.errors import RunStopped
from quintain.harness import Agent
from quintain.record import EpisodeRecord, RunFolder, read_traces
from quintain.report import Summary, score_range
from quintain.rollouts import rollouts
from quintain.task import Task
from quintain.trace import Timing

from . import console
from .folders import frames_by_episode
from .selection import made


class Watcher(Protocol):
    """Callback for the progress of a run."""

    def __call__(self, episodes: int, summary: Summary) -> None:
        """Receives the number of episodes added to the summary."""
        ...


class RunResult(NamedTuple):
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
) -> RunResult:
    """Plays tasks into a run folder and summarizes them.

    Args:
        env: The environment; closed at the end where it can be.
        agent: Who plays; closed, too.
        tasks: What to play.
        folder: Keeps what has finished.
        watcher: Is called after each group.
        names: As `rollouts` takes them: group, seed, split.
    """
    summary = Summary(score_range(env.verifier))
    seen: set[str] = set()
    try:
        async for group in rollouts(env, agent, made(tasks), folder=folder, **names):
            seen.add(group.task)
            summary.add(group.rollouts, group.earlier, kept=group.kept)
            watcher(len(group.rollouts), summary)
            for trace in (one.trace for one in group.rollouts):
                score, turns = console.number(trace.score), console.plural(len(trace.turns), "turn")
                console.log.info("%s, member %d: score %s, %s", trace.task, trace.member, score, turns)
    except RunStopped as stopped:
        _add_rest(summary, folder, seen)
        return RunResult(summary, stopped)
    finally:
        for one in (agent, env):
            close: Callable[[], Awaitable[None]] | None = getattr(one, "aclose", None)
            if close is not None:
                await close()
    return RunResult(summary, None)


def _add_rest(summary: Summary, folder: RunFolder, seen: set[str]) -> None:
    """Adds the finished episodes of groups that were still open."""
    frames = frames_by_episode(folder.path)
    rest: dict[tuple[str, int], list[EpisodeRecord]] = {}
    for trace in read_traces(folder.path):
        if trace.task not in seen:
            done = EpisodeRecord(trace, Timing(), frames.get((trace.task, trace.member, trace.attempt), ()))
            rest.setdefault((trace.task, trace.attempt), []).append(done)
    for members in rest.values():
        summary.add(members)


@contextmanager
def progress(total: int, title: str) -> Generator[Watcher]:
    """Shows a progress bar with the running mean and the failures."""
    texts = ("mean {task.fields[mean]}", "[red]{task.fields[failed]}[/]")
    with console.progress(title, total, *texts, mean="-", failed="") as update:

        def advance(episodes: int, summary: Summary) -> None:
            failed = f"{summary.failed} failed" if summary.failed else ""
            update(advance=episodes, mean=console.number(summary.all.mean), failed=failed)

        yield advance
