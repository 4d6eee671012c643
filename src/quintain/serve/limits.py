"""How much of a server its callers may use."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a server its callers may use.

    Attributes:
        episodes: Open at once.
        episodes_per_key: Open at once of one key.
        idle_s: Seconds without a request or a ping before an episode is closed.
        body_bytes: Longest body or frame of a request.
        threads: For worlds whose tools are not quick.
        requests_per_s: Of one key; None for any number.
    """

    episodes: int = 10_000
    episodes_per_key: int = 10_000
    idle_s: float = 900.0
    body_bytes: int = 4 << 20
    threads: int = 64
    requests_per_s: float | None = None
