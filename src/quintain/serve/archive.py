"""The records of ended episodes on disk, `--out DIR`: a run folder of each environment, as `quintain run` leaves it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from quintain import codec
from quintain.record import PersistenceError, Rollout, RunFolder, read_traces
from quintain.trace import Timing, Trace

from .journal import Past

_log = logging.getLogger(__name__)


class Archive:
    """Keeps what has ended. A run folder has each member and attempt of a task once, so they are numbered here.

    Args:
        folders: By the name of the environment; they stay the caller's to close.

    Raises:
        TraceError: A record in one of them is damaged.
    """

    def __init__(self, folders: Mapping[str, RunFolder]) -> None:
        self._folders = folders
        self._lock = asyncio.Lock()
        self._taken: defaultdict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
        self._free: Counter[tuple[str, str]] = Counter()
        for folder in folders.values():
            for trace in read_traces(folder.path):
                self._taken[trace.environment, trace.task].add((trace.member, trace.attempt))

    def number(self, env: str, task: str, *, member: int, attempt: int, in_day: bool) -> dict[str, int]:
        """The numbers of a new episode: those that are asked for, or the next that are free.

        Another episode of a task is another member of its group; in a day, where a member goes on in a world of his
        own, it is another attempt.
        """
        taken = self._taken[env, task]
        while (member, attempt) in taken:
            self._free[env, task] += 1
            free = self._free[env, task]
            member, attempt = (member, free) if in_day else (free, attempt)
        taken.add((member, attempt))
        return {"member": member, "attempt": attempt}

    def recover(self, pasts: Iterable[Past]) -> None:
        """Keep what had ended when a process was killed, and was not kept yet; the numbers of what goes on are taken.

        Raises:
            PersistenceError: It cannot be kept.
        """
        pasts = list(pasts)
        for one in (codec.loads(past.created.wanted, _Numbered) for past in pasts if past.settled is None):
            self._taken[one.environment, one.task].add((one.member, one.attempt))
        for trace in (codec.loads(past.settled, Trace) for past in pasts if past.settled is not None):
            folder = self._folders.get(trace.environment)
            if folder is None:
                continue
            known = folder.find((trace.task, trace.member, trace.attempt))
            if known is None or known.to_bytes() != trace.to_bytes():
                asked = {"member": trace.member, "attempt": trace.attempt}
                numbers = self.number(trace.environment, trace.task, **asked, in_day=bool(trace.after))
                folder.add(Rollout(msgspec.structs.replace(trace, **numbers), Timing()))

    async def add(self, id: str, trace: Trace, timing: Timing) -> None:
        """Keep the record of an episode; when this returns it is on disk, or the log says why not."""
        try:
            async with self._lock:
                await asyncio.to_thread(self._folders[trace.environment].add, Rollout(trace, timing))
        except PersistenceError as error:
            _log.error("the record of episode %r, task %r, is lost: %s", id, trace.task, error)


class _Numbered(msgspec.Struct):
    """What of a `Wanted` says which episode it is."""

    environment: str
    task: str
    member: int = 0
    attempt: int = 0
