"""Replay of `sales` episodes that the oracle played: every call again, every digest and verdict compared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from _table import Row, main, row

import quintain as qn
from quintain.environments.sales import env as sales
from quintain.models import Oracle


async def recorded(count: int) -> list[qn.Trace]:
    """The oracle's traces of the first tasks of the test split, in their order."""
    tasks = sales.tasks("test")[:count]
    return [group.traces[0] async for group in qn.rollouts(sales, Oracle(), tasks, split="test", ordered=True)]


async def again(traces: list[qn.Trace]) -> None:
    """Replay them one after the other; a divergence raises."""
    for task, trace in zip(sales.tasks("test"), traces, strict=False):
        await qn.replay(sales, task, trace)


def timed(traces: list[qn.Trace]) -> tuple[float, float]:
    """Seconds of wall time and of CPU that the replay of all traces takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(again(traces))
    return time.perf_counter() - wall, time.process_time() - cpu


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    count = 4 if quick else 1000
    started = time.process_time()
    traces = asyncio.run(recorded(count))
    playing = time.process_time() - started
    wall, cpu = timed(traces)
    turns = sum(len(trace.turns) for trace in traces)
    yield row(f"replay of {count:,} episodes, wall time", wall, "s")
    yield row("replayed per second of wall time", count / wall, "episodes/s")
    once = playing / count * 1e3
    yield row("one episode replayed, CPU", cpu / count * 1e3, "ms", peer="played the first time", peer_value=once)
    yield row("one turn replayed, CPU", cpu / turns * 1e6, "us")
    yield row("turns an episode", turns / count, "turns")


if __name__ == "__main__":
    main("Replay of `sales` episodes", measure)
