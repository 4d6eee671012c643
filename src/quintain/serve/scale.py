"""What an episode holds in memory, and the end of one that holds too much."""

from __future__ import annotations

from typing import Any

from quintain import codec, resource
from quintain.episode import Episode
from quintain.errors import EpisodeError
from quintain.table import Table
from quintain.trace import Content

EVERY = 8
"""Turns after which a world is weighed again. Its digest, which every turn needs, costs about as much as that."""


class Scale:
    """Weighs one episode: its record turn by turn, its world in the first turns and then now and then.

    A Resource is weighed that has a `weight()`, its own bytes in memory, which it does not share with
    where it began. Any other has to bound by itself what it holds.

    Args:
        most: Bytes of all together; None for any number.
    """

    __slots__ = ("_most", "_record", "_turns", "_world")

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._turns = self._record = self._world = 0

    def check(self, episode: Episode[Any]) -> None:
        """Weigh what has come since the last time. One that has ended grows no more.

        Raises:
            EpisodeError: It is too much.
        """
        turns = episode.trace.turns
        if self._most is None or episode.ended or len(turns) == self._turns:
            return
        for turn in turns[self._turns :]:
            said = turn.reply.message
            self._record += _size(said.content)
            for call in said.calls:
                self._record += len(call.arguments)
            for step in turn.steps:
                self._record += _size(step.observation)
        self._turns = len(turns)
        if self._turns % EVERY == 0 or self._turns & (self._turns - 1) == 0:
            self._world = _weight(episode.state)
        if self._record + self._world > self._most:
            episode.trace.cut = True
            raise EpisodeError(
                f"a record of {self._record:,} bytes, a world of {self._world:,}: an episode may have {self._most:,}",
                part="S",
                kind="provider_oom_killed",
            )


def _weight(world: object) -> int:
    plain, held = resource.split(world)
    tables = (len(one.dump()) for one in held if isinstance(one, Table))
    own: list[int] = [one.weight() for one in held if hasattr(one, "weight")]
    return len(plain) + sum(tables) + sum(own)


def _size(content: Content) -> int:
    return len(content) if isinstance(content, str) else len(codec.dumps(content))
