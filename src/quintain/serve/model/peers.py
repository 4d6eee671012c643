"""Finds the process at the other end of a connection, so that only a program can use its secrets.

On Linux, /proc/net/tcp has a socket's inode by its addresses, and /proc/PID/fd has the process by the inode.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import sys
import time
from pathlib import Path

import msgspec

Address = tuple[str, int]

_PROC = Path("/proc")
_REMEMBERED = 4096
"""Maximum number of connections that a guard remembers."""
_TICKS = os.sysconf("SC_CLK_TCK")


class Process(msgspec.Struct, frozen=True):
    """A process, distinguished from a later one of the same number by its start, in ticks since boot."""

    pid: int
    started: int
    session: int


class Guard:
    """Check that admits the first process that connects, if it started before the model's first reply.

    A child that acts for the model starts after that reply, so the process that is admitted is the program itself.
    `session` is the number of the POSIX session that the program leads; processes of others are refused.
    """

    def __init__(self) -> None:
        self.session = 0
        self._bound: Process | None = None
        self._known: dict[int, Address] = {}
        self._spoken = math.inf

    def spoken(self) -> None:
        """Notes the time of the model's first reply."""
        self._spoken = min(self._spoken, int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS))

    def admits(self, client: Address, server: Address) -> bool:
        """True if the process at the client's end of a connection is admitted."""
        # A server has one `client` object per connection, and `_known` keeps it alive, so its identity is unique.
        if self._known.get(id(client)) is client:
            return True
        if not self._is_its_own(client, server):
            return False
        if len(self._known) == _REMEMBERED:
            self._known.clear()
        self._known[id(client)] = client
        return True

    def _is_its_own(self, client: Address, server: Address) -> bool:
        inode = _inode(client, server)
        if inode is None:
            return False
        if self._bound is not None:
            return _process(self._bound.pid) == self._bound and _holds(self._bound.pid, inode)
        pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal()]
        members = [one for one in map(_process, pids) if one is not None and one.session == self.session]
        # A socket that children inherited is still the parent's.
        holders = [one for one in members if _holds(one.pid, inode)]
        first = min(holders, key=lambda one: one.started, default=None)
        if first is None or first.started >= self._spoken:
            return False
        self._bound = first
        return True


def known() -> bool:
    """True if this machine shows which process holds a socket."""
    return (_PROC / "net/tcp").is_file()


def _process(pid: int) -> Process | None:
    with contextlib.suppress(OSError):
        # The name in parentheses may hold anything, parentheses too.
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return Process(pid, int(fields[19]), int(fields[3]))
    return None


def _holds(pid: int, inode: int) -> bool:
    """True if a process has the socket of this inode open."""
    with contextlib.suppress(OSError):
        for descriptor in os.listdir(_PROC / str(pid) / "fd"):  # noqa: PTH208  # thrice as fast as paths
            with contextlib.suppress(OSError):  # It is closed by now.
                if os.readlink(f"/proc/{pid}/fd/{descriptor}") == f"socket:[{inode}]":  # noqa: PTH115
                    return True
    return False


def _inode(client: Address, server: Address) -> int | None:
    """Returns the inode of the client's end of a connection within this machine."""
    ends = [(int.from_bytes(socket.inet_aton(host), sys.byteorder), port) for host, port in (client, server)]
    # A socket that takes both families is in the second table, its addresses mapped into the longer one.
    for name, prefix in (("tcp", ""), ("tcp6", "0000000000000000FFFF0000")):
        wanted = [f"{prefix}{host:08X}:{port:04X}" for host, port in ends]
        with contextlib.suppress(OSError), (_PROC / "net" / name).open() as table:
            for line in table:
                fields = line.split()
                if fields[1:3] == wanted:
                    return int(fields[9]) or None
    return None
