"""Control groups, version 1 or 2, whichever can be written: memory, processes and CPU of a whole tree of processes.

Version 1 is one tree per controller, version 2 one for all. In both, a group for the keeper is made where it may be
made, and in it one group for each sandbox. What no group can do here is missing from `kinds`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

CONTROLLERS = ("memory", "pids", "cpuacct", "freezer")
_NAME = "quintain-"


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


def _paths() -> dict[str, str]:
    """Controller to the group that this process is in, as a path in its tree; "" for version 2."""
    found: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
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
    """A group of this name for each controller that can be had."""
    mounts, paths, found = _mounts(), _paths(), dict[str, Path]()
    for controller in CONTROLLERS:
        if controller in mounts and controller in paths:
            made = _make(Path(mounts[controller] + paths[controller]), name)
            if made:
                found[controller] = made
    return found


def find_v2(name: str) -> dict[str, Path]:
    """A group of this name, as close to one's own as has the controllers, for each that it has."""
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
    """The keeper's own groups.

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
        return Group({kind: folder / str(number) for kind, folder in self.folders.items()}, is_v2=self.is_v2)

    def remove(self) -> None:
        """Take the groups away; nothing may live in them."""
        _forget(self.folders)

    def _sweep(self) -> None:
        """Remove the empty groups of a keeper that was killed together with the process that it worked for."""
        for parent in {folder.parent for folder in self.folders.values()}:
            for left in parent.glob(f"{_NAME}*"):
                pid = left.name.removeprefix(_NAME).split("-")[0]
                if left.name != self.name and not Path(f"/proc/{pid}").exists():
                    with contextlib.suppress(OSError):  # It is somebody's whom this process can't see.
                        for inner in (*left.glob("*/"), left):
                            inner.rmdir()


def _forget(folders: dict[str, Path]) -> None:
    for folder in set(folders.values()):
        discard(folder)


def discard(folder: Path) -> None:
    """Remove a group and those in it, killing what lives there. One that is gone already is no trouble."""
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


class Group:
    """The groups of one sandbox."""

    def __init__(self, folders: dict[str, Path], *, is_v2: bool) -> None:
        self._folders, self._is_v2 = folders, is_v2
        for folder in set(folders.values()):
            folder.mkdir()

    @property
    def can_freeze(self) -> bool:
        """Whether `freeze` does anything."""
        return "freezer" in self._folders

    def doors(self) -> list[str]:
        """The files that a process writes "0" into, to be in these groups."""
        return [f"{folder}/cgroup.procs" for folder in set(self._folders.values())]

    def _write(self, kind: str, v1: str, v2: str, value: object) -> None:
        if kind in self._folders:
            (self._folders[kind] / (v2 if self._is_v2 else v1)).write_text(str(value))

    def limit(self, memory: int, processes: int) -> None:
        """At most so many bytes and processes."""
        self._write("memory", "memory.limit_in_bytes", "memory.max", memory)
        self._write("pids", "pids.max", "pids.max", processes)
        if self._is_v2:
            self._write("memory", "", "memory.oom.group", 1)

    def freeze(self, *, on: bool) -> None:
        """Let all of them stand still, or go on. What stands still is returned to once it does."""
        if self._is_v2:
            self._write("freezer", "", "cgroup.freeze", int(on))
        else:
            self._write("freezer", "freezer.state", "", "FROZEN" if on else "THAWED")

    def is_still(self) -> bool:
        """Whether all of them stand still; False where groups cannot do that."""
        if "freezer" not in self._folders:
            return False
        folder = self._folders["freezer"]
        if self._is_v2:
            return "frozen 1" in (folder / "cgroup.events").read_text()
        return (folder / "freezer.state").read_text().strip() == "FROZEN"

    def is_empty_but(self, pids: set[int]) -> bool:
        """Whether nobody else lives there; False where there are no groups to say so."""
        for door in self.doors():
            return set(map(int, Path(door).read_text().split())) <= pids
        return False

    def cpu(self) -> float:
        """Seconds of CPU they have used; 0 where groups do not count."""
        if "cpuacct" not in self._folders:
            return 0.0
        folder = self._folders["cpuacct"]
        if self._is_v2:
            return int((folder / "cpu.stat").read_text().split()[1]) / 1e6
        return int((folder / "cpuacct.usage").read_text()) / 1e9

    def was_refused(self, kind: str) -> bool:
        """Whether memory ("memory") or another process ("pids") was wanted beyond the limit, and not given."""
        if kind not in self._folders:
            return False
        v1, v2, word = {
            "memory": ("memory.oom_control", "memory.events", "oom_kill"),
            "pids": ("pids.events", "pids.events", "max"),
        }[kind]
        lines = (self._folders[kind] / (v2 if self._is_v2 else v1)).read_text().splitlines()
        return any(line.split()[0] == word and int(line.split()[1]) > 0 for line in lines)

    def remove(self) -> None:
        """Take the groups away, and whatever lives in them."""
        with contextlib.suppress(OSError):
            self.freeze(on=False)
        for folder in set(self._folders.values()):
            discard(folder)
