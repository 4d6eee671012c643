"""What a caller confides to one episode, such as the key of a judge's model: its tools and judges may read it.

It is in the memory of one process and nowhere else. Of what is written down, only its names are part.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Generator, Iterable, Mapping
from typing import Any

import msgspec

from quintain import codec
from quintain.episode import Episode
from quintain.errors import EpisodeError
from quintain.trace import Reward, Trace

SOUGHT = 8
"""Characters of a secret that is looked for where it must not be; shorter ones stand there by chance."""


class Secrets:
    """Those of one episode.

    Args:
        values: By name.
        lost: Names of those that went with an earlier process.

    Attributes:
        names: Of all of them, sorted.
    """

    __slots__ = ("_checked", "_values", "names")

    def __init__(self, values: Mapping[str, str] | None = None, *, lost: Iterable[str] = ()) -> None:
        self._values = dict(values or {})
        self._checked = 0
        self.names = tuple(sorted({*self._values, *lost}))

    def read(self, name: str) -> str | None:
        """One of them; None where the caller gave none of that name.

        Raises:
            EpisodeError: It is lost.
        """
        if name in self.names and name not in self._values:
            words = f"the secret {name!r} went with the process that it was given to: begin another episode with it"
            raise EpisodeError(words, part="C", kind="session_lost")
        return self._values.get(name)

    @contextlib.contextmanager
    def shown(self) -> Generator[None]:
        """Let what runs within read them."""
        token = _shown.set(self)
        try:
            yield
        finally:
            _shown.reset(token)

    def check(self, episode: Episode[Any]) -> None:
        """Look at what tools returned since the last time; what comes from a turn that tells a secret is not kept.

        Raises:
            EpisodeError: There is one.
        """
        if not self._values:
            return
        turns = episode.trace.turns
        for turn in turns[self._checked :]:
            for step in turn.steps:
                said = codec.dumps(step.observation)
                if any(value.encode() in said for value in self._sought()):
                    del turns[turn.index :]
                    episode.trace.cut = True
                    raise EpisodeError(f"{step.call.name} returned a secret", part="S", kind="quintain:tool_bug")
        self._checked = len(turns)

    def strike(self, trace: Trace) -> None:
        """Put stars in their place where judges and exceptions have said them."""
        if not self._values:
            return
        trace.rewards = [self._struck(one) for one in trace.rewards]
        for index, turn in enumerate(trace.turns):
            rewards = tuple(self._struck(one) for one in turn.rewards)
            if rewards != turn.rewards:
                trace.turns[index] = msgspec.structs.replace(turn, rewards=rewards)
        if trace.failure is not None:
            trace.failure = msgspec.structs.replace(trace.failure, message=self._hidden(trace.failure.message))

    def _struck(self, reward: Reward) -> Reward:
        return msgspec.structs.replace(reward, reason=self._hidden(reward.reason))

    def _hidden(self, words: str) -> str:
        for value in self._sought():
            words = words.replace(value, "***")
        return words

    def _sought(self) -> list[str]:
        return [value for value in self._values.values() if len(value) >= SOUGHT]


NOTHING = Secrets()
_shown: contextvars.ContextVar[Secrets] = contextvars.ContextVar("shown", default=NOTHING)


def shown() -> Secrets:
    """Those that may be read here."""
    return _shown.get()


def secret(name: str) -> str | None:
    """What the caller of the episode that plays here has confided to it; for tools and judges.

    It must not go into the world, and no tool may return it: it would be in the record.

    Args:
        name: Such as "OPENAI_API_KEY".

    Returns:
        None where he gave none of that name, and outside of a served episode.

    Raises:
        EpisodeError: He did, but to a process that was killed since then. The episode cannot go on.
    """
    return _shown.get().read(name)
