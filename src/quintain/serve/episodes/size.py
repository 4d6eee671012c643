"""Bytes that an episode holds in memory, and the end of one that holds too many."""

from __future__ import annotations

from collections.abc import Iterable
from sys import getsizeof
from typing import Any

from quintain import codec, resource
from quintain.episode import Episode
from quintain.errors import EpisodeError
from quintain.table import Table
from quintain.trace import Content, Message, Reply, Text, ToolCall, Turn

from .actions import Change, Join, Move, Rewrite, Tell

EVERY = 8
"""Turns after which a world is weighed again. Its digest, which every turn needs, costs about as much as that."""

TOKEN, LOGPROB, SEEN = 36, 32, 72
"""Bytes of each, as tracemalloc counts them: a token is an int in its turn, and what the last reply saw is there once
more as that said it, and once more as its branch."""
TURN, MESSAGE, CALL, BLOCK, ACTOR = 350, 64, 60, 60, 400
"""Bytes of each, counted likewise, beside the text that it holds."""

DATA = 8
"""Bytes of an observation's data in memory for each byte of them as MessagePack: about that of a list of numbers."""


class SizeLimit:
    """Weighs one episode: its record turn by turn, its world in the first turns and then now and then.

    A Resource is weighed that has a `weight()`, its own bytes in memory, which it does not share with
    where it began. Any other has to bound by itself what it holds.

    Args:
        most: Bytes of all together; None for any number.
    """

    __slots__ = ("_most", "_record", "_seen", "_turns", "_world")

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._turns = self._record = self._seen = self._world = 0

    @property
    def record(self) -> int:
        """Bytes of the record, and of what belongs to it while the episode goes on."""
        return self._record + self._seen

    def enter(self, episode: Episode[Any], *, led: bool) -> None:
        """Weigh what an episode has already that was begun elsewhere, and is led from there.

        Where the environment's own harness plays, it says all of it again.
        """
        if led and self._most is not None:
            self._record += sum(_added(session.context.freeze().pending) for session in episode.sessions)
            self.check(episode)

    def check(self, episode: Episode[Any], reply: Reply | None = None) -> None:
        """Weigh what has come since the last time, and end an episode that has too much. An ended one grows no more.

        Args:
            episode: Which.
            reply: What was played or, as a `Move`, changes: that is weighed when it comes, for it may stand in contexts
                long before a turn has it; what only the turns say was added is weighed with them.
        """
        turns, changes = episode.trace.turns, reply.before if isinstance(reply, Move) else None
        if self._most is None or episode.ended or (len(turns) <= self._turns and not changes):
            return  # Also of one that is made anew, what comes again is weighed already.
        if changes:
            self._record += sum(map(_change, changes))
        if reply is not None and reply.tokens is not None:
            self._seen = SEEN * (len(reply.tokens.prompt) + len(reply.tokens.completion))
        for turn in turns[self._turns :]:
            self._record += _turn(turn) + (_added(turn.added) if changes is None else 0)
        if len(turns) > self._turns:
            self._turns = len(turns)
            if self._turns % EVERY == 0 or self._turns & (self._turns - 1) == 0:
                self._world = _weight(episode.state)
        if self.record + self._world > self._most:
            episode.trace.interrupted = True
            words = f"a record of {self.record:,} bytes, a world of {self._world:,}"
            error = EpisodeError(
                f"{words}: an episode may have {self._most:,}", component="S", kind="provider_oom_killed"
            )
            episode.fail(error, component=error.component, kind=error.kind)


def _weight(world: object) -> int:
    plain, held = resource.split(world)
    tables = (len(one.dump()) for one in held if isinstance(one, Table))
    own: list[int] = [one.weight() for one in held if hasattr(one, "weight")]
    return len(plain) + sum(tables) + sum(own)


def _turn(turn: Turn) -> int:
    reply, tokens = turn.reply, turn.reply.tokens
    size = (
        TURN
        + getsizeof(turn.role)
        + _message(reply.message)
        + (getsizeof(reply.finish_reason) if reply.finish_reason else 0)
    )
    if tokens is not None:
        size += TOKEN * (len(tokens.prompt) + len(tokens.completion)) + LOGPROB * len(tokens.logprobs)
    for step in turn.steps:  # It was read back from its bytes, so its calls are not the reply's any more.
        size += MESSAGE + _call(step.call) + _content(step.observation) + _data(step.data)
    return size


def _change(change: Change) -> int:
    match change:
        case Tell() | Rewrite():
            return _added(change.messages)
        case Join():
            return ACTOR + getsizeof(change.role) + _added(change.messages)
        case _:
            return 0


def _added(messages: Iterable[Message]) -> int:
    """Returns the size of messages from outside, which stand in a context and, read back, in a turn."""
    return 2 * sum(map(_message, messages))


def _message(message: Message) -> int:
    size = MESSAGE + _content(message.content) + (getsizeof(message.reasoning) if message.reasoning else 0)
    if message.call_id is not None:
        size += getsizeof(message.call_id)
    for call in message.calls:
        size += _call(call)
    return size


def _call(call: ToolCall) -> int:
    return CALL + getsizeof(call.id) + getsizeof(call.name) + getsizeof(call.arguments)


def _data(data: dict[str, Any]) -> int:
    return DATA * len(codec.dumps(data)) if data else 0


def _content(content: Content) -> int:
    if isinstance(content, str):
        return getsizeof(content)
    return sum(
        BLOCK + (getsizeof(one.text) if isinstance(one, Text) else getsizeof(one.data) + getsizeof(one.media_type))
        for one in content
    )
