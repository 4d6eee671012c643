"""Pipeline: plays groups while the trainer updates, and yields batches in which no token is too old.

The lag of a token is the trainer's version less the version that drew it. Three rules keep it within a bound:

1. Admission: a group begins only if it is due within the bound, by AReaL's formula (`Staleness`).
2. Sweep: with each new version, groups with a token that would be too old are dropped, in play and waiting, as in
   prime-rl.
3. A batch takes the oldest groups first, and the lag of each of its tokens is in its ledger.

`pipeline` puts them together in one process. `quintain.train.queue` moves it into a process of its own, and
`quintain.train.ray` spreads it over machines.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import Any, Generic, Self, cast

import msgspec

from quintain import Trajectory, trajectories
from quintain.environment import Environment
from quintain.errors import ModelError, UsageError
from quintain.harness import Agent, Model, Request
from quintain.record import EpisodeRecord
from quintain.rollouts import Draw, Group, rollouts
from quintain.state import S
from quintain.task import Task
from quintain.trace import Reply

from .curriculum import Sampler
from .report.log import TrainingLog


class Staleness:
    """Admission rule of AReaL (Fu et al. 2025, arXiv 2505.24298): the number of groups that may begin now.

    The capacity is min(max(1, C) - running, (bound + v + 1) max(1, B) - (accepted + running)), where v is the version,
    B the groups of a batch and C the most groups in play.

    Args:
        bound: Largest lag of a token, in versions.
        batch: Groups of a batch.
        concurrent: Most groups in play.
        version: Version of the weights at the start; batches up to it count as accepted.

    Attributes:
        running: Groups in play.
        accepted: Groups that ended and were not dropped, those that the trainer has read included.
    """

    def __init__(self, *, bound: int, batch: int, concurrent: int, version: int = 0) -> None:
        if bound < 0 or batch < 1 or version < 0:
            raise UsageError(f"bound and version must be >= 0 and batch >= 1, got {bound}, {version} and {batch}")
        self.bound, self.batch, self.concurrent, self.version = bound, batch, concurrent, version
        self.running, self.accepted = 0, version * batch

    @property
    def capacity(self) -> int:
        due = (self.bound + self.version + 1) * max(1, self.batch) - (self.accepted + self.running)
        return min(max(1, self.concurrent) - self.running, due)

    @property
    def min_fresh(self) -> int:
        """Oldest version whose tokens may still be trained on."""
        return self.version - self.bound


class EndedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group that has ended.

    Attributes:
        index: Number of its draw, from 0.
        task: Id of its task.
        rows: Rows of its valid episodes; none if too few are valid, or if it was cancelled.
        oldest: Oldest version that drew a token of it; None if no token was drawn.
        tokens: Drawn tokens, of its episodes so far if it was cancelled.
        episodes: Episodes that have these tokens.
        cancelled: True if it was cancelled in play.
    """

    index: int
    task: str
    rows: list[Trajectory]
    oldest: int | None
    tokens: int
    episodes: int
    cancelled: bool = False


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """A group that was dropped because it was too old.

    Attributes:
        task: Id of its task.
        place: "in flight" or "in queue".
        lag: Of its oldest token.
        tokens: Drawn tokens.
        episodes: Episodes that have these tokens.
    """

    task: str
    place: str
    lag: int
    tokens: int
    episodes: int


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """Staleness of one batch, and what was lost since the batch before it.

    Attributes:
        version: Version of the trainer when it got the batch.
        groups, episodes, tokens: Numbers of groups, episodes and drawn tokens.
        lag_min, lag_mean, lag_max: Over the drawn tokens. -1 is a token of weights that `advance` was not told of yet.
        dropped: Groups that were too old.
        unkept: Groups with too few valid episodes.
    """

    version: int
    groups: int
    episodes: int
    tokens: int
    lag_min: int
    lag_mean: float
    lag_max: int
    dropped: tuple[Dropped, ...]
    unkept: int

    @property
    def length(self) -> float:
        """Mean of drawn tokens per episode."""
        return self.tokens / max(1, self.episodes)

    @property
    def dropped_length(self) -> float:
        """Mean of drawn tokens per dropped episode: above `length`, the batch lacks long episodes."""
        return sum(one.tokens for one in self.dropped) / max(1, sum(one.episodes for one in self.dropped))


class Batch(msgspec.Struct, frozen=True):
    """Rows of whole groups, and their ledger."""

    rows: list[Trajectory]
    ledger: Ledger


class Buffer:
    """Groups between play and trainer. It belongs to one event loop, and nothing but waiting is asynchronous.

    Args:
        staleness: Admission rule.
        log: Log that gets a line per batch, for the update that starts from it.
        sampler: Sampler whose picture is logged.

    Attributes:
        dropped: Groups that were dropped since the last batch, which the next ledger will have.
    """

    def __init__(
        self, staleness: Staleness, log: TrainingLog | None = None, sampler: Sampler[Any] | None = None
    ) -> None:
        self.staleness, self._log, self._sampler, self._step = staleness, log, sampler, staleness.version
        self._played: dict[int, Group] = {}
        self._lost: list[Group] = []
        self._stale: list[Group] = []
        self._ready: list[EndedGroup] = []
        self.dropped: list[Dropped] = []
        self._unkept = 0
        self._ended = False
        self._error: Exception | None = None
        self._changed = asyncio.Event()

    async def room(self) -> None:
        """Waits until a group may begin; `begin` must follow before anything else is awaited."""
        await self.until(lambda: self.staleness.capacity > 0)

    def begin(self) -> None:
        self.staleness.running += 1

    def add(self, played: EndedGroup, group: Group | None = None) -> None:
        """Takes a group that has ended, with its episodes for the log; one that is too old is dropped.

        Raises:
            UsageError: A version is not one that the trainer can have published.
        """
        version = self.staleness.version
        newest = max((number for row in played.rows for _, number in row.versions), default=version)
        if newest > version + 1:
            raise UsageError(
                f"a token of {played.task!r} has version {newest}, the trainer is at {version}: endpoint and trainer "
                "must count alike, so give the first version (version=) and call advance() after each update"
            )
        self.staleness.running -= 1
        if self._log is not None and group is not None:
            self._played[played.index] = group
        if not played.rows and not played.cancelled:
            self._unkept += 1
            self._lost += self._episodes([played])
        elif played.cancelled or self._is_stale(played):
            self._drop(played, "in flight")
        else:
            self.staleness.accepted += 1
            self._ready.append(played)
        self.change()

    def advance(self, version: int) -> None:
        """Notes an update of the weights, and drops what waits and is too old for it.

        Raises:
            UsageError: The version is not the next one.
        """
        if version != self.staleness.version + 1:
            raise UsageError(f"versions count updates: expected {self.staleness.version + 1}, got {version}")
        self.staleness.version = version
        for played in [played for played in self._ready if self._is_stale(played)]:
            self._ready.remove(played)
            self.staleness.accepted -= 1
            self._drop(played, "in queue")
        self.change()

    async def take(self) -> Batch | None:
        """Returns the next batch, the last one smaller, and None when there are no more groups.

        Raises:
            UsageError: No group may begin before `advance` is called, so the batch would never be full.
        """
        await self.until(lambda: self._error or self._is_full() or self._ended or self._is_stuck())
        if self._error:
            raise self._error
        if not self._is_full() and not self._ended:
            raise UsageError(
                f"a batch of {self.staleness.batch} groups was asked for at version {self.staleness.version}, but with "
                f"bound={self.staleness.bound} no more groups may begin: call advance(version) after each update"
            )
        if not self._ready:
            return None
        self._ready.sort(key=lambda played: self.staleness.version if played.oldest is None else played.oldest)
        taken, self._ready = self._ready[: self.staleness.batch], self._ready[self.staleness.batch :]
        batch = Batch([row for played in taken for row in played.rows], self._ledger(taken))
        self.dropped, self._unkept = [], 0
        if self._log is not None:
            groups, newest = [*self._episodes(taken), *self._lost], batch.ledger.version - min(0, batch.ledger.lag_min)
            self._log.update(groups, step=self._step, version=newest, stale=self._stale, sampler=self._sampler)
            self._step, self._lost, self._stale = self._step + 1, [], []
        return batch

    def finish(self) -> None:
        """Notes that no more groups come."""
        self._ended = True
        self.change()

    def fail(self, error: Exception) -> None:
        """Notes an error, which `take` raises."""
        self._error = self._error or error
        self.change()

    def change(self) -> None:
        """Lets those that wait look again."""
        self._changed.set()

    async def until(self, ready: Callable[[], object]) -> None:
        """Waits for a condition of this object."""
        while not ready():
            self._changed.clear()
            await self._changed.wait()

    def _is_full(self) -> bool:
        return len(self._ready) >= self.staleness.batch

    def _is_stuck(self) -> bool:
        return not self.staleness.running and self.staleness.capacity < 1

    def _is_stale(self, played: EndedGroup) -> bool:
        return played.oldest is not None and played.oldest < self.staleness.min_fresh

    def _drop(self, played: EndedGroup, place: str) -> None:
        lag = self.staleness.version - (played.oldest or 0)
        counts = {"tokens": played.tokens, "episodes": played.episodes}
        self.dropped.append(Dropped(task=played.task, place=place, lag=lag, **counts))
        # A group that was cancelled has no baseline, but the log counts it as too old.
        self._stale += [msgspec.structs.replace(group, kept=True) for group in self._episodes([played])]

    def _episodes(self, groups: Iterable[EndedGroup]) -> list[Group]:
        """Returns and forgets the episodes of some groups."""
        return [self._played.pop(one.index) for one in groups if one.index in self._played]

    def _ledger(self, taken: list[EndedGroup]) -> Ledger:
        version = self.staleness.version
        lags = Counter[int]()
        for row in (row for played in taken for row in played.rows):
            for number, count in _drawn(row):
                lags[version - number] += count
        return Ledger(
            version=version,
            groups=len(taken),
            episodes=sum(played.episodes for played in taken),
            tokens=sum(played.tokens for played in taken),
            lag_min=min(lags, default=0),
            lag_mean=sum(lag * count for lag, count in lags.items()) / max(1, lags.total()),
            lag_max=max(lags, default=0),
            dropped=tuple(self.dropped),
            unkept=self._unkept,
        )


def _drawn(row: Trajectory) -> Iterator[tuple[int, int]]:
    """Yields (version, drawn tokens) of each stretch of a row; a stretch lies within one turn."""
    turns, turn_end = iter(row.turns), 0
    ends = [*(first for first, _ in row.versions[1:]), len(row.token_ids)]
    for (first, number), end in zip(row.versions, ends, strict=True):
        while turn_end <= first:
            _, _, turn_end = next(turns)
        yield number, min(end, turn_end) - first


def _tokens(rows: Iterable[Trajectory]) -> int:
    return sum(end - first for row in rows for _, first, end in row.turns)


def _oldest(reply: Reply) -> int | None:
    """Returns the oldest version that drew a token of a reply."""
    if reply.tokens is None or not reply.tokens.completion:
        return None
    if not reply.tokens.versions:
        return reply.policy_version
    return min(number for _, number in reply.tokens.versions)


class _Ticket:
    """A group in play: what it has drawn so far, and the tasks of the event loop that play it."""

    def __init__(self, size: int, *, is_kept: bool) -> None:
        self.oldest: int | None = None
        self.tokens = self.episodes = 0
        self.cancelled = False
        self._size, self._is_kept = size, is_kept
        self._playing: set[asyncio.Task[EpisodeRecord]] = set()

    async def run(self, episode: Coroutine[Any, Any, EpisodeRecord]) -> EpisodeRecord | None:
        """Plays an episode in a task that can be cancelled; returns None if it was."""
        if self.cancelled:
            episode.close()
            return None
        if self.episodes == self._size:  # The group is played again.
            self.oldest, self.tokens, self.episodes = None, 0, 0
        self.episodes += 1
        token = _TICKET.set(self)
        self._playing.add(playing := asyncio.create_task(episode))
        _TICKET.reset(token)
        try:
            return await playing
        except asyncio.CancelledError:
            if not self.cancelled or cast(asyncio.Task[Any], asyncio.current_task()).cancelling():
                raise
            return None
        finally:
            self._playing.discard(playing)

    def note(self, reply: Reply, number: int | None) -> None:
        """Notes what a reply drew, and the oldest version that drew it."""
        self.tokens += len(reply.tokens.completion) if reply.tokens else 0
        if number is not None and (self.oldest is None or number < self.oldest):
            self.oldest = number

    def sweep(self, least: int) -> None:
        """Cancels the group if it has a token of an older version than the least."""
        if self.oldest is not None and self.oldest < least and not self._is_kept and not self.cancelled:
            self.cancelled = True
            for playing in self._playing:
                playing.cancel()


_TICKET: contextvars.ContextVar[_Ticket] = contextvars.ContextVar("ticket")


class Player(Generic[S]):
    """Plays draws in groups, and cancels those in play that a new version makes too old.

    Groups of a task chain are not cancelled, because others continue in the worlds that they leave.

    Args:
        env: The environment.
        model: The model or agent.
        group: Episodes per task.
        seed: Of the worlds.
        split: Name for the record.

    Attributes:
        least: Oldest version that may be played now.
    """

    def __init__(
        self, env: Environment[S], model: Model | Agent, *, group: int, seed: int = 0, split: str = ""
    ) -> None:
        self._env, self._model, self._group = env, _Watched(model, self), group
        self._names: dict[str, Any] = {"seed": seed, "split": split}
        self._open: dict[int, _Ticket] = {}
        self.least = self._drawn = 0

    async def play(self, draws: AsyncIterator[Task[S] | Draw[S]]) -> AsyncGenerator[tuple[EndedGroup, Group], None]:
        """Yields each group as soon as it ends.

        Raises:
            UsageError: The endpoint gave no token ids or no versions.
        """
        async for group in rollouts(self._env, self._model, self._ticketed(draws), group=self._group, **self._names):
            ticket = self._open.pop(group.index)
            rows = [] if ticket.cancelled else trajectories(group.traces)
            if any(_tokens([row]) and not row.versions for row in rows):
                raise UsageError(
                    f"episodes of {group.task!r} have no policy version, so their staleness is unknown: the endpoint "
                    "must give policy_version with each reply, or a version for each token"
                )
            played = EndedGroup(
                index=group.index,
                task=group.task,
                rows=rows,
                oldest=min((number for row in rows for _, number in row.versions), default=ticket.oldest),
                tokens=_tokens(rows) if rows else ticket.tokens,
                episodes=len({row.member for row in rows}) or ticket.episodes,
                cancelled=ticket.cancelled,
            )
            yield played, group

    def sweep(self, least: int) -> None:
        """Cancels groups in play that have a token of an older version than the least."""
        self.least = least
        for ticket in self._open.values():
            ticket.sweep(least)

    async def note(self, reply: Reply, least: int) -> None:
        """Notes a reply at the group that plays; if the reply makes it too old, the episode ends here.

        Args:
            reply: The reply.
            least: `least` when it was asked for.

        Raises:
            ModelError: The reply was too old already when it was asked for.
        """
        if (number := _oldest(reply)) is not None and number < least:
            raise ModelError(
                f"a reply has tokens of version {number}, but when it was asked for, the oldest that may be trained on "
                f"was {least}: the endpoint lacks the new weights; publish them before advance(), to each endpoint"
            )
        if (ticket := _TICKET.get(None)) is not None:
            ticket.note(reply, number)
            ticket.sweep(self.least)
            if ticket.cancelled:
                await asyncio.sleep(0)

    async def _ticketed(self, draws: AsyncIterator[Task[S] | Draw[S]]) -> AsyncGenerator[Draw[S], None]:
        async for drawn in draws:
            draw = drawn if isinstance(drawn, Draw) else Draw(drawn)
            self._open[self._drawn] = ticket = _Ticket(self._group, is_kept=bool(draw.task.day))
            self._drawn += 1
            yield Draw(draw.task, draw.seed, ticket.run)


class _Watched:
    """The agent, whose replies the player sees."""

    def __init__(self, model: Model | Agent, player: Player[Any]) -> None:
        self.name: str = getattr(model, "name", None) or getattr(model, "__name__", None) or type(model).__name__
        self._model, self._player = model, player
        self._agent = model if isinstance(model, Agent) else None  # Asked once: it is slow in Python 3.11.

    def model(self, task: Task[Any], seed: int) -> Model:
        chosen = cast(Model, self._model) if self._agent is None else self._agent.model(task, seed)

        async def ask(request: Request) -> Reply:
            least = self._player.least
            reply = await chosen(request)
            if request.role == "agent" and isinstance(cast(object, reply), Reply):
                await self._player.note(reply, least)
            return reply

        return ask


class AsyncBatches(Generic[S]):
    """Async iterator of batches; call `advance` after each update, and `aclose` in the end or use `async with`."""

    def __init__(self, player: Player[S], sampler: Iterable[Task[S] | Draw[S]], buffer: Buffer) -> None:
        self._player, self._sampler, self._buffer = player, sampler, buffer
        self._draining: asyncio.Task[None] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        self._draining = self._draining or asyncio.create_task(self._drain())
        batch = await self._buffer.take()
        if batch is None:
            raise StopAsyncIteration
        return batch

    @property
    def dropped(self) -> list[Dropped]:
        """Groups that were dropped since the last batch; a ledger has those before it."""
        return self._buffer.dropped

    def advance(self, version: int) -> None:
        """Notes that the endpoint now has the weights of this version; it is the version before it plus 1.

        Raises:
            UsageError: The version is not the next one.
        """
        self._buffer.advance(version)
        self._player.sweep(self._buffer.staleness.min_fresh)

    async def aclose(self) -> None:
        """Cancels what is in play."""
        if self._draining is not None:
            self._draining.cancel()
            await asyncio.gather(self._draining, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def _drain(self) -> None:
        observe: Callable[[Group], None] = getattr(self._sampler, "observe", lambda _: None)
        try:
            async for played, group in self._player.play(self._draws()):
                if not played.cancelled:
                    observe(group)
                self._buffer.add(played, group)
            self._buffer.finish()
        except asyncio.CancelledError:
            self._buffer.fail(UsageError("the pipeline is closed: its play was cancelled"))
            raise
        except Exception as error:  # noqa: BLE001  # handed to the trainer, who raises it
            self._buffer.fail(error)

    async def _draws(self) -> AsyncGenerator[Task[S] | Draw[S], None]:
        draws, end = iter(self._sampler), object()
        while True:
            await self._buffer.room()
            if (draw := next(draws, end)) is end:
                return
            self._buffer.begin()
            yield cast(Task[S] | Draw[S], draw)


def pipeline(
    env: Environment[S],
    model: Model | Agent,
    sampler: Iterable[Task[S] | Draw[S]],
    *,
    batch_groups: int,
    group: int,
    bound: int,
    seed: int = 0,
    split: str = "",
    version: int = 0,
    log: TrainingLog | None = None,
) -> AsyncBatches[S]:
    """Returns batches of rows for asynchronous training, an async iterator.

    At most (bound + 1) `batch_groups` groups are ahead of the trainer: if it stops reading, play stops.

    Args:
        env: The environment.
        model: The model or agent, whose replies carry token ids and versions.
        sampler: Tasks or draws, read as needed; its method `observe(group)`, if any, gets each group that ended.
        batch_groups: Groups of a batch.
        group: Episodes per task.
        bound: Largest lag of a token, in versions; 0 plays a batch only after the update before it.
        seed: Of the worlds.
        split: Name for the record.
        version: Version of the weights that the endpoint has now.
        log: Log that gets a line per batch, with the groups that were dropped since the one before. Its steps count
            batches, from `version` on.

    Raises:
        UsageError: A number is out of its range.
    """
    staleness = Staleness(bound=bound, batch=batch_groups, concurrent=env.config.concurrency, version=version)
    pictured = cast(Sampler[S], sampler) if isinstance(cast(object, sampler), Sampler) else None
    buffer = Buffer(staleness, log, pictured)
    return AsyncBatches(Player(env, model, group=group, seed=seed, split=split), sampler, buffer)
