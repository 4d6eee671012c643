"""Pool of worker processes by context."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from .child import Child, SubjectBroken
from .loader import Subject
from .probe import HOME, OVERDUE, Op, Probe, ProcessContext, Record
from .start_states import StartStore

WORKERS = max(2, os.cpu_count() or 1)
_KEPT = 3 * WORKERS
"""Number of idle children to keep."""
_SHORTEST_S = 0.5
"""Shortest time limit of a probe, in seconds, if most of them hang."""


class WorkerPool:
    """Pool that plays probes of one subject, several at a time. Thread-safe.

    Args:
        subject: Subject to load.

    Attributes:
        walked: Ops that a process plays once itself before it plays probes, unless these are `cold`.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._kept = _KEPT
        self._store = StartStore()
        self._executor = ThreadPoolExecutor(WORKERS)
        self._played = self._overdue = 0
        self.walked: tuple[Op, ...] = ()

    def play(self, probe: Probe, limit: float, *, cold: bool = True) -> Record:
        """Plays a probe in a fork of a child that has loaded the subject; a record's `died` reports a broken one.

        Args:
            probe: The probe.
            limit: Seconds for the whole probe.
            cold: Play it in a fork of a process that has played nothing.
        """
        try:
            child = self._take(probe.context, () if cold or probe.context != HOME else self.walked)
        except SubjectBroken as error:
            return Record(probe.ops, (), str(error))
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
        """Returns the seconds for a probe, halved step by step if at least half of the probes hang.

        Proofs are played in fresh processes, which always have the whole limit.
        """
        with self._lock:
            hangs = self._overdue > 1 and 2 * self._overdue >= self._played
            return max(min(limit, _SHORTEST_S), limit / 2 ** (self._overdue // 2)) if hangs else limit

    def _count(self, record: Record) -> None:
        with self._lock:
            self._played += 1
            self._overdue += record.died.startswith(OVERDUE)

    def fresh(self, probe: Probe, limit: float) -> Record:
        """Plays a probe in a new process."""
        with Child(self.subject, probe.context, self._store) as child:
            try:
                return child.play(probe, limit)
            except SubjectBroken as error:
                return Record(probe.ops, (), str(error))

    def each(self, play: Callable[[Probe], Record], probes: Sequence[Probe]) -> list[Record]:
        """Plays probes by a function, `WORKERS` at a time, and returns records in the same order."""
        return list(self._executor.map(play, probes))

    def _take(self, context: ProcessContext, walked: tuple[Op, ...]) -> Child:
        with self._lock:
            for place, child in enumerate(self._idle):
                if child.context == context and child.walked == walked:
                    return self._idle.pop(place)
        child = Child(self.subject, context, self._store)
        if walked:
            child.walk(walked)
        return child

    def _give(self, child: Child) -> None:
        with self._lock:
            self._idle.append(child)
            old = self._idle.pop(0) if len(self._idle) > self._kept else None
        if old is not None:
            old.close()

    def close(self) -> None:
        """Ends all children."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            idle, self._idle, self._kept = self._idle, [], 0
        for child in idle:
            child.close()
