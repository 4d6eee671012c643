"""Sessions: a place for one episode after the other.

A step without an episode is refused, such as one that comes late, over a new socket after a timeout.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from quintain.environment import Environment
from quintain.serve.episodes.actions import LEFT, Stop
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.secrets import NOTHING
from quintain.serve.episodes.views import PREFIX, CallAnswer, answer_text, answer_tool
from quintain.serve.errors import Finished, Gone, Refused, ServeError, Void
from quintain.serve.http.keys import Caller

from .wire import AgentMove, Reset

Label = tuple[str, str, str]
"""Names of key, environment and episode."""


class NoEpisode(ServeError):
    """Nothing was begun here, or what was begun is gone."""

    status = 409


class EnvSession:
    """Place for one episode after the other.

    Attributes:
        id: Unguessable; it gives access to the session, together with the key that made it.
        live: The episode; None if there is none.
        label: The caller's name of the episode.
        steps: Number of answered steps of the episode.
        attached: True while a socket holds the session, which does not expire then.
        closing: True if the session is to be closed when the socket lets go.
        key: Label under which others find the session; empty names if it has none.
        details: Chosen parameters of the episode, for its metadata.
        secrets: Secrets of all its episodes that begin from now on.
    """

    def __init__(self, host: Host, env: Environment[Any], caller: Caller, *, id: str) -> None:
        self.id = id
        self.env = env
        self.caller = caller
        self.live: Live | None = None
        self.label = ""
        self.key: Label = ("", "", "")
        self.steps = 0
        self.attached = False
        self.closing = False
        self.details: dict[str, Any] = {}
        self.secrets = NOTHING
        self.touched = time.monotonic()
        self._host = host
        self._lock = asyncio.Lock()
        self._number = 0
        self._last = -1
        self._closed = False
        self._is_behind = False

    async def reset(self, wanted: Reset) -> Live:
        """Begins an episode; the one before it is closed, even when this one cannot be had.

        Raises as `Host.create`, Void if its world could not be built, and Gone if it was closed meanwhile.
        """
        async with self._lock:
            await self._drop()
            return await self._begin(wanted)

    async def ensure(self) -> Live:
        """Returns the episode; in a session that was never reset, that of a `reset` without any choice."""
        async with self._lock:
            if self.live is None and self._number == 0:
                return await self._begin(Reset())
        return self.current

    @property
    def current(self) -> Live:
        """The episode; raises NoEpisode if none was begun, or if it is gone."""
        if self.live is None:
            raise NoEpisode("no episode was begun here: reset begins one")
        if self.live.status == "closed":
            raise NoEpisode("the episode has expired or was closed: reset begins another")
        return self.live

    @property
    def is_playing(self) -> bool:
        """True if the session has an episode that goes on."""
        return self.live is not None and self.live.status in {"starting", "open"}

    async def act(self, move: AgentMove, *, key: str = "") -> CallAnswer:
        """Calls a tool of the episode, or says words in it. Raises as `current` and `Live.call`."""
        live = self.current
        if move.kind == "call" and move.name == answer_tool(self.env):
            answer = await self._say(live, move.text, key)
        elif move.kind == "call":
            answer = await live.call(move.name, move.text, key=key)
        else:
            answer = await live.answer(move.text, key=key)
        if live is self.live and answer.seq > self._last:
            self._last = answer.seq
            self.steps += 1
        return answer

    async def _say(self, live: Live, arguments: str, key: str) -> CallAnswer:
        """Says the words in the arguments of a call of `answer`; other arguments get an error to read."""
        try:
            text = answer_text(arguments)
        except Refused as error:
            if not live.finished:
                self.steps += 1
                seq = len(live.trace.turns) - 1
                return CallAnswer(seq, f"error: {error}", is_error=True, reason="input_validation", meta=live.meta)
            text = ""  # It is too late for any words.
        return await live.answer(text, key=key)

    def listed(self) -> None:
        """Counts a step that asks for the tools."""
        if self.live is not None and not self.live.finished:
            self.steps += 1

    def state(self) -> dict[str, Any]:
        """Returns the state of the episode; without an id if there is none."""
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

    async def close(self, why: Stop = LEFT) -> None:
        """Closes the episode, which has this end if it goes on; no other can begin in this session."""
        self._closed = True
        async with self._lock:
            await self._drop(why)

    def resume(self, live: Live) -> None:
        """Goes on with an episode that was begun before this server was."""
        self.live = live
        self.secrets = live.secrets  # Those that are lost: its next episode must not read None for them.
        self.label = live.id
        self._number = int(live.id.rpartition("-")[2])
        self._is_behind = True

    def touch(self, caller: Caller) -> None:
        """Marks the session and its episode as used; the owner's present role counts from now on."""
        self.touched = time.monotonic()
        if caller.name == self.caller.name:
            self.caller = caller
        if self.live is not None:
            self.live.touch(caller)

    def is_idle(self, seconds: float) -> bool:
        """True if no request has used the session for so long; a reset or a call that runs is use."""
        if self.attached or self._lock.locked() or self.touched >= time.monotonic() - seconds:
            return False
        return self.live is None or self.live.is_idle(seconds)

    async def catch_up(self) -> None:
        """Waits until an episode that was begun before is where it was, and counts its steps."""
        if self._is_behind and self.live is not None:
            with contextlib.suppress(Void, Gone, Finished):  # The next step in it gets the failure.
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
        task = wanted.index if wanted.task is None else wanted.task
        if task is None:
            count = len(await host.tasks(env, split))
            if not count:
                raise Refused(f"split {split!r} has no tasks")
            task = seed % count
        name = f"{self.id}-{self._number}"
        ask = EpisodeSpec(environment=env.name, split=split, task=task, id=name, seed=seed)
        live = await host.create(ask, self.caller, secrets=self.secrets)
        try:
            await _begun(live)
        except BaseException:
            await self._forget(live)
            raise
        finally:
            self.touched = time.monotonic()
        self.label = wanted.episode_id or name
        self.steps, self._last = 0, -1
        choice = {"session": self.id, "split": live.trace.split, "task": live.task.id, "seed": live.trace.seed}
        self.details = {f"{PREFIX}{name}": value for name, value in choice.items()}
        self.live = live
        return live

    async def _drop(self, why: Stop = LEFT) -> None:
        live, self.live = self.live, None
        if live is not None:
            await self._forget(live, why)

    async def _forget(self, live: Live, why: Stop = LEFT) -> None:
        if live.status != "closed":
            await self._host.close(live.id, self.caller, why)


async def _begun(live: Live) -> None:
    """Waits until an episode has begun; raises Void also if it failed before its agent was asked anything."""
    await live.ready()
    if live.failure is not None:
        raise Void(live.failure)
