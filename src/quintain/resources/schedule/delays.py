"""Durations: a number, or a distribution that is sampled with the world's random stream.

Draws are rounded to milliseconds: the last bits of a logarithm differ between machines, and a replay must not.
"""

from __future__ import annotations

import math

import msgspec

from quintain.errors import UsageError
from quintain.state import Rng


class Uniform(msgspec.Struct, frozen=True, tag=True):
    """Between `low` and `high` seconds, all equally likely."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < math.inf:
            raise UsageError(f"a delay is drawn from 0 <= low <= high, got {self.low} and {self.high}")

    def draw(self, rng: Rng) -> float:
        """Returns a number of seconds."""
        return round(self.low + (self.high - self.low) * rng.random(), 3)


class Exponential(msgspec.Struct, frozen=True, tag=True):
    """Exponentially distributed, `mean` seconds on average: what is left of a wait that has no memory."""

    mean: float

    def __post_init__(self) -> None:
        if not 0 <= self.mean < math.inf:
            raise UsageError(f"a mean delay is 0 or more seconds, got {self.mean}")

    def draw(self, rng: Rng) -> float:
        """Returns a number of seconds."""
        return round(-self.mean * math.log1p(-rng.random()), 3)


Delay = float | Uniform | Exponential
"""Seconds, or what they are drawn from."""


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Number of attempts of a refused delivery, and the waits between them.

    The wait after attempt n is `first * factor ** (n - 1)` seconds, at most `most`, times a factor drawn from
    1 - jitter to 1 + jitter.

    Attributes:
        attempts: If the last one is refused too, the event is a dead letter.
        first: Seconds, 0 or more.
        factor: 1 or more.
        most: Seconds.
        jitter: From 0 to 1.
    """

    attempts: int = 5
    first: float = 60.0
    factor: float = 2.0
    most: float = 3600.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        sane = self.attempts >= 1 and 0 <= self.first < math.inf and 1 <= self.factor < math.inf
        if not (sane and 0 <= self.most < math.inf and 0 <= self.jitter <= 1):
            raise UsageError(f"a back-off has attempts >= 1, waits >= 0, factor >= 1, jitter from 0 to 1, got {self}")

    def wait(self, attempt: int, rng: Rng) -> float:
        """Returns seconds from the refusal of this attempt, counted from 1, to the next."""
        plain = min(self.first, self.most)
        for _ in range(attempt - 1):  # a power would overflow, and differ between machines in its last bits
            plain = min(plain * self.factor, self.most)
        return round(plain * (1 + self.jitter * (2 * rng.random() - 1)), 3)


def drawn(delay: Delay, rng: Rng) -> float:
    """Returns the seconds of this time.

    Raises:
        UsageError: The delay is negative or not finite.
    """
    if isinstance(delay, Uniform | Exponential):
        return delay.draw(rng)
    if not 0 <= delay < math.inf:
        raise UsageError(f"a delay is 0 or more seconds, got {delay}")
    return float(delay)
