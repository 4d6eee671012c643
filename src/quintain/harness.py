"""Harness (H): the loop between model and world, its system prompt and simulated user. It knows no task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from .config import Config
from .task import Task
from .tools import Tool
from .trace import Message, Reply, Step, ToolCall, Trace, Turn


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Request to a model.

    Attributes:
        messages: The context, oldest first.
        tools: What may be called.
        role: Whose reply is wanted; "agent" unless several actors play.
        seed: For sampling; differs between turns and members of a group, equal when an episode is played again.
        temperature, top_p, max_tokens: How to sample, from Config.
    """

    messages: Sequence[Message]
    tools: Sequence[Tool]
    role: str = "agent"
    seed: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int | None = None


Model = Callable[[Request], Awaitable[Reply]]
"""Anything that answers a request: an HTTP client, a script, a recorded trace, a person."""

CallSource = Callable[[Step | None], Awaitable[ToolCall | None]]
"""Receives the result of the last call and returns the next one, or None to end the turn.

Used when the agent program, not the reply, decides the order of calls.
"""


@runtime_checkable
class Agent(Protocol):
    """Player of episodes.

    Attributes:
        name: Name of the agent in records.
    """

    @property
    def name(self) -> str: ...

    def model(self, task: Task[Any], seed: int) -> Model:
        """The model that plays this task. Only baselines (an oracle) look at what is sealed in it."""
        ...


class Session(Protocol):
    """Actor's side of an episode: all that a harness may see and do, here or over a wire.

    Attributes:
        role: Role of the actor, such as "agent" or "user".
        config: Configuration of the environment.
        ended: True if the episode has ended.
    """

    @property
    def role(self) -> str: ...
    @property
    def messages(self) -> Sequence[Message]:
        """The actor's context, oldest first."""
        ...

    @property
    def tools(self) -> Sequence[Tool]:
        """Tools that the role may call."""
        ...

    @property
    def config(self) -> Config: ...
    @property
    def ended(self) -> bool: ...
    def request(self) -> Request:
        """The next question to this actor's model: context, tools and sampling as configured."""
        ...

    def append(self, *messages: Message) -> None:
        """Append words from outside, such as what another actor said."""

    def set_context(self, messages: Sequence[Message]) -> None:
        """Replace the context (compaction, a system prompt). What does not continue the old one starts a branch."""

    async def step(self, reply: Reply) -> Turn:
        """Play one reply: run its calls, append it and the observations to the context."""
        ...

    def terminate(self, reason: str, *, truncated: bool = False) -> None:
        """End the episode by the rules of the game, or by a limit (`truncated`); a second time changes nothing."""

    def add_actor(self, role: str, *messages: Message) -> Session:
        """Open another actor's session on the same world; its context begins with what the task tells that role."""
        ...


class Harness(Protocol):
    """Program that drives an episode. It raises nothing for what the model does: the record has it."""

    async def play(self, session: Session, model: Model) -> None:
        """Drive one episode until `session.ended`."""


@runtime_checkable
class Replayable(Protocol):
    """Harness that something outside of the process drives, so that another one has to replay its traces."""

    def replay_harness(self, trace: Trace) -> Harness:
        """Returns the harness that plays this record again."""
        ...


STOP = "###STOP###"
"""Words by which a simulated user ends the conversation, unless its harness has others."""


class ToolLoop(msgspec.Struct, frozen=True):
    """Harness that requests a reply, runs its calls and repeats; a reply without calls ends the episode.

    Attributes:
        system: The agent's system prompt; none if empty.
    """

    system: str = ""

    async def play(self, session: Session, model: Model) -> None:
        """Plays one episode to its end."""
        set_system_prompt(session, self.system)
        await run_until_text(session, model)
        session.terminate("the agent answered")


def set_system_prompt(session: Session, system: str) -> None:
    """Put a system prompt in front of a fresh context; nothing happens when it is empty."""
    if system:
        session.set_context([Message("system", system), *session.messages])


async def run_until_text(session: Session, model: Model) -> str:
    """Let an actor call tools until it says something without calling; returns its words."""
    reply: Reply | None = None
    while not session.ended and (reply is None or reply.message.calls):
        reply = await model(session.request())
        await session.step(reply)
    return reply.message.text if reply else ""
