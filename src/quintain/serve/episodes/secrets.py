"""Secrets of one episode, such as the key of a judge's model, for its tools and scoring functions.

They are in the memory of one process and nowhere else. Only their names are written.
"""

from __future__ import annotations

import base64
import contextlib
import contextvars
import json
from collections.abc import Generator, Iterable, Mapping
from typing import Any

import msgspec

from quintain import codec
from quintain.episode import Episode
from quintain.errors import EpisodeError
from quintain.trace import Reward, Trace, Turn

SOUGHT = 8
"""Characters of a secret that is looked for where it must not be; shorter ones stand there by chance."""
LONGEST = 2000
"""Characters after which the message of a Failure is cut."""
MOST = 16 << 10
"""Characters of all that are confided to one episode, with their names."""


class Packed(msgspec.Struct):
    """A secret in the header; hosts that it is meant for are a platform's business, see the page on security."""

    value: str


def packed(secrets: Mapping[str, str]) -> str:
    """Returns the header that carries secrets."""
    return base64.b64encode(codec.json({name: Packed(value) for name, value in secrets.items()})).decode()


class Secrets:
    """Secrets of one episode; those of the names `lost` went with an earlier process or episode."""

    def __init__(self, values: Mapping[str, str] | None = None, *, lost: Iterable[str] = ()) -> None:
        self._values = dict(values or {})
        self._sought = _forms(value for value in self._values.values() if len(value) >= SOUGHT)
        self._checked = 0
        self.names = tuple(sorted({*self._values, *lost}))

    def read(self, name: str) -> str | None:
        """Returns a secret, or None if the caller gave none of that name; raises EpisodeError if it is lost."""
        if name in self.names and name not in self._values:
            raise EpisodeError(
                f"the secret {name!r} went with the process that it was given to, or was given to the episode before "
                "this one and not to this one: begin, or restore, another episode with it",
                component="C",
                kind="session_lost",
            )
        return self._values.get(name)

    def copy(self, lost: Iterable[str] = ()) -> Secrets:
        """Returns the same for another episode, which must not read None for what is lost."""
        names = {*self.names, *lost}
        return Secrets(self._values, lost=names) if names else self

    @contextlib.contextmanager
    def shown(self) -> Generator[None]:
        """Lets what runs within read them."""
        token = _shown.set(self)
        try:
            yield
        finally:
            _shown.reset(token)

    def check(self, episode: Episode[Any]) -> None:
        """Drops the turns from the first new one in which a tool returns a secret, fails the episode, and raises.

        Turns are answered before the end of the episode, so stars replace secrets in reasons at once.
        """
        if (error := self.found(episode)) is not None:
            # The harness may take what is raised for no end.
            episode.fail(error, component=error.component, kind=error.kind)
            raise error

    def found(self, episode: Episode[Any]) -> EpisodeError | None:
        """Returns the error that `check` would raise, which outweighs another failure of the episode."""
        if not self._values:
            return None
        turns = episode.trace.turns
        for turn in turns[self._checked :]:
            for step in turn.steps:
                if self._tells((step.observation, step.data)):
                    del turns[turn.index :]
                    episode.trace.interrupted = True
                    self._blank(episode)
                    return EpisodeError(f"{step.call.name} returned a secret", component="S", kind="quintain:tool_bug")
        self._cover(turns, self._checked)
        self._checked = len(turns)
        return None

    def _tells(self, content: object) -> bool:
        said = codec.dumps(content)
        return any(form.encode() in said for form in self._sought)

    def _blank(self, episode: Episode[Any]) -> None:
        """Replaces messages with secrets in the conversations, which a client-side harness and snapshots read."""
        for session in episode.sessions:
            said = session.context.messages
            for place, one in enumerate(said):
                if self._tells(one.content):
                    said[place] = msgspec.structs.replace(one, content="***")

    def strike(self, trace: Trace) -> None:
        """Replaces secrets by stars in the reasons of judges, exceptions and the end."""
        if not self._values:
            return
        trace.reason = self.hidden(trace.reason)
        trace.rewards = list(self._struck(trace.rewards))
        self._cover(trace.turns, 0)
        if trace.failure is not None:
            trace.failure = msgspec.structs.replace(trace.failure, message=self._cleared(trace.failure.message))

    def _cover(self, turns: list[Turn], since: int) -> None:
        for index, turn in enumerate(turns[since:], since):
            if turn.rewards:
                turns[index] = msgspec.structs.replace(turn, rewards=self._struck(turn.rewards))

    def _struck(self, rewards: Iterable[Reward]) -> tuple[Reward, ...]:
        return tuple(msgspec.structs.replace(one, reason=self.hidden(one.reason)) for one in rewards)

    def hidden(self, words: str) -> str:
        """Returns text with stars in place of secrets."""
        for form in self._sought:
            words = words.replace(form, "***")
        return words

    def _cleared(self, message: str) -> str:
        """Returns a failure's message with stars for secrets, also for the first part of one at the cut."""
        words = self.hidden(message)
        if len(message) < LONGEST:
            return words
        begun = [size for form in self._sought for size in range(1, len(form)) if words.endswith(form[:size])]
        return f"{words[: -max(begun)]}***" if begun else words


def _forms(values: Iterable[str]) -> list[str]:
    """Returns texts as they are, as JSON has them, and as Python's repr does; longest first."""
    found: set[str] = set()
    for value in values:
        found |= {value, repr(value)[1:-1], *(json.dumps(value, ensure_ascii=one)[1:-1] for one in (True, False))}
    return sorted(found, key=lambda form: (-len(form), form))


NOTHING = Secrets()
_shown: contextvars.ContextVar[Secrets] = contextvars.ContextVar("shown", default=NOTHING)


def shown() -> Secrets:
    """Returns the secrets that the running work may read."""
    return _shown.get()


def secret(name: str) -> str | None:
    """Returns a secret that the caller of the running episode has given to it; for tools and scoring functions.

    It must not go into the world, and no tool may return it: it would be in the record.

    Args:
        name: Such as "OPENAI_API_KEY".

    Returns:
        None if the caller gave none of that name, and outside of a served episode.

    Raises:
        EpisodeError: It was given to a process that was killed since, or only to the episode whose snapshot or last
            world this one began with. The episode cannot go on.
    """
    return _shown.get().read(name)
