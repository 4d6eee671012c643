"""How much of a server its callers may use."""

from __future__ import annotations

import msgspec

from quintain.config import Config

GRACE_S = 5.0
"""Beyond a tool's own time limit, before its thread is given up."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a server its callers may use.

    Attributes:
        episodes: Open at once.
        episodes_per_key: Open at once of one key.
        idle_s: Seconds without a request or a ping before an episode is closed.
        episode_bytes: Of the record and the plain data of the world of one episode; None for any number.
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
