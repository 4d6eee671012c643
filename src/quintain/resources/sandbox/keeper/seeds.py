"""The process that becomes bubblewrap. It is made before it is needed, for entering control groups may take 10 ms."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import signal
import socket
from typing import Any, NoReturn

from . import kernel

_HIGH = 100
"""Descriptors are moved up to here before they are put where the program expects them."""
_MOST = 32
_EVER = 1 << 20
"""More than the descriptors that a process has."""


class Seed:
    """A child of the keeper, in its control groups, that waits to be told what to become.

    Attributes:
        pid: Its number, and later bubblewrap's.
    """

    def __init__(self, doors: list[str], uid: int, *, is_time_fixed: bool) -> None:
        self._uid, self._parent, self._is_time_fixed = uid, os.getpid(), is_time_fixed
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.pid = os.fork()
            if self.pid == 0:
                self._wait(theirs.fileno(), doors)

    def grow(self, words: dict[str, Any], fds: list[int]) -> None:
        """Let it become `words["program"]` with `fds` as descriptors 0, 1, 2, 3..."""
        payload = memory(json.dumps(words).encode())
        try:
            socket.send_fds(self._line, [b"+"], [payload, *fds])
        finally:
            os.close(payload)
            self._line.close()

    def close(self) -> None:
        """It is not wanted: without its line it ends."""
        self._line.close()

    def _wait(self, fd: int, doors: list[str]) -> NoReturn:
        try:
            kernel.die_with(self._parent)
            # Nothing of other sandboxes may stay here: their lines would seem open as long as this process lives.
            os.dup2(fd, 3)
            os.closerange(4, _EVER)
            for ignored in (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and not by programs
                signal.signal(ignored, signal.SIG_DFL)
            for door in doors:
                entry = os.open(door, os.O_WRONLY)
                os.write(entry, b"0")
                os.close(entry)
            if self._is_time_fixed:
                kernel.unshare(kernel.NEWTIME)
            with socket.socket(fileno=3) as line:
                data, fds, _, _ = socket.recv_fds(line, 64, _MOST, socket.MSG_CMSG_CLOEXEC)
            if data:
                self._become(json.loads(os.pread(fds[0], os.fstat(fds[0]).st_size, 0)), fds[1:])
        except BaseException as error:  # noqa: BLE001  # this process is a copy of the keeper, and must not go on
            with contextlib.suppress(OSError):
                os.write(2, f"quintain: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(125)

    def _become(self, words: dict[str, Any], fds: list[int]) -> NoReturn:
        moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for fd in fds]
        for number, fd in enumerate(moved):
            os.dup2(fd, number)
        os.closerange(len(moved), _EVER)
        if self._is_time_fixed:
            kernel.fix_time()
        for name, limits in words["rlimits"].items():
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            soft, hard = (limit if hard == resource.RLIM_INFINITY else min(limit, hard) for limit in limits)
            resource.setrlimit(number, (soft, hard))
        if self._uid:
            os.setgroups([])
            os.setresgid(self._uid, self._uid, self._uid)
            os.setresuid(self._uid, self._uid, self._uid)
            kernel.die_with(self._parent)
        os.execve(words["program"], words["argv"], {})  # noqa: S606  # a shell has no place here


def memory(data: bytes) -> int:
    """A file in memory that holds this."""
    fd = os.memfd_create("quintain", os.MFD_CLOEXEC)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
