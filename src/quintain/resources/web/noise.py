"""Operational noise: trouble that a product plans, as plain data of the world.

Whether thing number k of a kind meets trouble is a function of (seed, kind, k). The seed is the task's, so all members
of a group meet the same, forks go on alike, and a replay gives the same bytes.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import msgspec

from quintain.trace import Observation

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
REFUSALS = ("rate_limited", "unavailable", "conflict")
"""Kinds of trouble in which a request is refused."""
Shown = Any
"""Result of a tool: text, or an `Observation` of it that names the planned trouble."""


class Noise(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Dials, all off by default.

    Attributes:
        seed: Text from which all is drawn.
        rate_limited: Share of requests that are refused for too many requests.
        unavailable: Share of requests that are refused since the product is down for a moment.
        conflict: Share of changes that are refused since somebody else was faster.
        duplicate: Share of deliveries that arrive twice.
        stale: Share of counts that are those of the last index.
        lag_s: Seconds from one index of the search to the next, at which it sees what was written; 0 for at once.
    """

    seed: str = ""
    rate_limited: Share = 0.0
    unavailable: Share = 0.0
    conflict: Share = 0.0
    duplicate: Share = 0.0
    stale: Share = 0.0
    lag_s: Annotated[float, msgspec.Meta(ge=0.0)] = 0.0

    def plans(self, kind: str, number: int) -> bool:
        """Returns whether thing `number` of a kind, from 0, meets trouble."""
        drawn = hashlib.blake2b(f"{self.seed}/{kind}/{number}".encode(), digest_size=8).digest()
        return bool(int.from_bytes(drawn, "little") < getattr(self, kind) * 2**64)


QUIET = Noise()


class Met(msgspec.Struct, omit_defaults=True):
    """Record of the noise that a world has met.

    Attributes:
        counts: Things so far by kind.
        refused: True if the last request was refused as planned. The next one is not, so who tries again gets through.
        unshown: Kind of the trouble that no tool has shown yet.
    """

    counts: dict[str, int] = {}
    refused: bool = False
    unshown: str = ""

    def next(self, noise: Noise, kind: str) -> bool:
        """Counts one thing of a kind, unless its dial is off, and returns whether it meets trouble."""
        if not getattr(noise, kind):
            return False
        number = self.counts[kind] = self.counts.get(kind, -1) + 1
        return noise.plans(kind, number)

    def show(self, text: str) -> Shown:
        """Returns the result of a tool, whose step is marked if a request of it was refused as planned."""
        kind, self.unshown = self.unshown, ""
        return Observation(text, {"planned_fault": kind}) if kind else text
