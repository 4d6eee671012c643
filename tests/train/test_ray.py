"""Pipeline over machines: with workers that die, nothing is lost and nothing counts twice."""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.util
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quintain as qn
from quintain import codec
from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.harness import Request
from quintain.rollouts import Draw
from quintain.trace import Reply
from quintain.train.curriculum import AdaptiveSampler
from quintain.train.pipeline import EndedGroup, Staleness
from quintain.train.queue import Answer, ProducerError
from quintain.train.ray import MAX_DEATHS, ClusterBatches, Queue, Unit, spread
from quintain.train.report import TrainingLog, read_updates
from tests.train.policies import LIMIT, Policy, env, lags, names, tasks
from tests.worlds import environment, fine

HAS_RAY = importlib.util.find_spec("ray") is not None


@functools.cache  # Not at import: Ray's actors import this module, too.
def rows() -> list[qn.Trajectory]:
    async def one() -> list[qn.Trajectory]:
        async for group in qn.rollouts(env(), Policy(), tasks(1)):
            return qn.trajectories(group.traces)
        raise AssertionError("no group came")

    return asyncio.run(one())


def played(unit: Unit, version: int) -> bytes:
    own = [msgspec.structs.replace(row, task=unit.task, versions=[(1, version)]) for row in rows()]
    return codec.dumps(EndedGroup(index=0, task=unit.task, rows=own, oldest=version, tokens=2, episodes=1))


# --- the queue, without Ray ---


class Cluster:
    """Workers that die at random, come back, and repeat requests; a trainer that repeats its own."""

    def __init__(self, queue: Queue[Any], seed: int, *, workers: int, risk: float) -> None:
        self.queue, self.random, self.workers, self.risk = queue, random.Random(seed), workers, risk
        self.version = 0
        self.attempts: list[int] = []
        self.late: set[asyncio.Task[bool]] = set()

    async def work(self, place: int) -> None:
        for life in range(10**6):
            if not await self.live(f"{place}.{life}"):
                return

    async def live(self, worker: str) -> bool:
        """Plays until the worker dies, and then returns True."""
        self.queue.join(worker)
        for request in range(10**6):
            unit = await self.queue.pull(worker, request)
            assert unit == await self.queue.pull(worker, request)
            if unit is None:
                return False
            self.attempts.append(unit.attempt)
            data = played(unit, self.version)
            for _ in range(self.random.choice([0, 1, 5, 20])):
                await asyncio.sleep(0)
            if self.random.random() < self.risk:
                if self.random.random() < 0.5:  # It was only cut off: its group comes later.
                    self.late.add(asyncio.create_task(self.queue.deliver(worker, unit.number, data=data, group=None)))
                self.queue.lose(worker)
                return True
            await self.queue.deliver(worker, unit.number, data=data, group=None)
            if self.random.random() < 0.2:
                assert not await self.queue.deliver(worker, unit.number, data=data, group=None)
        raise AssertionError("the queue never ended")

    async def train(self) -> tuple[list[str], list[str]]:
        """Returns the tasks that the trainer got, and those that were dropped."""
        got, dropped = list[str](), list[str]()
        for request in range(10**6):
            data = await self.queue.take(request)
            if self.random.random() < 0.3:
                assert await self.queue.take(request) == data
            answer = codec.loads(data, Answer)
            if answer.batch is None:
                assert not answer.error
                break
            assert max(lags(answer.batch.rows, self.version)) <= self.queue._buffer.staleness.bound
            got += [row.task for row in answer.batch.rows]
            dropped += [one.task for one in answer.batch.ledger.dropped]
            self.version += 1
            assert await self.queue.advance(self.version) == ""
        return got, dropped + [one.task for one in self.queue._buffer.dropped]


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 30),
    batch=st.integers(1, 4),
    bound=st.integers(0, 3),
    workers=st.integers(1, 6),
    risk=st.sampled_from([0.0, 0.1, 0.5]),
)
@settings(max_examples=60, deadline=None)
def test_each_unit_is_read_once_or_dropped_whatever_dies(
    *, seed: int, count: int, batch: int, bound: int, workers: int, risk: float
) -> None:
    rows()

    async def law() -> None:
        queue = Queue(lambda: tasks(count), Staleness(bound=bound, batch=batch, concurrent=10**6))
        cluster = Cluster(queue, seed, workers=workers, risk=risk)
        working = asyncio.gather(*(cluster.work(place) for place in range(workers)))
        got, dropped = await cluster.train()
        await working
        assert sorted(got + dropped) == sorted(task.id for task in tasks(count))
        assert risk or max(cluster.attempts, default=0) == 0

    asyncio.run(asyncio.wait_for(law(), LIMIT))


def test_each_batch_is_logged_once_with_the_groups_of_all_workers(tmp_path: Path) -> None:
    rows()

    async def law() -> list[Any]:
        known = {task.id: task for task in tasks(9)}
        made = functools.partial(AdaptiveSampler, [*known.values()])
        queue = Queue(made, Staleness(bound=0, batch=2, concurrent=9), functools.partial(TrainingLog, tmp_path))
        ledgers: list[Any] = []
        for worker in ("0.0", "1.0"):
            queue.join(worker)
        for version in range(3):
            for worker in ("0.0", "1.0"):
                unit = await queue.pull(worker, version)
                assert unit is not None
                policy = Policy()
                policy.version = version
                draws = [Draw(known[unit.task], unit.seed)]
                async for group in qn.rollouts(env(), policy, draws, group=2):
                    own = qn.trajectories(group.traces)
                    drawn = sum(end - first for row in own for _, first, end in row.turns)
                    # Each worker counts its own groups from 0, so indexes of two workers are equal.
                    ended = EndedGroup(index=0, task=unit.task, rows=own, oldest=version, tokens=drawn, episodes=2)
                    for _ in range(2):
                        await queue.deliver(worker, unit.number, data=codec.dumps(ended), group=group)
            data = [await queue.take(version) for _ in range(2)]
            assert data[0] == data[1]
            answer = codec.loads(data[0], Answer)
            assert answer.batch is not None, answer.error
            ledgers.append(answer.batch.ledger)
            assert await queue.advance(version + 1) == ""
        return ledgers

    ledgers = asyncio.run(asyncio.wait_for(law(), LIMIT))
    found = read_updates(tmp_path)
    assert [one.step for one in found] == [0, 1, 2]
    for one, ledger in zip(found, ledgers, strict=True):
        trained = one.counts.parts["trained"]
        assert (trained.groups, trained.tokens, ledger.groups) == (2, ledger.tokens, 2)
        assert one.sampler is not None
        assert sum(one.sampler.weights) == 9


def test_a_worker_that_counts_as_dead_gets_no_unit() -> None:
    rows()

    async def law() -> None:
        queue = Queue(lambda: tasks(3), Staleness(bound=0, batch=2, concurrent=9))
        queue.join("0.0")
        first = await queue.pull("0.0", 0)
        queue.lose("0.0")
        assert await queue.pull("0.0", 1) is None
        queue.join("0.1")
        again = await queue.pull("0.1", 0)
        assert first is not None
        assert again == first._replace(attempt=1)

    asyncio.run(asyncio.wait_for(law(), LIMIT))


def test_a_worker_that_dies_while_it_waits_takes_no_unit() -> None:
    rows()

    async def law() -> None:
        queue = Queue(lambda: tasks(3), Staleness(bound=0, batch=1, concurrent=9))
        for worker in ("0.0", "1.0"):
            queue.join(worker)
        unit = await queue.pull("0.0", 0)
        waiting = asyncio.ensure_future(queue.pull("1.0", 0))
        await asyncio.sleep(0)
        queue.lose("1.0")
        assert await waiting is None
        assert unit is not None
        await queue.deliver("0.0", unit.number, data=played(unit, 0), group=None)
        assert codec.loads(await queue.take(0), Answer).batch is not None

    asyncio.run(asyncio.wait_for(law(), LIMIT))


def test_errors_reach_the_trainer() -> None:
    def broken() -> Iterator[Any]:
        yield tasks(1)[0]
        raise LookupError("the sampler broke")

    rows()

    async def law() -> None:
        queue = Queue(broken, Staleness(bound=3, batch=1, concurrent=9))
        queue.join("0.0")
        unit = await queue.pull("0.0", 0)
        assert unit is not None
        assert await queue.advance(2) == "versions count updates: expected 1, got 2"
        await queue.deliver("0.0", unit.number, data=played(unit, 9), group=None)
        answer = codec.loads(await queue.take(0), Answer)
        assert answer.error.startswith("UsageError: a token of 't0' has version 9, the trainer is at 0")
        assert await queue.pull("0.0", 1) is None

        queue = Queue(broken, Staleness(bound=3, batch=2, concurrent=9))
        queue.join("0.0")
        unit = await queue.pull("0.0", 0)
        assert unit is not None
        await queue.deliver("0.0", unit.number, data=played(unit, 0), group=None)
        assert await queue.pull("0.0", 1) is None
        assert codec.loads(await queue.take(0), Answer).error == "LookupError: the sampler broke"

    asyncio.run(asyncio.wait_for(law(), LIMIT))


@pytest.mark.skipif(HAS_RAY, reason="ray is installed")
def test_a_missing_ray_is_named() -> None:
    with pytest.raises(UsageError, match=r"pip install 'quintain\[ray\]'"):
        spread(lambda: (env(), Policy()), list, workers=1, batch_groups=1, group=1, bound=0, split="train")


def test_a_cluster_has_workers() -> None:
    with pytest.raises(UsageError, match="workers must be >= 1, got 0"):
        spread(lambda: (env(), Policy()), list, workers=0, batch_groups=1, group=1, bound=0, split="train")


# --- a cluster of three nodes ---


LONG = "20"
"""Prompt of the task whose first episode ends only with its node."""


class Endpoint(Policy):
    """A policy whose version is in a file, as that of an endpoint is the same for all workers."""

    def __init__(self, folder: Path, *, lethal: bool = False) -> None:
        super().__init__(turns=lambda request: 1 + request.seed % 3)
        self.folder, self.lethal = folder, lethal

    async def __call__(self, request: Request) -> Reply:
        task = request.messages[1].text
        is_first = not list(self.folder.glob(f"{task}-*"))
        node = importlib.import_module("ray").get_runtime_context().get_node_id()
        (self.folder / f"{task}-{node}-{os.getpid()}").touch()
        self.version = int((self.folder / "version").read_text() or 0)
        if self.lethal:
            os._exit(9)
        await asyncio.sleep(60 if task == LONG and is_first else 0.05)
        return await super().__call__(request)


class Made:
    """Makes environment and endpoint in a worker."""

    def __init__(self, folder: Path, count: int, *, lethal: bool = False) -> None:
        self.folder, self.count, self.lethal = folder, count, lethal

    def __call__(self) -> tuple[Environment[Any], Endpoint]:
        made = environment(fine, tasks=lambda split: tasks(self.count), concurrency=4)
        return made, Endpoint(self.folder, lethal=self.lethal)


def begin(made: Made, **options: Any) -> ClusterBatches:
    return spread(made, functools.partial(tasks, made.count), split="train", **options)


class Trainer:
    """Actor that trains: it notes each batch in a file, so that the test sees it at work."""

    def train(self, batches: Any, folder: Path) -> list[tuple[int, list[Any], list[str]]]:
        found = []
        for version, batch in enumerate(batches):
            assert max(lags(batch.rows, version)) <= 2
            found.append((batch.ledger.groups, names(batch.rows), [one.task for one in batch.ledger.dropped]))
            time.sleep(0.2)
            (folder / "version").write_text(str(version + 1))
            batches.advance(version + 1)
            (folder / "updates").write_text(str(version + 1))
        return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Any, Any, list[Any]]]:
    ray: Any = pytest.importorskip("ray", reason="the extra `ray` is not installed")
    (tmp_path / "version").write_text("0")
    local = importlib.import_module("ray.cluster_utils").Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    nodes = [local.add_node(num_cpus=2, resources={"play": 2}) for _ in range(2)]
    paths = os.pathsep.join(path for path in sys.path if path)
    ray.init(address=local.address, runtime_env={"env_vars": {"PYTHONPATH": paths}}, log_to_driver=False)
    try:
        yield ray, local, nodes
    finally:
        ray.shutdown()
        local.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_node_that_is_killed_loses_nothing_and_repeats_nothing(cluster: Any, tmp_path: Path) -> None:
    ray, local, nodes = cluster
    log = functools.partial(TrainingLog, tmp_path / "log")
    options = {"resources": {"play": 1}}
    batches = begin(Made(tmp_path, 90), workers=2, batch_groups=4, group=2, bound=2, options=options, log=log)
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(local.head_node.node_id, soft=False)
    trainer = ray.remote(Trainer).options(num_cpus=0, scheduling_strategy=here).remote()
    training = trainer.train.remote(batches, tmp_path)
    deadline = time.monotonic() + 60
    while not (begun := list(tmp_path.glob(f"{LONG}-*"))):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (killed,) = [node for node in nodes if node.node_id == begun[0].name.split("-")[1]]
    local.remove_node(killed, allow_graceful=False)
    found = ray.get(training, timeout=300)
    rows = [name for _, names, _ in found for name in names]
    assert len(rows) == len(set(rows))
    read, dropped = {task for task, _, _, _ in rows}, [task for _, _, names in found for task in names]
    assert len(read) + len(dropped) == 90
    assert {groups for groups, _, _ in found[:-1]} == {4}
    assert f"t{LONG}" in read | set(dropped)
    assert len(list(tmp_path.glob(f"{LONG}-*"))) > 1
    parts = [one.counts.parts for one in read_updates(tmp_path / "log")]
    assert [one["trained"].groups for one in parts] == [groups for groups, _, _ in found]
    assert sum(one["stale"].groups for one in parts if "stale" in one) == len(dropped)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_task_that_kills_each_worker_ends_the_run(cluster: Any, tmp_path: Path) -> None:
    batches = begin(Made(tmp_path, 4, lethal=True), workers=1, batch_groups=1, group=1, bound=0)
    with pytest.raises(ProducerError, match=f"worker 0 died {MAX_DEATHS} times without delivering a group"):
        next(batches)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_queue_that_is_closed_is_named(cluster: Any, tmp_path: Path) -> None:
    batches = begin(Made(tmp_path, 9), workers=1, batch_groups=1, group=1, bound=1)
    next(batches)
    with pytest.raises(UsageError, match="versions count updates: expected 1, got 7"):
        batches.advance(7)
    batches.close()
    with pytest.raises(ProducerError, match="the queue died, and groups in it are lost"):
        next(batches)
