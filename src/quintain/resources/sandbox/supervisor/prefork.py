"""The process that becomes bubblewrap. It is made before it is needed, and does beforehand what takes long.

To enter control groups may take 10 ms, a network namespace and the mounts of a root take one or two. What depends on
the program is left: its clock, its limits, its descriptors, and bubblewrap itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import signal
import socket
from collections.abc import Iterator
from typing import Any, NoReturn

from . import kernel
from .roots import Root

_STATUS, _HOLD, _FILTER, _OPTIONS = range(100, 104)
"""Bubblewrap's own descriptors: where it says what it does, waits, and reads the filter and its options. The program's
are below them."""
_MOST = 32
_EVER = 1 << 20
"""More than the descriptors that a process has."""


class PreforkedChild:
    """Child of the supervisor, in its control groups and namespaces, that waits for its program.

    The namespaces are those that take long to make and that bubblewrap would make in the same way: of the network, of
    IPC, and of mounts with the root of the program.

    Attributes:
        pid: Its number, and later bubblewrap's.
    """

    def __init__(
        self, box: str, uid: int, *, procs_files: list[str], ends: tuple[int, int], root: Root, is_time_fixed: bool
    ) -> None:
        """`box` is the sandbox's folder; `ends` are those of two pipes, for bubblewrap: to speak, and to wait."""
        self._box, self._uid, self._parent, self._is_time_fixed = box, uid, os.getpid(), is_time_fixed
        self._root = root
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.pid = os.fork()
            if self.pid == 0:
                self._wait(theirs.fileno(), procs_files, ends)

    def grow(self, message: int, fds: list[int]) -> None:
        """Starts the program of a message, a file, with `fds` as its descriptors 0, 1, 2, 3..."""
        socket.send_fds(self._line, [b"+"], [message, *fds])
        self._line.close()

    def close(self) -> None:
        """Ends the child, which was not needed, by closing its socket."""
        self._line.close()

    def _wait(self, fd: int, procs_files: list[str], ends: tuple[int, int]) -> NoReturn:
        try:
            kernel.die_with(self._parent)
            # Nothing of other sandboxes may stay here: their lines would seem open as long as this process lives.
            moved = [fcntl.fcntl(own, fcntl.F_DUPFD, _OPTIONS + 1) for own in (fd, *ends)]
            for number, own in zip((3, _STATUS, _HOLD), moved, strict=True):
                os.dup2(own, number)
            os.closerange(4, _STATUS)
            os.closerange(_FILTER, _EVER)
            for ignored in (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and not by programs
                signal.signal(ignored, signal.SIG_DFL)
            for procs_file in procs_files:
                kernel.write(procs_file, "0")
            trouble = self._prepare()
            with socket.socket(fileno=3) as line:
                data, fds, _, _ = socket.recv_fds(line, 64, _MOST, socket.MSG_CMSG_CLOEXEC)
            if data:
                self._become(json.loads(os.pread(fds[0], os.fstat(fds[0]).st_size, 0)), fds[1:], trouble)
        except BaseException as error:  # noqa: BLE001  # this process is a copy of the supervisor, and must not go on
            with contextlib.suppress(OSError):
                os.write(2, f"quintain: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(125)

    def _prepare(self) -> OSError | None:
        """Does the work that does not depend on the program. Returns an error for the first message."""
        try:
            kernel.unshare(kernel.NEWNS | kernel.NEWNET | kernel.NEWIPC)
            kernel.mount("none", "/", None, flags=kernel.REC | kernel.SLAVE)
            kernel.raise_loopback()
            self._root.show(self._box)
            os.dup2(os.open(self._root.filter, os.O_RDONLY), _FILTER)
            if self._is_time_fixed:
                kernel.unshare(kernel.NEWTIME)
        except OSError as error:
            return error
        return None

    def _become(self, words: dict[str, Any], fds: list[int], trouble: OSError | None) -> NoReturn:
        for number, fd in enumerate(fds):  # What came has higher numbers than it gets, and in the same order.
            os.dup2(fd, number)
        os.closerange(len(fds), _STATUS)
        if trouble:
            raise trouble
        if words["places"]:
            self._root.show(self._box, words["places"])
        os.dup2(memory("\0".join(self._placed(words["bwrap"])).encode()), _OPTIONS)
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
        own = {"json-status-fd": _STATUS, "block-fd": _HOLD, "seccomp": _FILTER, "args": _OPTIONS}
        argv = ["bwrap", *(word for name, fd in own.items() for word in (f"--{name}", str(fd))), "--", *words["argv"]]
        os.execve(words["program"], argv, {})  # noqa: S606  # a shell has no place here

    def _placed(self, words: list[str]) -> Iterator[str]:
        before = ""
        for word in words:
            is_place = before in {"--bind", "--ro-bind", "--dev-bind"} and word.startswith("{box}")
            yield self._box + word.removeprefix("{box}") if is_place else word
            before = word
        yield ""  # Each of them ends with NUL.


def memory(data: bytes) -> int:
    """Returns a file in memory that holds this."""
    fd = os.memfd_create("quintain", os.MFD_CLOEXEC)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
