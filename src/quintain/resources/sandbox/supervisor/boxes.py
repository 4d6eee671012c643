"""One sandbox as the supervisor sees it: a file system in memory, groups, processes, and when they have to end.

<n>/            tmpfs, as large as the limits on the disk say
  stage/        what the workspace holds, put there by the supervisor's owner; a layer of an overlay, or all of it
  work/         what the program sees of it: the overlay, or stage/ itself
  tmp/ shm/     the program's /tmp and /dev/shm
  root/         the place of what it sees as /: see `roots.py`
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from . import kernel
from .cgroups import Group
from .prefork import PreforkedChild
from .roots import Root


class Owners:
    """Shows programs, who are another user, the files of this process as their own.

    That is a property of a mount; where the kernel has none (before Linux 6.3 for files in memory), files of which the
    program has a copy change their owner, and base trees can't be layers.
    """

    def __init__(self, home: str, uid: int, *, is_nested: bool) -> None:
        self.home, self.uid, self.is_nested = home, uid, is_nested
        self._lowers: dict[tuple[str, int, int], str] = {}
        self._userns = -1
        self._can_map = True

    def lower(self, source: str) -> str:
        """Returns the mount point of a base tree as a layer of overlays, relative to the supervisor's folder."""
        seen = os.stat(source)  # noqa: PTH116  # a system call, not a question about a name
        key = (source, seen.st_dev, seen.st_ino)
        if key not in self._lowers:
            name = f"lower-{len(self._lowers)}"
            Path(f"{self.home}/{name}").mkdir(exist_ok=True)
            self._bind(source, f"{self.home}/{name}")
            self._lowers[key] = name
        return self._lowers[key]

    def layers(self, folder: str) -> str:
        """Returns the name of the folder in a new sandbox where the program's own layers will be."""
        if self.uid and self._can_map:
            Path(f"{folder}/layers").mkdir()
            try:
                self._bind(f"{folder}/stage", f"{folder}/layers")
            except OSError:
                self._can_map = False
            else:
                return "layers"
        return "stage"

    def _bind(self, source: str, target: str) -> None:
        if not self.uid:
            kernel.mount(source, target, None, flags=kernel.BIND)
            return
        if self._userns < 0:
            self._userns = kernel.mapping(self.uid)
        kernel.mount_mapped(source, target, self._userns)


class Box:
    """One sandbox.

    Attributes:
        number: Names its folder.
        init: Descriptor and number of process 1 inside; None before it is known and when it is gone.
        outer: The same of bubblewrap itself, and before it begins of the process that becomes it.
        reason: The limit that ended it; empty when none did.
        ends: When it must end, in seconds of CLOCK_MONOTONIC; None for never.
        has_to_renew: True if the program does not own files that are added later.
    """

    def __init__(self, number: int, *, group: Group, owners: Owners, root: Root, is_time_fixed: bool) -> None:
        self.number, self.group = number, group
        self.folder = f"{owners.home}/{number}"
        self.init: tuple[int, int] | None = None
        self.status: bytes = b""
        self.code: int | None = None
        self.reason = ""
        self.ends: float | None = None
        self.cpu_limit: float | None = None
        self._cpu_before = 0.0
        self._owners = owners
        Path(self.folder).mkdir()
        kernel.mount("tmpfs", self.folder, "tmpfs", flags=kernel.NOSUID | kernel.NODEV, data="mode=711")
        for name, mode in (("stage", 0o700), ("work", 0o755), ("root", 0o755), ("tmp", 0o1777), ("shm", 0o1777)):
            Path(f"{self.folder}/{name}").mkdir()
            Path(f"{self.folder}/{name}").chmod(mode)
        self._layers = owners.layers(self.folder)
        self.has_to_renew = bool(owners.uid) and self._layers == "stage"
        self._says, speaks = os.pipe()
        waits, self._hold = os.pipe()
        try:
            self._seed = PreforkedChild(
                self.folder,
                owners.uid,
                procs_files=group.procs_files(),
                ends=(speaks, waits),
                root=root,
                is_time_fixed=is_time_fixed,
            )
        finally:
            os.close(speaks)
            os.close(waits)
        self.outer: tuple[int, int] | None = (os.pidfd_open(self._seed.pid), self._seed.pid)

    # -- requests

    def renew(self) -> None:
        """Makes the program the owner of the files that were added since."""
        if self.has_to_renew:
            for inner in Path(f"{self.folder}/stage").iterdir():
                kernel.own(str(inner), self._owners.uid)

    def mount(self, what: dict[str, Any]) -> None:
        """Mounts the files of stage/ for the program, and bounds its writes."""
        self.renew()
        work, layers = f"{self.folder}/work", self._layers
        if what["lower"] is None:
            kernel.mount(f"{self.folder}/{layers}/{what['upper']}", work, None, flags=kernel.BIND)
        else:
            # Relative paths, for programs can read them; `/proc/self/mountinfo` then tells nothing about the machine.
            own = f"upperdir={self.number}/{layers}/{what['upper']},workdir={self.number}/{layers}/{what['work']}"
            options = f"lowerdir={self._owners.lower(what['lower'])},{own},redirect_dir=nofollow,metacopy=off,index=off"
            options += ",userxattr" if self._owners.is_nested else ""
            kernel.mount("overlay", work, "overlay", flags=kernel.NOSUID | kernel.NODEV, data=options)
        self.bound(what)

    def bound(self, what: dict[str, Any]) -> None:
        """Sets the limits, which count from the present usage."""
        have = os.statvfs(self.folder)
        size = (have.f_blocks - have.f_bfree) * have.f_frsize + what["disk"]
        files = have.f_files - have.f_ffree + what["files"]
        flags = kernel.REMOUNT | kernel.NOSUID | kernel.NODEV
        kernel.mount("tmpfs", self.folder, None, flags=flags, data=f"size={size},nr_inodes={files},mode=711")
        try:
            self.group.limit(what["memory"], what["processes"])
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            self.kill("memory")  # What is there already needs more.
        self._cpu_before = self.group.cpu()
        self.cpu_limit = what["cpu"]
        self.deadline(what["seconds"])

    def deadline(self, seconds: float | None) -> None:
        """Ends it in so many seconds from now; None for never."""
        self.ends = None if seconds is None else time.monotonic() + seconds

    def start(self, message: int, fds: list[int], *, is_held: bool) -> int:
        """Starts bubblewrap as a message says; `fds` become the descriptors 0, 1, 2, 3... inside.

        Returns where it says what it does. With `is_held` the program does not begin before `release`.
        """
        self._seed.grow(message, fds)
        if not is_held:
            self.release()
        reads, self._says = self._says, -1
        return reads

    def release(self) -> None:
        """Lets the program begin."""
        if self._hold >= 0:
            with contextlib.suppress(BrokenPipeError):  # It has ended; its status comes by another way.
                os.write(self._hold, b"+")
            os.close(self._hold)
            self._hold = -1

    # -- what happens to it

    def heard(self, data: bytes) -> None:
        """Handles bubblewrap's status messages: the number of process 1, and the exit status of the program."""
        self.status += data
        for line in self.status.split(b"\n"):
            with contextlib.suppress(json.JSONDecodeError):
                said = json.loads(line)
                pid = said.get("child-pid")
                # Whoever got hold of process 1 inside could say anything here; this one must be bubblewrap's child.
                if pid and self.init is None and self.outer and pid in kernel.children(self.outer[1]):
                    with contextlib.suppress(ProcessLookupError):
                        self.init = (os.pidfd_open(pid), pid)
                self.code = said.get("exit-code", self.code)

    def freeze(self, *, on: bool) -> bool:
        """Stops every process except process 1, or lets them continue. True if all of them do."""
        if self.group.can_freeze:
            self.group.freeze(on=on)
            return not on or self.group.is_still()
        if self.init is None or self.init[0] < 0:
            return True
        signalled: set[int] = set()
        pending = kernel.children(self.init[1])
        while pending:
            pid = pending.pop()
            pending += kernel.children(pid)
            signalled.add(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP if on else signal.SIGCONT)
        return not on or all(_is_stopped(pid) for pid in signalled)

    def is_over(self) -> bool:
        """True if the program has ended without leaving a process: bubblewrap alone lives on for some milliseconds."""
        known = {target[1] for target in (self.init, self.outer) if target}
        return self.code is not None and self.group.is_empty_but(known)

    def is_over_cpu(self) -> bool:
        """True if the processes have used more CPU than they may."""
        return self.cpu_limit is not None and self.group.cpu() - self._cpu_before > self.cpu_limit

    def kill(self, reason: str = "") -> None:
        """Ends every process in it. The first reason counts."""
        self.reason = self.reason or reason
        self._seed.close()
        if self.outer is None:
            return
        with contextlib.suppress(OSError):
            self.group.freeze(on=False)
        if self.init is None:
            # It is just being started. Held, it can't start another while its child is looked for.
            self._signal(self.outer, signal.SIGSTOP)
            for pid in kernel.children(self.outer[1]):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        elif self.init[0] >= 0:
            self._signal(self.init, signal.SIGKILL)
        self._signal(self.outer, signal.SIGKILL)

    def _signal(self, target: tuple[int, int], number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(target[0], number)

    def result(self) -> dict[str, Any]:
        """Returns the exit status and the reason, once all processes have ended."""
        reason = self.reason
        if not reason and self.code == 128 + signal.SIGXCPU:
            reason = "cpu"
        if not reason and self.group.was_refused("memory"):
            reason = "memory"
        if not reason and self.code != 0 and self.group.was_refused("pids"):
            reason = "processes"
        return {"exit": self.code, "reason": reason}

    def remove(self) -> None:
        """Removes the leftovers; all processes must be gone."""
        for fd in (self._hold, self._says):
            if fd >= 0:
                os.close(fd)
        self.group.remove()
        with contextlib.suppress(OSError):  # Nothing was mounted there.
            kernel.unmount(f"{self.folder}/work")
        kernel.unmount(self.folder)
        Path(self.folder).rmdir()


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TtZX"
    return True
