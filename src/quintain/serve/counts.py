"""What a server counts about its episodes, the failures that it says on its error stream, and the records it keeps."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from quintain.episode import Episode
from quintain.errors import Failure
from quintain.task import Task
from quintain.trace import Timing, Trace

from .archive import Archive

LONGEST = 300
"""Characters of a failure's message that are said; the record has all of it."""

_log = logging.getLogger(__name__)


class Counts:
    """Since the process began, by environment.

    Args:
        archive: Where records of ended episodes are kept; None where they go with their episodes.

    Attributes:
        begun: Episodes.
        ended: Episodes, by environment and validity.
        failed: Episodes, by environment and by part and kind of their failure.
        turns: Turns of ended episodes, of all roles.
        scores: Sum of the scores of valid episodes.
    """

    def __init__(self, archive: Archive | None = None) -> None:
        self._archive = archive
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

    def wants(self, trace: Trace) -> bool:
        """Whether the record of an episode that is closed is kept, and lacks an end or a verdict.

        One in which nobody did anything is none.
        """
        return self._archive is not None and bool(trace.turns) and not trace.criteria

    def number(self, env: str, task: Task[Any], *, member: int, attempt: int) -> dict[str, int]:
        """The numbers that a new episode has among those that are kept."""
        asked = {"member": member, "attempt": attempt}
        return asked if self._archive is None else self._archive.number(env, task.id, **asked, in_day=bool(task.day))

    async def keep(self, id: str, trace: Trace, episode: Episode[Any] | None) -> None:
        """Have the record of an ended episode kept, before anybody is told of the end."""
        if self._archive is not None:
            await self._archive.add(id, trace, episode.timing if episode is not None else Timing())

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
