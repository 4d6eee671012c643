"""Child processes that are kept, by context, and handed out to whoever has a probe to play."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from .child import Child, SubjectBroken
from .loader import Subject
from .probe import OVERDUE, Context, Probe, Record

WORKERS = max(2, os.cpu_count() or 1)
_KEPT = 3 * WORKERS
"""Children that may wait for work."""
_SHORTEST_S = 0.5
"""Seconds that a probe has at least, where most of them hang."""


class Pool:
    """Plays probes of one subject, several at a time. Thread-safe.

    Args:
        subject: What to open.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._executor = ThreadPoolExecutor(WORKERS)
        self._played = self._overdue = 0

    def play(self, probe: Probe, limit: float) -> Record:
        """Play a probe in a fork of a child that has the subject loaded.

        Raises:
            SubjectBroken: The subject does not load in this context, or ends the process around the probe.
        """
        child = self._take(probe.context)
        try:
            record = child.play(probe, self._patience(limit))
        except SubjectBroken as error:
            child.close()
            return Record(probe.ops, (), str(error))
        except BaseException:
            child.close()
            raise
        self._give(child)
        self._count(record)
        return record

    def _patience(self, limit: float) -> float:
        """Seconds for a probe: ever fewer where at least half of them hang, so that the audit ends all the same.

        What is proven is played in fresh processes, which have all the time there is.
        """
        with self._lock:
            hangs = self._overdue > 1 and 2 * self._overdue >= self._played
            return max(min(limit, _SHORTEST_S), limit / 2 ** (self._overdue // 2)) if hangs else limit

    def _count(self, record: Record) -> None:
        with self._lock:
            self._played += 1
            self._overdue += record.died.startswith(OVERDUE)

    def fresh(self, probe: Probe, limit: float) -> Record:
        """Play it in a process that was started for it."""
        with Child(self.subject, probe.context) as child:
            try:
                return child.play(probe, limit)
            except SubjectBroken as error:
                return Record(probe.ops, (), str(error))

    def play_all(self, probes: Sequence[Probe], limit: float) -> list[Record]:
        """Play all, `WORKERS` at a time; records in the order of the probes."""
        return list(self._executor.map(self.play, probes, itertools.repeat(limit)))

    def fresh_all(self, probes: Sequence[Probe], limit: float) -> list[Record]:
        """The same, each in a process of its own."""
        return list(self._executor.map(self.fresh, probes, itertools.repeat(limit)))

    def _take(self, context: Context) -> Child:
        with self._lock:
            for place, child in enumerate(self._idle):
                if child.context == context:
                    return self._idle.pop(place)
        return Child(self.subject, context)

    def _give(self, child: Child) -> None:
        with self._lock:
            self._idle.append(child)
            old = self._idle.pop(0) if len(self._idle) > _KEPT else None
        if old is not None:
            old.close()

    def close(self) -> None:
        """End all children."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.close()
