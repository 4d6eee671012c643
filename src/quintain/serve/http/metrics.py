"""Metrics of a server, the failures that it logs, and the records that it keeps."""

from __future__ import annotations

import logging
from collections import Counter as Tally
from collections.abc import Collection
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge

from quintain.episode import Episode
from quintain.errors import Failure
from quintain.record import EpisodeRecord
from quintain.serve.episodes.archive import Archive
from quintain.trace import Trace

LONGEST = 300
"""Characters of a failure's message in the log; the record has all of it."""
VALIDITIES = ("valid", "invalid", "unknown")
"""Values of `Trace.validity`."""

_log = logging.getLogger(__name__)


class Metrics:
    """Prometheus metrics of all episodes since the server began.

    Args:
        environments: Their names.
        archive: Keeps records of ended episodes; None if records go with their episodes.

    Attributes:
        registry: The metrics.
    """

    def __init__(self, environments: Collection[str], archive: Archive | None = None) -> None:
        self._archive = archive
        self._alike: Tally[tuple[str, str, str]] = Tally()
        self.registry = CollectorRegistry()

        def metric(kind: type[Any], name: str, about: str, *labels: str) -> Any:
            return kind(f"quintain_{name}", about, ["environment", *labels], registry=self.registry)

        self._begun = metric(Counter, "episodes_begun", "Episodes begun.")
        self._ended = metric(Counter, "episodes_ended", "Episodes ended, by validity.", "validity")
        self._failed = metric(Counter, "failures", "Episodes without a reward, by who is to blame.", "kind", "part")
        self._turns = metric(Counter, "turns", "Turns of ended episodes.")
        self._scores = metric(Gauge, "scores", "Scores of valid episodes, added up.")
        for env in environments:  # A series that begins at 0 has its first increase seen.
            for each in (self._begun, self._turns, self._scores):
                each.labels(env)
            for validity in VALIDITIES:
                self._ended.labels(env, validity)

    def begin(self, env: str) -> None:
        """Counts an episode that has begun."""
        self._begun.labels(env).inc()

    def end(self, id: str, trace: Trace) -> None:
        """Counts an episode that has ended and is scored."""
        env = trace.environment
        self._ended.labels(env, trace.validity).inc()
        self._turns.labels(env).inc(len(trace.turns))
        self._scores.labels(env).inc(trace.score or 0.0)
        if trace.failure is not None:
            self._fail(id, trace, trace.failure)

    @property
    def keeps(self) -> bool:
        """True if records outlive their episodes."""
        return self._archive is not None

    def wants(self, trace: Trace) -> bool:
        """True if the record of an episode that is closed is kept and lacks an end or a verdict.

        An episode without a turn leaves no record.
        """
        return self.keeps and bool(trace.turns) and not trace.criteria

    def member(self, env: str, task: str, wanted: int | None) -> int:
        """Returns the number of a new episode among the kept ones of its task."""
        return (wanted or 0) if self._archive is None else self._archive.member(env, task, wanted)

    def follow(self, episode: Episode[Any], *, gone: bool) -> None:
        """Records what an open episode has played, where records are kept."""
        if self._archive is not None:
            self._archive.follow(episode, gone=gone)

    async def keep(self, id: str, done: EpisodeRecord) -> None:
        """Keeps an ended episode, before any client gets the end."""
        if self._archive is not None:
            await self._archive.add(id, done)

    def _fail(self, id: str, trace: Trace, failure: Failure) -> None:
        alike = (trace.environment, failure.kind, failure.component)
        self._failed.labels(*alike).inc()
        self._alike[alike] += 1
        count = self._alike[alike]
        if count & (count - 1) == 0:  # The 1st, 2nd, 4th, 8th, ...: many alike say no more than a few.
            _log.warning(
                "episode %r of %s, task %r, is void: %s %s: %s: %r (%d such so far)",
                id,
                trace.environment,
                trace.task,
                failure.component,
                failure.kind,
                failure.type,
                failure.message[:LONGEST],
                count,
            )
