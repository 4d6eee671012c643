"""Main loop of the supervisor: it waits for messages, for processes to end, and for limits to be reached.

Its owner holds one socket for the supervisor and one for each sandbox. A sandbox lives as long as its socket is open,
the supervisor as long as its own socket and the process that started it. So however the owner ends, even by kill -9,
every process is killed, every mount and group removed, and the supervisor ends last.

    owner to supervisor "+" and a socket: a new sandbox; answered on that socket with {"box": n}
                        "?" and a socket: closed when nothing is left of the sandboxes that have been closed
    owner to sandbox    "mount" "own" "bound" "start" "deadline" "freeze" "thaw" "kill"; answered with {"done": ...}
                        with "mount" may come a socket, which gets a byte when the files are there
    sandbox to owner    {"exit": status, "reason": ...} when the last of its processes has ended

Messages are JSON in a file in memory, whose descriptor comes first; those for the program follow it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import kernel
from .boxes import Box, Owners
from .cgroups import Groups
from .roots import Root

_TICK = 0.02
"""Seconds between two looks at the CPU that sandboxes with a limit on it have used."""
_REST = 0.001
"""Seconds for which bubblewrap's messages wait after its first one."""
_FREEZING = 5.0
"""Seconds that processes may take to stand still."""
_MOST = 16
"""Descriptors that come with one message, at most."""


class Client:
    """A socket of the owner's, and the sandbox that lives as long as it."""

    def __init__(self, line: socket.socket, box: Box) -> None:
        self.line, self.box = line, box
        self.is_open = True
        self.is_running = True
        self.is_reported = False
        self.reads = -1

    def say(self, **words: Any) -> None:
        """Sends a message to the owner, unless it has gone."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.line.send(json.dumps(words).encode())


class SupervisorLoop:
    """All sandboxes of one process."""

    def __init__(self, line: socket.socket, groups: Groups, *, root: Root, owners: Owners, is_time_fixed: bool) -> None:
        self._line, self._groups = line, groups
        self._root, self._owners, self._is_time_fixed = root, owners, is_time_fixed
        self._clients: set[Client] = set()
        self._count = 0
        self._settling: list[socket.socket] = []
        self._is_closing = False
        self._looked = 0.0
        self._resting: dict[Client, float] = {}
        self._selector = selectors.DefaultSelector()
        self._watch(line.fileno(), self._on_owner)
        self._watch(os.pidfd_open(os.getppid()), self._close)

    def run(self) -> None:
        """Until the owner has gone and nothing is left of what it started."""
        while not (self._is_closing and not self._clients):
            for key, _ in self._selector.select(self._patience()):
                if key.fileobj in self._selector.get_map():  # What came before it may have ended it.
                    key.data()
            self._listen_again()
            self._look_at_limits()
            self._settle()

    def _watch(self, fd: int, react: Callable[[], None]) -> None:
        self._selector.register(fd, selectors.EVENT_READ, react)

    def _forget(self, fd: int) -> None:
        self._selector.unregister(fd)
        os.close(fd)

    def _close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            for client in list(self._clients):
                self._hang_up(client)

    # -- the owner

    def _on_owner(self) -> None:
        data, fds, _, _ = socket.recv_fds(self._line, 64, 1, socket.MSG_CMSG_CLOEXEC)
        if not data:
            self._selector.unregister(self._line.fileno())
            self._close()
            return
        line = socket.socket(fileno=fds[0])
        if data == b"?":
            self._settling.append(line)
            return
        self._count += 1
        try:
            group, fixed = self._groups.make(self._count), self._is_time_fixed
            box = Box(self._count, group=group, owners=self._owners, root=self._root, is_time_fixed=fixed)
        except OSError as error:
            line.send(json.dumps({"error": str(error)}).encode())
            line.close()
            return
        client = Client(line, box)
        self._clients.add(client)
        assert box.outer is not None
        self._watch(line.fileno(), lambda: self._on_client(client))
        self._watch(box.outer[0], lambda: self._on_outer_end(client))
        client.say(box=box.number)

    def _on_client(self, client: Client) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(client.line, 64, _MOST, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            data, fds = b"", []
        if not data:
            self._hang_up(client)
            return
        try:
            size = os.fstat(fds[0]).st_size
            words = json.loads(os.pread(fds[0], size, 0))
            getattr(self, f"_do_{words.pop('do')}")(client, words, fds)
        except Exception as error:  # noqa: BLE001  # the owner gets it, and raises it
            client.say(error=f"{type(error).__name__}: {error}")
        finally:
            for fd in fds:
                os.close(fd)

    def _do_mount(self, client: Client, words: dict[str, Any], fds: list[int]) -> None:
        client.box.mount(words)
        client.box.release()
        for waiting in fds[1:]:
            with contextlib.suppress(BrokenPipeError):  # It has ended; its status comes by another way.
                os.write(waiting, b"+")
        client.say(done="mount", has_to_renew=client.box.has_to_renew)

    def _do_own(self, client: Client, _: dict[str, Any], __: list[int]) -> None:
        client.box.renew()
        client.say(done="own")

    def _do_bound(self, client: Client, words: dict[str, Any], _: list[int]) -> None:
        client.box.bound(words)
        client.say(done="bound")

    def _do_deadline(self, client: Client, words: dict[str, Any], _: list[int]) -> None:
        client.box.deadline(words["seconds"])
        client.say(done="deadline")

    def _do_freeze(self, client: Client, _: dict[str, Any], __: list[int]) -> None:
        client.box.deadline(None)
        patience = time.monotonic() + _FREEZING
        while client.is_running and not client.box.freeze(on=True):
            if time.monotonic() > patience:
                raise TimeoutError(f"its processes did not stand still in {_FREEZING:g} s")
            time.sleep(0.0001)
        client.say(done="freeze")

    def _do_thaw(self, client: Client, words: dict[str, Any], _: list[int]) -> None:
        client.box.deadline(words["seconds"])
        client.box.freeze(on=False)
        client.say(done="thaw")

    def _do_kill(self, client: Client, words: dict[str, Any], _: list[int]) -> None:
        client.box.kill(words["reason"])

    def _do_start(self, client: Client, words: dict[str, Any], fds: list[int]) -> None:
        box = client.box
        self._root.refresh()
        client.reads = box.start(fds[0], fds[1:], is_held=words["is_held"])
        self._watch(client.reads, lambda: self._on_status(client))
        client.say(done="start")

    # -- processes

    def _on_status(self, client: Client) -> None:
        box = client.box
        known = box.init is not None
        data = os.read(client.reads, 65536)
        box.heard(data)
        if data and box.init is None:
            # It tells a word at a time: to be woken by each would take a processor from who is about to start.
            self._selector.unregister(client.reads)
            self._resting[client] = time.monotonic() + _REST
        if not known and box.init is not None:
            self._watch(box.init[0], lambda: self._on_init_end(client))
            if box.reason or not client.is_open:
                box.kill()
        if data and box.is_over():
            self._report(client)
        if not data:
            self._forget(client.reads)
            client.reads = -1
            self._on_end(client)

    def _listen_again(self) -> None:
        now = time.monotonic()
        for client in [client for client, until in self._resting.items() if until <= now]:
            del self._resting[client]
            self._watch(client.reads, functools.partial(self._on_status, client))

    def _on_outer_end(self, client: Client) -> None:
        fd, pid = client.box.outer or (-1, -1)
        os.waitpid(pid, 0)
        self._forget(fd)
        client.box.outer = None
        self._on_end(client)

    def _on_init_end(self, client: Client) -> None:
        fd, pid = client.box.init or (-1, -1)
        with contextlib.suppress(ChildProcessError):  # It is still bubblewrap's.
            os.waitpid(pid, os.WNOHANG)
        self._forget(fd)
        client.box.init = (-1, pid)
        self._on_end(client)

    def _on_end(self, client: Client) -> None:
        box = client.box
        is_gone = box.outer is None and client.reads < 0 and (box.init is None or box.init[0] < 0)
        if not client.is_running or not is_gone:
            return
        client.is_running = False
        self._report(client)
        if not client.is_open:
            self._remove(client)

    def _report(self, client: Client) -> None:
        client.box.ends = client.box.cpu_limit = None
        if client.is_open and not client.is_reported:
            client.is_reported = True
            client.say(**client.box.result())

    def _hang_up(self, client: Client) -> None:
        if client.is_open:
            client.is_open = False
            self._selector.unregister(client.line.fileno())
            client.line.close()
            client.box.kill()
            if not client.is_running:
                self._remove(client)

    def _remove(self, client: Client) -> None:
        self._reap()
        client.box.remove()
        self._clients.discard(client)

    def _settle(self) -> None:
        # A sandbox counts as closed from when that was done, not from when it is noticed: so nothing may be unnoticed.
        if self._settling and not self._selector.select(0) and all(client.is_open for client in self._clients):
            for line in self._settling:
                line.close()
            self._settling = []

    def _reap(self) -> None:
        # What was orphaned became a child of this process; those that are somebody's duty have their own descriptors.
        mine = {client.box.outer[1] for client in self._clients if client.box.outer}
        for pid in set(kernel.children(os.getpid())) - mine:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    # -- limits

    def _patience(self) -> float | None:
        running = [client.box for client in self._clients if client.is_running]
        ends = [box.ends for box in running if box.ends is not None]
        ends += self._resting.values()
        if any(box.cpu_limit is not None for box in running):
            ends.append(self._looked + _TICK)
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _look_at_limits(self) -> None:
        now = time.monotonic()
        is_due = now >= self._looked + _TICK
        self._looked = now if is_due else self._looked
        for client in self._clients:
            box = client.box
            if client.is_running and box.ends is not None and box.ends <= now:
                box.ends = None
                box.kill("time")
            elif is_due and client.is_running and box.is_over_cpu():
                box.cpu_limit = None
                box.kill("cpu")


def main() -> None:
    """`loop.py SOCKET HOME GROUPS UID`: keep sandboxes in the folder HOME, for whom the socket belongs to."""
    fd, home, wanted, uid = sys.argv[2:]
    line = socket.socket(fileno=int(fd))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Its owner's end is what ends it; then it still has work to do.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # A sandbox takes five descriptors.
    kernel.become_subreaper()
    os.umask(0o022)  # Of programs too: what they make must not depend on the machine.
    groups = Groups(wanted)
    try:
        is_nested = kernel.enter_namespaces()
        kernel.mount("tmpfs", home, "tmpfs", flags=kernel.NOSUID | kernel.NODEV, data="mode=711")
        kernel.mount("none", home, None, flags=kernel.SHARED)
        os.chdir(home)
        clock = ("monotonic",) if kernel.can_fix_time() else ()
        made = Root(home)
        hello = {
            "kinds": groups.kinds + clock,
            "is_nested": is_nested,
            "groups": sorted(map(str, groups.folders.values())),
        }
        root = os.open(home, os.O_PATH | os.O_DIRECTORY)
        socket.send_fds(line, [json.dumps(hello).encode()], [root])
        os.close(root)
        who = 0 if is_nested else int(uid)
        owners = Owners(home, who, is_nested=is_nested)
        SupervisorLoop(line, groups, root=made, owners=owners, is_time_fixed=bool(clock)).run()
    finally:
        os.chdir("/")
        with contextlib.suppress(OSError):
            kernel.unmount(home)
        groups.remove()
        with contextlib.suppress(OSError):
            Path(home).rmdir()
