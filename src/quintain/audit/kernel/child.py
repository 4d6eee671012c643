"""Parent side of worker processes: starts, times and kills each with all its descendants; a pool of them by context."""

from __future__ import annotations

import collections
import contextlib
import heapq
import itertools
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

import msgspec

from quintain.errors import QuintainError, UsageError

from . import wire
from .clock_skew import variables
from .loader import NO_TASKS, About, Made, Subject, merged
from .probe import HOME, OVERDUE, Op, OpResult, Probe, ProcessContext, Record, waits
from .registry import foreign_modules

T = TypeVar("T")
R = TypeVar("R")
WORKERS = max(2, os.cpu_count() or 1)
_IDLE = 3 * WORKERS  # number of idle children to keep
_THREADS = 32 * WORKERS  # number of probes that can wait for a core; a proof must not queue up behind it
_SHORTEST_S = 0.5  # shortest time limit of a probe, in seconds, if most of them hang
LOAD_S = 120.0  # time limit for loading a subject, in seconds


class SubjectBroken(QuintainError):
    """Error of a subject that cannot be run at all; the message holds its output."""


class Child:
    """Process that has loaded the subject in a context.

    `walked` holds the ops that the process itself has played, `tasks` those that its forks have begun. An environment
    is described with the tasks in `made`. Raises UsageError if the subject does not exist, and
    SubjectBroken if it does not load.
    """

    def __init__(
        self,
        wanted: Subject,
        context: ProcessContext = HOME,
        store: wire.StartStore | None = None,
        *,
        made: Made = NO_TASKS,
    ) -> None:
        self._store = wire.StartStore() if store is None else store
        self._index = wanted.index
        self.context = context
        self.walked: tuple[Op, ...] = ()
        self.tasks: set[str] = set()
        self._folder = tempfile.mkdtemp(prefix="quintain-audit-")
        self._words: collections.deque[bytes] = collections.deque(maxlen=8)
        self._start(wanted.env)
        try:
            wire.send(self._to, foreign_modules())
            wire.send(self._to, wanted)
            wire.send(self._to, made)
            self.about = self._opened()
        except BaseException:
            self.close()
            raise

    def _start(self, env: Sequence[str]) -> None:
        read, self._to = os.pipe()
        self._from, write = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "quintain.audit.kernel.worker", str(read), str(write)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(read, write),
            env=_environment(self.context, self._folder, env),
            start_new_session=True,
        )
        os.close(read)
        os.close(write)
        self._receiver = wire.Receiver(self._from)
        self._drain = threading.Thread(target=self._listen, daemon=True)
        self._drain.start()

    def _listen(self) -> None:
        """Keeps only the last output, so that a subject that prints megabytes fills no memory."""
        assert self._process.stdout is not None
        while chunk := os.read(self._process.stdout.fileno(), 4096):
            self._words.append(chunk)

    @property
    def words(self) -> str:
        return b"".join(self._words).decode(errors="replace")[-4000:]

    def _opened(self) -> About:
        try:
            frame: wire.LoadFrame = self._receiver.receive(wire.LoadFrame, time.monotonic() + LOAD_S)
        except TimeoutError:
            raise SubjectBroken(f"the subject did not load within {LOAD_S:.0f} s; it printed: {self.words}") from None
        except EOFError:
            self._process.wait()
            self._drain.join(2)
            raise SubjectBroken(f"the subject ended the process that loaded it; it printed: {self.words}") from None
        if frame.error:
            raise (UsageError if frame.usage else SubjectBroken)(frame.error)
        return msgspec.convert(frame.about, About)

    def walk(self, ops: Sequence[Op]) -> None:
        """Plays ops in the process itself, once, so that later probes find its caches filled."""
        self.walked = tuple(ops)
        try:
            wire.send(self._to, wire.PlayFrame([Probe(self.walked)], [], self._index, stays=True))
            self._receiver.receive(wire.Frame, time.monotonic() + LOAD_S)
        except (EOFError, BrokenPipeError, TimeoutError):
            self.close()
            raise SubjectBroken(f"the subject did not play an episode; it printed: {self.words}") from None

    def play(self, probe: Probe, limit: float) -> Record:
        """Plays a probe as `play_in_one` does."""
        return self.play_in_one((probe,), limit)[0]

    def play_in_one(self, probes: Sequence[Probe], limit: float) -> list[Record]:
        """Plays probes in one fork, each within `limit` seconds.

        Where the fork died, the last record says so. Raises SubjectBroken if the process that plays probes is gone.
        """
        seen: list[OpResult] = []
        ends = list(itertools.accumulate(len(probe.ops) for probe in probes))
        until = time.monotonic() + limit
        pid, died = 0, ""
        starts = self._store.known()
        try:
            wire.send(self._to, wire.PlayFrame(list(probes), list(starts), self._index))
            while True:
                try:
                    frame: Any = self._receiver.receive(wire.Frame, until)
                except TimeoutError:
                    if died:
                        raise SubjectBroken(f"{died}, and could not be ended") from None
                    died, until = f"{OVERDUE} {limit:.3g} s", time.monotonic() + 10
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(pid, signal.SIGKILL) if pid else None
                    continue
                if isinstance(frame, wire.StartStateFrame):
                    view = wire.unpacked(frame.view, starts[frame.near]) if frame.near else frame.view
                    starts[frame.digest] = view
                    self._store.add(frame.digest, view)
                elif isinstance(frame, wire.StartFrame):
                    pid = frame.pid
                elif isinstance(frame, wire.ResultFrame):
                    one = msgspec.convert(frame.seen, OpResult)
                    value = wire.unpacked(one.value, starts[frame.start]) if frame.start else one.value
                    seen.append(msgspec.structs.replace(one, value=value))
                    until = time.monotonic() + limit if len(seen) in ends else until
                elif isinstance(frame, wire.EndFrame):
                    code = os.waitstatus_to_exitcode(frame.status)
                    how = f"it ended the process with {code}" if code else ""
                    how = f"the process was killed by {signal.Signals(-code).name}" if code < 0 else how
                    parts = [tuple(seen[end - len(probe.ops) : end]) for probe, end in zip(probes, ends, strict=True)]
                    records = [Record(probe.ops, part) for probe, part in zip(probes, parts, strict=True)]
                    return [*records[:-1], Record(probes[-1].ops, parts[-1], died or how, frame.left)]
        except (EOFError, BrokenPipeError):
            raise SubjectBroken(f"the subject killed the process around it; it printed: {self.words}") from None

    def close(self) -> None:
        for fd in (self._to, self._from):
            with contextlib.suppress(OSError):
                os.close(fd)
        with contextlib.suppress(subprocess.TimeoutExpired):  # It ends when its pipe closes, or is killed.
            self._process.wait(2)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._drain.join(2)
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_KEPT = ("PATH", "VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH", "HOME", "XDG_CACHE_HOME", "USER", "LOGNAME")


def _environment(context: ProcessContext, folder: str, further: Sequence[str]) -> dict[str, str]:
    """Returns few environment variables, so that the context decides what a subject reads there."""
    kept = {name: os.environ[name] for name in (*_KEPT, *further) if name in os.environ}
    kept |= {name: value for name, value in os.environ.items() if name.startswith("QUINTAIN_")}
    settings = {"PYTHONHASHSEED": str(context.hash_seed), "TZ": context.zone, "LC_ALL": context.locale}
    settings |= {"TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    if context.elsewhere:
        settings |= {"USER": "somebody", "LOGNAME": "somebody", "COLUMNS": "43"}
    return kept | settings | variables(context.days)


class _Cores:
    """Cores that go to the most urgent of those who wait."""

    def __init__(self, count: int) -> None:
        self._lock, self._free, self._numbers = threading.Lock(), count, itertools.count()
        self._waiting: list[tuple[int, int, threading.Event]] = []

    @contextlib.contextmanager
    def one(self, rank: int) -> Generator[None]:
        """Takes a core, the lowest rank first."""
        turn = threading.Event()
        with self._lock:
            heapq.heappush(self._waiting, (rank, next(self._numbers), turn))
            self._hand_out()
        turn.wait()
        try:
            yield
        finally:
            with self._lock:
                self._free += 1
                self._hand_out()

    def _hand_out(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            heapq.heappop(self._waiting)[-1].set()


class WorkerPool:
    """Pool that plays probes of one subject, several at a time. Thread-safe.

    A process makes a task by the index in `subject.index`, which grows.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._kept = _IDLE
        self._store = wire.StartStore()
        self._executor = ThreadPoolExecutor(_THREADS)
        self._cores, self._places = _Cores(WORKERS), _Cores(2 * WORKERS)  # the second for probes that wait
        self._played = self._overdue = 0

    def describe(self, tasks: int, seconds: float = math.inf) -> About:
        """Describes the subject with a number of tasks; each process makes a share of them."""
        every = (Made(tasks, seconds, (number, WORKERS)) for number in range(WORKERS))
        return merged(list(self._executor.map(self._start, every)))

    def _start(self, made: Made) -> About:
        child = Child(self.subject, HOME, self._store, made=made)
        with self._lock:
            self._idle.append(child)
        return child.about

    def play(self, probe: Probe, limit: float, walked: tuple[Op, ...] = (), *, rank: int = 0) -> Record:
        return self.play_in_one((probe,), limit, walked, rank=rank)[0]

    def play_in_one(
        self, probes: Sequence[Probe], limit: float, walked: tuple[Op, ...] = (), *, rank: int = 0
    ) -> list[Record]:
        """Plays probes in one fork of a child that has loaded the subject; a record's `died` reports a broken one.

        Of probes that wait for a core, those of the lowest rank go first.
        If the fork dies, or leaves processes, each probe is played again in a fork of its own.
        The child has played the ops in `walked` once, and nothing else. If half of the probes hang, the limit is
        halved step by step; proofs are played in fresh processes, which always have the whole limit.
        """
        leaving: Child | None = None
        try:
            with self._core(probes, rank):
                leaving = child = self._take(probes, walked if probes[0].context == HOME else ())
                with self._lock:
                    hangs = self._overdue > 1 and 2 * self._overdue >= self._played
                    shorter = max(min(limit, _SHORTEST_S), limit / 2 ** (self._overdue // 2))
                records = child.play_in_one(probes, shorter if hangs else limit)
            with self._lock:
                self._played += len(probes)
                self._overdue += records[-1].died.startswith(OVERDUE)
                self._idle.append(child)
                leaving = self._idle.pop(0) if len(self._idle) > self._kept else None
        except SubjectBroken as error:
            records = [Record(probe.ops, (), str(error)) for probe in probes]
        finally:
            if leaving is not None:
                leaving.close()
        is_whole = len(probes) == 1 or not (records[-1].died or records[-1].left)
        return records if is_whole else [self.play(probe, limit, walked, rank=rank) for probe in probes]

    def fresh(self, probes: Sequence[Probe], limit: float, *, rank: int = 0) -> list[Record]:
        """Plays probes of one context in forks of a process that has played nothing."""
        records: list[Record] = []
        with self._core(probes, rank), Child(self.subject, probes[0].context, self._store) as child:
            for probe in probes:
                try:
                    records.append(child.play(probe, limit))
                except SubjectBroken as error:
                    records.append(Record(probe.ops, (), str(error)))
        return records

    def _core(self, probes: Sequence[Probe], rank: int) -> contextlib.AbstractContextManager[object]:
        """Returns a context in which one of the cores is taken; probes that wait take none of them."""
        return (self._places if any(waits(probe.ops) for probe in probes) else self._cores).one(rank)

    def each(self, play: Callable[[T], R], some: Sequence[T]) -> list[R]:
        """Plays probes by a function, as many at a time as there are cores for; returns records in the same order."""
        return list(self._executor.map(play, some))

    def _take(self, probes: Sequence[Probe], walked: tuple[Op, ...]) -> Child:
        """Returns a child that has played nothing or `walked`, best one that has read the start states of the tasks."""
        context = probes[0].context
        tasks = {op.name for probe in probes for op in probe.ops if op.do == "reset"}
        with self._lock:
            some = [one for one in self._idle if one.context == context and one.walked in (walked, ())]
            child = max(some, key=lambda one: (len(one.walked), len(one.tasks & tasks)), default=None)
            if child is not None:
                self._idle.remove(child)
        child = Child(self.subject, context, self._store) if child is None else child
        if walked and not child.walked:
            child.walk(walked)
        child.tasks |= tasks
        return child

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            idle, self._idle, self._kept = self._idle, [], 0
        for child in idle:
            child.close()
