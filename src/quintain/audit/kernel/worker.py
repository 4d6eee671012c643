"""Worker process, `python -m quintain.audit.kernel.worker IN OUT`: loads the subject once and forks for each probe.

A fork has the state of a fresh process after its imports, in milliseconds instead of hundreds of them, and one probe
cannot affect the next. Proofs are played in new workers (`child.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import select
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.mutants.loading import install
from quintain.errors import UsageError

from . import wire
from .loader import HELD, LoadedSubject, Made, Subject, describe, load_subject
from .player import Player
from .probe import Op, Probe
from .registry import allow

_PR_SET_CHILD_SUBREAPER = 36
_MEMORY = 8 << 30  # address space of one probe, in bytes
GRACE_S = 0.3  # seconds in which processes may end that end with their parent, such as the supervisor of sandboxes


def main(inward: int, outward: int) -> None:
    """Loads the subject of the second frame, describes it with the tasks of the third, and plays probes."""
    receiver = wire.Receiver(inward)
    allow(receiver.receive(list[str]))
    wanted, made = receiver.receive(Subject), receiver.receive(Made)
    if sys.platform == "linux":  # Becomes the parent of orphaned descendants, so that they can be found and ended.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    try:
        if wanted.mutant is not None:
            install(wanted.mutant)
        worker = _Worker(inward, outward, load_subject(wanted), index=wanted.index)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the auditor receives it)
        wire.send(outward, _unloaded(error))
        return
    if worker.describes(made):
        worker.serve(receiver)


class _Worker:
    """Process that has loaded the subject."""

    def __init__(self, inward: int, outward: int, opened: LoadedSubject, *, index: dict[str, int]) -> None:
        self._in, self._out, self._opened, self._index = inward, outward, opened, index
        self._made: set[str] = set()
        self._starts = wire.StartStates()

    def describes(self, made: Made) -> bool:
        """Describes the subject in a fork, so that the template process never makes an instance."""
        pid = os.fork()
        if pid == 0:
            try:
                message = wire.LoadFrame(describe(self._opened, made))
            except (Exception, SystemExit) as error:  # noqa: BLE001 (the auditor receives it)
                message = _unloaded(error)
            self._send(message)
            os._exit(0 if not message.error else 1)
        return os.waitstatus_to_exitcode(self._status(pid)) == 0

    def serve(self, receiver: wire.Receiver) -> None:
        """Plays probes until the pipe ends."""
        _freeze()
        with contextlib.suppress(EOFError, BrokenPipeError):
            while True:
                frame: wire.PlayFrame = receiver.receive(wire.PlayFrame)
                self._index.update(frame.index)
                if frame.stays:  # So that its forks find type hints, decoders and compiled statements ready.
                    player = Player(self._opened.factory)
                    player.play(frame.probes[0].ops, lambda _: None)
                    player.leave()
                    _freeze()
                    self._send(wire.EndFrame(0))
                else:
                    self._prepare(frame)
                    self._play_in_fork(frame.probes)

    def _send(self, frame: wire.Frame) -> None:
        wire.send(self._out, frame)

    def _prepare(self, frame: wire.PlayFrame) -> None:
        """Prepares tasks that this process has not prepared yet, and reads and sends their start states if needed."""
        ops = [op for probe in frame.probes for op in probe.ops]
        tasks, is_read = list(dict.fromkeys(_tasks(ops))), wire.reads_state(ops)
        with contextlib.suppress(Exception):  # The fork meets the same, and says so.
            for task in tasks:
                if task in self._made and not (is_read and not self._starts.find(task)):
                    continue
                read = self._opened.warm(task)
                if read is not None and is_read:
                    self._starts.add(task, read())
                self._made.add(task)
                gc.freeze()
        for task in tasks if any(op.do == "state" for op in ops) else ():
            if (unknown := self._starts.frame(task, frame.known)) is not None:
                self._send(unknown)

    def _play_in_fork(self, probes: Sequence[Probe]) -> None:
        pid = os.fork()
        if pid == 0:
            self._play(probes)
        with contextlib.suppress(OSError):  # Both sides do it, so that it is done before anybody needs it.
            os.setpgid(pid, pid)
        status = self._status(pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        self._send(wire.EndFrame(status, _reap()))

    def _status(self, pid: int) -> int:
        """Returns the exit status of a fork; a fork that hangs is killed when the auditor's pipe closes."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # A kernel before 5.3 cannot wait for both.
                ended = os.pidfd_open(pid)
                poll = select.poll()
                poll.register(ended, select.POLLIN)
                poll.register(self._in, 0)  # Only that its other side is gone.
                if all(fd != ended for fd, _ in poll.poll()):
                    os.kill(pid, signal.SIGKILL)
                os.close(ended)
        return os.waitpid(pid, 0)[1]

    def _play(self, probes: Sequence[Probe]) -> None:
        """Plays probes of one context, each with instances of its own, and ends the process."""
        os.setpgid(0, 0)
        self._send(wire.StartFrame(os.getpid()))
        _limit_memory()
        context = probes[0].context
        if context.elsewhere:
            place = tempfile.mkdtemp()  # in TMPDIR, which the auditor removes
            os.chdir(place)
            os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))
            os.environ["HOME"] = place
        players = [Player(self._opened.factory) for _ in probes]

        def play() -> None:
            for player, probe in zip(players, probes, strict=True):
                self._show(probe, player)
                player.snapshots.clear()

        stop = threading.Event()
        for _ in range((os.cpu_count() or 1) + 1 if context.loaded else 0):
            threading.Thread(target=_burn, args=(stop,), daemon=True).start()
        if context.thread:
            thread = threading.Thread(target=play)
            thread.start()
            thread.join()
        else:
            play()
        stop.set()
        for player in players if self._opened.kind in HELD else ():
            player.leave()
        sys.stdout.flush()
        os._exit(0)

    def _show(self, probe: Probe, player: Player) -> None:
        """Plays a probe and sends the result of each op."""
        begun: dict[str, str] = {}  # tasks by instance
        for op, seen in zip(probe.ops, player.each(probe.ops), strict=True):
            if op.do == "reset":
                begun[op.on] = op.name
            is_state = op.do == "state" and is_dict(seen.value)
            start = self._starts.find(begun.get(op.on, "")) if is_state else None
            value = seen.value if start is None else wire.packed(seen.value, start[0])
            found = msgspec.structs.replace(seen, value=value)
            self._send(wire.ResultFrame(found, "" if start is None else start[1]))


def _unloaded(error: BaseException) -> wire.LoadFrame:
    known = isinstance(error, UsageError)
    words = str(error) if known else "".join(traceback.format_exception(error))[-4000:]
    return wire.LoadFrame(error=words, usage=known)


def _freeze() -> None:
    """Collects garbage, because a collection in a fork would copy the pages of all that is here."""
    gc.collect()
    gc.freeze()


def _tasks(ops: Iterable[Op]) -> Iterator[str]:
    """Yields the tasks that ops begin; a probe function gets the name of its task as "task"."""
    for op in ops:
        if op.do == "reset":
            yield op.name
        elif op.do == "ask" and is_dict(op.value) and isinstance(op.value.get("task"), str):
            yield op.value["task"]
        for lane in op.lanes:
            yield from _tasks(lane)


def _burn(stop: threading.Event) -> None:
    """Keeps a core busy, as a training machine does."""
    while not stop.is_set():
        sum(range(10_000))


def _limit_memory() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
    if soft == resource.RLIM_INFINITY or soft > wanted:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _reap() -> int:
    """Kills the processes that a probe left behind, unless they end in GRACE_S seconds; returns their number."""
    count = 0
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    until = time.monotonic() + GRACE_S
    while children.is_file() and children.read_text("ascii").split() and time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.005)
    while children.is_file() and (pids := children.read_text("ascii").split()):
        for pid in map(int, pids):
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            count += 1
    return count


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
