"""An episode that takes too much memory is void; the others go on."""

from __future__ import annotations

import asyncio

import pytest

import quintain as qn
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
