"""Resident memory of one process that plays 100,000 episodes: flat, because nothing is kept of what was yielded.

The world is a counter; each episode is one call and an answer. Measured after a full garbage collection.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import psutil
from _table import Row, main, row

import quintain as qn
from quintain.harness import Request
from quintain.trace import Message, Reply, ToolCall

GOAL_MB = 5.0


class Counter(qn.State):
    """World with a number."""

    value: int = 0

    @qn.tool
    def add(self) -> int:
        """Count one up."""
        self.value += 1
        return self.value


@qn.reward
def counted(outcome: qn.EpisodeView[Counter]) -> float:
    """1 when the number is 1."""
    return float(outcome.state.value == 1)


REPLIES = [
    Reply(Message("assistant", calls=(ToolCall("call_0", "add", "{}"),))),
    Reply(Message("assistant", "done")),
]


async def canned(request: Request) -> Reply:
    """A call, then an answer."""
    return REPLIES[len(request.messages) // 2]


def counter(count: int) -> qn.Environment[Counter]:
    """An environment with that many tasks, made when they are asked for."""

    def task(index: int) -> qn.Task[Counter]:
        return qn.Task(id=f"count-{index}", prompt="Count one up.", start=Counter())

    return qn.Environment(
        "counter",
        tasks=lambda split: qn.Tasks(count, task),
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(counted),
        state=Counter,
    )


async def resident(marks: list[int]) -> list[float]:
    """Resident megabytes after each of these numbers of episodes."""
    process = psutil.Process()
    env = counter(marks[-1])
    found: list[float] = []
    played = 0
    async for group in qn.rollouts(env, canned, env.tasks("train")):
        if group.traces[0].score != 1:
            raise RuntimeError(f"{group.task} went wrong: {group.traces[0].failure}")
        played += 1
        if played in marks:
            gc.collect()
            found.append(process.memory_info().rss / 1e6)
    return found


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    marks = [10, 20, 30, 40] if quick else [1_000, 10_000, 50_000, 100_000]
    found = asyncio.run(resident(marks))
    for count, megabytes in zip(marks, found, strict=True):
        yield row(f"resident after {count:,} episodes", megabytes, "MB")
    growth = max(found) - found[0]
    name = f"most growth after the first {marks[0]:,}"
    yield row(name, growth, "MB", goal=GOAL_MB)


if __name__ == "__main__":
    main("Memory over many episodes", measure)
