"""Whose episode a step belongs to: a session holds one episode at a time, and none until it is begun.

Nothing is done in an episode that nobody began: a step that comes late, over a new socket after a time-out, is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from typing import Any

from quintain.environment import Environment
from quintain.serve import words
from quintain.serve.confided import NOTHING
from quintain.serve.errors import Finished, Gone, Refused, ServeError, Unavailable, Unknown, Void
from quintain.serve.host import Host, Wanted
from quintain.serve.keys import Caller
from quintain.serve.live import Live
from quintain.serve.siblings import Siblings
from quintain.serve.told import PREFIX, Answer, last_words

from .labels import Labels
from .wire import Move, Reset

_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
"""Of an episode in its session, at the end of its id. Others may have chosen an id that only looks like one."""
SWEEP_S = 5.0
"""Seconds between two looks for sessions that nobody uses any more."""


class NoEpisode(ServeError):
    """Nothing was begun here, or what was begun is gone."""

    status = 409


class Session:
    """A place for one episode after the other.

    Attributes:
        id: Unguessable; whoever names it may use it, with the key that made it.
        live: The episode; None when there is none.
        label: What the caller calls the episode.
        steps: How many steps of it were answered.
        attached: Whether a socket holds it; then it does not expire.
        closing: Whether it is to be closed when the socket lets go.
        told: What was chosen for the episode, for its metadata.
        secrets: What is confided to each of its episodes that begins from now on.
    """

    __slots__ = (
        "_closed",
        "_host",
        "_is_behind",
        "_last",
        "_lock",
        "_number",
        "attached",
        "caller",
        "closing",
        "env",
        "id",
        "label",
        "live",
        "secrets",
        "steps",
        "told",
        "touched",
    )

    def __init__(self, host: Host, env: Environment[Any], caller: Caller, *, id: str) -> None:
        self.id = id
        self.env = env
        self.caller = caller
        self.live: Live | None = None
        self.label = ""
        self.steps = 0
        self.attached = False
        self.closing = False
        self.told: dict[str, Any] = {}
        self.secrets = NOTHING
        self.touched = time.monotonic()
        self._host = host
        self._lock = asyncio.Lock()
        self._number = 0
        self._last = -1
        self._closed = False
        self._is_behind = False

    async def reset(self, wanted: Reset) -> Live:
        """Begin an episode; the one before it is closed, even when this one cannot be had.

        Raises:
            Refused, Unknown: No such split or task.
            Full: A limit is reached.
            Void: Its world could not be built.
            Gone: It was closed meanwhile.
        """
        async with self._lock:
            await self._drop()
            return await self._begin(wanted)

    async def ensure(self) -> Live:
        """The episode; where nobody has ever reset this session, that of `reset` without any choice.

        Raises:
            NoEpisode: There was one, and it is gone; or it could not be had.
            Refused, Unknown, Full, Void, Gone: As for `reset`.
        """
        async with self._lock:
            if self.live is None and self._number == 0:
                return await self._begin(Reset())
        return self.current

    @property
    def current(self) -> Live:
        """The episode.

        Raises:
            NoEpisode: None was begun, or it is gone.
        """
        if self.live is None:
            raise NoEpisode("no episode was begun here: reset begins one")
        if self.live.status == "closed":
            raise NoEpisode("the episode has expired or was closed: reset begins another")
        return self.live

    async def act(self, move: Move, *, key: str = "") -> Answer:
        """Call a tool of the episode, or say words in it.

        Raises:
            NoEpisode: There is none.
            Refused: The words are missing, or no record can hold the call.
            Finished: It has ended.
            Void: It has failed, now or before.
            Gone: It was closed meanwhile.
        """
        live = self.current
        if move.kind == "say":
            answer = await live.answer(move.text, key=key)
        elif move.name == last_words(self.env):
            answer = await self._say(live, move.text, key)
        else:
            answer = await live.call(move.name, move.text, key=key)
        if live is self.live and answer.seq > self._last:
            self._last = answer.seq
            self.steps += 1
        return answer

    async def _say(self, live: Live, arguments: str, key: str) -> Answer:
        """Say the words that a tool call has for arguments; where it has others, the agent reads what is wrong."""
        try:
            text = words.said(arguments)
        except Refused as error:
            if not live.finished:
                self.steps += 1
                seq = len(live.trace.turns) - 1
                return Answer(seq, f"error: {error}", is_error=True, reason="input_validation", meta=live.meta)
            text = ""  # It is too late for any words.
        return await live.answer(text, key=key)

    def listed(self) -> None:
        """Count a step that asked for the tools."""
        if self.live is not None and not self.live.finished:
            self.steps += 1

    def state(self) -> dict[str, Any]:
        """Where the episode stands; without an id where there is none."""
        live = self.live
        if live is None or live.status == "closed":
            return {"episode_id": None, "step_count": 0}
        return {
            "episode_id": self.label,
            "step_count": self.steps,
            "done": live.finished,
            "split": live.trace.split,
            "task": live.task.id,
            "seed": live.trace.seed,
            "metadata": live.meta,
        }

    async def close(self) -> None:
        """Close its episode; no other is begun in it."""
        self._closed = True
        async with self._lock:
            await self._drop()

    def resume(self, live: Live) -> None:
        """Go on with an episode that was begun before this server was."""
        self.live = live
        self.label = live.id
        self._number = int(live.id.rpartition("-")[2])
        self._is_behind = True

    async def catch_up(self) -> None:
        """Wait until an episode that was begun before is where it was, and learn how many steps that is."""
        if self._is_behind and self.live is not None:
            with contextlib.suppress(Void, Gone, Finished):  # That is told to whoever wants to go on in it.
                await self.live.ready()
            self._is_behind = False
            own = [turn for turn in self.live.trace.turns if turn.thread == 0]
            self.steps, self._last = len(own), own[-1].index if own else -1

    async def _begin(self, wanted: Reset) -> Live:
        if self._closed:
            raise Gone("this session was closed")
        self._number += 1
        if wanted.index is not None and wanted.task is not None:
            raise Refused("a task is named by its index or by its id, not by both")
        host, env = self._host, self.env
        split = host.split(env, wanted.split or "")
        seed = wanted.seed or 0
        task: str | int
        if wanted.task is not None:
            task = wanted.task
        elif wanted.index is not None:
            task = wanted.index
        else:
            count = len(await host.tasks(env, split))
            if not count:
                raise Refused(f"split {split!r} has no tasks")
            task = seed % count
        name = f"{self.id}-{self._number}"
        ask = Wanted(environment=env.name, split=split, task=task, id=name, seed=seed)
        live = await host.create(ask, self.caller, secrets=self.secrets)
        try:
            await _begun(live)
        except BaseException:
            await self._forget(live)
            raise
        self.label = wanted.episode_id or name
        self.steps, self._last = 0, -1
        choice = {"session": self.id, "split": live.trace.split, "task": live.task.id, "seed": live.trace.seed}
        self.told = {f"{PREFIX}{name}": value for name, value in choice.items()}
        self.live = live
        return live

    async def _drop(self) -> None:
        live, self.live = self.live, None
        if live is not None:
            await self._forget(live)

    async def _forget(self, live: Live) -> None:
        if live.status != "closed":
            await self._host.close(live.id, self.caller)


class Sessions:
    """All sessions of a process; `labels` finds them by what their episodes are called.

    Args:
        host: Its episodes.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: dict[str, Session] = {}
        self.labels = Labels(host.siblings)
        self._is_sweeping = False

    def __contains__(self, session: Session) -> bool:
        return session.id in self._known

    def __len__(self) -> int:
        return self._host.room.open("sessions")

    @property
    def most(self) -> int:
        """How many there may be."""
        return self._host.limits.episodes

    @property
    def draining(self) -> bool:
        """Whether the server is shutting down."""
        return self._host.draining

    @property
    def siblings(self) -> Siblings:
        """The other processes."""
        return self._host.siblings

    @property
    def frame_bytes(self) -> int:
        """How long a frame may be."""
        return self._host.limits.body_bytes

    @property
    def idle_s(self) -> float:
        """Seconds until an episode expires that nobody asks for."""
        return self._host.limits.idle_s

    def open(self, env: Environment[Any], caller: Caller, *, attached: bool = False) -> Session:
        """A new session without an episode.

        Raises:
            Full: There are too many.
            Unavailable: The server is shutting down.
        """
        if self._host.draining:
            raise Unavailable("the server is shutting down")
        self._host.room.enter("sessions", caller.name)
        session = Session(self._host, env, caller, id=self._host.shard.new_id())
        session.attached = attached
        self._add(session)
        return session

    async def find(self, id: str, env: Environment[Any], caller: Caller) -> Session:
        """A session by its id; one of an earlier run of this server when its episode is there again.

        Raises:
            Elsewhere: It is another process's.
            Unknown: There is none for this caller and environment.
        """
        self._host.siblings.belongs(id)
        session = self._known.get(id) or self._resumed(id, env, caller)
        if session is None or session.env is not env or not caller.may(session.caller):
            raise Unknown(f"Unknown session_id: {id}")
        session.touched = time.monotonic()
        await session.catch_up()
        return session

    async def labelled(self, label: str, env: Environment[Any], caller: Caller, *, here: bool) -> Session:
        """A session by what its caller calls the episode.

        Args:
            label: That.
            env: The environment.
            caller: He.
            here: Whether to look in this process only.

        Raises:
            Elsewhere: It is another process's.
            Unknown: There is none.
        """
        session = self.labels.get(label, env, caller)
        if session is not None:
            session.touched = time.monotonic()
            return session
        session = self._resumed(label.rpartition("-")[0], env, caller)
        if session is None or session.label != label:
            if not here:
                await self.labels.elsewhere(label, env, caller)
            raise Unknown(f"there is no episode {label!r}: POST /reset begins one")
        await session.catch_up()
        return session

    async def close(self, session: Session) -> None:
        """Close a session and its episode."""
        self._remove(session)
        await session.close()

    def _resumed(self, id: str, env: Environment[Any], caller: Caller) -> Session | None:
        """A session for the last of the episodes that the host knows, and this server does not, by its id."""
        if id in self._known:
            return None
        mine = [one for one in self._host.lives(caller) if one.id.startswith(f"{id}-") and one.env.name == env.name]
        mine = [one for one in mine if _NUMBER.fullmatch(one.id, len(id) + 1)]
        if not id or not mine:
            return None
        last = max(mine, key=lambda one: int(one.id.rpartition("-")[2]))
        session = Session(self._host, env, last.owner, id=id)
        session.resume(last)
        self._host.room.add("sessions", session.caller.name, 1)
        self._add(session)
        self.labels.put(session)
        return session

    def _add(self, session: Session) -> None:
        self._known[session.id] = session
        if not self._is_sweeping:
            self._sweep()

    def _remove(self, session: Session) -> None:
        if self._known.pop(session.id, None) is not None:
            self.labels.drop(session)
            self._host.room.add("sessions", session.caller.name, -1)

    def _sweep(self) -> None:
        """Forget sessions that nobody has used in a while, as long as there are any, whether others come or not."""
        before = time.monotonic() - self.idle_s
        for session in [one for one in self._known.values() if not one.attached and one.touched < before]:
            # Its episode expires with the host's, which looks at the same clock.
            self._remove(session)
        self._is_sweeping = bool(self._known)
        if self._is_sweeping:
            asyncio.get_running_loop().call_later(min(SWEEP_S, self.idle_s), self._sweep)


async def _begun(live: Live) -> None:
    """Wait until an episode has begun.

    Raises:
        Void: It failed; maybe before its agent was asked anything, though there is a world.
        Gone: It was closed meanwhile.
    """
    await live.ready()
    if live.failure is not None:
        raise Void(live.failure)
