"""The records of ended episodes on disk, `--out DIR`: a run folder of each environment, as `quintain run` leaves it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from quintain import codec
from quintain.record import EpisodeRecord, Key, PersistenceError, RunFolder, read_traces
from quintain.serve.journal.database import Past
from quintain.trace import Timing, Trace

_log = logging.getLogger(__name__)


class Archive:
    """Keeps what has ended. A run folder has each member and attempt of a task once, so members are numbered here.

    Args:
        folders: By the name of the environment; they stay the caller's to close.

    Raises:
        TraceError: A record in one of them is damaged.
    """

    def __init__(self, folders: Mapping[str, RunFolder]) -> None:
        self._folders = folders
        self._lock = asyncio.Lock()
        self._taken: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._free: Counter[tuple[str, str]] = Counter()
        self._moved: dict[tuple[str, Key], int] = {}  # Each has a record in its folder, which remembers that, too.
        for folder in folders.values():
            for trace in read_traces(folder.path):
                self._take(trace.environment, trace.task, trace.member)

    def member(self, env: str, task: str, wanted: int | None) -> int:
        """Which member of its task's group a new episode is: the one that is asked for, else the next that is free."""
        member = self._free[env, task] if wanted is None else wanted
        self._take(env, task, member)
        return member

    def _take(self, env: str, task: str, member: int) -> None:
        """A member is taken. All before the next free one are, so that only those beyond it are remembered singly."""
        free, beyond = self._free[env, task], self._taken[env, task]
        if member >= free:
            beyond.add(member)
        while free in beyond:
            beyond.remove(free)
            free += 1
        self._free[env, task] = free

    def recover(self, pasts: Iterable[Past]) -> None:
        """Keep what had ended when a process was killed, and was not kept yet; the members of what goes on are taken.

        Raises:
            PersistenceError: It cannot be kept.
        """
        pasts = list(pasts)
        for past in pasts:
            with contextlib.suppress(msgspec.DecodeError):  # It does not go on, and the host says so.
                if past.settled is None:
                    one = codec.loads(past.created.wanted, _Numbered)
                    self._take(one.environment, one.task, one.member)
        for trace in (codec.loads(past.settled, Trace) for past in pasts if past.settled is not None):
            folder = self._folders.get(trace.environment)
            if folder is not None and not self._has(folder, trace):
                self._add(EpisodeRecord(trace, Timing()))

    async def add(self, id: str, trace: Trace, timing: Timing) -> None:
        """Keep the record of an episode; when this returns it is on disk, or the log says why not."""
        try:
            async with self._lock:
                await asyncio.to_thread(self._add, EpisodeRecord(trace, timing))
        except PersistenceError as error:
            _log.error("the record of episode %r, task %r, is lost: %s", id, trace.task, error)

    def _has(self, folder: RunFolder, trace: Trace) -> bool:
        """Whether a record was kept, be it as another attempt."""
        number = trace.attempt
        while (known := folder.find((trace.task, trace.member, number))) is not None:
            if _same(known, trace):
                self._note(trace, number)
                return True
            number += 1
        return False

    def _note(self, trace: Trace, number: int) -> None:
        if number != trace.attempt:
            self._moved[trace.environment, (trace.task, trace.member, trace.attempt)] = number

    def _add(self, done: EpisodeRecord) -> None:
        """Write a record; where there is one of its numbers, such as of an earlier run, as another attempt.

        So is what it says of the episode after which it began, where that was written as another.
        """
        trace, folder = done.trace, self._folders[done.trace.environment]
        attempt = self._moved.get((trace.environment, (trace.task, trace.member, trace.attempt)), trace.attempt)
        while folder.find((trace.task, trace.member, attempt)) is not None:
            attempt += 1
        changed: dict[str, Any] = {"attempt": attempt}
        if trace.continues:
            before = (trace.environment, (trace.continues[0], trace.member, trace.continues[1]))
            changed["continues"] = (trace.continues[0], self._moved.get(before, trace.continues[1]))
        self._note(trace, attempt)
        folder.add(EpisodeRecord(msgspec.structs.replace(trace, **changed), done.timing))


def _same(known: Trace, trace: Trace) -> bool:
    """Whether this is the record as it was written, which may be under another number and after another one."""
    before = (trace.continues[0], known.continues[1]) if trace.continues and known.continues else trace.continues
    return known.to_bytes() == msgspec.structs.replace(trace, attempt=known.attempt, continues=before).to_bytes()


class _Numbered(msgspec.Struct):
    """What of a `Wanted` says which episode it is."""

    environment: str
    task: str
    member: int = 0
