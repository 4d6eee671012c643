"""What a server counts about its episodes."""

from __future__ import annotations

from collections import Counter

from quintain.trace import Trace


class Counts:
    """Since the process began, by environment.

    Attributes:
        begun: Episodes.
        ended: Episodes, by environment and validity.
        turns: Turns of ended episodes, of all roles.
        scores: Sum of the scores of valid episodes.
    """

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        self.turns: Counter[str] = Counter()
        self.scores: dict[str, float] = {}

    def end(self, trace: Trace) -> None:
        """An episode has ended, and is judged."""
        env = trace.environment
        self.ended[env, trace.validity] += 1
        self.turns[env] += len(trace.turns)
        self.scores[env] = self.scores.get(env, 0.0) + (trace.score or 0.0)
