"""Rate limits: a count per key and window, as plain data of the world, which a refused request does not roll back."""

from __future__ import annotations

import math

import msgspec

SWEPT = 200
"""Number of windows at each multiple of which those that have ended are removed."""


class Window(msgspec.Struct):
    """Requests of one key since a moment."""

    ends: float
    used: int


class Forced(msgspec.Struct):
    """Requests that a test wants refused: the next ones whose path holds a text."""

    left: int
    retry_after: int
    match: str = ""


class Rates(msgspec.Struct):
    """All limits of a world.

    Attributes:
        windows: The running windows by key.
        waits: Moments until which callers were asked to wait.
        forced: Refusals that tests asked for.
    """

    windows: dict[str, Window] = {}
    waits: dict[str, float] = {}
    forced: list[Forced] = []

    def take(self, key: str, limit: int, *, period_s: float, now: float) -> tuple[int, int]:
        """Counts a request of this key; a window begins with its first request. A refused one is not counted.

        Returns:
            Requests left in this window, negative if this one is too many, and whole seconds until it ends.
        """
        window = self.windows.get(key)
        if window is None or window.ends <= now:
            if len(self.windows) % SWEPT == SWEPT - 1:
                self.windows = {name: one for name, one in self.windows.items() if one.ends > now}
            window = self.windows[key] = Window(now + period_s, 0)
        remaining = limit - window.used - 1
        if remaining >= 0:
            window.used += 1
        return remaining, max(1, math.ceil(window.ends - now))

    def force(self, path: str) -> int:
        """Returns the seconds of a refusal that a test asked for; 0 if there is none for this path."""
        for one in self.forced:
            if one.left > 0 and one.match in path:
                one.left -= 1
                self.forced = [rest for rest in self.forced if rest.left]
                return one.retry_after
        return 0
