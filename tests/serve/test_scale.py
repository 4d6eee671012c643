"""An episode that takes too much memory is void; the others go on."""

from __future__ import annotations

import asyncio
import gc
import resource
from pathlib import Path

import msgspec
import pytest

import quintain as qn
from quintain.resources.database import Database
from quintain.resources.schedule.queues import Queue
from quintain.resources.workspace import Workspace
from quintain.serve.errors import Void
from quintain.serve.host import Host, Wanted
from quintain.serve.keys import ANYONE
from quintain.serve.limits import Limits
from quintain.serve.live import Live


class Hoard(qn.State):
    kept: list[str] = []

    @qn.tool
    def say(self, size: int) -> str:
        """Say much.

        Args:
            size: How much.
        """
        return "x" * size

    @qn.tool
    def keep(self, size: int) -> str:
        """Keep much, and say little.

        Args:
            size: How much.
        """
        self.kept.append("x" * size)
        return "kept"


@qn.reward
def fine(outcome: qn.Outcome[Hoard]) -> float:
    return 1.0


ENV = qn.Environment(
    "hoard",
    tasks=lambda split: [qn.Task(id="one", prompt="Go on.", start=Hoard())],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(fine),
    state=Hoard,
)


async def opened(host: Host) -> Live:
    live = await host.create(Wanted(split="test", task=0), ANYONE)
    await live.ready()
    return live


@pytest.mark.parametrize("tool", ["say", "keep"])
def test_a_record_or_a_world_that_grows_too_large_is_void(tool: str) -> None:
    async def play() -> tuple[Live, Live, int]:
        host = Host([ENV], limits=Limits(episode_bytes=100_000))
        greedy, modest = await opened(host), await opened(host)
        calls = 0
        with pytest.raises(Void, match="an episode may have 100,000"):
            for _ in range(64):
                await greedy.call(tool, '{"size": 4000}')
                calls += 1
        await modest.call(tool, '{"size": 4000}')
        await modest.answer("done")
        host.crew.close()
        return greedy, modest, calls

    greedy, modest, calls = asyncio.run(play())
    assert calls < 64
    assert greedy.trace.failure is not None
    assert (greedy.trace.failure.part, greedy.trace.failure.kind) == ("S", "provider_oom_killed")
    assert greedy.reward is None
    assert modest.reward == 1.0


class Later(msgspec.Struct, frozen=True):
    due: float
    number: int
    text: str


class Held(qn.State):
    rows: Database
    files: Workspace
    table: qn.Table[str]
    later: Queue[Later]

    @qn.tool
    def grow_rows(self, size: int) -> str:
        """Put a row.

        Args:
            size: How long.
        """
        self.rows.execute("INSERT INTO kept VALUES (?)", "x" * size)
        return "grown"

    @qn.tool
    def grow_files(self, size: int) -> str:
        """Write a file.

        Args:
            size: How long.
        """
        self.files.write(f"file {self.files.image.count}", "x" * size)
        return "grown"

    @qn.tool
    def grow_table(self, size: int) -> str:
        """Put a row.

        Args:
            size: How long.
        """
        self.table[f"row {len(self.table)}"] = "x" * size
        return "grown"

    @qn.tool
    def grow_later(self, size: int) -> str:
        """Put something off.

        Args:
            size: How long.
        """
        self.later[f"row {len(self.later)}"] = Later(0.0, len(self.later), "x" * size)
        return "grown"


@qn.reward
def held(outcome: qn.Outcome[Held]) -> float:
    return 1.0


def begun() -> Held:
    return Held(
        rows=Database("CREATE TABLE kept (text TEXT)"),
        files=Workspace({"base": "y" * 500_000}),
        table=qn.Table(str),
        later=Queue(Later),
    )


HOLDING = qn.Environment(
    "holding",
    tasks=lambda split: [qn.Task(id="one", prompt="Go on.", start=begun)],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(held),
    state=Held,
)


@pytest.mark.parametrize("tool", ["grow_rows", "grow_files", "grow_table", "grow_later"])
def test_resources_that_grow_too_large_make_it_void_and_what_they_share_weighs_nothing(tool: str) -> None:
    async def play() -> tuple[Live, int]:
        host = Host([HOLDING], limits=Limits(episode_bytes=200_000))
        greedy = await opened(host)
        calls = 0
        with pytest.raises(Void, match="an episode may have 200,000"):
            for _ in range(64):
                await greedy.call(tool, '{"size": 10000}')
                calls += 1
        host.crew.close()
        return greedy, calls

    greedy, calls = asyncio.run(play())
    assert 12 <= calls <= 32
    assert greedy.trace.failure is not None
    assert greedy.trace.failure.kind == "provider_oom_killed"


@pytest.mark.slow
def test_a_hundred_megabytes_at_once_are_void_and_gone() -> None:
    async def play() -> int:
        host = Host([ENV], limits=Limits(episode_bytes=1 << 20))
        before = memory()
        for _ in range(8):
            greedy = await opened(host)
            with pytest.raises(Void):
                await greedy.call("keep", '{"size": 100000000}')
            await host.close(greedy.id, ANYONE)
        host.crew.close()
        gc.collect()
        return memory() - before

    assert asyncio.run(play()) < 400 << 20


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_without_a_limit_nothing_is_weighed() -> None:
    async def play() -> float | None:
        host = Host([ENV], limits=Limits(episode_bytes=None))
        live = await opened(host)
        for _ in range(8):
            await live.call("say", '{"size": 100000}')
        await live.answer("done")
        host.crew.close()
        return live.reward

    assert asyncio.run(play()) == 1.0
