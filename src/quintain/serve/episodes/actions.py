"""Actions of a client-side harness, and episodes that resume from their record.

A client's harness makes a `Move` at a time. A `ResumedEpisode` lets the environment's own harness run up to where an
episode stands, so that a copy of the episode can go on from there.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from quintain import codec
from quintain.context import Context
from quintain.environment import Environment, settings, sources
from quintain.episode import ActorSession, Episode
from quintain.errors import EpisodeError, Failure, ReplayDivergence
from quintain.harness import CallSource, Harness, Model
from quintain.replay import ReplayModel, find_divergence, replay_env, trace_metadata
from quintain.rollout import play_episode
from quintain.serve.errors import Conflict, Finished, Refused
from quintain.state import State
from quintain.task import Task
from quintain.trace import Message, Reply, Trace, Turn

from .secrets import shown

R = TypeVar("R", bound=Reply)
S = TypeVar("S", bound=State)

Place = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""Index of a conversation in an episode, or of a message in a conversation."""


class Tell(msgspec.Struct, frozen=True, tag="tell", forbid_unknown_fields=True):
    """Appends messages from outside to a conversation."""

    thread: Place
    messages: tuple[Message, ...]


class Rewrite(msgspec.Struct, frozen=True, tag="rewrite", forbid_unknown_fields=True):
    """Replaces a conversation's context with its first `keep` messages and then these."""

    thread: Place
    keep: Place
    messages: tuple[Message, ...]


class Join(msgspec.Struct, frozen=True, tag="join", forbid_unknown_fields=True):
    """Adds an actor, whose conversation gets the next number."""

    role: str
    messages: tuple[Message, ...] = ()


class Terminate(msgspec.Struct, frozen=True, tag="terminate", forbid_unknown_fields=True, omit_defaults=True):
    """Ends the episode by the rules of the game, or by a limit."""

    reason: str
    truncated: bool = False


class Fail(msgspec.Struct, frozen=True, tag="fail", forbid_unknown_fields=True):
    """Ends the episode because something broke on the client's side."""

    failure: Failure


Change = Tell | Rewrite | Join | Terminate | Fail
"""Anything that a harness does beside its steps."""


class Move(Reply, frozen=True, omit_defaults=True):
    """Reply that a client-side harness plays.

    Attributes:
        thread: Index of the conversation.
        before: Changes since the last move.
        plays: False if there are only changes, and no reply is played.
    """

    thread: int = 0
    before: tuple[Change, ...] = ()
    plays: bool = True


def checked(episode: Episode[Any], move: Move) -> Move:
    """Returns the move if it can be made; raises Conflict for an unknown conversation, Finished after the end."""
    threads, ended = len(episode.sessions), episode.ended
    for what in (*move.before, *((move,) if move.plays else ())):
        if isinstance(what, Tell | Rewrite | Move) and what.thread >= threads:
            raise Conflict(f"there is no conversation {what.thread}; there are {threads}")
        threads += isinstance(what, Join)
        ended = ended or isinstance(what, Terminate | Fail)
    if move.plays and ended:
        raise Finished(f"the episode has ended: {episode.trace.reason}")
    return move


def recordable(reply: R) -> R:
    """Returns the reply, or move, as a record will hold it.

    Raises Refused if it is not an assistant's, or cannot be held.
    """
    message = reply.message
    if message.role != "assistant" or message.call_id is not None:
        raise Refused(f"a reply is a message of the role 'assistant' that answers no call, not of {message.role!r}")
    if min(reply.usage.prompt, reply.usage.completion) < 0:  # It would give back tokens of a limit.
        raise Refused(f"a reply's usage is of 0 tokens or more, not {reply.usage.prompt} and {reply.usage.completion}")
    try:
        return codec.loads(codec.dumps(reply), type(reply))
    except Exception as error:
        raise Refused(f"no record can hold this reply: {error}") from error


def text(words: str) -> str:
    """Returns text as a record will hold it; raises Refused if a record cannot hold it."""
    try:
        words.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"no record can hold this text: {error}") from error
    return words


def change(episode: Episode[Any], what: Change) -> None:
    """Applies a change to an episode."""
    match what:
        case Tell():
            episode.sessions[what.thread].append(*what.messages)
        case Rewrite():
            session = episode.sessions[what.thread]
            session.set_context([*session.messages[: what.keep], *what.messages])
        case Join():
            episode.session.add_actor(what.role, *what.messages)
        case Terminate():
            episode.terminate(what.reason, truncated=what.truncated)
        case Fail():
            episode.trace.fail(what.failure)


Stop = Change | EpisodeError
"""An end from outside: a change that a client sent, or a failure."""
LEFT = Terminate("the agent left")
"""End of an episode that its client closes while it goes on."""
SHUTDOWN = EpisodeError("the server was shut down", component="C", kind="shutdown")
"""End of an episode that does not outlive its server."""


def abandoned(reason: str) -> EpisodeError:
    """Returns the end of an episode whose client left without closing it: a failure, so that it has no score."""
    return EpisodeError(reason, component="C", kind="transport_peer_drop")


LOST = abandoned("the client's connection was lost")
"""End of an episode whose client vanishes, so that it is unknown whether the agent was done."""


def cut(episode: Episode[Any], why: Stop) -> None:
    """Ends an episode from outside, while its harness waits for a reply; nothing changes if it has ended."""
    if episode.ended:
        return
    if isinstance(why, EpisodeError):
        episode.fail(why, component=why.component, kind=why.kind)
    else:
        change(episode, why)
    episode.trace.interrupted = True


async def move(episode: Episode[Any], what: Move, *, led: bool) -> None:
    """Makes a move that was checked; if no client-side harness has `led` the episode, it can only end it."""
    for one in what.before:
        change(episode, one) if led else cut(episode, one)
    if what.plays:
        reply = Reply(**{name: getattr(what, name) for name in Reply.__struct_fields__})
        await episode.sessions[what.thread].step(reply)


class ResumedEpisode(Episode[S]):
    """Episode whose turns, `known`, are played from its record; its world is the one that they left.

    `recall` returns the recorded reply to a request, or raises ModelError if the record has none for its role.
    """

    def __init__(self, env: Environment[S], task: Task[S], *, state: S, start: S, trace: Trace) -> None:
        super().__init__(env, task, state=state, start=start, trace=trace)
        self.known = tuple(trace.turns)
        self.recall: Model = ReplayModel(trace)
        self.trace = msgspec.structs.replace(trace, turns=[])
        prompt = [Message("user", task.prompt)] if task.prompt else []
        self.sessions.append(ActorSession(self, Context("agent", 0, prompt)))

    @property
    def is_behind(self) -> bool:
        """True if the record has turns that the harness has not reached."""
        return len(self.trace.turns) < len(self.known)

    async def play(self, context: Context, reply: Reply, call_source: CallSource | None = None) -> Turn:
        """Returns the turn of the record, or plays a new one after its end.

        Raises EpisodeError if the harness goes another way than it did.
        """
        if not self.is_behind:
            return await super().play(context, reply, call_source)
        turn = self.known[len(self.trace.turns)]
        found = context.record(turn.index, reply)
        if found != msgspec.structs.replace(turn, steps=(), rewards=(), state_digest=""):
            raise EpisodeError(
                f"the harness went another way than in turn {turn.index} of the record",
                component="H",
                kind="quintain:replay_diverged",
            )
        context.close(turn)
        self.trace.turns.append(turn)
        return turn


async def compared(env: Environment[S], task: Task[S], trace: Trace, *, start: S | None) -> ReplayDivergence | None:
    """Returns the divergence of a record's replay, as `quintain.replay` does, with secrets as stars in both."""
    new = await play_episode(replay_env(env, trace), task, ReplayModel(trace), start=start, **trace_metadata(trace))
    shown().strike(new.record.trace)
    return find_divergence(trace, new.record.trace)


def fingerprint(harness: Harness) -> str:
    """Returns a digest of a harness's code and settings."""
    return codec.digest(codec.dumps((sources(type(harness)), settings(harness))))
