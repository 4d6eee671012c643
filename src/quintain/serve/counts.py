"""What a server counts about its episodes, and the failures that it says on its error stream."""

from __future__ import annotations

import logging
from collections import Counter

from quintain.errors import Failure
from quintain.trace import Trace

LONGEST = 300
"""Characters of a failure's message that are said; the record has all of it."""

_log = logging.getLogger(__name__)


class Counts:
    """Since the process began, by environment.

    Attributes:
        begun: Episodes.
        ended: Episodes, by environment and validity.
        failed: Episodes, by environment and by part and kind of their failure.
        turns: Turns of ended episodes, of all roles.
        scores: Sum of the scores of valid episodes.
    """

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        self.failed: Counter[tuple[str, str, str]] = Counter()
        self.turns: Counter[str] = Counter()
        self.scores: dict[str, float] = {}

    def end(self, id: str, trace: Trace) -> None:
        """An episode has ended, and is judged."""
        env = trace.environment
        self.ended[env, trace.validity] += 1
        self.turns[env] += len(trace.turns)
        self.scores[env] = self.scores.get(env, 0.0) + (trace.score or 0.0)
        if trace.failure is not None:
            self._fail(id, trace, trace.failure)

    def _fail(self, id: str, trace: Trace, failure: Failure) -> None:
        self.failed[trace.environment, failure.part, failure.kind] += 1
        count = self.failed[trace.environment, failure.part, failure.kind]
        if count & (count - 1) == 0:  # The 1st, 2nd, 4th, 8th, ...: many alike say no more than a few.
            _log.warning(
                "episode %r of %s, task %r, is void: %s %s: %s: %r (%d such so far)",
                id,
                trace.environment,
                trace.task,
                failure.part,
                failure.kind,
                failure.type,
                failure.message[:LONGEST],
                count,
            )
