"""An episode at a server, as an Episode like any other.

The client keeps the turns, and the contexts of a harness that plays here. So a session answers without a request, and
what a harness does between two steps is sent with the next step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

import msgspec

from quintain import codec
from quintain.context import Context, Snapshot
from quintain.episode import ActorSession, Episode, blank
from quintain.errors import Component, EpisodeError, Stage, UsageError
from quintain.harness import CallSource, Request
from quintain.serve.control.answers import Detail, Question, ReplayResult, ReplyResult, Status, ToolInfo, Verdict
from quintain.serve.control.bodies import ReplyBody, StepBody, VerifyBody
from quintain.serve.episodes.actions import Change, Fail, Join, Rewrite, Tell, Terminate
from quintain.state import State
from quintain.task import Task
from quintain.tools import Tool
from quintain.trace import Message, Reply, Reward, Trace, Turn

from .transport import ConnectionFailure, RequestRejected

T = TypeVar("T")

if TYPE_CHECKING:
    from .environments import RemoteEnvironment


class RemoteState(State):
    """Reference to a world at the server."""

    split: str = ""
    """Split of the task whose start it is."""
    episode: str = ""
    """Id of the episode whose last world it is; empty for a task's start."""


class RemoteTool(Tool, frozen=True, kw_only=True):
    """Schema of a tool at the server, which also checks the arguments."""

    arguments: type[msgspec.Struct] = msgspec.Struct
    path: tuple[str, ...] = ()

    def decode(self, arguments: str, *, strict: bool = True) -> dict[str, Any]:
        return msgspec.json.decode(arguments.strip() or "{}", type=dict[str, Any])


class RemoteEpisode(Episode[RemoteState]):
    """One episode at a server, which `RemoteEnvironment.begin` makes and `aclose` removes.

    Attributes:
        id: Id at the server.
        mcp_url: Address at which an agent plays it over the Model Context Protocol; empty if there is none.
        closes_after_verify: True if `verify` closes it once its record is here.
        changes: What the harness did here since the last step; sent with the next request.
        question: The open question of the server's harness, as a request to a model; None if no question is open.
    """

    def __init__(self, env: RemoteEnvironment, task: Task[RemoteState], *, detail: Detail, trace: Trace) -> None:
        state = RemoteState(split=detail.split, episode=detail.id)
        super().__init__(env, task, state=state, start=RemoteState(), trace=trace)
        self.id, self.mcp_url = detail.id, detail.mcp_url
        self.closes_after_verify = False
        self.changes: list[Change] = []
        self.question: Request | None = None
        self._remote = env
        self._plays_here = detail.harness == "client"
        self._messages: dict[str, tuple[Message, ...]] = {}
        """Messages of each role's last question."""

    @classmethod
    def open(cls, env: RemoteEnvironment, detail: Detail, snapshot: Snapshot | None = None) -> RemoteEpisode:
        """Returns the episode that the server describes; with the contexts of the snapshot it was restored from."""
        start = RemoteState(split=detail.split)
        task = Task(id=detail.task, prompt="", start=start, roles=detail.roles, day=detail.day)
        if snapshot is not None:
            trace = codec.loads(snapshot.trace, Trace)
            contexts = [Context.thaw(frozen, trace) for frozen in snapshot.contexts]
        else:
            names = {name: getattr(detail, name) for name in ("seed", "member", "attempt", "agent", "task_digest")}
            trace = blank(env, task, split=detail.label, **names)
            contexts = [Context("agent", 0, detail.prompt)]
        episode = cls(env, task, detail=detail, trace=trace)
        session = ClientHarnessSession if detail.harness == "client" else ServerHarnessSession
        episode.sessions += [session(episode, context) for context in contexts]
        episode.update(detail, detail.question)
        return episode

    @property
    def rewards(self) -> tuple[Reward, ...]:
        """Rewards of all levels, as far as they are known here; after `verify` all of them."""
        return tuple(self.trace.every_reward())

    def terminate(self, reason: str, *, truncated: bool = False) -> None:
        before = self.trace.end, self.trace.reason
        super().terminate(reason, truncated=truncated)
        if (self.trace.end, self.trace.reason) != before:
            self.changes.append(Terminate(reason, truncated=truncated))

    def fail(self, error: BaseException, *, component: Component, kind: str, stage: Stage = "agent") -> None:
        had = self.trace.failure
        super().fail(error, component=component, kind=kind, stage=stage)
        if had is None and self.trace.failure is not None:
            self.changes.append(Fail(self.trace.failure))

    async def play(self, context: Context, reply: Reply, call_source: CallSource | None = None) -> Turn:
        """Plays one reply at the server.

        Raises:
            UsageError: As for an Episode; or a call source is given, which works only beside the world.
            EpisodeError: The server cannot be reached, or has closed this episode.
        """
        if self.ended:
            raise UsageError(f"this episode has ended ({self.trace.reason}); begin or restore another to go on")
        self._check_quiet()
        if call_source is not None:
            words = "an agent program's calls are made where the episode is: start the program beside its server"
            raise UsageError(words)
        self._in_turn = True
        if self._plays_here:
            context.record(len(self.trace.turns), reply)
            body = StepBody(reply=reply, thread=context.thread, before=tuple(self.changes))
            result = await self._post("step", ReplyResult, body)
            self.changes.clear()
        else:
            result = await self._post("replies", ReplyResult, ReplyBody(reply))
        self.trace.turns += result.turns
        self._in_turn = False
        self.update(result.status, result.question)
        if not result.turns:  # The reply held a secret, or its tool did not return; the trace has the failure.
            message = f"the server kept no turn of this reply: {result.status.reason}"
            raise ConnectionFailure(message, kind="session_lost")
        context.close(result.turns[0])
        return result.turns[0]

    async def verify(self) -> float | None:
        """Returns the server's score, and replaces the trace by the server's record.

        Raises:
            UsageError: The episode has not ended.
        """
        if not self.ended:
            raise UsageError("verify() before the end; terminate() or play on first")
        if self._in_turn:
            error = UsageError("a turn was broken off, so no record says what it did")
            self.fail(error, component="H", kind="cancelled")
        try:
            await self._post("verify", Verdict, VerifyBody(before=tuple(self.changes)))
            self.changes.clear()
            self.trace = await self.record()
            if self.closes_after_verify:
                await self._remote.close(self)
        except (EpisodeError, UsageError) as error:  # The trace made here is all that is left, without a reward.
            self.fail(error, component="S", kind="session_lost", stage="verification")
        return self.trace.score

    async def verdict(self) -> Verdict:
        """Returns the verdict as if the episode ended now; the episode goes on. Raises as `record` does."""
        await self.send_changes()
        return await self._post("verify", Verdict, VerifyBody(now=True))

    async def record(self) -> Trace:
        """Returns the server's record as it stands.

        Raises:
            UsageError: The server rejects the request, for example because the key has no right to it.
            EpisodeError: The server cannot be reached, or has closed this episode.
        """
        await self.send_changes()
        return Trace.from_json(await self._remote.transport.request("GET", f"{self._path}/trace"))

    async def snapshot(self) -> Snapshot:
        """Returns a snapshot for `RemoteEnvironment.restore`.

        Raises:
            UsageError: A turn is being played.
            UsageError, EpisodeError: As for `record`.
        """
        self._check_quiet()
        await self.send_changes()
        return Snapshot.from_bytes(await self._remote.transport.request("POST", f"{self._path}/snapshot"))

    async def fork(self) -> RemoteEpisode:
        """Returns an independent copy of the episode at the server; raises as `snapshot` does."""
        self._check_quiet()
        await self.send_changes()
        detail = await self._remote.wait_until_built(await self._post("fork", Detail))
        trace = msgspec.structs.replace(self.trace, turns=list(self.trace.turns), rewards=list(self.trace.rewards))
        twin = RemoteEpisode(self._remote, self.task, detail=detail, trace=trace)
        twin.sessions = [type(session)(twin, session.context.fork()) for session in self.sessions]
        twin.update(detail, detail.question)
        return twin

    async def replay(self) -> ReplayResult:
        """Returns whether a replay at the server gives the same bytes as the record of this ended episode."""
        await self.send_changes()
        return await self._post("replay", ReplayResult)

    async def aclose(self) -> None:
        """Closes the episode at the server."""
        with contextlib.suppress(EpisodeError, UsageError):  # Closed already, or the server has stopped.
            await self._remote.transport.request("DELETE", self._path)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def send_changes(self) -> None:
        """Sends what the harness did here since the last step."""
        if self.changes:
            self.update((await self._post("changes", Detail, tuple(self.changes))), None)
            self.changes.clear()

    def update(self, status: Status, question: Question | None) -> None:
        """Takes over the server's status and its open question."""
        if status.end is not None and self.trace.end is None:
            self.trace.end, self.trace.reason = status.end, status.reason
            self.trace.failure, self.trace.score = status.failure, status.score
        self.question = None
        if question is not None:
            known = self._messages.get(question.role, ())
            self._messages[question.role] = (*known[: question.keep], *question.added)
            names = {one: getattr(question, one) for one in ("role", "seed", "temperature", "top_p", "max_tokens")}
            tools = tuple(map(self._tool, question.tools))
            self.question = Request(messages=self._messages[question.role], tools=tools, **names)

    def _tool(self, given: str | ToolInfo) -> Tool:
        return self.env.tools[given] if isinstance(given, str) else RemoteTool(**msgspec.structs.asdict(given))

    @property
    def _path(self) -> str:
        return f"/v1/episodes/{self.id}"

    async def _post(self, what: str, type_: type[T], body: Any = None) -> T:
        try:
            return await self._remote.transport.ask("POST", f"{self._path}/{what}", type_, body=body)
        except RequestRejected as error:
            if error.status in {404, 410}:
                message = f"the server has forgotten this episode: {error}"
                raise ConnectionFailure(message, kind="session_lost") from error
            raise


class ServerHarnessSession(ActorSession):
    """Session of an episode that the environment's own harness plays at the server: its open question."""

    episode: RemoteEpisode

    @property
    def role(self) -> str:
        return self.episode.question.role if self.episode.question is not None else "agent"

    @property
    def messages(self) -> Sequence[Message]:
        return self.episode.question.messages if self.episode.question is not None else ()

    @property
    def tools(self) -> Sequence[Tool]:
        return self.episode.question.tools if self.episode.question is not None else ()

    def request(self) -> Request:
        if self.episode.question is None:
            raise UsageError("nothing is asked: the episode has ended, or its harness plays here")
        return self.episode.question

    def _refuse(self, *_arguments: Any, **_named: Any) -> NoReturn:
        raise UsageError(
            "the environment's own harness plays at the server; begin with harness='client' to play one of your own"
        )

    append = set_context = add_actor = _refuse


class ClientHarnessSession(ActorSession):
    """Session of a harness that plays here; the context is kept here, and its changes are sent to the server."""

    episode: RemoteEpisode

    def append(self, *messages: Message) -> None:
        super().append(*messages)
        self.episode.changes.append(Tell(self.context.thread, messages))

    def set_context(self, messages: Sequence[Message]) -> None:
        pairs = list(zip(self.context.messages, messages, strict=False))
        keep = next((place for place, (old, new) in enumerate(pairs) if old is not new and old != new), len(pairs))
        self.episode.changes.append(Rewrite(self.context.thread, keep, tuple(messages[keep:])))
        super().set_context(messages)

    def add_actor(self, role: str, *messages: Message) -> ClientHarnessSession:
        episode = self.episode
        joined = super().add_actor(role, *messages)
        session = ClientHarnessSession(episode, joined.context)
        episode.sessions[joined.context.thread] = session
        episode.changes.append(Join(role, messages))
        return session
