"""One served episode: calls one after the other, each made once, and its verdict."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from quintain import codec, resource
from quintain.context import Snapshot
from quintain.environment import Environment
from quintain.episode import Episode, blank
from quintain.errors import BROKEN, EpisodeError, Failure, Frame, Stage, author_frames, blame
from quintain.harness import Request
from quintain.record import EpisodeRecord
from quintain.serve.errors import Finished, Gone, Starting, Void
from quintain.serve.http.keys import Caller
from quintain.serve.http.limits import patience_s
from quintain.serve.journal.entries import FORGETFUL, Acted, Closed, Done, Ended, Settled, digest
from quintain.task import Task
from quintain.tools import Tool
from quintain.trace import End, Message, Reply, Timing, ToolCall, Trace

from . import views
from .actions import Change, Move, ResumedEpisode, Stop, Terminate, abandoned, checked, cut, move, recordable, text
from .executor import Affinity, ToolTimeout
from .harness_run import HarnessRun
from .secrets import NOTHING, Secrets
from .size import SizeLimit
from .views import CallAnswer

if TYPE_CHECKING:
    from .host import EpisodeSpec, Host

T = TypeVar("T")

BUILD_S = 900.0
"""Seconds without a request for which an episode stays open while its world is being built."""


class Live:
    """Episode that is played over a wire by its environment's own harness, or by a client's if `led`.

    Attributes:
        first: The agent's messages before its first reply.
        touched: Time of the last request or answer, in seconds of `time.monotonic()`.
        status: "starting" until the first question, "open" until the end, "ended", and "closed" when it is gone.
        is_new: True if it was recovered before any call was made in it, so that its creator may not have got its name.
        broken: Key of the call over which it failed; empty if none.
        request: Digest of the request whose key named it; empty if none did.
        split: The split of the task, whatever the record calls it.
        everyone: Whether the caller answers the questions of all roles.

    Args:
        host: The server's environments, limits, threads and log.
        spec: Description of the episode, with all defaults filled in.
        env: The environment as it is served.
        twin: Fork of another episode, from which this one goes on; None if it begins by itself.
    """

    is_new: bool = False
    broken: str = ""

    def __init__(
        self,
        host: Host,
        spec: EpisodeSpec,
        *,
        env: Environment[Any],
        task: Task[Any],
        token: str,
        owner: Caller,
        twin: Episode[Any] | None = None,
        secrets: Secrets = NOTHING,
    ) -> None:
        self.id, self.request, self.split = spec.id, spec.request, spec.split
        self.led, self.everyone = spec.led, spec.everyone
        self.env = env if spec.config in (None, env.config) else env.replace(config=spec.config)
        self.task = task
        self.token = token
        self.owner = owner
        self.status: Literal["starting", "open", "ended", "closed"] = "starting"
        self.touched = time.monotonic()
        self.trace: Trace = blank(self.env, task, **spec.names)
        self.first: list[Message] = []
        self.secrets = secrets.copy()
        self._host = host
        self._spec = spec
        self._twin = twin
        self._log = host.log
        self._others = host.others(task, spec)
        self._size = SizeLimit(host.limits.episode_bytes)
        self._affinity = Affinity(self.secrets)
        self._episode: Episode[Any] | None = None
        self._frames: tuple[Frame, ...] = ()
        self._run: HarnessRun | None = None
        self._started = asyncio.Event()
        self._lock = asyncio.Lock()
        self._turns: dict[str, int] = {}
        self._running: dict[str, asyncio.Future[None] | None] = {}

    async def begin(self) -> None:
        """Builds the world and plays to the first question. A failure becomes the episode's and is not raised."""
        async with self._lock:
            await self._start()
            if self.status == "starting":
                self.status = "ended" if self.trace.end is not None else "open"
            self._record()
        self.touched = time.monotonic()
        self._started.set()

    async def _start(self) -> None:
        start: object = self.task.start
        kind = (self.env.name, "begin", getattr(start, "__code__", type(start)))
        limit_s = patience_s(self.env.config, 1)
        try:
            await self._host.executor.run(self._affinity, kind, self._begin, limit_s=limit_s, paused=True)
        except BROKEN as error:
            # A tool that times out is one of a role that speaks before the agent.
            stage: Stage = "agent" if isinstance(error, ToolTimeout) else "seed"
            self._fail(error, component="T", kind="quintain:reset_failed", stage=stage)
        await self._verify_start()

    async def _verify_start(self) -> None:
        """Scores an episode that ended before the first call."""
        if self.trace.end is not None:
            self._mark_ended()
            if self.status == "ended" and self.trace.score is None:
                await self._verify()

    async def _make(self) -> Episode[Any]:
        """Returns a new episode, or one that goes on from a twin or a snapshot, whose harness it plays."""
        spec, twin, env, task = self._spec, self._twin, self.env, self.task
        self._twin = None
        if twin is None and spec.origin is None:
            start = None if spec.start is None else await resource.loaded(env.state, spec.start)
            return await Episode[Any].begin(env, task, start, **spec.names)
        found = twin
        if found is None:
            found = await Episode[Any].restore(env, task, Snapshot.from_bytes(spec.origin or b""))
        if spec.forked:
            trace = found.trace
            trace.forked = (trace.task, trace.member, trace.attempt, len(trace.turns))
        if spec.led_by is not None:
            found.trace.external_harness = spec.led_by
        if self.led or found.ended:
            return found
        return ResumedEpisode(env, task, state=found.state, start=found.start, trace=found.trace)

    async def _begin(self) -> None:
        episode = self._episode = await self._make()
        self.trace = episode.trace
        self._size.enter(episode, led=self.led)
        if not (self.led or episode.ended):
            run = self._run = HarnessRun(self.env.harness, episode.session, others=self._others, everyone=self.everyone)
            await self._drive(None)
            while isinstance(episode, ResumedEpisode) and episode.is_behind and run.question is not None:
                await self._drive(await episode.recall(run.question))
        self.first = list(episode.session.messages)

    async def ready(self, seconds: float | None = None) -> Episode[Any]:
        """Returns the episode once it has begun, after at most so many seconds.

        Raises:
            Starting: It takes longer.
            Gone: It was closed meanwhile.
            Void: It could not begin.
        """
        if not self._started.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._started.wait()
            except TimeoutError:
                raise Starting("the world of this episode is still being built") from None
        if self.status == "closed":
            raise Gone("this episode was closed")
        if self._episode is None:
            raise Void(self._failure)
        return self._episode

    # -- what is done

    async def call(self, name: str, arguments: str, *, key: str = "") -> CallAnswer:
        """Calls a tool with arguments in JSON; a second call of the same key gets the answer of the first.

        Raises:
            Finished: The episode has ended.
            Void: It has failed, now or before.
            Refused: A record cannot hold the call.
            Gone, Starting: As for `ready`.
        """
        call = ToolCall(f"call_{len(self.trace.turns)}", text(name), text(arguments))
        return (await self._once(Reply(Message("assistant", calls=(call,))), key))[0]

    async def answer(self, words: str, *, key: str = "") -> CallAnswer:
        """Replies with text alone: the final answer, or text for the simulated user. Raises as `call`."""
        return (await self._once(Reply(Message("assistant", text(words))), key))[-1]

    async def act(self, reply: Reply, *, key: str = "") -> list[CallAnswer]:
        """Plays a whole reply; returns an answer for each of its calls, or one if it has none. Raises as `call`."""
        return await self._once(recordable(reply), key)

    async def again(self, key: str) -> list[CallAnswer] | None:
        """Returns the answers to the call of this key once they exist, else None.

        Raises Void if it broke the episode.
        """
        while key in self._running:  # Of several requests that wait for a refused one, one tries and the others wait.
            waiting = self._running[key] or asyncio.get_running_loop().create_future()
            self._running[key] = waiting
            await asyncio.shield(waiting)
        index = self._turns.get(key)
        if index is None:
            return None
        if self.trace.failure is not None and (index >= len(self.trace.turns) or key == self.broken):
            raise Void(self._failure)
        return views.answers(self, index=index, context=self.messages)

    def room(self, size: int) -> None:
        """Raises Unavailable if the journal cannot hold a call of so many bytes, so that it must not be made."""
        self._log.room(size)

    async def end(self, reason: str) -> None:
        """Ends the episode by the rules of the game and scores it, unless it has ended. Raises as `ready`."""
        await self._end(Terminate(reason))

    async def abandon(self, reason: str) -> None:
        """Ends the episode as invalid, because its client left, unless it has ended. Raises as `ready`."""
        await self._end(abandoned(reason))

    async def _end(self, why: Stop) -> None:
        self.is_new = False
        episode = await self.ready()
        async with self._lock:
            if self.status == "open":
                if isinstance(why, Terminate):
                    self._log.write(Ended(self.id, why.reason))
                cut(episode, why)
                self._record()
                await self._finish()

    async def change(self, changes: tuple[Change, ...], *, key: str = "") -> int:
        """Applies what a client's harness did beside its steps; returns the number of conversations before.

        In an episode that the environment's own harness plays, a change can only be the end. Raises as `call`, and
        Conflict if the changes do not fit.
        """
        self.is_new = False
        episode = await self.ready()
        wanted = recordable(Move(Message("assistant"), before=changes, plays=False))
        async with self._lock:
            if (before := self._turns.get(key)) is None:
                self._log.write(Acted(self.id, key, codec.dumps(checked(episode, wanted)), led=True))
                before = len(episode.sessions)
                self._turns |= {key: before} if key else {}
                await move(episode, wanted, led=self.led)
                self._size.check(episode, wanted)
                self._record()
                if self.trace.end is not None and self.status == "open":
                    await self._finish()
            return before

    async def judge(self) -> None:
        """Scores an episode that a client's harness ended."""
        async with self._lock:
            if self.led and self._episode and self.trace.end is not None and not self.trace.criteria:
                await self._verify()

    async def work(self, kind: str, work: Callable[[Episode[Any]], Coroutine[Any, Any, T]]) -> T:
        """Runs work on the whole episode between two turns. Raises as `ready`, and whatever the work raises."""
        episode = await self.ready()
        async with self._lock:
            return await self._host.executor.run(self._affinity, (self.env.name, kind), lambda: work(episode))

    def close(self) -> None:
        """Refuses everything from now on. What runs cannot be undone, but nothing of it is written."""
        self._log.write(Closed(self.id))
        self.status = "closed"
        self._log = FORGETFUL  # Another episode may get its name.
        if self._others is not None:
            self._others.close()
        self._started.set()

    async def unwind(self, why: Stop) -> None:
        """Drops the world once what runs has ended, and archives the record of an open episode."""
        async with self._lock:
            if self._episode is not None:
                self._record(gone=True)
                if self._host.counts.wants(self.trace):
                    cut(self._episode, why)
                    await self._verify()
                self._episode.sessions.clear()  # They refer back to it and would wait for the garbage collector.
            self._close_run()
            self._episode = None

    # -- what is known

    def touch(self, caller: Caller) -> None:
        """Notes a request; the owner's role is the one that its key has now."""
        self.touched = time.monotonic()
        if caller.name == self.owner.name:
            self.owner = caller

    def knows(self, key: str) -> bool:
        """True if a call has or had this key."""
        return key in self._turns or key in self._running

    @property
    def has_calls(self) -> bool:
        """True if the agent has called or answered anything."""
        return bool(self._turns or self._running) or any(turn.role == "agent" for turn in self.trace.turns)

    def place(self, key: str) -> int | None:
        """Returns the turn of the call of this key, or the conversations before the change; None if there is none."""
        return self._turns.get(key)

    def clashes(self, key: str) -> bool:
        """True if an earlier process used this key, except for its last word, for another request."""
        return False

    @property
    def is_busy(self) -> bool:
        """True if something runs in it; its beginning does not count."""
        return self._lock.locked() and self._started.is_set()

    def is_idle(self, seconds: float) -> bool:
        """True if there was no request for so long."""
        if self.is_busy:
            return False
        bound = max(seconds, BUILD_S) if self._lock.locked() else seconds
        return self.touched < time.monotonic() - bound

    async def woken(self, seconds: float) -> None:
        """Waits until a recovered episode stands where it stood when its process ended."""

    @property
    def messages(self) -> Sequence[Message]:
        """The agent's context as its model would see it now, not to be changed; empty before the beginning."""
        return self._episode.session.context.messages if self._episode else ()

    @property
    def question(self) -> Request | None:
        """The open question of the environment's own harness; None if there is none, or a client's harness plays."""
        return self._run.question if self._run else None

    @property
    def seed(self) -> int:
        """Seed for sampling the agent's next reply."""
        return self._episode.session.request().seed if self._episode else 0

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Tools that the agent may call."""
        return views.agent_tools(self.env.for_task(self.task))

    @property
    def finished(self) -> bool:
        return self.trace.end is not None

    @property
    def reward(self) -> float | None:
        """The score of a valid episode that has ended, else None."""
        return views.reward(self.trace)

    @property
    def meta(self) -> dict[str, Any]:
        """The episode's metadata, by prefixed key, as its owner may read it."""
        return views.about(self.id, self.trace, self.owner)

    @property
    def failure(self) -> Failure | None:
        """The reason for a missing reward, as its owner may read it."""
        return self.trace.failure and views.blamed(self.trace.failure, self.owner)

    # -- inside

    async def _once(self, reply: Reply, key: str) -> list[CallAnswer]:
        """Plays a reply that a record can hold, unless its key was used before."""
        self.is_new = False
        if self.status == "starting":
            await self.ready()
        if key:
            if self.knows(key) and (again := await self.again(key)) is not None:
                return again
            self._running[key] = None
        try:
            async with self._lock:
                return await self._act(reply, key)
        finally:
            self.touched = time.monotonic()
            waiting = self._running.pop(key, None)
            if waiting is not None:
                waiting.set_result(None)

    async def _act(self, reply: Reply, key: str) -> list[CallAnswer]:
        self._check_open()
        if isinstance(reply, Move) and self._episode is not None:
            checked(self._episode, reply)
        if self._log.keeps:
            await self._log.append(Acted(self.id, key, codec.dumps(reply), led=isinstance(reply, Move)))
            self._check_open()
        index = len(self.trace.turns)
        if key:
            self._turns[key] = index
        await self._play(reply)
        if self._log.keeps:
            await self._log.append(Done(self.id, digest(self.trace, index)))
        if self.trace.failure is not None:
            self.broken = key
            raise Void(self._failure)
        return views.answers(self, index=index, context=self.messages)

    def _check_open(self) -> None:
        if self.trace.failure is not None:
            raise Void(self._failure)
        if self.status == "closed":
            raise Gone("this episode was closed")
        if self.status == "ended":
            raise Finished(f"the episode has ended: {self.trace.reason}")

    async def _play(self, reply: Reply) -> None:
        calls = reply.message.calls
        is_known = len(calls) == 1 and calls[0].name in self.env.tools  # Unknown names are without number.
        kind = (self.env.name, calls[0].name if is_known else "")
        limit_s = patience_s(self.env.config, len(calls))
        try:
            await self._host.executor.run(self._affinity, kind, lambda: self._drive(reply), limit_s=limit_s)
        except BROKEN as error:
            self._fail(error, component="H", kind="agent_run_error")
        self._record()
        if self.trace.end is not None:
            await self._finish()

    def _record(self, *, gone: bool = False) -> None:
        """Records what is in play; never with secrets, which are struck from a record only when it is whole."""
        if self._episode is not None and not self.secrets.names:
            self._host.counts.follow(self._episode, gone=gone)

    async def _drive(self, reply: Reply | None) -> None:
        """Lets the harness go on, here or at the client; what it raises here is its failure."""
        run, episode = self._run, self._episode
        if episode is None or (run is None and not isinstance(reply, Move)):
            raise EpisodeError("the episode has no harness any more", component="H", kind="session_lost")
        try:
            if isinstance(reply, Move):
                await move(episode, reply, led=self.led)
            elif run is not None:
                await run.resume(reply)
            self.secrets.check(episode)
            self._size.check(episode, reply)
        except BROKEN as error:
            episode.fail(self.secrets.found(episode) or error, component="H", kind="agent_run_error")
        if run is not None and run.done and not episode.ended:
            episode.terminate("the harness returned")

    async def _finish(self) -> None:
        """Closes the harness and scores the episode."""
        self._mark_ended()
        self._close_run()
        self.secrets.strike(self.trace)
        if not self.led:  # A client's harness may still change how it ended.
            await self._verify()

    async def _verify(self) -> None:
        episode = self._episode
        if episode is not None and self.trace.failure is None:
            await self._host.executor.run(self._affinity, (self.env.name, "verify"), episode.verify)
        elif episode is not None:
            self.trace.criteria = tuple(one.name for one in self.env.verifier.criteria)
        self.secrets.strike(self.trace)
        if self._log.keeps:
            self._log.write(Settled(self.id, self.trace.to_bytes()))
        self._host.counts.end(self.id, self.trace)
        timing, frames = (episode.timing, episode.frames) if episode is not None else (Timing(), self._frames)
        await self._host.counts.keep(self.id, EpisodeRecord(self.trace, timing, frames))

    def _close_run(self) -> None:
        if self._run is not None:
            self._run.close()
        self._run = None

    def _mark_ended(self) -> None:
        if self.status != "closed":
            self.status = "ended"

    def _fail(self, error: BaseException, *, component: Any, kind: str, stage: Stage = "agent") -> None:
        if (episode := self._episode) is None:
            self._frames = author_frames(error)
            self.trace.failure = blame(error, component=component, kind=kind, stage=stage, turn=0)
            self.trace.end, self.trace.reason = End.FAILED, self.trace.failure.kind
        else:
            episode.fail(self.secrets.found(episode) or error, component=component, kind=kind, stage=stage)
            episode.trace.interrupted = True  # The harness did not end it.
            # An abandoned thread may still change that record, but not this one.
            self.trace = msgspec.structs.replace(episode.trace, turns=list(episode.trace.turns))

    @property
    def _failure(self) -> Failure:
        if (failure := self.failure) is not None:
            return failure
        if self.status == "ended":
            raise Finished(f"the episode has ended: {self.trace.reason}; its world is not there any more")
        raise Gone("this episode is not there any more")
