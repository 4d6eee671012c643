"""How much of a server its callers may use."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator

import msgspec

from quintain.config import Config

from .errors import Full
from .tally import Tally

_log = logging.getLogger(__name__)

GRACE_S = 5.0
"""Beyond a tool's own time limit, before its thread is given up."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a server its callers may use, however many processes it has; only `threads` are of each.

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
    """Seconds that the calls of a reply may take together; None for any time."""
    return None if config.tool_timeout_s is None else config.tool_timeout_s * max(1, calls) + GRACE_S


class Room:
    """How many episodes and sessions are open, in all processes.

    Args:
        limits: How many may be.
        tally: Where they are counted.
    """

    def __init__(self, limits: Limits, tally: Tally) -> None:
        self._limits = limits
        self._tally = tally

    def enter(self, what: str, key: str) -> None:
        """Count one more, such as one of the "episodes" of a key.

        Raises:
            Full: There are as many as may be, of the server or of the key.
        """
        most, each = self._limits.episodes, self._limits.episodes_per_key
        full = self._tally.take((what, most), (f"{what}/{key}", each))
        if full == what:
            raise Full(f"all {most} {what} of this server are open", retry_after_s=5)
        if full:
            raise Full(f"all {each} {what} of this key are open", retry_after_s=5)

    @contextlib.contextmanager
    def entered(self, what: str, key: str) -> Generator[None]:
        """The same, unless what is done now fails."""
        self.enter(what, key)
        try:
            yield
        except BaseException:
            self.add(what, key, -1)
            raise

    def add(self, what: str, key: str, number: int) -> None:
        """Count some that are there anyhow, or that are there no more.

        Raises:
            Full: There are too many keys to count, and nothing is.
        """
        if not number:
            return
        self._tally.add(f"{what}/{key}", number)
        try:
            self._tally.add(what, number)
        except Full:
            self._tally.add(f"{what}/{key}", -number)
            raise

    def has(self, what: str, key: str) -> bool:
        """Count one that is there anyhow; False, and a line in the log, where there are too many keys to count."""
        try:
            self.add(what, key, 1)
        except Full as error:
            _log.warning("one of the %s of %r is not counted, and takes no place of others: %s", what, key, error)
            return False
        return True

    def open(self, what: str) -> int:
        """How many there are."""
        return int(self._tally.sum(what))
