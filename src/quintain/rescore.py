"""Scores recorded episodes again: replays each to its final world, and runs another verifier there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Any, Generic, NamedTuple

import msgspec

from .chain import TaskChain, before
from .environment import Environment
from .record import EpisodeRecord
from .replay import ReplayModel, as_played, check_origin, find_divergence, replay_env, trace_metadata
from .rollout import play_episode
from .scoring import judge_group
from .state import S
from .task import Task
from .trace import Level, Timing, Trace
from .verifier import EpisodeView


class Rescored(NamedTuple):
    """An episode before and after.

    Attributes:
        old: The recorded trace.
        new: The episode under the new verifier; `old` itself if it was not scored again.
        kept: Why it was not scored again; empty if it was.
    """

    old: Trace
    new: EpisodeRecord
    kept: str = ""


class _Played(NamedTuple, Generic[S]):
    task: Task[S]
    result: Rescored
    view: EpisodeView[S] | None


async def rescore(env: Environment[S], episodes: Iterable[tuple[Task[S], Trace]]) -> AsyncGenerator[Rescored]:
    """Scores recorded episodes under the verifier of an environment, in their order, and yields each.

    An episode that failed elsewhere than in its verifier keeps its failure, and so does one that its verifier ended
    before the agent was done. Members of a group are judged together, so they are yielded when the last one is read;
    `env.config.concurrency` episodes are scored at a time.

    Args:
        env: The environment, with the verifier that scores.
        episodes: Task and trace of each episode. Members of a group follow each other, and the tasks of a day are in
            the order in which they were played.

    Raises:
        UsageError: A trace is of another environment or task, or continues an episode that did not come before.
        ReplayDivergence: The world answered differently than it did the first time; nothing of it can be scored.
    """
    chain = TaskChain(env)
    for batch in _batches(env, episodes):
        for one in await _scored(env, chain, batch):
            yield one


def _batches(env: Environment[Any], episodes: Iterable[tuple[Task[S], Trace]]) -> Iterator[list[tuple[Task[S], Trace]]]:
    """Yields groups where groups are judged; else episodes that may be in play together."""
    batch: list[tuple[Task[S], Trace]] = []
    for task, trace in episodes:
        last = batch[-1][1] if batch else trace
        if env.verifier.at(Level.GROUP):
            fits = (last.task, last.attempt) == (trace.task, trace.attempt)
        else:
            fits = len(batch) < env.config.concurrency and not trace.continues
        if not fits and batch:
            yield batch
            batch = []
        batch.append((task, trace))
    if batch:
        yield batch


async def _scored(env: Environment[S], chain: TaskChain[S], batch: list[tuple[Task[S], Trace]]) -> list[Rescored]:
    """Scores a batch; with group-level criteria, a batch is a group."""
    played = list(await asyncio.gather(*(_play(env, chain, episode) for episode in batch)))
    for one in played:
        chain.advance(one.task, one.result.old, one.view.state if one.view else None)
    live = [n for n, one in enumerate(played) if one.view and one.result.new.trace.failure is None]
    results = [one.result for one in played]
    if len(live) > 1 and env.verifier.at(Level.GROUP):
        frames = await judge_group(env, [view for n in live if (view := played[n].view)])
        for n in live:
            record = msgspec.structs.replace(results[n].new, frames=frames or results[n].new.frames)
            results[n] = results[n]._replace(new=record)
    return results


async def _play(env: Environment[S], chain: TaskChain[S], episode: tuple[Task[S], Trace]) -> _Played[S]:
    task, trace = episode
    failure = trace.failure
    if failure is not None and failure.component != "V":
        kept = f"failed by {failure.component} {failure.kind}"
        return _Played(task, Rescored(trace, EpisodeRecord(trace, Timing()), kept), None)
    start = None if (place := before(trace)) is None else await chain.world(place)
    check_origin(env, task, trace, start=start)
    twin = replay_env(env, trace)
    twin.verifier = env.verifier
    new, end = await play_episode(twin, task, ReplayModel(trace), start=start, **trace_metadata(trace))
    again = new.trace
    if failure is not None and again.failure is not None and again.failure.kind == "quintain:replay_diverged":
        return _Played(task, Rescored(trace, EpisodeRecord(trace, Timing()), "ended early by its verifier"), None)
    if again.failure is None or again.failure.component != "V":
        ends = failure is None
        if (diverged := find_divergence(as_played(trace, ends=ends), as_played(again, ends=ends))) is not None:
            raise diverged
    view = None if end is None else EpisodeView(task, start or task.world(), end, again)
    return _Played(task, Rescored(trace, new), view)
