"""One step of a rollout: what the framework itself costs between a model that answers at once and a trivial tool.

Episodes of five calls and an answer through `rollouts`, all its promises included: a digest of the world after each
turn, time limits, a verdict on a copy. All CPU of the run is divided by the number of calls. Beside it the same work in
verifiers 0.4, through the cheapest seam of its public interface (see `_peer_verifiers.py`), where it is installed: in
this interpreter, or in the one that QUINTAIN_BENCH_PEERS names.

Below it a turn of the shipped environments with all their rewards: the oracle plays tasks whose worlds are built
already, each episode is scored and then replayed, and all CPU is divided by the number of turns, played and replayed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from _table import Row, child, cpu, has, main, note, peers, row

import quintain as qn
from quintain.chain import TaskChain
from quintain.environments import enterprise, helpdesk, sales
from quintain.harness import Request
from quintain.models import Oracle
from quintain.trace import Message, Reply, ToolCall

CALLS = 5
CONCURRENCY = 64
GOAL_US = 50.0
SHIPPED: tuple[tuple[qn.Environment[Any], float], ...] = (
    (sales.env, 250.0),
    (enterprise.env, 400.0),
    (helpdesk.env, 1500.0),
)
"""Each environment with the most microseconds that a turn of it may take."""


class Shop(qn.State):
    """A price list."""

    prices: dict[str, int]

    @qn.tool
    def price(self, item: str) -> int:
        """Tell what an item costs.

        Args:
            item: Its name.
        """
        return self.prices[item]


class Warehouse(qn.State):
    """A price list in a table, which is not read again to be copied or digested."""

    prices: qn.Table[int]

    @qn.tool
    def price(self, item: str) -> int:
        """Tell what an item costs.

        Args:
            item: Its name.
        """
        return self.prices[item]


@qn.reward
def answered(outcome: qn.EpisodeView[qn.State]) -> float:
    """1 for the expected answer."""
    return float(outcome.answer == "done")


CALL = [ToolCall(f"call_{n}", "price", json.dumps({"item": f"item{n}"})) for n in range(CALLS)]
REPLIES = [Reply(Message("assistant", calls=(call,))) for call in CALL] + [Reply(Message("assistant", "done"))]


async def canned(request: Request) -> Reply:
    """The next reply; the context holds the prompt, then a reply and an observation for each turn."""
    return REPLIES[len(request.messages) // 2]


def environment(start: qn.State) -> qn.Environment[qn.State]:
    """A thousand tasks that begin in this world."""
    return qn.Environment(
        "shop",
        tasks=lambda split: [qn.Task(id=f"{split}-{n}", prompt="What do they cost?", start=start) for n in range(1000)],
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(answered),
        state=type(start),
        config=qn.Config(concurrency=CONCURRENCY),
    )


def play(env: qn.Environment[qn.State], episodes: int) -> None:
    """Play that many episodes, and see that they went as they should."""

    async def run() -> None:
        async for group in qn.rollouts(env, canned, env.tasks("train")[:episodes]):
            trace = group.traces[0]
            if trace.score != 1 or len(trace.turns) != CALLS + 1:
                raise RuntimeError(f"{trace.task} went wrong: {trace.failure}")

    asyncio.run(run())


def turn(env: qn.Environment[Any], episodes: int, repeats: int) -> float:
    """Microseconds of CPU of one turn with all its rewards, played or replayed."""
    tasks = {task.id: task for task in env.tasks("test")[:episodes]}
    for task in tasks.values():
        task.world()

    async def run() -> int:
        turns, chain = 0, TaskChain(env)
        async for group in qn.rollouts(env, Oracle(), tasks.values(), split="test", ordered=True):
            trace = await chain.replay(tasks[group.task], group.traces[0])
            if trace.score != 1:
                raise RuntimeError(f"{trace.task} went wrong: {trace.failure}")
            turns += 2 * len(trace.turns)
        return turns

    turns = asyncio.run(run())
    return cpu(lambda: asyncio.run(run()), repeats=repeats) / turns * 1e6


def peer(episodes: int, repeats: int) -> tuple[str, float] | None:
    """Name and microseconds of CPU per call of the peer; None where it is not installed."""
    if not has(peers(), "verifiers"):
        note("verifiers is not installed (QUINTAIN_BENCH_PEERS names the interpreter that has it)")
        return None
    found = child("_peer_verifiers.py", episodes, CALLS, CONCURRENCY, repeats)
    return found and (f"verifiers {found['version']}, its cheapest seam", found["cpu_s"] / (episodes * CALLS) * 1e6)


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    episodes, repeats = (10, 1) if quick else (1000, 9)
    name, its = (peer(10, 1) if quick else peer(200, 3)) or (None, None)
    prices = {f"item{n}": n for n in range(1000)}
    few = dict(list(prices.items())[:10])
    for label, start, goal in (
        ("dict of 10 rows", Shop(prices=few), GOAL_US),
        ("dict of 1,000 rows", Shop(prices=prices), None),
        ("Table of 1,000 rows", Warehouse(prices=qn.Table(int, prices)), None),
    ):
        env = environment(start)
        play(env, 10)
        ours = cpu(lambda env=env: play(env, episodes), repeats=repeats) / (episodes * CALLS) * 1e6
        yield row(f"one step, CPU, world is a {label}", ours, "us", goal=goal, peer=name, peer_value=its)
    for shipped, goal in SHIPPED:
        spent = turn(shipped, 3 if quick else 40, repeats=1 if quick else 5)
        yield row(f"one turn of {shipped.name} with all rewards, CPU", spent, "us", goal=goal)


if __name__ == "__main__":
    main("One tool step of a rollout", measure)
