"""One served episode: calls one after the other, each of them once, and what is told about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Literal, TypeVar

from quintain import codec
from quintain.environment import Environment
from quintain.episode import BROKEN, Episode, blank
from quintain.errors import EpisodeError
from quintain.harness import Model
from quintain.serve.counts import Counts
from quintain.serve.errors import Finished, Gone, Starting, Void
from quintain.serve.journal.entries import FORGETFUL, Acted, Done, Ended, Log, Settled, digest
from quintain.serve.journal.user_model_log import Kept
from quintain.serve.keys import Caller
from quintain.serve.limits import patience_s
from quintain.task import Task
from quintain.trace import Message, Reply, ToolCall, Trace

from . import views as told
from .actions import Again, Change, Make, Move, Stop, Terminate, checked, cut, hearing, move, rebuilt, recordable, text
from .executor import Crew, GivenUp, Place
from .harness_run import Driven
from .secrets import NOTHING, Secrets
from .size import Scale
from .views import Answer, Shown

T = TypeVar("T")


class Live(Shown):
    """An episode that is played over a wire by its environment's own harness.

    Args:
        id: Its name on the wire.
        token: Its unguessable name, for addresses that are secrets themselves.
        env: The environment.
        task: One of its tasks.
        owner: Whose it is.
        crew: Where its world runs.
        others: Who answers for other roles; None where nobody does.
        log: Where what is asked is written down first.
        counts: Is told of its end.
        make: Makes the episode, where that is not a fresh one.
        led: Whether a harness of the caller's plays, a `Move` at a time, and not the environment's own.
        everyone: Whether the questions of all roles are the caller's to answer.
        home: The split that the task is in, whatever the record calls it.
        most: Bytes that it may hold, see `Scale`; None for any number.
        secrets: What its tools and judges may read and nobody else.
        names: Fields of the Trace: seed, member, attempt, after, split, agent.

    Attributes:
        first: What the agent was told before its first reply.
        secrets: As given; an episode that goes on from this one may be given them.
        asked: Calls whose answer was not delivered yet, by key.
        touched: When somebody last asked for it or was answered, in seconds of `time.monotonic()`.
        status: "starting" until the first question, "open" until the end, "ended", and "closed" when it is gone.
    """

    def __init__(
        self,
        id: str,
        token: str,
        *,
        env: Environment[Any],
        task: Task[Any],
        owner: Caller,
        crew: Crew,
        others: Model | None = None,
        log: Log = FORGETFUL,
        counts: Counts | None = None,
        make: Make | None = None,
        led: bool = False,
        everyone: bool = False,
        home: str = "",
        most: int | None = None,
        secrets: Secrets = NOTHING,
        **names: Any,
    ) -> None:
        self.id = id
        self.token = token
        self.env = env
        self.task = task
        self.owner = owner
        self.status: Literal["starting", "open", "ended", "closed"] = "starting"
        self.touched = time.monotonic()
        self.led = led
        self.everyone = everyone
        self.split = home
        self._scale = Scale(most)
        self.trace: Trace = blank(env, task, **names)
        self._episode: Episode[Any] | None = None
        self._driven: Driven | None = None
        self._crew = crew
        self.secrets = secrets.again()
        self._place = Place(self.secrets)
        self._others = others
        self._log = log
        self._counts = counts or Counts([env.name])
        self._is_copy = make is not None
        self._make: Make = make or (lambda: Episode[Any].begin(env, task, **names))
        self._started: asyncio.Event = asyncio.Event()
        self._lock = asyncio.Lock()
        self._turns: dict[str, int] = {}
        self._running: dict[str, asyncio.Future[None] | None] = {}
        self.first: list[Message] = []
        self.asked, self.lost = {}, {}

    async def begin(self) -> None:
        """Build the world and play to the first question. What breaks is the episode's failure, and does not raise."""
        start: object = self.task.start
        kind = (self.env.name, "begin", getattr(start, "__code__", type(start)))
        async with self._lock:
            try:
                self._place.off_loop = self.led or self._is_copy  # Of a copy there is no second beginning.
                await self._crew.run(self._place, kind, self._begin)
                self._place.off_loop = self.led
            except GivenUp as error:  # By a tool of who speaks before the agent.
                self._fail(error, component="S", kind="quintain:tool_timeout")
            except BROKEN as error:
                self._fail(error, component="T", kind="quintain:reset_failed", stage="seed")
            if self.status == "starting":
                self.status = "ended" if self.trace.end is not None else "open"
            if self.status == "ended" and self.trace.score is None:
                await self._verify()
        self._begun()

    async def _begin(self) -> None:
        episode = await self._make()
        await self._enter(episode)
        self.first = list(episode.session.messages)

    async def _enter(self, episode: Episode[Any]) -> None:
        """Play this one from now on, with a fresh harness that runs up to where it stands."""
        self._episode = episode
        self.trace = episode.trace
        self._scale.enter(episode, led=self.led)
        if not (self.led or episode.ended):
            others = hearing(episode, self._others)
            driven = Driven(self.env.harness, episode.session, others=others, everyone=self.everyone)
            self._driven = driven
            await self._drive(None)
            while isinstance(episode, Again) and episode.is_behind and driven.question is not None:
                await self._drive(await episode.recall(driven.question))

    async def ready(self, seconds: float | None = None) -> Episode[Any]:
        """The episode, once it has begun.

        Args:
            seconds: How long to wait; None means without end.

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

    async def call(self, name: str, arguments: str, *, key: str = "") -> Answer:
        """Call a tool: a turn with one call.

        Args:
            name: The tool.
            arguments: JSON text.
            key: Names this call; a second one of the same key gets the first one's answer, and nothing is done.

        Raises:
            Finished: The episode has ended.
            Void: It has failed, now or before.
            Refused: No record can hold the call.
            Gone, Starting: As for `ready`.
        """
        call = ToolCall(f"call_{len(self.trace.turns)}", text(name), text(arguments))
        return (await self._once(Reply(Message("assistant", calls=(call,))), key))[0]

    async def answer(self, words: str, *, key: str = "") -> Answer:
        """Say something without calling anything: last words, or words to whoever the agent talks with.

        Raises:
            Finished, Void, Refused, Gone, Starting: As for `call`.
        """
        return (await self._once(Reply(Message("assistant", text(words))), key))[-1]

    async def act(self, reply: Reply, *, key: str = "") -> list[Answer]:
        """Play a whole reply: an answer for each of its calls, or one where it has none.

        Raises:
            Finished, Void, Refused, Gone, Starting: As for `call`.
        """
        return await self._once(recordable(reply), key)

    async def again(self, key: str) -> list[Answer] | None:
        """The answers to what was asked under this key before, when they are there; None where nothing was.

        Raises:
            Void: The episode failed over it.
        """
        while key in self._running:  # Of several who wait for one that was refused, one tries, and the others wait.
            waiting = self._running[key] or asyncio.get_running_loop().create_future()
            self._running[key] = waiting
            await asyncio.shield(waiting)
        index = self._turns.get(key)
        if index is None:
            return None
        if self.trace.failure is not None and (index >= len(self.trace.turns) or key == self.broken):
            raise Void(self._failure)
        return told.answers(self, index=index, context=self.messages)

    def room(self, size: int) -> None:
        """Make sure that a call of so many bytes can be written down.

        Raises:
            Unavailable: It cannot, so it would not be done.
        """
        self._log.room(size)

    async def end(self, reason: str) -> None:
        """End the episode by the rules of the game, and score it; of one that has ended, nothing changes.

        Raises:
            Gone, Starting, Void: As for `ready`.
        """
        episode = await self.ready()
        async with self._lock:
            if self.status == "open":
                self._log.write(Ended(self.id, reason))
                cut(episode, Terminate(reason))
                await self._finish()

    async def change(self, changes: tuple[Change, ...], *, key: str = "") -> int:
        """Do what a caller's harness did beside its steps; returns how many conversations there were before.

        Of one that plays here, only its end can be told. What has a key is done once, as for `call`.

        Raises:
            Refused, Conflict: No record can hold them, or they do not fit.
            Gone, Starting, Void: As for `ready`.
        """
        episode = await self.ready()
        wanted = recordable(Move(Message("assistant"), before=changes, plays=False))
        async with self._lock:
            if (before := self._turns.get(key)) is None:
                self._log.write(Acted(self.id, key, codec.dumps(checked(episode, wanted)), led=True))
                before = len(episode.sessions)
                self._turns |= {key: before} if key else {}
                await move(episode, wanted, led=self.led)
                self._scale.check(episode, wanted)
                if self.trace.end is not None and self.status == "open":
                    await self._finish()
            return before

    async def judge(self) -> None:
        """Score an episode that a caller's harness ended, which only he knows to be over."""
        async with self._lock:
            if self.led and self._episode and self.trace.end is not None and not self.trace.criteria:
                await self._verify()

    async def work(self, kind: str, work: Callable[[Episode[Any]], Coroutine[Any, Any, T]]) -> T:
        """Something that is done with the whole episode between two turns.

        Raises:
            Gone, Starting, Void: As for `ready`.
            Exception: What it raises.
        """
        episode = await self.ready()
        async with self._lock:
            return await self._crew.run(self._place, (self.env.name, kind), lambda: work(episode))

    def close(self) -> None:
        """Do nothing more; whoever waits is told so. What runs now cannot be undone, but nothing is written of it."""
        self.status = "closed"
        self._log = FORGETFUL  # Its name may be another's from now on.
        if isinstance(self._others, Kept):
            self._others.close()
        self._started.set()

    async def unwind(self, why: Stop) -> None:
        """Forget the world once what runs has come to its end, and keep the record of what goes on."""
        async with self._lock:
            if self._episode is not None and self._counts.wants(self.trace):
                cut(self._episode, why)
                await self._verify()
            self._forget()

    # -- inside

    async def _once(self, reply: Reply, key: str) -> list[Answer]:
        """Play a reply that a record can hold, unless its key was used before."""
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
            waited_for = self._running.pop(key, None)
            if waited_for is not None:
                waited_for.set_result(None)

    async def _act(self, reply: Reply, key: str) -> list[Answer]:
        if self.trace.failure is not None:
            raise Void(self._failure)
        if self.status == "closed":
            raise Gone("this episode was closed")
        if self.status == "ended":
            raise Finished(f"the episode has ended: {self.trace.reason}")
        if isinstance(reply, Move) and self._episode is not None:
            checked(self._episode, reply)
        if self._log.keeps:
            self._log.write(Acted(self.id, key, codec.dumps(reply), led=isinstance(reply, Move)))
        index = len(self.trace.turns)
        if key:
            self._turns[key] = index
        await self._play(reply)
        if self._log.keeps:
            self._log.write(Done(self.id, digest(self.trace, index), key if key in self.lost else ""))
        if self.trace.failure is not None:
            self.broken = key
            raise Void(self._failure)
        return told.answers(self, index=index, context=self.messages)

    async def _play(self, reply: Reply) -> None:
        calls = reply.message.calls
        is_known = len(calls) == 1 and calls[0].name in self.env.tools  # What else agents call is without number.
        kind = (self.env.name, calls[0].name if is_known else "")
        limit, again = patience_s(self.env.config, len(calls)), partial(self._redo, reply, len(self.trace.turns))
        try:
            await self._crew.run(self._place, kind, lambda: self._drive(reply), limit_s=limit, redo=again)
        except GivenUp as error:
            self._fail(error, component="S", kind="quintain:tool_timeout")
        except BROKEN as error:
            self._fail(error, component="H", kind="agent_run_error")
        if self.trace.end is not None:
            await self._finish()

    async def _drive(self, reply: Reply | None) -> None:
        """Let the harness go on, here or elsewhere; what one raises here is its failure."""
        driven, episode = self._driven, self._episode
        if episode is None or (driven is None and not isinstance(reply, Move)):
            raise EpisodeError("the episode has no harness any more", component="H", kind="session_lost")
        try:
            if isinstance(reply, Move):
                await move(episode, reply, led=self.led)
            elif driven is not None:
                await driven.run(reply)
            self.secrets.check(episode)
            self._scale.check(episode, reply)
        except BROKEN as error:
            episode.fail(self.secrets.found(episode) or error, component="H", kind="agent_run_error")
        if driven is not None and driven.done and not episode.ended:
            episode.terminate("the harness returned")

    async def _redo(self, reply: Reply, count: int) -> None:
        """Play a reply anew that was interrupted: in another episode, for its own world is lost."""
        lost = self._played
        await self._enter(await rebuilt(lost, lost.trace.turns[:count]))
        await self._drive(reply)

    async def _finish(self) -> None:
        """Let a harness that goes on after the end run out, and score the episode."""
        self._over()
        if self._driven is not None and not self._driven.done:
            self._driven.close()
        self._driven = None
        self.secrets.strike(self.trace)
        if not self.led:  # Another's harness may still say how it ended.
            await self._verify()

    async def _verify(self) -> None:
        episode = self._episode
        if episode is not None and self.trace.failure is None:
            await self._crew.run(self._place, (self.env.name, "verify"), episode.verify)
        elif episode is not None:
            self.trace.criteria = tuple(one.name for one in self.env.verifier.criteria)
        self.secrets.strike(self.trace)
        if self._log.keeps:
            self._log.write(Settled(self.id, self.trace.to_bytes()))
        self._counts.end(self.id, self.trace)
        await self._counts.keep(self.id, self.trace, episode)
