"""Subagents: the tool `task` runs an inner harness on the same world, in a thread of its own of the same record."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Protocol, cast

import msgspec

from quintain.config import Config
from quintain.errors import DefinitionError, ToolError
from quintain.harness import CallSource, Harness, Model, Request, Session
from quintain.state import State
from quintain.tools import Tool, tool
from quintain.trace import Message, Reply, Trace, Turn

from .held import Errand, Host

DEPTH_MAX = 8
"""Subagents within one another."""


class LocalSession(Session, Protocol):
    """Session beside its world, where a harness may choose which calls of a reply are made."""

    async def step(self, reply: Reply, call_source: CallSource | None = None) -> Turn: ...


class Subagent(msgspec.Struct, frozen=True, kw_only=True):
    """Agent to which another one gives tasks.

    The nesting of subagents is that of the harnesses; one that is its own subagent ends at `DEPTH_MAX`.

    Attributes:
        harness: Plays a task; its end is not that of the episode.
        description: What it can do, for the agent that gives tasks.
        role: Role whose tools and model it has; its turns have this role in the record.
        max_turns: Turns for one task, 1 and up. They also count as `max_turns` of the episode.
        max_tasks: Tasks in one episode, or in one task of an outer subagent, 1 and up.
    """

    harness: Harness
    description: str
    role: str = "subagent"
    max_turns: int = 20
    max_tasks: int = 20

    def __post_init__(self) -> None:
        if self.max_turns < 1 or self.max_tasks < 1:
            given = f"max_turns={self.max_turns}, max_tasks={self.max_tasks}"
            raise DefinitionError(f"a Subagent needs max_turns >= 1 and max_tasks >= 1, got {given}")


class Delegating(State):
    """Tasks that an agent gave (stateful, not deterministic), for a harness to hold."""

    left: dict[str, int] = {}

    @tool(writes=("left",))
    def task(self, agent: str, prompt: Annotated[str, msgspec.Meta(min_length=1, max_length=100_000)]) -> Errand:
        """Give a task to another agent and wait for its answer. It sees the prompt alone.

        Args:
            agent: Name of the agent.
            prompt: All that it must know.
        """
        if agent not in self.left:
            raise ToolError(f"no agent is named {agent!r}; known: {', '.join(self.left)}")
        if not self.left[agent]:
            raise ToolError(f"the agent {agent!r} takes no more tasks")
        self.left[agent] -= 1

        async def run(host: Host) -> str:
            return await host.delegate(agent, prompt)

        return Errand(run)


class SubSession:
    """Session of a subagent: it ends by itself, by its limit of turns, or with the episode.

    Attributes:
        depth: Number of subagents around its calls, itself included.
        reason: Why it ended; empty while it goes on, or if the episode ended.
        answer: Text of the last reply that called nothing of the world.
    """

    def __init__(self, session: Session, *, max_turns: int, within: Session) -> None:
        self._session = session
        self._left = max_turns
        self.depth: int = 1 + (within.depth if isinstance(within, SubSession) else 0)
        self.reason = ""
        self.answer = ""

    @property
    def role(self) -> str:
        return self._session.role

    @property
    def messages(self) -> Sequence[Message]:
        return self._session.messages

    @property
    def tools(self) -> Sequence[Tool]:
        return self._session.tools

    @property
    def config(self) -> Config:
        return self._session.config

    @property
    def ended(self) -> bool:
        return bool(self.reason) or self._session.ended

    def request(self) -> Request:
        return self._session.request()

    def append(self, *messages: Message) -> None:
        self._session.append(*messages)

    def set_context(self, messages: Sequence[Message]) -> None:
        self._session.set_context(messages)

    async def step(self, reply: Reply, call_source: CallSource | None = None) -> Turn:
        """Plays one reply; the last allowed one ends the session."""
        if call_source is None:
            turn = await self._session.step(reply)
        else:
            turn = await cast(LocalSession, self._session).step(reply, call_source)
        self.answer = "" if turn.steps else reply.message.text
        self._left -= 1
        if not self._left:
            self.terminate("max_turns")
        return turn

    def terminate(self, reason: str, *, truncated: bool = False) -> None:
        self.reason = self.reason or reason

    def add_actor(self, role: str, *messages: Message) -> Session:
        return self._session.add_actor(role, *messages)


async def delegated(agent: Subagent, prompt: str, *, session: Session, model: Model) -> str:
    """Plays a task of a subagent; returns its answer, or a sentence that says that it has none."""
    if isinstance(session, SubSession) and session.depth == DEPTH_MAX:
        return f"error: no task was given: {DEPTH_MAX} agents have given tasks to one another; do it yourself"
    inner = session.add_actor(agent.role, Message("user", prompt))
    actor = SubSession(inner, max_turns=agent.max_turns, within=session)
    await agent.harness.play(actor, model)
    return actor.answer or "error: the agent ended without an answer"


class Delegation(msgspec.Struct, frozen=True):
    """Task of a subagent in a record.

    Attributes:
        turn: Index of the turn that gave the task.
        thread: Thread of the subagent's turns.
        turns: Its turns.
    """

    turn: int
    thread: int
    turns: tuple[Turn, ...]


def delegations(trace: Trace) -> Iterator[Delegation]:
    """Yields the tasks of subagents in a record, in the order of their first turns.

    A thread belongs to the nearest earlier call, of `task` or of another tool that delegates, whose argument `prompt`
    the thread begins with.
    """
    threads: dict[int, list[Turn]] = {}
    for turn in trace.turns:
        threads.setdefault(turn.thread, []).append(turn)
    given: list[tuple[int, str]] = []
    for turn in trace.turns:
        turns = threads[turn.thread]
        if turn is turns[0] and turn.thread:
            prompts = {message.text for message in turn.added if message.role == "user"}
            place = next((place for place in range(len(given) - 1, -1, -1) if given[place][1] in prompts), None)
            if place is not None:
                yield Delegation(given.pop(place)[0], turn.thread, tuple(turns))
        given += [(turn.index, prompt) for prompt in _prompts(turn)]


class _TaskCall(msgspec.Struct):
    prompt: str


def _prompts(turn: Turn) -> Iterator[str]:
    """Yields the prompts of the tasks that a turn gave."""
    for call in turn.reply.message.calls:
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            yield msgspec.json.decode(call.arguments, type=_TaskCall).prompt
