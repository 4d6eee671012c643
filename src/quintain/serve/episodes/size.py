"""Limit on the bytes of one episode: its record, by encoded length, and its world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quintain import codec, resource
from quintain.episode import Episode
from quintain.errors import EpisodeError
from quintain.table import Table
from quintain.trace import Message, Reply, Turn

from .actions import Join, Move, Rewrite, Tell, cut

EVERY = 8
"""Turns after which a world is weighed again. Its digest, which every turn needs, costs about as much as that."""
TURN, STEP, MESSAGE, ACTOR, TOKEN, LOGPROB, SEEN = 250, 500, 80, 500, 33, 24, 72
"""Bytes of each in memory beyond its encoded length; SEEN is of a token that the last reply saw."""
DATA = 7
"""Bytes of an observation's data in memory for each encoded byte, beyond that one: about that of a list of numbers."""


class SizeLimit:
    """Weighs one episode: its record turn by turn, its world in the first turns and then every eighth.

    A Resource with a `weight()`, its own bytes in memory, is weighed by it. Any other bounds its own size.

    Args:
        most: Bytes of all together; None for any number.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._turns = self._record = self._seen = self._world = 0

    @property
    def record(self) -> int:
        """Bytes of the record and of the contexts that belong to it."""
        return self._record + self._seen

    def enter(self, episode: Episode[Any], *, led: bool) -> None:
        """Weighs the pending messages of a forked or restored episode that a client-side harness plays."""
        if led and self._most is not None:
            self._record += sum(_messages(session.context.freeze().pending) for session in episode.sessions)
            self.check(episode)

    def check(self, episode: Episode[Any], reply: Reply | None = None) -> None:
        """Weighs new turns and the changes of a `Move`, and ends an episode that is too large."""
        turns, changes = episode.trace.turns, reply.before if isinstance(reply, Move) else None
        if self._most is None or episode.ended or (len(turns) <= self._turns and not changes):
            return  # Replayed turns are weighed already.
        for change in changes or ():  # Messages stand in a context from now on, and later in a turn, too.
            self._record += _messages(change.messages) if isinstance(change, Tell | Rewrite | Join) else 0
            self._record += ACTOR + _encoded(change.role) if isinstance(change, Join) else 0
        if reply is not None and reply.tokens is not None:
            self._seen = SEEN * (len(reply.tokens.prompt) + len(reply.tokens.completion))
        for turn in turns[self._turns :]:
            self._record += _turn(turn) + (_messages(turn.added) if changes is None else 0)
        if len(turns) > self._turns:
            self._turns = len(turns)
            if self._turns % EVERY == 0 or self._turns & (self._turns - 1) == 0:
                self._world = _weight(episode.state)
        if self.record + self._world > self._most:
            words = f"a record of {self.record:,} bytes, a world of {self._world:,}: an episode may have {self._most:,}"
            cut(episode, EpisodeError(words, component="S", kind="provider_oom_killed"))


def _weight(world: object) -> int:
    plain, held = resource.split(world)
    own: list[int] = [one.weight() for one in held if hasattr(one, "weight")]
    return len(plain) + sum(own) + sum(len(one.dump()) for one in held if isinstance(one, Table))


def _turn(turn: Turn) -> int:
    tokens, size = turn.reply.tokens, TURN + STEP * len(turn.steps) + MESSAGE * len(turn.added) + _encoded(turn)
    if tokens is not None:
        size += TOKEN * (len(tokens.prompt) + len(tokens.completion)) + LOGPROB * len(tokens.logprobs)
    return size + sum(DATA * _encoded(step.data) for step in turn.steps if step.data)


def _messages(messages: Sequence[Message]) -> int:
    return MESSAGE * len(messages) + _encoded(messages)


def _encoded(value: object) -> int:
    return len(codec.dumps(value))
