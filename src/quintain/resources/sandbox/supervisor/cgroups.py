"""Control groups, version 1 or 2, whichever can be written: memory, processes and CPU of a whole tree of processes.

Version 1 is one tree per controller, version 2 one for all. In both, a group for the supervisor is made where it may be
made, and in it one group for each sandbox. Only version 2 lets what stands still be killed, so where both are there, as
on many machines with version 1, processes are stopped by a group of version 2. What no group can do here is missing
from `kinds`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from . import kernel

CONTROLLERS = ("memory", "pids", "cpuacct")
_NAME = "quintain-"
_ALL = 2**22
"""The most processes that Linux can have; the kernel takes no larger limit."""


def _mounts() -> dict[str, str]:
    """Controller to the folder where its tree is mounted; "" for version 2."""
    found: dict[str, str] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup":
            found |= dict.fromkeys(options.split(" ")[-1].split(","), before.split(" ")[4])
        elif kind == "cgroup2":
            found[""] = before.split(" ")[4]
    return found


def _paths(pid: int | str = "self") -> dict[str, str]:
    """Controller to the group that a process is in, as a path in its tree; "" for version 2."""
    found: dict[str, str] = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        found |= dict.fromkeys(controllers.split(","), path)
    return found


def _make(folder: Path, name: str) -> Path | None:
    made = folder / name
    try:
        made.mkdir(exist_ok=True)
    except OSError:
        return None
    if os.access(made / "cgroup.procs", os.W_OK):
        return made
    made.rmdir()
    return None


def find_v1(name: str) -> dict[str, Path]:
    """Returns a group of this name for each controller that can be had."""
    mounts, paths, found = _mounts(), _paths(), dict[str, Path]()
    for controller in CONTROLLERS:
        if controller in mounts and controller in paths:
            made = _make(Path(mounts[controller] + paths[controller]), name)
            if made:
                found[controller] = made
    # What the freezer of version 1 holds can't even be killed: whoever dies while holding it leaves it for ever.
    if "" in mounts and "" in paths:
        made = _make(Path(mounts[""] + paths[""]), name)
        if made and (made / "cgroup.freeze").exists():
            found["freezer"] = made
    return found


def find_v2(name: str) -> dict[str, Path]:
    """Returns a group of this name, as close to one's own as has the controllers, for each that it has."""
    mount, path = _mounts().get(""), _paths().get("")
    if mount is None or path is None:
        return {}
    folder, found = Path(mount + path), dict[str, Path]()
    while len(str(folder)) >= len(mount):
        with contextlib.suppress(OSError):
            (folder / "cgroup.subtree_control").write_text("+memory +pids +cpu")
        if made := _make(folder, name):
            with contextlib.suppress(OSError):
                (made / "cgroup.subtree_control").write_text("+memory +pids +cpu")
            there = (made / "cgroup.subtree_control").read_text().split()
            if {"memory", "pids"} <= set(there) or folder == Path(mount):
                kinds = {"memory": "memory" in there, "pids": "pids" in there, "cpuacct": True, "freezer": True}
                return {kind: made for kind, holds in kinds.items() if holds}
            made.rmdir()
        folder = folder.parent
    return found


class Groups:
    """The supervisor's own groups.

    Attributes:
        kinds: Which of `CONTROLLERS` work here.
    """

    def __init__(self, wanted: str) -> None:
        """`wanted` is "auto", or what alone may be used: "v1", "v2" or "none"."""
        self.name = f"{_NAME}{os.getpid()}-{time.clock_gettime_ns(time.CLOCK_BOOTTIME)}"
        finders = {"v1": find_v1, "v2": find_v2}
        self.folders: dict[str, Path] = {}
        self.is_v2 = False
        for version, find in finders.items():
            if wanted in {"auto", version}:
                found = find(self.name)
                if {"memory", "pids"} <= found.keys() or wanted == version:
                    self.folders, self.is_v2 = found, version == "v2"
                    break
                _forget(found)
        self.kinds = tuple(self.folders)
        self._sweep()

    def make(self, number: int) -> Group:
        """Groups for one sandbox."""
        folders = {kind: folder / str(number) for kind, folder in self.folders.items()}
        for folder in set(folders.values()):
            folder.mkdir()
        return Group(folders, is_v2=self.is_v2)

    def remove(self) -> None:
        """Takes the groups away; nothing may live in them."""
        _forget(self.folders)

    def _sweep(self) -> None:
        """Removes the leftovers of a supervisor that was killed together with its owner."""
        for parent in {folder.parent for folder in self.folders.values()}:
            for left in parent.glob(f"{_NAME}*"):
                pid = left.name.removeprefix(_NAME).split("-")[0]
                if left.name != self.name and not kernel.is_alive(int(pid)) and _is_visible(left):
                    discard(left)


def _is_visible(folder: Path) -> bool:
    """True if all processes of a group have a number here; else its supervisor may live on in another container."""
    with contextlib.suppress(FileNotFoundError):
        return all("0" not in (group / "cgroup.procs").read_text().split() for group in (folder, *folder.glob("*/")))
    return False


def _forget(folders: dict[str, Path]) -> None:
    for folder in set(folders.values()):
        discard(folder)


def discard(folder: Path) -> None:
    """Removes a group and those in it, killing their processes. A missing group is not an error."""
    with contextlib.suppress(FileNotFoundError):
        for inner in [entry for entry in folder.iterdir() if entry.is_dir()]:
            discard(inner)
        patience = time.monotonic() + 5
        while True:
            for pid in (folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            with contextlib.suppress(OSError):
                folder.rmdir()
            if not folder.exists():
                return
            if time.monotonic() > patience:
                raise TimeoutError(f"{folder} has processes that do not die")
            time.sleep(0.001)


def of(pid: int) -> Group:
    """Returns the groups of a process, whoever made them. A controller that does not count there is missing."""
    mounts, paths = _mounts(), _paths(pid)
    names = {
        False: {"memory": "memory.limit_in_bytes", "pids": "pids.max", "cpuacct": "cpuacct.usage"},
        True: {"memory": "memory.max", "pids": "pids.max", "cpuacct": "cpu.stat"},
    }
    for is_v2, files in names.items():
        keys = {kind: "" if is_v2 else kind for kind in files}
        there = {kind: Path(mounts[key] + paths[key]) for kind, key in keys.items() if key in mounts and key in paths}
        if found := {kind: folder for kind, folder in there.items() if (folder / files[kind]).exists()}:
            return Group(found, is_v2=is_v2)
    return Group({}, is_v2=False)


class Group:
    """The groups of one sandbox."""

    def __init__(self, folders: dict[str, Path], *, is_v2: bool) -> None:
        self._folders, self._is_v2 = folders, is_v2

    @property
    def can_freeze(self) -> bool:
        """True if `freeze` has an effect."""
        return "freezer" in self._folders

    def procs_files(self) -> list[str]:
        """Returns the files that a process writes "0" into, to be in these groups."""
        return [f"{folder}/cgroup.procs" for folder in set(self._folders.values())]

    def _write(self, kind: str, value: object, *, v1: str, v2: str) -> None:
        if kind in self._folders:
            kernel.write(f"{self._folders[kind]}/{v2 if self._is_v2 else v1}", str(value))

    def limit(self, memory: int, processes: int) -> None:
        """At most so many bytes and processes."""
        self._write("memory", memory, v1="memory.limit_in_bytes", v2="memory.max")
        self._write("pids", min(processes, _ALL), v1="pids.max", v2="pids.max")
        if self._is_v2:
            self._write("memory", 1, v1="", v2="memory.oom.group")

    def bounds(self, memory: int, processes: int) -> set[str]:
        """Returns the controllers that enforce these limits; "cpuacct" if CPU is counted."""
        found = {"cpuacct"} & self._folders.keys()
        for kind, name, most in (
            ("memory", "memory.max" if self._is_v2 else "memory.limit_in_bytes", memory),
            ("pids", "pids.max", processes),
        ):
            if kind in self._folders:
                said = (self._folders[kind] / name).read_text().strip()
                found |= {kind} if said.isdigit() and int(said) <= most else set()
        return found

    def freeze(self, *, on: bool) -> None:
        """Stops all processes, or lets them continue. Returns once they have stopped."""
        if self.can_freeze:
            kernel.write(f"{self._folders['freezer']}/cgroup.freeze", str(int(on)))

    def is_still(self) -> bool:
        """True if all processes have stopped; False if groups cannot do that."""
        if "freezer" not in self._folders:
            return False
        return "frozen 1" in kernel.read(f"{self._folders['freezer']}/cgroup.events")

    def is_empty_but(self, pids: set[int]) -> bool:
        """True if no other process lives there; False without groups."""
        for procs_file in self.procs_files():
            return set(map(int, kernel.read(procs_file).split())) <= pids
        return False

    def cpu(self) -> float:
        """Returns seconds of CPU they have used; 0 where groups do not count."""
        if "cpuacct" not in self._folders:
            return 0.0
        folder = self._folders["cpuacct"]
        if self._is_v2:
            return int(kernel.read(f"{folder}/cpu.stat").split()[1]) / 1e6
        return int(kernel.read(f"{folder}/cpuacct.usage")) / 1e9

    def was_refused(self, kind: str) -> bool:
        """True if the limit of memory ("memory") or of processes ("pids") was reached."""
        if kind not in self._folders:
            return False
        v1, v2, word = {
            "memory": ("memory.oom_control", "memory.events", "oom_kill"),
            "pids": ("pids.events", "pids.events", "max"),
        }[kind]
        lines = kernel.read(f"{self._folders[kind]}/{v2 if self._is_v2 else v1}").splitlines()
        return any(line.split()[0] == word and int(line.split()[1]) > 0 for line in lines)

    def remove(self) -> None:
        """Takes the groups away, and whatever lives in them."""
        for folder in set(self._folders.values()):
            discard(folder)
