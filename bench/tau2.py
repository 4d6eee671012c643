"""Starting and holding episodes of tau2's airline domain, whose database is 7 MB of JSON.

Resident memory alone would flatter: what reading the database left free is used again. So what 100 episodes allocate
until the solution is played is traced, and given for 1,000.

The data are read from the folder that QUINTAIN_DATA names, or from `../shared/data` beside the repository.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import psutil
from _table import Row, main, note, row

import quintain as qn
from quintain import codec
from quintain.adapters import tau2
from quintain.adapters.tau2.world import World
from quintain.episode import Episode
from quintain.errors import UsageError
from quintain.trace import Message, Reply, ToolCall

START, HOLD = "start an airline episode after the first, CPU, median", "1,000 live airline episodes, resident memory"
START_GOAL_MS, HOLD_GOAL_MB = 1.0, 300.0


def domain() -> qn.Environment[World] | None:
    """The airline domain; None, and a note that says why, without its data."""
    given = os.environ.get("QUINTAIN_DATA")
    path = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    try:
        return tau2.load("airline", data=path / "tau2")
    except UsageError as error:
        note(f"{error}; QUINTAIN_DATA names the folder that holds tau2")
        return None


async def start(env: qn.Environment[World], count: int) -> tuple[list[Episode[World]], list[float]]:
    """Returns that many episodes, and the seconds of CPU that each start took."""
    tasks = env.tasks("base")
    held: list[Episode[World]] = []
    spent: list[float] = []
    for number in range(count):
        started = time.process_time()
        held.append(await Episode.begin(env, tasks[number % len(tasks)]))
        spent.append(time.process_time() - started)
    return held, spent


async def work(episodes: list[Episode[World]]) -> None:
    """Play each task's solution, but for the answer that would end the episode."""
    for episode in episodes:
        for number, (name, arguments) in enumerate(episode.task.solution or ()):
            call = ToolCall(f"call_{number}", name, codec.text(arguments))
            await episode.session.step(Reply(Message("assistant", calls=(call,))))


def resident() -> float:
    """Megabytes that this process holds."""
    gc.collect()
    return psutil.Process().memory_info().rss / 1e6


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    env = domain()
    if env is None:
        yield row(START, None, "ms", goal=START_GOAL_MS)
        yield row(HOLD, None, "MB", goal=HOLD_GOAL_MB)
        return
    started = time.process_time()
    env.tasks("base")
    reading = (time.process_time() - started) * 1e3
    yield row("read the database, CPU", reading, "ms")
    _, (first,) = asyncio.run(start(env, 1))
    yield row("start the first episode, CPU", first * 1e3, "ms")
    base = resident()
    tracemalloc.start()
    traced = tracemalloc.get_traced_memory()[0]
    warm, _ = asyncio.run(start(env, 5 if quick else 100))
    asyncio.run(work(warm))
    each = (tracemalloc.get_traced_memory()[0] - traced) / len(warm)
    tracemalloc.stop()
    del warm
    episodes, spent = asyncio.run(start(env, 5 if quick else 1000))
    median = sorted(spent)[len(spent) // 2] * 1e3
    yield row(START, median, "ms", goal=START_GOAL_MS, peer="read the database", peer_value=reading)
    yield row(f"{HOLD}, at their start", resident() - base, "MB", goal=HOLD_GOAL_MB)
    asyncio.run(work(episodes))
    yield row(f"{HOLD}, after the solution", resident() - base, "MB", goal=HOLD_GOAL_MB)
    yield row(f"{HOLD}, as allocated", each * 1000 / 1e6, "MB", goal=HOLD_GOAL_MB)


if __name__ == "__main__":
    main("tau2's airline domain", measure)
