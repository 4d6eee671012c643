"""Pipeline over several machines: a queue and workers are actors of Ray, and so may the trainer be.

The queue draws work units, which are groups to play, and hands one to each worker that asks. A unit is open until its
group is delivered, and a request that got no answer is repeated. If a worker dies, the queue hands out its open units
again. A group that comes twice is dropped by the number of its unit. So nothing is lost and nothing counts twice, as
long as the queue lives, which runs on the machine that calls `spread`.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any, Generic, NamedTuple, Self, cast

import msgspec

from quintain import codec
from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.harness import Agent, Model
from quintain.plugins import package
from quintain.rollouts import Draw, Group
from quintain.state import S
from quintain.task import Task

from .curriculum import Sampler
from .pipeline import Batch, Buffer, EndedGroup, Player, Staleness
from .queue import Answer, ProducerError
from .report.log import TrainingLog

MAX_DEATHS = 3
"""Deaths of a worker in a row, without a group in between, after which the run ends."""


class Unit(NamedTuple):
    """A group to play: task, seed, and how often it was handed out before."""

    number: int
    task: str
    seed: int
    attempt: int = 0


class Queue(Generic[S]):
    """Actor that hands out units and holds the groups for the trainer; each method may be repeated without effect.

    Args:
        sample: Returns tasks or draws, which are read as needed.
        staleness: The rule of admission.
        log: Returns the log that gets a line per batch.
    """

    def __init__(
        self,
        sample: Callable[[], Iterable[Task[S] | Draw[S]]],
        staleness: Staleness,
        log: Callable[[], TrainingLog] | None = None,
    ) -> None:
        sampler = sample()
        pictured = cast(Sampler[S], sampler) if isinstance(cast(object, sampler), Sampler) else None
        self._buffer = Buffer(staleness, log() if log else None, pictured)
        self._draws = iter(sampler)
        self._observe: Callable[[Group], None] = getattr(sampler, "observe", lambda _: None)
        self._needs_groups = log is not None or hasattr(sampler, "observe")
        self._numbers = itertools.count()
        self._open: dict[int, tuple[Unit, str]] = {}
        """Units in play, by number, with their workers."""
        self._again: deque[Unit] = deque()
        self._pulled: dict[str, tuple[int, Unit | None]] = {}
        """Number and answer of the last request of each living worker."""
        self._taken = -1, Answer()
        self._taking = asyncio.Lock()
        self._exhausted = False
        self._handles: dict[str, Any] = {}
        self._watching: set[asyncio.Task[None]] = set()
        self._deaths: dict[int, int] = {}

    def join(self, worker: str) -> None:
        """Admits a worker, which may then ask for units."""
        self._pulled[worker] = -1, None

    async def pull(self, worker: str, request: int) -> Unit | None:
        """Returns the next unit for a worker, and None when there are no more, or when it counts as dead."""
        await self._buffer.until(lambda: self._answers(worker, request) or self._draw() or self._is_done())
        if not self._answers(worker, request):
            unit = self._again.popleft() if self._again else None
            if unit is not None:
                self._open[unit.number] = unit, worker
            self._pulled[worker] = request, unit
        return self._pulled.get(worker, (request, None))[1]

    async def deliver(self, worker: str, number: int, *, data: bytes, group: Group | None) -> bool:
        """Takes the group of a unit; returns False if it was there already."""
        if self._open.pop(number, None) is None:
            return False
        self._deaths.pop(int(worker.partition(".")[0]), None)
        played = msgspec.structs.replace(codec.loads(data, EndedGroup), index=number)
        try:
            if group is not None and not played.cancelled:
                self._observe(group)
            self._buffer.add(played, group)
        except Exception as error:  # noqa: BLE001  # handed to the trainer, who raises it
            self._buffer.fail(error)
        if self._is_done():
            self._buffer.finish()
        return True

    def lose(self, worker: str) -> None:
        """Takes back the open units of a worker that died."""
        self._pulled.pop(worker, None)
        self._handles.pop(worker, None)
        lost = [unit for unit, owner in self._open.values() if owner == worker]
        for unit in lost:
            del self._open[unit.number]
        self._again.extend(unit._replace(attempt=unit.attempt + 1) for unit in lost)
        self._buffer.change()

    async def take(self, request: int) -> bytes:
        """Returns the answer to the trainer's request of this number; the same for the same number."""
        async with self._taking:
            if self._taken[0] != request:
                try:
                    answer = Answer(await self._buffer.take())
                except Exception as error:  # noqa: BLE001  # handed to the trainer, who raises it
                    answer = Answer(error=f"{type(error).__name__}: {error}")
                self._taken = request, answer
            return codec.dumps(self._taken[1])

    async def advance(self, version: int) -> str:
        """Notes that the endpoint has the weights of this version; returns an error, if any."""
        try:
            if version != self._buffer.staleness.version:
                self._buffer.advance(version)
        except UsageError as error:
            return str(error)
        for handle in self._handles.values():
            handle.sweep.remote(self._buffer.staleness.min_fresh)
        return ""

    async def start(self, workers: int, options: dict[str, Any], how: dict[str, Any]) -> None:
        """Starts workers, and watches over them in the background."""
        for place in range(workers):
            self._watching.add(asyncio.create_task(self._watch(place, options, how)))

    async def _watch(self, place: int, options: dict[str, Any], how: dict[str, Any]) -> None:
        ray = package("ray", extra="ray")
        me = ray.get_runtime_context().current_actor
        for life in itertools.count():
            worker = f"{place}.{life}"
            self.join(worker)
            self._handles[worker] = handle = ray.remote(Worker).options(**options).remote()
            try:
                await handle.run.remote(me, worker, needs_groups=self._needs_groups, **how)
                break
            except ray.exceptions.RayActorError as error:
                self.lose(worker)
                self._deaths[place] = self._deaths.get(place, 0) + 1
                if self._deaths[place] < MAX_DEATHS:
                    continue
                failure = f"worker {place} died {MAX_DEATHS} times without delivering a group; the last time: {error}"
            except Exception as error:  # noqa: BLE001  # handed to the trainer, who raises it
                failure = f"worker {place} failed: {error}"
            self._buffer.fail(ProducerError(failure))
            break

    def _answers(self, worker: str, request: int) -> bool:
        """True if the request has its answer: it was asked before, or by a worker that counts as dead."""
        return worker not in self._pulled or self._pulled[worker][0] == request

    def _draw(self) -> bool:
        """True if there is a unit to hand out; draws one if a group may begin."""
        if not self._again and not self._exhausted and self._buffer.staleness.capacity > 0:
            try:
                drawn = next(self._draws, None)
            except Exception as error:  # noqa: BLE001  # handed to the trainer, who raises it
                self._buffer.fail(error)
                drawn = None
            if drawn is None:
                self._exhausted = True
                self._buffer.change()
                if self._is_done():
                    self._buffer.finish()
            else:
                draw = drawn if isinstance(drawn, Draw) else Draw(drawn)
                self._buffer.begin()
                self._again.append(Unit(next(self._numbers), draw.task.id, draw.seed))
        return bool(self._again)

    def _is_done(self) -> bool:
        return self._exhausted and not self._open and not self._again


class Worker:
    """Actor that plays units."""

    def __init__(self) -> None:
        self._player: Player[Any] | None = None

    async def run(
        self, queue: Any, name: str, *, needs_groups: bool, make: Callable[[], Any], split: str, **names: Any
    ) -> None:
        """Plays until the queue has no more units.

        Args:
            queue: The queue's handle.
            name: Name of this worker.
            needs_groups: True if the queue's sampler or log needs the episodes.
            make: Returns environment and model.
            split: Split of the tasks.
            names: Episodes per task, and seed.
        """
        env, model = cast(tuple[Environment[Any], Model | Agent], make())
        self._player = Player(env, model, split=split, **names)
        numbers: dict[int, int] = {}

        async def draws() -> AsyncGenerator[Draw[Any], None]:
            for index in itertools.count():
                unit: Unit | None = await queue.pull.remote(name, index)
                if unit is None:
                    return
                numbers[index] = unit.number
                yield Draw(env.task(split, unit.task), unit.seed)

        async for played, whole in self._player.play(draws()):
            sent = whole if needs_groups else None
            await queue.deliver.remote(name, numbers.pop(played.index), data=codec.dumps(played), group=sent)

    async def sweep(self, least: int) -> None:
        """Cancels groups in play that have a token of an older version than the least."""
        if self._player is not None:
            self._player.sweep(least)


class ClusterBatches:
    """The trainer's side, an iterator of batches. It may be sent to an actor; one trainer at a time may use it."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._requests = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        """Returns the next batch, when it is complete.

        Raises:
            ProducerError: Play failed, or the queue died.
        """
        answer = codec.loads(self._ask(self._queue.take.remote(self._requests)), Answer)
        self._requests += 1
        return answer.opened()

    def advance(self, version: int) -> None:
        """Notes that the endpoint now has the weights of this version.

        Raises:
            UsageError: The version is not the next one.
            ProducerError: The queue died.
        """
        if error := self._ask(self._queue.advance.remote(version)):
            raise UsageError(error)

    def close(self) -> None:
        """Ends queue and workers."""
        package("ray", extra="ray").kill(self._queue)

    def _ask(self, reference: Any) -> Any:
        ray = package("ray", extra="ray")
        try:
            return ray.get(reference)
        except ray.exceptions.RayActorError as error:
            raise ProducerError(
                f"the queue died, and groups in it are lost; start again with the trainer's version (version=): {error}"
            ) from error


def spread(
    make: Callable[[], tuple[Environment[S], Model | Agent]],
    sample: Callable[[], Iterable[Task[S] | Draw[S]]],
    *,
    workers: int,
    batch_groups: int,
    group: int,
    bound: int,
    split: str,
    seed: int = 0,
    version: int = 0,
    options: dict[str, Any] | None = None,
    log: Callable[[], TrainingLog] | None = None,
) -> ClusterBatches:
    """Starts queue and workers on the Ray cluster, and returns their batches.

    Args:
        make: Returns environment and model, in each worker, which plays `env.config.concurrency` episodes at once.
        sample: Returns tasks or draws of the split, in the queue, which reads them as needed.
        workers: Number of workers.
        batch_groups: Groups of a batch.
        group: Episodes per task.
        bound: Largest lag of a token, in versions.
        split: Split of the tasks, where workers look them up by their ids.
        seed: Of the worlds.
        version: Version of the weights that the endpoint has now.
        options: Ray's options of a worker, such as `num_cpus` and `resources`.
        log: Returns the log, in the queue, on the machine that calls `spread`; the folder's path must be absolute.

    Raises:
        UsageError: ray is missing, or a number is out of its range.
    """
    if workers < 1:
        raise UsageError(f"workers must be >= 1, got {workers}")
    ray = package("ray", extra="ray")
    staleness = Staleness(bound=bound, batch=batch_groups, concurrent=sys.maxsize, version=version)
    here = ray.get_runtime_context().get_node_id()
    place = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
    queue = (
        ray.remote(Queue)
        .options(num_cpus=0, max_concurrency=10_000, max_task_retries=-1, scheduling_strategy=place)
        .remote(sample, staleness, log)
    )
    given = {"scheduling_strategy": "SPREAD"} | (options or {})
    how = {"make": make, "split": split, "group": group, "seed": seed}
    ray.get(queue.start.remote(workers, given, how))
    return ClusterBatches(queue)
