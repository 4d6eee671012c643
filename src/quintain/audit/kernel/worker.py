"""Worker process, `python -m quintain.audit.kernel.worker IN OUT`: loads the subject once and forks for each probe.

A fork has the state of a fresh process after its imports, in milliseconds instead of hundreds of them, and one probe
cannot affect the next. Proofs are played in new workers (`child.py`).
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
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.mutants import swapping
from quintain.audit.mutants.loading import install
from quintain.errors import UsageError

from .loader import HELD, LoadedSubject, Subject, describe, load_subject
from .player import Player
from .probe import Op, Probe
from .registry import allow
from .wire import (
    EndFrame,
    LoadFrame,
    PlayFrame,
    Receiver,
    ResultFrame,
    StartFrame,
    StartStates,
    packed,
    reads_state,
    send,
)  # fmt: skip

_PR_SET_CHILD_SUBREAPER = 36
_MEMORY = 8 << 30  # address space of one probe, in bytes
GRACE_S = 0.3  # seconds in which processes may end that end with their parent, such as the supervisor of sandboxes


def main(inward: int, outward: int) -> None:
    """Loads the subject of the second frame, then plays the probes of the others until the pipe ends."""
    receiver = Receiver(inward)
    allow(receiver.receive(list[str]))
    wanted = receiver.receive(Subject)
    if sys.platform == "linux":  # Becomes the parent of orphaned descendants, so that they can be found and ended.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        if wanted.mutant is not None:
            install(wanted.mutant)
        opened = load_subject(wanted)
        about = _in_fork(inward, outward, opened)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the auditor receives it)
        send(outward, _unloaded(error))
        return
    if about:
        gc.collect()
        gc.freeze()
        _serve(inward, outward, receiver, opened=opened)


def _unloaded(error: BaseException) -> LoadFrame:
    known = isinstance(error, UsageError)
    return LoadFrame(error=str(error) if known else "".join(traceback.format_exception(error))[-4000:], usage=known)


def _serve(inward: int, outward: int, receiver: Receiver, *, opened: LoadedSubject) -> None:
    made: set[str] = set()
    starts = StartStates()
    while True:
        try:
            frame: PlayFrame = receiver.receive(PlayFrame)
        except EOFError:
            return
        probe = frame.probe
        if frame.stays:  # So that its forks find type hints, decoders and compiled statements ready.
            player = Player(opened.factory)
            player.play(probe.ops, lambda _: None)
            player.leave()
            gc.collect()
            gc.freeze()
            send(outward, EndFrame(0))
            continue
        tasks = list(dict.fromkeys(_tasks(probe.ops)))
        with contextlib.suppress(Exception):  # The fork meets the same, and says so.
            _warm(opened, tasks, made=made, starts=starts if reads_state(probe.ops) else None)
        if any(op.do == "ask" and op.name in (swapping.PLAY, swapping.SWAP) for op in probe.ops):
            swapping.index()
        for task in tasks if any(op.do == "state" for op in probe.ops) else ():
            if (unknown := starts.frame(task, frame.known)) is not None:
                send(outward, unknown)
        if not _play_in_fork(inward, outward, opened=opened, probe=probe, starts=starts):
            return


def _warm(opened: LoadedSubject, tasks: Iterable[str], *, made: set[str], starts: StartStates | None) -> None:
    """Prepares the tasks that this process has not prepared yet, and reads their start states if `starts` is given."""
    for task in tasks:
        if task in made and (starts is None or starts.find(task)):
            continue
        read = opened.warm(task)
        if read is not None and starts is not None:
            starts.add(task, read())
        if task not in made:
            made.add(task)
            swapping.forget()
        gc.freeze()  # A collection in a fork would copy the pages of all that was made here.


def _tasks(ops: Iterable[Op]) -> Iterator[str]:
    """Yields the tasks that ops begin; a probe function gets the name of its task as "task"."""
    for op in ops:
        if op.do == "reset":
            yield op.name
        elif op.do == "ask" and is_dict(op.value) and isinstance(op.value.get("task"), str):
            yield op.value["task"]
        for lane in op.lanes:
            yield from _tasks(lane)


def _in_fork(inward: int, outward: int, opened: LoadedSubject) -> bool:
    """Describes the subject in a fork, so that the template process never makes an instance."""
    pid = os.fork()
    if pid == 0:
        try:
            message = LoadFrame(describe(opened))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the auditor receives it)
            message = _unloaded(error)
        send(outward, message)
        os._exit(0 if not message.error else 1)
    return os.waitstatus_to_exitcode(_status(pid, inward)) == 0


def _play_in_fork(inward: int, outward: int, *, opened: LoadedSubject, probe: Probe, starts: StartStates) -> bool:
    """Plays a probe in a fork; False if the auditor is gone."""
    pid = os.fork()
    if pid == 0:
        _play(outward, opened, probe=probe, starts=starts)
    with contextlib.suppress(OSError):  # Both sides do it, so that it is done before anybody needs it.
        os.setpgid(pid, pid)
    status = _status(pid, inward)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    over = EndFrame(status, _reap())
    try:
        send(outward, over)
    except BrokenPipeError:
        return False
    return True


def _status(pid: int, inward: int) -> int:
    """Returns the exit status of a fork; a fork that hangs is killed when the auditor's pipe closes."""
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


def _play(outward: int, opened: LoadedSubject, *, probe: Probe, starts: StartStates) -> None:
    os.setpgid(0, 0)
    send(outward, StartFrame(os.getpid()))
    _limit_memory()
    if probe.context.elsewhere:
        place = tempfile.mkdtemp()  # in TMPDIR, which the auditor removes
        os.chdir(place)
        os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        os.environ["HOME"] = place
    player = Player(opened.factory)

    def play() -> None:
        begun: dict[str, str] = {}  # tasks by instance
        for op, seen in zip(probe.ops, player.each(probe.ops), strict=True):
            if op.do == "reset":
                begun[op.on] = op.name
            start = starts.find(begun.get(op.on, "")) if op.do == "state" and is_dict(seen.value) else None
            if start is None:
                send(outward, ResultFrame(seen))
            else:
                send(outward, ResultFrame(msgspec.structs.replace(seen, value=packed(seen.value, start[0])), start[1]))

    stop = _burn() if probe.context.loaded else None
    if probe.context.thread:
        thread = threading.Thread(target=play)
        thread.start()
        thread.join()
    else:
        play()
    if stop is not None:
        stop.set()
    if opened.kind in HELD:
        player.leave()
    sys.stdout.flush()
    os._exit(0)


def _burn() -> threading.Event:
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
