"""The environments that are served, and every episode that is open in one of them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Iterable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec

from quintain import codec
from quintain.config import Config
from quintain.environment import Environment
from quintain.episode import Episode
from quintain.errors import BROKEN, UsageError
from quintain.harness import Agent
from quintain.serve.errors import Conflict, Refused, Unavailable, Unknown
from quintain.serve.http.keys import Caller
from quintain.serve.http.limits import Limits, Room
from quintain.serve.http.metrics import Metrics
from quintain.serve.journal.database import Past
from quintain.serve.journal.entries import FORGETFUL, Created, Log, UserModelLog
from quintain.serve.names import Ids, named
from quintain.task import Task

from .actions import LEFT, Stop
from .archive import Archive
from .executor import Affinity, EpisodeExecutor
from .live import Live
from .recovered_episode import RecoveredEpisode
from .secrets import NOTHING, Secrets

T = TypeVar("T")
L = TypeVar("L", bound=Live)

_log = logging.getLogger(__name__)

PATIENCE_S = 10.0
"""Seconds that a request to close waits for the verdict and the record."""
LATEST = 64
"""Tasks that are kept for the next who asks for them, with the worlds that they have made."""


class EpisodeSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Description of an episode to create.

    Attributes:
        environment: Name in any case; empty for the first one.
        split: Name of the split; empty for "test", or for the last one if the environment has no "test".
        task: Id, or index in the split; negative from the end.
        id: Name of the episode; empty for a fresh one.
        request: Digest of the request whose key gave that name; empty if none did.
        seed, member, attempt, agent, after: Fields of the Trace; without a member it is the next of its group.
        led, everyone: Whether a client-side harness plays; whether the caller answers for all roles.
        led_by: Fingerprint of that harness for the record; None for the environment's own.
        config: Limits and dials; None for the environment's own.
        label: Name of the split in the record; None for its own.
        forked: True for a fork of another episode.
        start, origin: Bytes of the world that it begins in, or of the snapshot from which it goes on; None for neither.
        secrets: Names of its secrets.
    """

    environment: str = ""
    split: str = ""
    task: str | int
    id: str = ""
    request: str = ""
    seed: int = 0
    member: int | None = None
    attempt: int = 0
    agent: str = ""
    after: tuple[str, int] | None = None
    led: bool = False
    led_by: str | None = None
    everyone: bool = False
    config: Config | None = None
    label: str | None = None
    forked: bool = False
    start: bytes | None = None
    origin: bytes | None = None
    secrets: tuple[str, ...] = ()

    @property
    def names(self) -> dict[str, Any]:
        """The fields of the Trace."""
        names: dict[str, Any] = {name: getattr(self, name) for name in ("seed", "member", "attempt", "agent")}
        names["split"] = self.split if self.label is None else self.label
        rare = {"continues": self.after, "external_harness": self.led_by}
        return names | {name: value for name, value in rare.items() if value is not None}


class Host:
    """The environments and the open episodes, of which every protocol is a view.

    Args:
        environments: In their order; the first one is the default. Names differ in more than case.
        limits: How much callers may use.
        user: Plays the roles beside the agent's; None if there is none.
        log: Where what is asked is written first.
        shard: Name of this server among several, which its ids begin with; empty for one alone.
        archive: Where records are kept; None if they go with their episodes.

    Raises:
        UsageError: No environment, or two of one name.
    """

    def __init__(
        self,
        environments: Iterable[Environment[Any]],
        *,
        limits: Limits | None = None,
        user: Agent | None = None,
        log: Log = FORGETFUL,
        shard: str = "",
        archive: Archive | None = None,
    ) -> None:
        self.environments = named(environments)
        self.limits = limits or Limits()
        self.executor = EpisodeExecutor(self.limits.threads, exits=log.keeps)
        self.room = Room(self.limits)
        self.counts = Metrics([env.name for env in self.environments.values()], archive)
        self.ids = Ids(shard)
        self.draining = False
        self._user = user
        self.log = log
        self._lives: dict[str, Live] = {}
        self._tokens: dict[str, Live] = {}
        self._splits: dict[tuple[str, str], Any] = {}
        self._tasks: WeakValueDictionary[tuple[str, str, str | int], Task[Any]] = WeakValueDictionary()
        self._latest: deque[Task[Any]] = deque(maxlen=LATEST)
        self._beginning: set[asyncio.Task[None]] = set()
        self.closing: set[asyncio.Task[None]] = set()

    @property
    def open(self) -> int:
        """Number of open episodes."""
        return len(self._lives)

    @property
    def busy(self) -> int:
        """In how many of them something is being done."""
        return sum(live.is_busy for live in self._lives.values())

    def lives(self, caller: Caller) -> list[Live]:
        """Returns the episodes of a caller; those of all callers for an admin."""
        return [live for live in self._lives.values() if caller.may(live.owner)]

    async def apart(
        self, kind: Hashable, work: Callable[[], Coroutine[Any, Any, T]], *, secrets: Secrets = NOTHING
    ) -> T:
        """Runs work that belongs to no open episode and may read these secrets; raises whatever it raises."""
        return await self.executor.run(Affinity(secrets), kind, work)

    def environment(self, name: str) -> Environment[Any]:
        """Returns an environment by its name in any case, the first one for no name; raises Unknown."""
        if not name:
            return next(iter(self.environments.values()))
        env = self.environments.get(name.lower())
        if env is None:
            raise Unknown(f"there is no environment {name!r}; there are: {', '.join(self.environments)}")
        return env

    def split(self, env: Environment[Any], name: str) -> str:
        """Returns the name itself, or the default split; raises Refused for an unknown split."""
        if not name:
            return "test" if "test" in env.splits else env.splits[-1]
        if name not in env.splits:
            raise Refused(f"Invalid split {name!r}; {env.name} has {', '.join(env.splits)}")
        return name

    async def tasks(self, env: Environment[Any], split: str) -> Any:
        """Returns the tasks of a split, made by the executor; raises Refused for an unknown split."""
        split = self.split(env, split)

        async def make() -> Any:
            return env.tasks(split)

        if (env.name, split) not in self._splits:
            self._splits[env.name, split] = await self.apart((env.name, "tasks", split), make)
        return self._splits[env.name, split]

    async def task(self, env: Environment[Any], split: str, wanted: str | int) -> Task[Any]:
        """Returns a task by id, or by its index in the split; while it is in use, or was lately, the same object.

        So the episodes of a group share the world in which they begin.

        Raises:
            Refused: No such split, or no such index.
            Unknown: No such id.
        """
        if (known := self._tasks.get((env.name, split, wanted))) is not None:
            return known
        tasks = await self.tasks(env, split)
        if isinstance(wanted, int) and not -len(tasks) <= wanted < len(tasks):
            raise Refused(f"Invalid index {wanted}: split {split!r} has {len(tasks)} tasks")

        async def make() -> Task[Any]:
            task: Task[Any] = tasks[wanted] if isinstance(wanted, int) else env.task(split, wanted)
            return task

        try:
            task = await self.apart((env.name, "task"), make)
        except UsageError as error:
            raise Unknown(str(error)) from error
        self._tasks[env.name, split, wanted] = task
        self._latest.append(task)
        return task

    async def resolve(self, wanted: EpisodeSpec) -> tuple[Environment[Any], str, Task[Any]]:
        """Returns environment, split and task of a description; raises as `environment`, `split` and `task`."""
        env = self.environment(wanted.environment)
        split = self.split(env, wanted.split)
        return env, split, await self.task(env, split, wanted.task)

    async def create(
        self, wanted: EpisodeSpec, caller: Caller, *, twin: Episode[Any] | None = None, secrets: Secrets = NOTHING
    ) -> Live:
        """Opens an episode of this caller. It exists at once; its world is built in the background, see `Live.ready`.

        With a `twin`, a fork of another episode, it goes on from there.

        Raises:
            Unknown: No such environment or task.
            Refused: No such split or index.
            Conflict: The id is in use, and not by an episode of this description that an earlier process left new.
            UsageError: The task needs other roles, and they have no model.
            Full: A limit is reached.
            Unavailable: As for `check`.
        """
        env, split, task = await self.resolve(wanted)
        if (before := self._lives.get(wanted.id)) is not None and before.is_new and caller.may(before.owner):
            # This very request may have made it, in a process that was killed before its answer.
            same = (before.env.name, before.split, before.task.id) == (env.name, split, task.id)
            if same and not secrets.names:
                before.touch(caller)
                return before
            if same:  # Its secrets are gone with that process, so it begins once more.
                await self.close(wanted.id, caller)
        self.check()
        if wanted.id in self._lives:
            raise Conflict("Session already exists")
        with self.room.entered("episodes", caller.name):
            wanted = msgspec.structs.replace(
                wanted,
                environment=env.name,
                split=split,
                task=task.id,
                id=wanted.id or self.ids.new(),
                config=wanted.config or env.config,
                secrets=secrets.names,
                member=self.counts.member(env.name, task.id, wanted.member),
            )
            token = self.ids.token()
            live = Live(self, wanted, env=env, task=task, token=token, owner=caller, twin=twin, secrets=secrets)
            if self.log.keeps:
                self.log.write(Created(wanted.id, token, caller, env.fingerprint, codec.dumps(wanted)))
        self._lives[live.id] = self._tokens[live.token] = live
        self.counts.begin(env.name)
        beginning = asyncio.create_task(live.begin())
        self._beginning.add(beginning)
        beginning.add_done_callback(self._beginning.discard)
        return live

    def check(self) -> None:
        """Raises Unavailable if the server is shutting down, or if its journal cannot be written."""
        if self.draining:
            raise Unavailable("the server is shutting down")
        self.log.room(0)  # The last of it is for calls that run.

    async def recover(self, pasts: Iterable[Past]) -> None:
        """Opens the episodes that were open when a process ended; each is replayed when it is first used.

        Those of another version of their environment are void. Those that cannot be made, such as when their
        environment or task is not served or their other roles have no model, stay in the journal.
        """
        for past in pasts:
            try:
                wanted = codec.loads(past.created.wanted, EpisodeSpec)
                env, _, task = await self.resolve(wanted)
                live = RecoveredEpisode(self, wanted, past, env=env, task=task)
            except BROKEN as error:
                _log.warning("episode %s cannot be had again: %s", past.created.id, error)
                continue
            self._lives[live.id] = self._tokens[live.token] = live
            self.room.add("episodes", live.owner.name, 1)

    def get(self, id: str, caller: Caller) -> Live:
        """Returns an episode by its id; raises Unknown if none has it, or if it is another caller's."""
        live = self._lives.get(id)
        if live is None or not caller.may(live.owner):
            raise Unknown("there is no such episode")
        live.touch(caller)
        return live

    def by_token(self, token: str) -> Live:
        """Returns an episode by its secret name, which needs no key; raises Unknown."""
        live = self._tokens.get(token)
        if live is None:
            raise Unknown("there is no such episode")
        live.touched = time.monotonic()
        return live

    def owner(self, token: str) -> Caller | None:
        """Returns the owner of the episode with this secret name; None if no episode has it."""
        return self._tokens[token].owner if token in self._tokens else None

    async def close(self, id: str, caller: Caller, why: Stop = LEFT) -> None:
        """Closes an episode, and refuses all that waits for it; raises Unknown as `get`."""
        live = self.get(id, caller)
        del self._lives[live.id], self._tokens[live.token]
        self.room.add("episodes", live.owner.name, -1)
        live.close()
        is_busy = live.is_busy
        task = asyncio.create_task(live.unwind(why))
        self.closing.add(task)
        task.add_done_callback(self.closing.discard)
        if not is_busy:
            await asyncio.wait({task}, timeout=PATIENCE_S)

    async def wait_closed(self) -> None:
        """Waits for episodes that are being closed, but not for ever."""
        if self.closing:
            await asyncio.wait(self.closing, timeout=PATIENCE_S)

    def others(self, task: Task[Any], wanted: EpisodeSpec) -> UserModelLog | None:
        """Returns the model of the roles beside the agent's in an episode; None if there is none."""
        user = self._user
        return None if user is None else UserModelLog(user.model(task, wanted.seed), wanted.id, self.log)
