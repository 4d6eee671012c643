"""Training: rows per second through converters, advantages and streams; the pipeline's cost and its gain.

A row is one episode of 20 turns, each with 100 tokens of observation and 100 sampled ones; groups are of 8.

The pipeline's cost is CPU time beyond that of `rollouts` and `trajectories`, for episodes of `sales` that its oracle
plays. Its gain is measured with episodes that sleep a Pareto-distributed time, cut at 40 times the least. A batch has 8
groups of 8, 64 episodes are in play, an update takes a fifth of a mean episode. Synchronous is the bound 0,
asynchronous the bound 4. The time is that of a virtual clock, so computing counts nothing. Beside it is a model that
knows only the rules, without episodes and event loop.
"""

from __future__ import annotations

import asyncio
import heapq
import io
import random
import selectors
import statistics
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

import msgspec
from _table import Row, cpu, main, row

import quintain as qn
from quintain.environments.sales import env as sales
from quintain.episode import blank
from quintain.harness import Model, Request
from quintain.models.agents import oracle
from quintain.trace import End, Level, Message, Reply, Reward, Tokens, Trace, Turn
from quintain.train import advantages
from quintain.train.convert import convert
from quintain.train.curriculum import Sampler
from quintain.train.pipeline import Staleness, pipeline
from quintain.train.stream import read_rows, write_rows

TURNS, SIZE, GROUP = 20, 100, 8
TRAINERS = ("trl", "trl_async", "prime_rl", "verl", "skyrl", "slime", "openrlhf", "nemo_rl")
ADVANTAGES: tuple[Callable[[list[qn.Trajectory]], object], ...] = (
    advantages.group_mean,
    advantages.leave_one_out,
    advantages.group_standardised,
    advantages.turn_return,
    advantages.batch_return,
)


def traces(seed: int) -> list[Trace]:
    """Returns a group of finished episodes; each turn has a reward and a weight swap in its middle."""
    task = next(iter(sales.tasks(sales.splits[0])))
    found: list[Trace] = []
    for member in range(GROUP):
        one = blank(sales, task, member=member, seed=seed)
        one.end, one.score = End.TERMINATED, member / GROUP
        for index in range(TURNS):
            versions = [(0, index), (SIZE // 2, index + 1)]
            tokens = Tokens(list(range(SIZE)), list(range(SIZE)), [-0.5] * SIZE, versions)
            reward = Reward(name="r", level=Level.TURN, raw=0.5, value=0.5)
            one.turns.append(Turn(index=index, reply=Reply(Message("assistant"), tokens), rewards=(reward,)))
        found.append(one)
    return found


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    groups = [traces(seed) for seed in range(1 if quick else 16)]
    rows = [one for group in groups for one in qn.trajectories(group)]

    def timed(name: str, work: Callable[..., object], *arguments: object) -> Row:
        seconds = cpu(partial(work, *arguments), repeats=1 if quick else 5)
        return row(name, len(rows) / seconds, "rows/s")

    yield timed("trajectories", lambda: [qn.trajectories(group) for group in groups])
    for function in ADVANTAGES:
        yield timed(f"advantages.{function.__name__}", function, rows)
    yield timed("advantages.hybrid", partial(advantages.hybrid, weight=0.5), rows)
    for trainer in TRAINERS:
        yield timed(f"convert to {trainer}", convert, rows, trainer)
    for name, packed in (("JSON lines", False), ("MessagePack", True)):
        file = io.BytesIO()
        write_rows(file, rows, packed=packed)
        yield timed(f"write {name}", partial(write_rows, packed=packed), io.BytesIO(), rows)
        yield timed(f"read {name}", read_all, file.getvalue())
    yield row("pipeline: CPU time beyond rollouts", overhead(quick), "%", goal=5)
    yield row("pipeline: memory to sample a million tasks", memory(quick), "KiB", goal=64)
    for tail in (1.3, 2.0, 3.0):
        yield gain(tail, quick)


# --- what the pipeline costs ---


class WithTokens:
    """The oracle, with token ids and versions as an endpoint gives them."""

    name = "oracle"

    def __init__(self) -> None:
        self.version = 0

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        chosen = oracle().model(task, seed)

        async def ask(request: Request) -> Reply:
            tokens = Tokens([0] * SIZE * len(request.messages), [0] * SIZE, [-0.5] * SIZE)
            return msgspec.structs.replace(await chosen(request), tokens=tokens, policy_version=self.version)

        return ask


def overhead(quick: bool) -> float:  # noqa: FBT001
    """Returns the CPU time of the pipeline beyond that of rollouts, in percent: the least of each."""
    tasks = list(sales.tasks("train"))[: 1 if quick else 4]

    async def bare() -> None:
        async for group in qn.rollouts(sales, WithTokens(), tasks, group=GROUP):
            qn.trajectories(group.traces)

    async def piped() -> None:
        model = WithTokens()
        async with pipeline(sales, model, tasks, batch_groups=2, group=GROUP, bound=4) as batches:
            async for _ in batches:
                model.version += 1
                batches.advance(model.version)

    works = (lambda: asyncio.run(bare())), (lambda: asyncio.run(piped()))
    spent = [[cpu(work, repeats=1) for work in works] for _ in range(1 if quick else 25)]  # in turns, for equal load
    without, beyond = (min(times) for times in zip(*spent, strict=True))
    return 100 * (beyond / without - 1)


def memory(quick: bool) -> float:  # noqa: FBT001
    """Returns the most memory that 2,000 draws of a million tasks hold, in KiB."""
    state = sales.tasks("train")[0].start
    sampler = Sampler(qn.task.Tasks(1_000_000, lambda n: qn.Task(id=str(n), prompt="", start=state)))
    sampler.draw()
    tracemalloc.start()
    for _ in range(10 if quick else 2000):
        sampler.draw()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1024


# --- what it gains ---

BATCH, IN_PLAY, BOUND, CUT, UPDATE = 8, 64, 4, 40.0, 0.2
"""Groups of a batch, episodes in play, the asynchronous bound, the longest episode and an update, both in episodes."""


class Press(qn.State):
    """A world in which nothing needs to be done."""


@qn.reward
def pressed(outcome: qn.EpisodeView[Press]) -> float:
    return float(len(outcome.trace.turns) == 1)


class _NoWait(selectors.DefaultSelector):
    """Selector that moves the clock on instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "everything waits for something that never comes"
        self.now += timeout
        return super().select(0)


class VirtualTime(asyncio.SelectorEventLoop):
    """Event loop in which only sleeping takes time, so that the load of the machine has no effect."""

    def __init__(self) -> None:
        self._clock = _NoWait()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def _in_virtual_time(work: Coroutine[Any, Any, float]) -> float:
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        return runner.run(work)


def pareto(tail: float, seed: int) -> float:
    """Returns the length of an episode, at least 1."""
    return min(CUT, random.Random(seed).paretovariate(tail))  # noqa: S311 (lengths, no secrets)


def gain(tail: float, quick: bool) -> Row:  # noqa: FBT001
    """Returns asynchronous over synchronous seconds per episode, and the model's."""
    mean = statistics.fmean(pareto(tail, seed) for seed in range(100 if quick else 10_000))
    how = {"updates": 2 if quick else 40, "update": UPDATE * mean}
    one, other = (_in_virtual_time(play(tail, bound, **how)) for bound in (BOUND, 0))
    model = simulate(tail, BOUND, **how) / simulate(tail, 0, **how)
    name = f"pipeline: seconds per episode, async / sync, tail {tail}"
    goal = 0.25 if tail == 1.3 else None
    return row(name, one / other, "ratio", goal=goal, peer="model of the rules", peer_value=model)


async def play(tail: float, bound: int, *, updates: int, update: float) -> float:
    """Returns the seconds per episode of training with the real pipeline."""
    version = 0

    async def model(request: Request) -> Reply:
        began = version
        await asyncio.sleep(pareto(tail, request.seed))
        return Reply(Message("assistant", "done"), Tokens([0], [0], [-0.5]), policy_version=began)

    tasks = [qn.Task(id=str(n), prompt="Do it.", start=Press()) for n in range(100)]
    harness, verifier = qn.ToolLoop(), qn.Verifier(pressed)
    env = qn.Environment("press", tasks=lambda split: tasks, harness=harness, verifier=verifier, state=Press)
    env = env.replace(config=qn.Config(concurrency=IN_PLAY))
    episodes = 0
    async with pipeline(env, model, Sampler(tasks), batch_groups=BATCH, group=GROUP, bound=bound) as batches:
        async for batch in batches:
            episodes += batch.ledger.episodes
            await asyncio.sleep(update)
            version += 1
            batches.advance(version)
            if version == updates:
                break
        return asyncio.get_running_loop().time() / episodes


def simulate(tail: float, bound: int, *, updates: int, update: float) -> float:
    """Returns the seconds per episode by the rules alone: admission, a sweep, 64 places, groups that wait for all."""
    rule = Staleness(bound=bound, batch=BATCH, concurrent=IN_PLAY)
    now, busy, seeds, drawn = 0.0, 0.0, iter(range(10**9)), 0
    jobs: list[tuple[int, int]] = []  # (group, version at its begin) of episodes that wait for a place
    ends: list[tuple[float, int]] = []
    left: dict[int, int] = {}
    since: dict[int, int] = {}
    ready: list[int] = []
    while rule.version < updates:
        while len(ends) < IN_PLAY and (jobs or rule.capacity > 0):
            if not jobs:
                rule.running += 1
                left[drawn] = GROUP
                jobs = [(drawn, rule.version)] * GROUP
                drawn += 1
            group, _ = jobs.pop()
            since.setdefault(group, rule.version)
            heapq.heappush(ends, (now + pareto(tail, next(seeds)), group))
        if len(ready) >= BATCH and now >= busy:
            ready = sorted(ready, key=lambda group: since[group])[BATCH:]
            busy = now + update
            heapq.heappush(ends, (busy, -1))
        now, group = heapq.heappop(ends)
        if group < 0:
            rule.version += 1
            fresh = [one for one in ready if since[one] >= rule.min_fresh]
            rule.accepted -= len(ready) - len(fresh)
            ready = fresh
            stale = {one for one, count in left.items() if count and one in since and since[one] < rule.min_fresh}
            rule.running -= len(stale)
            left = {one: count for one, count in left.items() if one not in stale}
            ends = [(end, one) for end, one in ends if one not in stale]
            heapq.heapify(ends)
            jobs = [job for job in jobs if job[0] not in stale]
            continue
        left[group] -= 1
        if not left[group]:
            rule.running -= 1
            rule.accepted += 1
            ready.append(group)
    return now / (updates * BATCH * GROUP)


def read_all(data: bytes) -> list[qn.Trajectory]:
    return list(read_rows(io.BytesIO(data)))


if __name__ == "__main__":
    main("Rows for trainers", measure)
