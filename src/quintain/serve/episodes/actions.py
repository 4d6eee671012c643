"""What a harness that plays elsewhere does to an episode, and how one that plays here finds its place again.

A caller's own harness makes a `Move` at a time. `Again` lets an environment's own harness run up to where an episode
stands, so that a copy of the episode can go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from quintain import codec, resource
from quintain.context import Context, Snapshot
from quintain.environment import Environment, settings, sources
from quintain.episode import ActorSession, Episode
from quintain.errors import EpisodeError, Failure, ReplayDivergence
from quintain.harness import CallSource, Harness, Model, Request
from quintain.replay import ReplayModel, find_divergence, replay_env, set_failure, trace_metadata
from quintain.rollout import play_episode
from quintain.serve.errors import Conflict, Finished, Refused
from quintain.state import State
from quintain.task import Task
from quintain.trace import Message, Reply, Trace, Turn

from .secrets import shown

R = TypeVar("R", bound=Reply)
S = TypeVar("S", bound=State)

Make = Callable[[], Coroutine[Any, Any, Episode[Any]]]


Place = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""Of a conversation among those of an episode, or of a message in one."""


class Tell(msgspec.Struct, frozen=True, tag="tell", forbid_unknown_fields=True):
    """Words from outside are appended to a conversation."""

    thread: Place
    messages: tuple[Message, ...]


class Rewrite(msgspec.Struct, frozen=True, tag="rewrite", forbid_unknown_fields=True):
    """A conversation's context is its own first `keep` messages, and then these."""

    thread: Place
    keep: Place
    messages: tuple[Message, ...]


class Join(msgspec.Struct, frozen=True, tag="join", forbid_unknown_fields=True):
    """Another actor enters; his conversation gets the next number."""

    role: str
    messages: tuple[Message, ...] = ()


class Terminate(msgspec.Struct, frozen=True, tag="terminate", forbid_unknown_fields=True):
    """The end by the rules of the game."""

    reason: str


class Fail(msgspec.Struct, frozen=True, tag="fail", forbid_unknown_fields=True):
    """The end because something broke on the caller's side."""

    failure: Failure


Change = Tell | Rewrite | Join | Terminate | Fail
"""What a harness does beside its steps."""


class Move(Reply, frozen=True, omit_defaults=True):
    """A reply as a harness elsewhere plays it.

    Attributes:
        thread: In which conversation.
        before: What the harness did since the move before.
        plays: False where that is all, and no reply is played.
    """

    thread: int = 0
    before: tuple[Change, ...] = ()
    plays: bool = True


def checked(episode: Episode[Any], move: Move) -> Move:
    """The move, if it can be made.

    Raises:
        Conflict: It names a conversation that there isn't.
        Finished: The episode has ended, or ends before the reply.
    """
    threads, ended = len(episode.sessions), episode.ended
    for change in move.before:
        if isinstance(change, Join):
            threads += 1
        elif isinstance(change, Tell | Rewrite) and change.thread >= threads:
            raise Conflict(f"there is no conversation {change.thread}; there are {threads}")
        elif isinstance(change, Terminate | Fail):
            ended = True
    if move.plays and move.thread >= threads:
        raise Conflict(f"there is no conversation {move.thread}; there are {threads}")
    if move.plays and ended:
        raise Finished(f"the episode has ended: {episode.trace.reason}")
    return move


def recordable(reply: R) -> R:
    """The reply, or move, as a record will hold it.

    Raises:
        Refused: None can; or it is no reply, but what somebody else would say.
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
    """Words as a record will hold them.

    Raises:
        Refused: None can.
    """
    try:
        words.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"no record can hold this text: {error}") from error
    return words


def change(episode: Episode[Any], what: Change) -> None:
    """Do to an episode what a harness elsewhere did."""
    match what:
        case Tell():
            episode.sessions[what.thread].append(*what.messages)
        case Rewrite():
            session = episode.sessions[what.thread]
            session.set_context([*session.messages[: what.keep], *what.messages])
        case Join():
            episode.session.add_actor(what.role, *what.messages)
        case Terminate():
            episode.terminate(what.reason)
        case Fail():
            set_failure(episode, what.failure)


Stop = Change | EpisodeError
"""An end from outside: what was told, or what has happened."""
LEFT = Terminate("the agent left")
"""End of an episode that its client closes while it goes on."""
LOST = EpisodeError("the client's connection was lost", component="C", kind="transport_peer_drop")
"""End of an episode whose client vanishes, so that it is unknown whether the agent was done."""
SHUTDOWN = EpisodeError("the server was shut down", component="C", kind="shutdown")
"""End of an episode that does not outlive its server."""


def abandoned(reason: str) -> EpisodeError:
    """Returns the end of an episode whose client left without closing it: a failure, so that it has no score."""
    return EpisodeError(reason, component="C", kind="transport_peer_drop")


def cut(episode: Episode[Any], why: Stop) -> None:
    """End an episode from outside, while its harness waits for a reply. Of one that has ended nothing changes."""
    if episode.ended:
        return
    if isinstance(why, EpisodeError):
        episode.fail(why, component=why.component, kind=why.kind)
    else:
        change(episode, why)
    episode.trace.interrupted = True


async def move(episode: Episode[Any], what: Move, *, led: bool) -> None:
    """Make a move that was checked.

    Args:
        episode: In which.
        what: The move.
        led: Whether it is the harness of the episode that makes it; else it can be nothing but an end.
    """
    for one in what.before:
        change(episode, one) if led else cut(episode, one)
    if what.plays:
        reply = Reply(**{name: getattr(what, name) for name in Reply.__struct_fields__})
        await episode.sessions[what.thread].step(reply)


class Again(Episode[S]):
    """An episode whose turns are played from its record; the world is the one that they left.

    Attributes:
        known: The turns of the record.
    """

    def __init__(self, env: Environment[S], task: Task[S], *, state: S, start: S, trace: Trace) -> None:
        super().__init__(env, task, state=state, start=start, trace=trace)
        self.known: Sequence[Turn] = tuple(trace.turns)
        self._recorded = ReplayModel(trace)
        self.trace = msgspec.structs.replace(trace, turns=[])
        prompt = [Message("user", task.prompt)] if task.prompt else []
        self.sessions.append(ActorSession(self, Context("agent", 0, prompt)))

    @property
    def is_behind(self) -> bool:
        """Whether there are turns in the record that the harness has not reached."""
        return len(self.trace.turns) < len(self.known)

    async def recall(self, request: Request) -> Reply:
        """What was replied the first time.

        Raises:
            ModelError: Nothing, to this role.
        """
        return await self._recorded(request)

    def remembering(self, others: Model | None) -> Model:
        """Those who play the other roles; while the harness is behind, the record."""

        async def model(request: Request) -> Reply:
            if self.is_behind:
                return await self.recall(request)
            if others is None:
                raise EpisodeError(
                    f"nobody plays the role {request.role!r} here", component="H", kind="agent_run_error"
                )
            return await others(request)

        return model

    async def play(self, context: Context, reply: Reply, call_source: CallSource | None = None) -> Turn:
        """The turn of the record; beyond it a new one.

        Raises:
            EpisodeError: The harness goes another way than it did.
            UsageError: As for an Episode.
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
    """Where the replay of a record goes another way, as `quintain.replay`, but for secrets: these are stars in both."""
    new = await play_episode(replay_env(env, trace), task, ReplayModel(trace), start=start, **trace_metadata(trace))
    shown().strike(new.record.trace)
    return find_divergence(trace, new.record.trace)


def resumable(episode: Episode[S]) -> Episode[S]:
    """The episode as one in which a fresh harness can find its place; of an ended one, itself."""
    if episode.ended:
        return episode
    return Again(episode.env, episode.task, state=episode.state, start=episode.start, trace=episode.trace)


async def thawed(env: Environment[S], task: Task[S], data: bytes) -> Episode[S]:
    """The episode that a snapshot holds.

    Raises:
        UsageError, msgspec.DecodeError: As `Episode.restore`.
    """
    return await Episode[S].restore(env, task, Snapshot.from_bytes(data))


def fingerprint(harness: Harness) -> str:
    """Names a harness by its code, and by what it was set up with."""
    return codec.digest(codec.dumps((sources(type(harness)), settings(harness))))


def making(
    env: Environment[S],
    task: Task[S],
    twin: Episode[S] | None,
    *,
    origin: bytes | None,
    start: bytes | None,
    led: bool,
    **names: Any,
) -> Callable[[], Coroutine[Any, Any, Episode[S]]]:
    """How an episode comes to be.

    Args:
        env: The environment.
        task: One of its tasks.
        twin: The episode itself, where there is one already.
        origin: The snapshot from which it goes on; None for a fresh episode.
        start: The world in which a fresh one begins, as bytes; None for the task's own.
        led: Whether no harness plays it here, that would have to find its place.
        names: Fields of the Trace.

    An episode that somebody goes on to lead is led by him, whoever did before.
    """

    async def make() -> Episode[S]:
        if twin is None and origin is None:
            world = None if start is None else await resource.loaded(env.state, start)
            return await Episode[S].begin(env, task, world, **names)
        found = twin if twin is not None else await thawed(env, task, origin or b"")
        if "external_harness" in names:
            found.trace.external_harness = names["external_harness"]
        return found if led else resumable(found)

    return make
