"""Records of ended episodes on disk, `--out DIR`: a run folder of each environment, as `quintain run` leaves it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from quintain import codec
from quintain.episode import Episode
from quintain.record import EpisodeRecord, Key, PersistenceError, RunFolder, read_traces
from quintain.serve.journal.database import Past
from quintain.trace import Timing, Trace

_log = logging.getLogger(__name__)


class FlightRecorder(Protocol):
    """Writer of what is in play in a run folder."""

    def follow(self, episode: Episode[Any], *, gone: bool) -> None:
        """Writes what an episode has played since the last call."""


class Archive:
    """Run folders for ended episodes by environment, which have each member and attempt of a task once.

    The caller closes them. A damaged record in one of them raises TraceError.

    Args:
        folders: By environment.
        recorders: By environment; empty if no folder says what is in play.
    """

    def __init__(self, folders: Mapping[str, RunFolder], recorders: Mapping[str, FlightRecorder] | None = None) -> None:
        self._folders, self._recorders = folders, recorders or {}
        self._lock = asyncio.Lock()
        self._taken: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._free: Counter[tuple[str, str]] = Counter()
        self._moved: dict[tuple[str, Key], int] = {}  # Each has a record in its folder, which remembers that, too.
        for folder in folders.values():
            for trace in read_traces(folder.path):
                self._take(trace.environment, trace.task, trace.member)

    def member(self, env: str, task: str, wanted: int | None) -> int:
        """Returns the number of a new episode in its task's group: the wanted one, else the next free one."""
        member = self._free[env, task] if wanted is None else wanted
        self._take(env, task, member)
        return member

    def _take(self, env: str, task: str, member: int) -> None:
        """Marks a member as taken; those before the next free one need no entry."""
        free, beyond = self._free[env, task], self._taken[env, task]
        if member >= free:
            beyond.add(member)
        while free in beyond:
            beyond.remove(free)
            free += 1
        self._free[env, task] = free

    def recover(self, pasts: Iterable[Past]) -> None:
        """Archives episodes that had ended when a process was killed; those that go on take their members."""
        pasts = list(pasts)
        for past in pasts:
            with contextlib.suppress(msgspec.DecodeError):  # It does not go on, and the host says so.
                if past.settled is None:
                    one = codec.loads(past.created.wanted, _Numbered)
                    self._take(one.environment, one.task, one.member)
        for trace in (codec.loads(past.settled, Trace) for past in pasts if past.settled is not None):
            if trace.environment in self._folders:
                self._add(EpisodeRecord(trace, Timing()), is_again=True)

    def follow(self, episode: Episode[Any], *, gone: bool) -> None:
        """Records what an episode has played since the last call."""
        if (recorder := self._recorders.get(episode.trace.environment)) is not None:
            recorder.follow(episode, gone=gone)

    async def add(self, id: str, done: EpisodeRecord) -> None:
        """Writes an episode to disk; a failure is logged."""
        try:
            async with self._lock:
                await asyncio.to_thread(self._add, done)
        except PersistenceError as error:
            _log.error("the record of episode %r, task %r, is lost: %s", id, done.trace.task, error)

    def _add(self, done: EpisodeRecord, *, is_again: bool = False) -> None:
        """Writes a record, as another attempt if its number is taken, unless one that comes again is there.

        Its reference to the episode that it continues follows the attempt under which that one was written. A fork
        leaves the number that it shares to its origin.
        """
        trace, folder = done.trace, self._folders[done.trace.environment]
        origin = (trace.task, trace.member, trace.attempt)
        first = trace.attempt + bool(trace.forked and trace.forked[:3] == origin)
        place = (trace.environment, (trace.task, trace.member, first))
        attempt = first if is_again else self._moved.get(place, first)
        while (known := folder.find((trace.task, trace.member, attempt))) is not None:
            if is_again and _same(known, trace):
                break
            attempt += 1
        if attempt != first:
            self._moved[place] = attempt
        if known is None:
            changed: dict[str, Any] = {"attempt": attempt}
            if trace.continues:
                before = (trace.environment, (trace.continues[0], trace.member, trace.continues[1]))
                changed["continues"] = (trace.continues[0], self._moved.get(before, trace.continues[1]))
            folder.add(msgspec.structs.replace(done, trace=msgspec.structs.replace(trace, **changed)))


def _same(known: Trace, trace: Trace) -> bool:
    """True if both are one record, which may have been written as another attempt."""
    before = (trace.continues[0], known.continues[1]) if trace.continues and known.continues else trace.continues
    return known.to_bytes() == msgspec.structs.replace(trace, attempt=known.attempt, continues=before).to_bytes()


class _Numbered(msgspec.Struct):
    """Fields of a `EpisodeSpec` that identify the episode."""

    environment: str
    task: str
    member: int = 0
