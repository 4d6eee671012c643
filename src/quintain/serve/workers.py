"""Several processes behind one port, and one that sees to it that they live."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from quintain.errors import QuintainError

from .shard import Shard

QUICK_S = 2.0
"""A process that dies earlier than that was not able to live."""
TRIES = 5
"""Such deaths one after the other, before all is given up."""

AT_ONCE = signal.SIGQUIT
"""Tells a process to end at once. Not SIGTERM again: Ctrl-C, or who ends a group of processes, tells all of them the
first time already, so that each would hear twice what was said once."""

_ENDS = (signal.SIGTERM, signal.SIGINT)
_SIGNALS = (*_ENDS, signal.SIGHUP, signal.SIGCHLD)


class Berth(NamedTuple):
    """What a process is given.

    Attributes:
        shard: Which of them it is.
        line: On which all of them listen.
        ready: To be called when it takes requests.
        orphaned: A descriptor that can be read when nobody sees to it any more; None where nobody ever did.
    """

    shard: Shard
    line: socket.socket
    ready: Callable[[], None]
    orphaned: int | None


class Workers:
    """The processes.

    Args:
        count: How many.
        line: On which all of them listen.
        work: What each of them does until it is told to end by a signal.
    """

    def __init__(self, count: int, line: socket.socket, work: Callable[[Berth], None]) -> None:
        self._count = count
        self._line = line
        self._work = work
        self._lives: dict[int, tuple[int, float]] = {}
        self._orphaned, self._alive = os.pipe()
        self._quick_deaths = 0
        self._leaving = False
        self._status = 0

    def run(self, ready: Callable[[], None]) -> int:
        """Run them until they are told to end; the exit status.

        Args:
            ready: Told once all of them take requests.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        lines = [self._start(number) for number in range(self._count)]
        answers = [_answered(line) for line in lines]
        if all(answers):
            ready()
        else:
            signal.sigtimedwait(_ENDS, 0)  # Whoever told those that failed told this one, too.
            self._leave(signal.SIGTERM)
        while self._lives:
            number = signal.sigwait(_SIGNALS)
            if number == signal.SIGCHLD:
                self._bury()
            elif number == signal.SIGHUP:
                self._tell(number)
            else:
                self._leave(number)
        return self._status or int(not all(answers))

    def _start(self, number: int) -> int:
        """Start one; the descriptor on which it says that it is ready."""
        listening, saying = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(listening)
            os.close(self._alive)  # So that it closes when the process that started this one ends, however it does.
            self._live(Berth(Shard(number, self._count), self._line, lambda: _say(saying), self._orphaned))
        os.close(saying)
        self._lives[pid] = (number, time.monotonic())
        return listening

    def _live(self, berth: Berth) -> NoReturn:
        status = 1
        try:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # The keys are yet to be read.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            self._work(berth)
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except QuintainError as error:
            print(f"Error: {error}", file=sys.stderr)  # noqa: T201  # It ends here, and nobody else can say why.
            status = 2
        except BaseException:  # noqa: BLE001  # Nothing of this process may go on in what was forked.
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _bury(self) -> None:
        """See who has died; who was not told to is replaced, and his journal goes on."""
        while self._lives:
            pid, code = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            if pid not in self._lives:  # Of a process that is gone: as the first of a container we inherit all.
                continue
            number, born = self._lives.pop(pid)
            status = os.waitstatus_to_exitcode(code)
            if self._leaving:
                if -status not in _ENDS:  # One that was told before it could hear has nothing to say.
                    self._status = self._status or abs(status)
                continue
            self._quick_deaths = self._quick_deaths + 1 if time.monotonic() - born < QUICK_S else 0
            if self._quick_deaths >= TRIES:
                self._status = 1
                self._leave(signal.SIGTERM)
                continue
            print(f"worker {number} ended with {status}; another one takes its place", file=sys.stderr)  # noqa: T201
            os.close(self._start(number))

    def _leave(self, number: int) -> None:
        if self._leaving:
            self._status = self._status or 128 + number
            number = AT_ONCE
        self._leaving = True
        self._tell(number)

    def _tell(self, number: int) -> None:
        for pid in self._lives:
            os.kill(pid, number)


def _say(line: int) -> None:
    try:
        os.write(line, b".")
    except BrokenPipeError:
        return  # Nobody waits for one that takes another's place.
    finally:
        os.close(line)


def _answered(line: int) -> bool:
    """Whether a process has said that it is ready; waits for that, or for its end."""
    try:
        return os.read(line, 1) == b"."
    finally:
        os.close(line)
