"""Forks and snapshots of an episode of `sales`: a fork costs the same at any length, a snapshot grows linearly.

The agent reads, notes and waits in turn, for 600 turns; the world grows by a note every three turns.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator

from _table import Row, cpu, main, row

import quintain as qn
from quintain import codec
from quintain.environments.sales import env as sales
from quintain.episode import Episode, Snapshot
from quintain.trace import Message, Reply, ToolCall

Desk = Episode[qn.State]


def replies(record: str) -> Iterator[Reply]:
    """Yields the agent's replies without end."""
    calls = (
        ("crm_get", {"record_id": record}),
        ("crm_log", {"record_id": record, "kind": "note", "text": "Looked at it once more; nothing new."}),
        ("wait", {"hours": 0.25}),
    )
    for number, (name, arguments) in enumerate(itertools.cycle(calls)):
        yield Reply(Message("assistant", calls=(ToolCall(f"call_{number}", name, codec.text(arguments)),)))


async def played(turns: list[int]) -> list[Desk]:
    """The same episode as it stood after each of these numbers of turns."""
    env = sales.replace(config=qn.Config(max_turns=10_000))
    task = env.tasks("test")[0]
    record = next(arguments["record_id"] for _, arguments in task.solution or () if "record_id" in arguments)
    episode = await Episode.begin(env, task)
    marks: list[Desk] = []
    for reply in replies(record):
        length = len(episode.trace.turns)
        if length in turns:
            marks.append(await episode.fork())
        if length == max(turns) or episode.ended:
            break
        await episode.session.step(reply)
    if len(marks) != len(turns):
        raise RuntimeError(f"the episode ended early: {episode.trace.reason}, {episode.trace.failure}")
    return marks


def each(work: Callable[[], Awaitable[object]], times: int) -> None:
    """Run an async function that many times."""

    async def run() -> None:
        for _ in range(times):
            await work()

    asyncio.run(run())


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    lengths = [4, 8, 16, 32] if quick else [10, 150, 300, 600]
    times, repeats = (2, 1) if quick else (100, 7)
    early, quarter, half, late = marks = asyncio.run(played(lengths))

    def microseconds(work: Callable[[], Awaitable[object]], count: int = times) -> float:
        return cpu(lambda: each(work, count), repeats=repeats) / count * 1e6

    first, last = microseconds(early.fork), microseconds(late.fork)
    yield row(f"fork at turn {lengths[0]}, CPU", first, "us")
    yield row(f"fork at turn {lengths[-1]}, CPU", last, "us")
    name = f"fork at turn {lengths[-1]} : at turn {lengths[0]}"
    yield row(name, last / first, "x", goal=2.0, peer="proportional to length", peer_value=lengths[-1] / lengths[0])

    sizes: list[int] = []
    for length, episode in zip(lengths[1:], (quarter, half, late), strict=True):
        sizes.append(len(asyncio.run(episode.snapshot()).to_bytes()))
        yield row(f"snapshot at turn {length}", sizes[-1] / 1000, "kB")
    name = f"snapshot at turn {lengths[-1]} : at turn {lengths[-2]}"
    yield row(name, sizes[-1] / sizes[-2], "x", goal=2.2, peer="quadratic growth", peer_value=4.0)

    for length, episode in zip(lengths, marks, strict=True):
        if length not in (lengths[0], lengths[-1]):
            continue
        data = asyncio.run(episode.snapshot()).to_bytes()

        async def snapshot(episode: Desk = episode) -> bytes:
            return (await episode.snapshot()).to_bytes()

        async def restore(episode: Desk = episode, data: bytes = data) -> Desk:
            return await Episode.restore(episode.env, episode.task, Snapshot.from_bytes(data))

        few = max(times // 5, 1)
        yield row(f"snapshot to bytes at turn {length}, CPU", microseconds(snapshot, few) / 1000, "ms")
        yield row(f"restore from bytes at turn {length}, CPU", microseconds(restore, few) / 1000, "ms")


if __name__ == "__main__":
    main("Fork, snapshot and restore of a `sales` episode", measure)
