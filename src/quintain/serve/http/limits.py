"""Limits of what a server's callers may use."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Generator

import msgspec

from quintain.config import Config
from quintain.serve.errors import Full

GRACE_S = 5.0
"""Seconds beyond a tool's own time limit before its thread is given up."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of what a server's callers may use.

    Attributes:
        episodes: Open at once.
        episodes_per_key: Open at once of one key.
        idle_s: Seconds without a request, a ping or a running call before an episode is closed.
        episode_bytes: Of the record and the world of one episode, see `Scale`; None for any number.
        body_bytes: Longest body or frame of a request.
        threads: For worlds whose tools are not quick.
        requests_per_s: Of one key; None for any number.
    """

    episodes: int = 10_000
    episodes_per_key: int = 10_000
    idle_s: float = 900.0
    episode_bytes: int | None = 256 << 20
    body_bytes: int = 4 << 20
    threads: int = 64
    requests_per_s: float | None = None


def patience_s(config: Config, calls: int) -> float | None:
    """Returns the seconds that the calls of a reply may take together; None for any time."""
    return None if config.tool_timeout_s is None else config.tool_timeout_s * max(1, calls) + GRACE_S


class Room:
    """Number of open episodes and sessions, of the server and of each key."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: Counter[str] = Counter()

    def enter(self, what: str, key: str) -> None:
        """Counts one more of "episodes" or "sessions"; raises Full if the server or the key has as many as it may."""
        most, each = self._limits.episodes, self._limits.episodes_per_key
        if self._open[what] >= most:
            raise Full(f"all {most} {what} of this server are open", retry_after_s=5)
        if self._open[f"{what}/{key}"] >= each:
            raise Full(f"all {each} {what} of this key are open", retry_after_s=5)
        self.add(what, key, 1)

    @contextlib.contextmanager
    def entered(self, what: str, key: str) -> Generator[None]:
        """Counts one more, unless the block raises."""
        self.enter(what, key)
        try:
            yield
        except BaseException:
            self.add(what, key, -1)
            raise

    def add(self, what: str, key: str, number: int) -> None:
        """Counts some that are open whatever the limits, or that are closed."""
        for name in (what, f"{what}/{key}"):
            self._open[name] += number
            if not self._open[name]:
                del self._open[name]

    def open(self, what: str) -> int:
        """Returns how many are open."""
        return self._open[what]
