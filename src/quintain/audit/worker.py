"""The child, `python -m quintain.audit.worker IN OUT`: loads the subject once, plays each probe in a fork of itself.

A fork has what a fresh process has after its imports, for a few milliseconds instead of a few hundred; and one probe
cannot spoil the next. What is to be *proved* is played in workers that are fresh themselves (`child.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

from quintain.errors import UsageError

from .loader import HELD, LoadedSubject, Subject, describe, load_subject
from .mutants import swapping
from .mutants.loading import install
from .player import Player
from .probe import Op, OpResult, Probe
from .wire import Begun, Opening, Over, Receiver, Saw, send

_PR_SET_CHILD_SUBREAPER = 36
_MEMORY = 8 << 30
"""Bytes of address space of one probe."""


def main(inward: int, outward: int) -> None:
    """Load what the first frame names, then play the probes of the others until the pipe ends."""
    receiver = Receiver(inward)
    wanted = receiver.receive(Subject)
    _adopt_orphans()
    try:
        if wanted.mutant is not None:
            install(wanted.mutant)
        opened = load_subject(wanted)
        about = _in_fork(inward, outward, opened)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (it is told to the auditor)
        known = isinstance(error, UsageError)
        told = str(error) if known else "".join(traceback.format_exception(error))[-4000:]
        send(outward, Opening(error=told, usage=known))
        return
    if not about:
        return
    gc.collect()
    gc.freeze()
    made: set[str] = set()
    while True:
        try:
            probe = receiver.receive(Probe)
        except EOFError:
            return
        tasks = {op.name for op in _all(probe.ops) if op.do == "reset"} - made
        made |= tasks
        with contextlib.suppress(Exception):  # The fork meets the same, and says so.
            opened.warm(sorted(tasks))
        if tasks:
            swapping.forget()
        if any(op.do == "ask" and op.name in (swapping.PLAY, swapping.SWAP) for op in probe.ops):
            swapping.index()
        if not _play_in_fork(inward, outward, opened=opened, probe=probe):
            return


def _all(ops: Iterable[Op]) -> Iterator[Op]:
    for op in ops:
        yield op
        for lane in op.lanes:
            yield from _all(lane)


def _in_fork(inward: int, outward: int, opened: LoadedSubject) -> bool:
    """Let a fork say what the subject is, so that the template never makes an instance."""
    pid = os.fork()
    if pid == 0:
        try:
            message = Opening(describe(opened))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (it is told to the auditor)
            known = isinstance(error, UsageError)
            told = str(error) if known else "".join(traceback.format_exception(error))[-4000:]
            message = Opening(error=told, usage=known)
        send(outward, message)
        os._exit(0 if not message.error else 1)
    return os.waitstatus_to_exitcode(_status(pid, inward)) == 0


def _play_in_fork(inward: int, outward: int, *, opened: LoadedSubject, probe: Probe) -> bool:
    """Whether there is still somebody to play for."""
    pid = os.fork()
    if pid == 0:
        _play(outward, opened, probe)
    with contextlib.suppress(OSError):  # Both sides do it, so that it is done before anybody needs it.
        os.setpgid(pid, pid)
    status = _status(pid, inward)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    over = Over(status, _reap())
    try:
        send(outward, over)
    except BrokenPipeError:
        return False
    return True


def _status(pid: int, inward: int) -> int:
    """How a fork ended. One that hangs ends with the auditor, also with one that was killed and could end nothing."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # A kernel before 5.3 cannot wait for both.
            ended = os.pidfd_open(pid)
            poll = select.poll()
            poll.register(ended, select.POLLIN)
            poll.register(inward, 0)  # Only that its other side is gone.
            if all(fd != ended for fd, _ in poll.poll()):
                os.kill(pid, signal.SIGKILL)
            os.close(ended)
    return os.waitpid(pid, 0)[1]


def _play(outward: int, opened: LoadedSubject, probe: Probe) -> None:
    """Play and never return."""
    os.setpgid(0, 0)
    send(outward, Begun(os.getpid()))
    _limit_memory()
    if probe.context.elsewhere:
        _move()
    lock = threading.Lock()

    def seen(one: OpResult) -> None:
        with lock:
            send(outward, Saw(one))

    player = Player(opened.factory)
    stop = _burn() if probe.context.loaded else None
    if probe.context.thread:
        thread = threading.Thread(target=player.play, args=(probe.ops, seen))
        thread.start()
        thread.join()
    else:
        player.play(probe.ops, seen)
    if stop is not None:
        stop.set()
    if opened.kind in HELD:
        player.leave()
    sys.stdout.flush()
    os._exit(0)


def _move() -> None:
    """Another working folder, another home."""
    place = tempfile.mkdtemp()  # in TMPDIR, which the auditor removes
    os.chdir(place)
    os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    os.environ["HOME"] = place


def _burn() -> threading.Event:
    """Keep every core busy, as a training machine does."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            sum(range(10_000))

    for _ in range((os.cpu_count() or 1) + 1):
        threading.Thread(target=spin, daemon=True).start()
    return stop


def _limit_memory() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
    if soft == resource.RLIM_INFINITY or soft > wanted:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _adopt_orphans() -> None:
    """Become the parent of processes whose own parent has gone, so that they can be found and ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap() -> int:
    """End whatever a probe left behind; how many processes that were."""
    count = 0
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while children.is_file() and (pids := children.read_text("ascii").split()):
        for pid in map(int, pids):
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            count += 1
    return count


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
