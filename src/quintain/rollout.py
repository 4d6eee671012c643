"""Many episodes at once: groups, concurrency, limits, the failure gate."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar, cast

import msgspec

from . import codec
from .deadline import DeadlineExceeded, within
from .environment import Environment
from .episode import BROKEN, Episode, blank
from .errors import EpisodeError, ModelError, UsageError, blame
from .gate import Gate, enough
from .harness import Agent, Model, Request
from .record import Key, Rollout, RunFolder
from .state import State
from .task import Task
from .trace import End, Reply, Timing, Trace

if TYPE_CHECKING:
    import asyncio

S = TypeVar("S", bound=State)

WINDOW = 4
"""Groups in order may run ahead of the one that is waited for by this many times the concurrency."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The finished episodes of one task.

    Attributes:
        index: Position of the task in what was given to `rollouts`.
        rollouts: One per member, in order.
        kept: Whether enough of them are valid to make a baseline.
        earlier: Episodes of attempts that had too few valid ones and were played again.
    """

    index: int
    task: str
    rollouts: tuple[Rollout, ...]
    kept: bool
    earlier: tuple[Rollout, ...] = ()

    @property
    def traces(self) -> list[Trace]:
        return [rollout.trace for rollout in self.rollouts]


async def rollout(env: Environment[S], task: Task[S], model: Model | Agent, **names: Any) -> Rollout:
    """Play one task to its end and score it. Nothing that happens inside the episode raises.

    Args:
        env: The environment.
        task: One of its tasks.
        model: Who plays.
        names: Fields of the Trace: seed, member, attempt, split.
    """
    started = time.perf_counter()
    agent = model if _is_agent(model) else None
    names = {"agent": agent.name if agent else _name(model)} | names
    try:
        episode = await Episode[S].begin(env, task, **names)
        chosen = cast(Model, model) if agent is None else agent.model(task, episode.trace.seed)
    except BROKEN as error:
        trace = blank(env, task, **names)
        trace.failure = blame(error, part="T", kind="quintain:reset_failed", stage="seed", turn=0)
        trace.end, trace.reason = End.FAILED, trace.failure.kind
        return Rollout(trace, Timing(total_s=time.perf_counter() - started))
    await _drive(episode, chosen)
    await episode.verify()
    episode.timing.total_s = time.perf_counter() - started
    return Rollout(episode.trace, episode.timing)


async def _drive(episode: Episode[S], model: Model) -> None:
    """Let the harness play; whatever breaks is a Failure with a name on it."""
    env = episode.env
    try:
        await within(env.config.episode_timeout_s, env.harness.play(episode.session, _watched(model, episode)))
        if not episode.ended:
            episode.terminate("the harness returned")
    except DeadlineExceeded as error:
        episode.fail(error, part="H", kind="agent_timeout")
    except BROKEN as error:
        episode.fail(error, part="H", kind="agent_run_error")


def _watched(model: Model, episode: Episode[S]) -> Model:
    """The model with its time limit, its time accounted, its replies checked, and its failures blamed on it."""

    async def ask(request: Request) -> Reply:
        started = time.perf_counter()
        try:
            reply = await within(episode.env.config.model_timeout_s, model(request))
            return _checked(reply)
        except DeadlineExceeded as error:
            failure = ModelError(f"no reply: it {error}", kind="transport_timeout")
            # Recorded here, so that a harness which catches everything cannot swallow it.
            episode.fail(failure, part="model", kind=failure.kind)
            raise failure from error
        except EpisodeError as error:
            episode.fail(error, part=error.part, kind=error.kind)
            raise
        except BROKEN as error:
            episode.fail(error, part="model", kind="agent_request_failed")
            raise ModelError(f"{type(error).__name__}: {error}") from error
        finally:
            episode.timing.model_s += time.perf_counter() - started

    return ask


def _checked(reply: object) -> Reply:
    try:
        checked = codec.loads(codec.dumps(reply), Reply)
    except Exception as error:
        raise ModelError(f"no valid Reply: {error}", kind="quintain:model_reply_invalid") from error
    if checked.message.role != "assistant":
        raise ModelError(f"a Reply of role {checked.message.role!r}", kind="quintain:model_reply_invalid")
    return checked


def _is_agent(model: object) -> TypeGuard[Agent]:
    return hasattr(model, "name") and hasattr(model, "model")  # What isinstance() does, at a tenth of its cost in 3.11.


def _name(model: object) -> str:
    return getattr(model, "name", None) or getattr(model, "__name__", None) or type(model).__name__


async def rollouts(
    env: Environment[S],
    model: Model | Agent,
    tasks: Iterable[Task[S]],
    *,
    group: int = 1,
    seed: int = 0,
    split: str = "",
    ordered: bool = False,
    folder: RunFolder | None = None,
) -> AsyncGenerator[Group, None]:
    """Play tasks in groups, `env.config.concurrency` episodes at a time, and yield each group when it is complete.

    No episode waits for another group's; a slow consumer slows the run down instead of filling memory. Closing the
    iterator, Ctrl-C included, cancels what is in play; nothing that finished is lost when there is a `folder`.

    Args:
        env: The environment.
        model: Who plays.
        tasks: Any iterable; read as it is needed.
        group: Episodes per task; all of them begin in the same world.
        seed: Of the worlds.
        split: Name for the record.
        ordered: Yield in task order.
        folder: Where finished episodes are kept; those it holds already are not played again.

    Raises:
        UsageError: `group` is below 1; or a task is no Task, or has the id of an earlier one and there is a `folder`.
        RunStopped: The failure gate stopped the run.
        PersistenceError: A finished episode could not be written.
    """
    import asyncio  # 30 ms that `import quintain` need not take

    if group < 1:
        raise UsageError(f"group must be >= 1, got {group}")
    names = {"seed": seed, "split": split}
    pipeline = _Pipeline(
        env, model, iter(tasks), group=group, ordered=ordered, folder=folder, names=names, changed=asyncio.Condition()
    )
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

    def __init__(self, index: int, task: Task[S], size: int) -> None:
        self.index, self.task, self.size = index, task, size
        self.attempt = 0
        self.opened = time.perf_counter()
        self.results: dict[int, Rollout] = {}
        self.earlier: list[Rollout] = []


class _Pipeline(Generic[S]):
    """Hands out episodes to workers and collects groups from them."""

    def __init__(
        self,
        env: Environment[S],
        model: Model | Agent,
        tasks: Iterator[Task[S]],
        *,
        group: int,
        ordered: bool,
        folder: RunFolder | None,
        names: dict[str, Any],
        changed: asyncio.Condition,
    ) -> None:
        self._env, self._model, self._tasks = env, model, tasks
        self._size, self._ordered, self._folder, self._names = group, ordered, folder, names
        self._gate = Gate(env.config)
        self._jobs: deque[tuple[_Open[S], int]] = deque()
        self._open = self._yielded = self._count = 0
        self._exhausted = False
        self._ids: set[str] = set()
        self._ready: dict[int, Group] = {}
        self._error: BaseException | None = None
        self._changed = changed

    async def work(self) -> None:
        """Play one episode after the other, until there are none."""
        import asyncio  # 30 ms that `import quintain` need not take

        try:
            while (job := await self._next()) is not None:
                await self._finish(job[0], job[1], await self._play(*job))
                await asyncio.sleep(0)  # Where nothing blocks, the consumer and Ctrl-C get their turn here.
        except BaseException as error:  # noqa: BLE001  # handed to the consumer, who raises it
            async with self._changed:
                self._error = self._error or error
                self._changed.notify_all()

    async def take(self) -> Group | None:
        """The next group, as they are complete or in order; None when there are no more."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._error or self._deliverable() is not None or self._idle())
            if self._error:
                raise self._error
            index = self._deliverable()
            if index is None:
                self._gate.close()
                return None
            self._yielded += 1
            self._changed.notify_all()
            return self._ready.pop(index)

    def _deliverable(self) -> int | None:
        if self._ordered:
            return self._yielded if self._yielded in self._ready else None
        return next(iter(self._ready), None)

    def _idle(self) -> bool:
        return self._exhausted and not self._open and not self._jobs

    async def _next(self) -> tuple[_Open[S], int] | None:
        async with self._changed:
            while not self._error:
                if self._jobs:
                    return self._jobs.popleft()
                ahead = self._count - self._yielded
                if not self._exhausted and ahead < WINDOW * self._env.config.concurrency:
                    self._start_group()
                elif self._idle():
                    break
                else:
                    await self._changed.wait()
            return None

    def _start_group(self) -> None:
        try:
            task = next(self._tasks)
        except StopIteration:
            self._exhausted = True
            self._changed.notify_all()
            return
        self._admit(task)
        one = _Open(self._count, task, self._size)
        self._count += 1
        self._open += 1
        self._jobs.extend((one, member) for member in range(self._size))

    def _admit(self, task: object) -> None:
        if not isinstance(task, Task):
            raise UsageError(f"rollouts() plays Tasks, got a {type(task).__name__}")
        if self._folder is not None:  # There an episode is known by its task's id.
            if task.id in self._ids:
                raise UsageError(f"two tasks have the id {task.id!r}; a run folder keeps each episode exactly once")
            self._ids.add(task.id)

    async def _play(self, one: _Open[S], member: int) -> Rollout:
        key: Key = (one.task.id, member, one.attempt)
        if self._folder is not None and (trace := self._folder.find(key)) is not None:
            return Rollout(trace, Timing())
        waited = time.perf_counter() - one.opened
        done = await rollout(self._env, one.task, self._model, member=member, attempt=one.attempt, **self._names)
        done.timing.queue_s = waited
        if self._folder is not None:
            self._folder.add(done)
        return done

    async def _finish(self, one: _Open[S], member: int, done: Rollout) -> None:
        self._gate.observe(done.trace)
        one.results[member] = done
        if len(one.results) < one.size:
            return
        members = tuple(one.results[n] for n in range(one.size))
        self._gate.observe_group([m.trace for m in members])
        kept = enough(sum(m.trace.validity == "valid" for m in members), one.size)
        async with self._changed:
            if not kept and one.size > 1 and one.attempt < self._env.config.group_retries:
                one.earlier += members
                one.attempt += 1
                one.results = {}
                one.opened = time.perf_counter()
                self._jobs.extend((one, n) for n in range(one.size))
            else:
                self._open -= 1
                self._ready[one.index] = Group(
                    index=one.index, task=one.task.id, rollouts=members, kept=kept, earlier=tuple(one.earlier)
                )
            self._changed.notify_all()
