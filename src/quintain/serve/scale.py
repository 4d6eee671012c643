"""What an episode holds in memory, and the end of one that holds too much."""

from __future__ import annotations

from typing import Any

from quintain import codec, resource
from quintain.episode import Episode
from quintain.errors import EpisodeError
from quintain.trace import Content


class Scale:
    """Weighs one episode: its record turn by turn, its world as often as the record doubles.

    The world's weight is that of its plain data. What a Resource holds, it bounds by itself (a Workspace has quotas).

    Args:
        most: Bytes of both together; None for any number.
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
        if self._turns & (self._turns - 1) == 0:
            self._world = len(resource.split(episode.state).plain)
        if self._record + self._world > self._most:
            episode.trace.cut = True
            raise EpisodeError(
                f"a record of {self._record:,} bytes, a world of {self._world:,}: an episode may have {self._most:,}",
                part="S",
                kind="provider_oom_killed",
            )


def _size(content: Content) -> int:
    return len(content) if isinstance(content, str) else len(codec.dumps(content))
