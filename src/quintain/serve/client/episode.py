"""An episode at a server, as the Episode that everything else takes it for.

What can be known here is kept here: the turns, and the contexts of a harness that plays here. So a session answers at
once what it is asked, and what a harness does between two steps travels with the next one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from quintain import codec
from quintain.context import Context, Snapshot
from quintain.episode import ActorSession, Episode, blank
from quintain.errors import Component, EpisodeError, Stage, UsageError
from quintain.harness import CallSource, Request
from quintain.serve.control.answers import Detail, Question, ReplayResult, ReplyResult, Status, Verdict
from quintain.serve.control.bodies import ReplyBody, StepBody, VerifyBody
from quintain.serve.episodes.actions import Change, Fail, Join, Rewrite, Tell, Terminate
from quintain.state import State
from quintain.task import Task
from quintain.tools import Tool
from quintain.trace import Message, Reply, Reward, Trace, Turn

from .transport import Lost, Refusal

T = TypeVar("T")

if TYPE_CHECKING:
    from .world import RemoteEnvironment


class Far(State):
    """Stands for a world that is at the server."""

    split: str = ""
    """Split of the task whose own world it is."""
    episode: str = ""
    """Episode whose last world it is; empty for a task's own."""


class RemoteEpisode(Episode[Far]):
    """Episode on a server. `RemoteEnvironment.begin` makes it; `aclose` closes it there.

    Attributes:
        id: Id on the server.
        mcp_url: Address for an agent over the Model Context Protocol; empty if there is none.
        is_passing: True if the episode is closed once its record has been read.
    """

    def __init__(self, env: RemoteEnvironment, task: Task[Far], *, info: Detail, trace: Trace) -> None:
        super().__init__(env, task, state=Far(split=info.split, episode=info.id), start=Far(), trace=trace)
        self.id, self.mcp_url = info.id, info.mcp_url
        self.is_passing = False
        self.changes: list[Change] = []
        self.question: Question | None = None
        self._far = env
        self._transport = env.transport
        self._plays_here = info.harness == "client"
        self._asked: dict[str, tuple[Message, ...]] = {}
        """The messages of each role's last question."""

    @classmethod
    def of(cls, env: RemoteEnvironment, info: Detail, snapshot: Snapshot | None = None) -> RemoteEpisode:
        """Returns the episode of a server's answer, with the context of the snapshot from which it was restored."""
        task = Task(id=info.task, prompt="", start=Far(split=info.split), roles=info.roles, day=info.day)
        if snapshot is not None:
            trace = codec.loads(snapshot.trace, Trace)
        else:
            names = {name: getattr(info, name) for name in ("seed", "member", "attempt", "agent", "task_digest")}
            trace = blank(env, task, split=info.label, **names)
        episode = cls(env, task, info=info, trace=trace)
        kind = ClientHarnessSession if info.harness == "client" else ServerHarnessSession
        if snapshot is not None:
            episode.sessions += [kind(episode, Context.thaw(one, trace)) for one in snapshot.contexts]
        else:
            episode.sessions.append(kind(episode, Context("agent", 0, info.prompt)))
        episode.settle(info, info.question)
        return episode

    @property
    def rewards(self) -> tuple[Reward, ...]:
        """Rewards of all levels that are known here; after `verify` all of them."""
        return tuple(self.trace.every_reward())

    def terminate(self, reason: str) -> None:
        before = self.trace.end, self.trace.reason
        super().terminate(reason)
        if (self.trace.end, self.trace.reason) != before:
            self.changes.append(Terminate(reason))

    def fail(self, error: BaseException, *, component: Component, kind: str, stage: Stage = "agent") -> None:
        had = self.trace.failure
        super().fail(error, component=component, kind=kind, stage=stage)
        if had is None and self.trace.failure is not None:
            self.changes.append(Fail(self.trace.failure))

    async def play(self, context: Context, reply: Reply, call_source: CallSource | None = None) -> Turn:
        """Play one reply at the server.

        Raises:
            UsageError: As for an Episode; or the calls are to come from elsewhere, for which the server has addresses.
            EpisodeError: The server cannot be reached, or has forgotten this episode.
        """
        if self.ended:
            raise UsageError(f"this episode has ended ({self.trace.reason}); begin or restore another to go on")
        self._check_quiet()
        if call_source is not None:
            raise UsageError(
                "an agent program's calls are made where the episode is: start the program beside its server"
            )
        self._in_turn = True
        if self._plays_here:
            context.record(len(self.trace.turns), reply)
            asked = StepBody(reply=reply, thread=context.thread, before=tuple(self.changes))
            played = await self._post("step", ReplyResult, asked)
            self.changes.clear()
        else:
            played = await self._post("replies", ReplyResult, ReplyBody(reply))
        self.trace.turns += played.turns
        self._in_turn = False
        self.settle(played.status, played.question)
        if not played.turns:  # It revealed a secret, or its tool did not come back; the failure says so already.
            raise Lost(f"the server kept no turn of this reply: {played.status.reason}", kind="session_lost")
        context.close(played.turns[0])
        return played.turns[0]

    async def verify(self) -> float | None:
        """The server's verdict; its record takes the place of what was known here.

        Raises:
            UsageError: The episode goes on.
        """
        if not self.ended:
            raise UsageError("verify() before the end; terminate() or play on first")
        if self._in_turn:
            self.fail(
                UsageError("a turn was broken off, so no record says what it did"), component="H", kind="cancelled"
            )
        try:
            await self._post("verify", Verdict, VerifyBody(before=tuple(self.changes)))
            self.changes.clear()
            self.trace = await self.record()
            if self.is_passing:
                await self._far.close(self)
        except (EpisodeError, UsageError) as error:  # Then what is known here is all that there is, and no reward.
            self.fail(error, component="S", kind="session_lost", stage="verification")
        return self.trace.score

    async def verdict(self) -> Verdict:
        """Returns the verdict as if the episode ended now; it goes on.

        Raises:
            UsageError: The server refuses.
            EpisodeError: The server cannot be reached.
        """
        await self.flush()
        return await self._post("verify", Verdict, VerifyBody(now=True))

    async def record(self) -> Trace:
        """The server's record, as it stands.

        Raises:
            UsageError: The key may not read it.
            EpisodeError: The server cannot be reached.
        """
        await self.flush()
        return Trace.from_json(await self._transport.ask("GET", f"{self._path}/trace"))

    async def snapshot(self) -> Snapshot:
        """Everything needed to go on elsewhere.

        Raises:
            UsageError: A turn is being played, or the key may not read it.
            EpisodeError: The server cannot be reached.
        """
        self._check_quiet()
        await self.flush()
        return Snapshot.from_bytes(await self._transport.ask("POST", f"{self._path}/snapshot"))

    async def fork(self) -> RemoteEpisode:
        """An independent twin at the server; both may go on.

        Raises:
            UsageError: A turn is being played, or the key may not do this.
            EpisodeError: The server cannot be reached.
        """
        self._check_quiet()
        await self.flush()
        info = await self._far.begun(await self._post("fork", Detail))
        old = self.trace
        trace = msgspec.structs.replace(old, turns=list(old.turns), rewards=list(old.rewards))
        twin = RemoteEpisode(self._far, self.task, info=info, trace=trace)
        twin.sessions = [type(session)(twin, session.context.fork()) for session in self.sessions]
        twin.settle(info, info.question)
        return twin

    async def replay(self) -> ReplayResult:
        """Returns the result of the server's replay of the record.

        Raises:
            UsageError: The episode goes on, or the key may not do this.
            EpisodeError: The server cannot be reached.
        """
        await self.flush()
        return await self._post("replay", ReplayResult)

    async def aclose(self) -> None:
        """Have the server forget the episode."""
        with contextlib.suppress(EpisodeError, UsageError):  # Gone already, or going with the server.
            await self._transport.ask("DELETE", self._path)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def flush(self) -> None:
        """Sends the server all changes since the last step."""
        if self.changes:
            self.settle((await self._post("changes", Detail, tuple(self.changes))), None)
            self.changes.clear()

    def settle(self, status: Status, question: Question | None) -> None:
        """Take over how the episode stands, and what is asked next."""
        if status.end is not None and self.trace.end is None:
            self.trace.end, self.trace.reason = status.end, status.reason
            self.trace.failure, self.trace.score = status.failure, status.score
        self.question = question
        if question is not None:
            known = self._asked.get(question.role, ())
            self._asked[question.role] = (*known[: question.keep], *question.added)

    def asked(self) -> Request:
        """The open question.

        Raises:
            UsageError: There is none.
        """
        question = self.question
        if question is None:
            raise UsageError("nothing is asked: the episode has ended, or its harness plays here")
        return Request(
            messages=self._asked[question.role],
            tools=tuple(self.env.tools[name] for name in question.tools),
            role=question.role,
            seed=question.seed,
            temperature=question.temperature,
            top_p=question.top_p,
            max_tokens=question.max_tokens,
        )

    @property
    def _path(self) -> str:
        return f"/v1/episodes/{self.id}"

    async def _post(self, what: str, of: type[T], body: Any = None) -> T:
        try:
            return await self._transport.post(f"{self._path}/{what}", of, body)
        except Refusal as error:
            if error.status in {404, 410}:
                raise Lost(f"the server has forgotten this episode: {error}", kind="session_lost") from error
            raise


class ServerHarnessSession(ActorSession):
    """Session of an episode whose harness plays on the server: the server's questions to all roles."""

    episode: RemoteEpisode

    @property
    def role(self) -> str:
        return self.episode.question.role if self.episode.question is not None else "agent"

    @property
    def messages(self) -> Sequence[Message]:
        return self.episode.asked().messages if self.episode.question is not None else ()

    @property
    def tools(self) -> Sequence[Tool]:
        return self.episode.asked().tools if self.episode.question is not None else ()

    def request(self) -> Request:
        return self.episode.asked()

    def append(self, *messages: Message) -> None:
        raise UsageError(_ELSEWHERE)

    def set_context(self, messages: Sequence[Message]) -> None:
        raise UsageError(_ELSEWHERE)

    def add_actor(self, role: str, *messages: Message) -> ActorSession:
        raise UsageError(_ELSEWHERE)


_ELSEWHERE = "the environment's own harness plays at the server; begin with harness='client' to play one of your own"


class ClientHarnessSession(ActorSession):
    """Session of an episode whose harness plays here: its context is here, and each change is sent to the server."""

    episode: RemoteEpisode

    def append(self, *messages: Message) -> None:
        super().append(*messages)
        self.episode.changes.append(Tell(self.context.thread, messages))

    def set_context(self, messages: Sequence[Message]) -> None:
        keep = 0
        for old, new in zip(self.context.messages, messages, strict=False):
            if old is not new and old != new:
                break
            keep += 1
        self.episode.changes.append(Rewrite(self.context.thread, keep, tuple(messages[keep:])))
        super().set_context(messages)

    def add_actor(self, role: str, *messages: Message) -> ClientHarnessSession:
        episode = self.episode
        joined = super().add_actor(role, *messages)
        session = ClientHarnessSession(episode, joined.context)
        episode.sessions[joined.context.thread] = session
        episode.changes.append(Join(role, messages))
        return session
