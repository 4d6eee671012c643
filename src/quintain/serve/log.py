"""Where what is asked is written down before it is done."""

from __future__ import annotations

from typing import Protocol

from quintain.trace import Reply


class Log(Protocol):
    """Keeps what an episode was asked, so that it can be asked again."""

    def acted(self, id: str, key: str, reply: Reply) -> None:
        """A reply is about to be played, or a `Move` is about to be made."""
        ...

    def ended(self, id: str, reason: str) -> None:
        """An episode is about to be ended."""
        ...
