"""Many episodes at once: groups, task chains, concurrency, limits, the failure gate."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Generic

import msgspec

from .chain import TaskChain
from .environment import Environment
from .errors import UsageError
from .gate import Gate, enough
from .harness import Agent, Model
from .record import EpisodeRecord, Key, RunFolder
from .rollout import play_episode
from .scoring import judge_group
from .state import S
from .task import Task
from .trace import Level, Timing, Trace
from .verifier import EpisodeView

if TYPE_CHECKING:
    import asyncio


WINDOW = 4
"""Groups in order may run ahead of the one that is waited for by this many times the concurrency."""


class Draw(msgspec.Struct, Generic[S], frozen=True):
    """Task to play once more under a seed of its own, as a sampler for training yields them.

    Attributes:
        seed: Added to the seed of the run, so that repetitions of a task differ.
        run: Awaits or closes each episode of the group; None for an episode cancels the group.
    """

    task: Task[S]
    seed: int = 0
    run: Callable[[Coroutine[Any, Any, EpisodeRecord]], Awaitable[EpisodeRecord | None]] | None = None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The finished episodes of one task.

    Attributes:
        index: Position of the task in what was given to `rollouts`.
        rollouts: One per member, in order; of a cancelled group those that had ended.
        kept: Whether enough of them are valid to make a baseline; False if the group was cancelled.
        earlier: Episodes of attempts that had too few valid ones and were played again.
    """

    index: int
    task: str
    rollouts: tuple[EpisodeRecord, ...]
    kept: bool
    earlier: tuple[EpisodeRecord, ...] = ()

    @property
    def traces(self) -> list[Trace]:
        return [rollout.trace for rollout in self.rollouts]


async def rollouts(
    env: Environment[S],
    model: Model | Agent,
    tasks: Iterable[Task[S] | Draw[S]] | AsyncIterable[Task[S] | Draw[S]],
    *,
    group: int = 1,
    seed: int = 0,
    split: str = "",
    ordered: bool = False,
    ahead: int | None = None,
    folder: RunFolder | None = None,
) -> AsyncGenerator[Group, None]:
    """Play tasks in groups, `env.config.concurrency` episodes at a time, and yield each group when it is complete.

    No episode waits for another group's, but for those of its own day before it; a slow consumer slows the run down.
    Closing the iterator, Ctrl-C included, cancels what is in play; with a `folder` nothing that finished is lost.

    Args:
        env: The environment.
        model: Who plays.
        tasks: Any iterable, read as needed; an async one may wait. Its `observe(group)`, if any, gets each group.
        group: Episodes per task; all of them begin in the same world.
        seed: Of the worlds.
        split: Name for the record.
        ordered: Yield in task order.
        ahead: Most episodes in groups that are begun and not yielded; by default `WINDOW` times the concurrency groups.
        folder: Where finished episodes are kept; those it holds already are not played again.

    Raises:
        UsageError: `group` or `ahead` is below 1; or a task is not a Task, or has the id of an earlier one and there is
            a `folder` or a day.
        RunStopped: The failure gate stopped the run.
        PersistenceError: A finished episode could not be written.
    """
    import asyncio  # 30 ms that `import quintain` need not take

    if group < 1 or (ahead is not None and ahead < 1):
        raise UsageError(f"group and ahead must be >= 1, got group={group}, ahead={ahead}")
    how: dict[str, Any] = {"group": group, "ordered": ordered, "folder": folder}
    how["most"] = WINDOW * env.config.concurrency if ahead is None else max(1, ahead // group)
    how |= {"names": {"seed": seed, "split": split}, "work": asyncio.Event(), "news": asyncio.Event()}
    pipeline = _Pipeline(env, model, tasks, **how)
    workers = [asyncio.create_task(pipeline.work()) for _ in range(env.config.concurrency)]
    try:
        while (one := await pipeline.take()) is not None:
            yield one
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


class _Open(Generic[S]):
    """A group in play."""

    def __init__(self, index: int, draw: Draw[S], size: int, *, seed: int) -> None:
        self.index, self.task, self.run, self.size, self.seed = index, draw.task, draw.run, size, seed + draw.seed
        self.attempt = self.ended = 0
        self.opened = time.perf_counter()
        self.results: dict[int, EpisodeRecord] = {}
        self.starts: dict[int, S | None] = {}
        self.ends: dict[int, S | None] = {}
        self.earlier: list[EpisodeRecord] = []


class _Pipeline(Generic[S]):
    """Hands out episodes to workers and collects groups from them."""

    def __init__(
        self,
        env: Environment[S],
        model: Model | Agent,
        tasks: Iterable[Task[S] | Draw[S]] | AsyncIterable[Task[S] | Draw[S]],
        *,
        group: int,
        ordered: bool,
        most: int,
        folder: RunFolder | None,
        names: dict[str, Any],
        work: asyncio.Event,
        news: asyncio.Event,
    ) -> None:
        self._env, self._model = env, model
        self._tasks = aiter(tasks) if isinstance(tasks, AsyncIterable) else iter(tasks)
        self._observe: Callable[[Group], None] = getattr(tasks, "observe", lambda _: None)
        self._size, self._ordered, self._folder, self._names = group, ordered, folder, names
        self._most = most
        self._gate = Gate(env.config)
        self._judges_groups = bool(env.verifier.at(Level.GROUP))
        self._chains = TaskChain(env)
        self._waiting: dict[str, deque[_Open[S]]] = {}  # groups behind the one that is in play, by day
        self._jobs: deque[tuple[_Open[S], int]] = deque()
        self._open = self._yielded = self._count = 0
        self._exhausted = self._drawing = False
        self._ids: set[str] = set()
        self._ready: dict[int, Group] = {}
        self._error: BaseException | None = None
        self._work, self._news = work, news  # For the workers, and for the consumer.

    async def work(self) -> None:
        """Play one episode after the other, until there are none."""
        import asyncio  # 30 ms that `import quintain` need not take

        try:
            while (job := await self._next()) is not None:
                episode = self._play(*job)
                await self._finish(*job, await (job[0].run(episode) if job[0].run else episode))
                await asyncio.sleep(0)  # Where nothing blocks, the consumer and Ctrl-C get their turn here.
        except BaseException as error:  # noqa: BLE001  # handed to the consumer, who raises it
            self._error = self._error or error
            self._wake()

    async def take(self) -> Group | None:
        """The next group, as they are complete or in order; None when there are no more."""
        while not (self._error or self._idle()) and self._deliverable() is None:
            self._news.clear()
            await self._news.wait()
        if self._error:
            raise self._error
        if (index := self._deliverable()) is None:
            self._gate.close()
            return None
        self._yielded += 1
        if not self._exhausted:
            self._work.set()
        return self._ready.pop(index)

    def _wake(self) -> None:
        """Wakes the consumer, and the workers where a finished group or an error gives them something to do."""
        self._news.set()
        if self._jobs or self._error or self._idle():
            self._work.set()

    def _deliverable(self) -> int | None:
        index = self._yielded if self._ordered else next(iter(self._ready), None)
        return index if index in self._ready else None

    def _idle(self) -> bool:
        return self._exhausted and not self._open and not self._jobs

    async def _next(self) -> tuple[_Open[S], int] | None:
        while not (self._error or self._idle()):
            if self._jobs:
                return self._jobs.popleft()
            if not self._exhausted and not self._drawing and self._count - self._yielded < self._most:
                await self._start_group()
            else:
                self._work.clear()
                await self._work.wait()
        return None

    async def _start_group(self) -> None:
        try:
            drawn = await self._draw(self._tasks) if isinstance(self._tasks, AsyncIterator) else next(self._tasks)
        except (StopIteration, StopAsyncIteration):
            self._exhausted = True
            self._wake()
            return
        draw = drawn if isinstance(drawn, Draw) else Draw(drawn)
        self._admit(task := draw.task)
        one = _Open(self._count, draw, self._size, seed=self._names["seed"])
        self._count, self._open = self._count + 1, self._open + 1
        if task.day in self._waiting:
            self._waiting[task.day].append(one)
            return
        if task.day:
            self._waiting[task.day] = deque()
        self._begin(one)

    async def _draw(self, tasks: AsyncIterator[Task[S] | Draw[S]]) -> Task[S] | Draw[S]:
        self._drawing = True
        try:
            return await anext(tasks)
        finally:
            self._drawing = False
            self._work.set()

    def _begin(self, one: _Open[S]) -> None:
        one.opened = time.perf_counter()
        self._jobs.extend((one, member) for member in range(self._size))

    def _admit(self, task: object) -> None:
        if not isinstance(task, Task):
            raise UsageError(f"rollouts() plays Tasks, got a {type(task).__name__}")
        if self._folder is not None or task.day:  # There an episode is known by its task's id.
            if task.id in self._ids:
                which = f"two tasks have the id {task.id!r} (split {self._names['split']!r})"
                raise UsageError(f"{which}; a run folder or a day has each exactly once")
            self._ids.add(task.id)

    async def _play(self, one: _Open[S], member: int) -> EpisodeRecord:
        key: Key = (one.task.id, member, one.attempt)
        one.starts[member] = one.ends[member] = None
        if self._folder is not None and (trace := self._folder.find(key)) is not None:
            return EpisodeRecord(trace, Timing())
        names = self._names | {"seed": one.seed, "member": member, "attempt": one.attempt}
        start: S | None = None
        if (last := self._chains.last(one.task, member)) is not None:
            start, names["continues"] = await self._chains.world(last), (last[0], last[2])
        waited = time.perf_counter() - one.opened
        done, end = await play_episode(self._env, one.task, self._model, start=start, **names)
        done.timing.queue_s = waited
        if one.task.day or self._judges_groups:
            one.starts[member], one.ends[member] = start, end
        if self._folder is not None and not self._judges_groups:
            self._folder.add(done)
        return done

    async def _finish(self, one: _Open[S], member: int, done: EpisodeRecord | None) -> None:
        one.ended += 1
        if done is not None:
            one.results[member] = done
            if not self._judges_groups:
                self._gate.observe(done)
        if one.ended < one.size:
            return
        whole = len(one.results) == one.size
        if self._judges_groups and whole:
            await self._judge(one)
        members = tuple(one.results[n] for n in sorted(one.results))
        self._gate.observe_group([m.trace for m in members])
        kept = whole and enough(sum(m.trace.validity == "valid" for m in members), one.size)
        if whole and not kept and one.size > 1 and one.attempt < self._env.config.group_retries:
            one.earlier += members
            one.attempt, one.ended, one.results = one.attempt + 1, 0, {}
            self._begin(one)
        else:
            self._open -= 1
            self._go_on(one)
            names: dict[str, Any] = {"index": one.index, "task": one.task.id, "earlier": tuple(one.earlier)}
            self._ready[one.index] = Group(rollouts=members, kept=kept, **names)
            self._observe(self._ready[one.index])
        self._wake()

    async def _judge(self, one: _Open[S]) -> None:
        """Runs the group-level criteria on a complete group; only then its members are written and counted."""
        played = {n: end for n, end in one.ends.items() if end and one.results[n].trace.failure is None}
        if len(played) > 1:
            traces = [one.results[n].trace for n in played]
            starts = [one.starts[n] or one.task.world() for n in played]
            worlds = zip(starts, played.values(), traces, strict=True)
            frames = await judge_group(self._env, [EpisodeView(one.task, *world) for world in worlds])
            for n in played if frames else ():
                one.results[n] = msgspec.structs.replace(one.results[n], frames=frames)
        for _, done in sorted(one.results.items()):
            if self._folder is not None and self._folder.find(done.key) is None:
                self._folder.add(done)
            self._gate.observe(done)

    def _go_on(self, one: _Open[S]) -> None:
        """Let the next group of a day begin where this one ended."""
        if not (day := one.task.day):
            return
        for member, done in one.results.items():
            self._chains.advance(one.task, done.trace, one.ends[member])
        if waiting := self._waiting[day]:
            self._begin(waiting.popleft())
        else:
            del self._waiting[day]
