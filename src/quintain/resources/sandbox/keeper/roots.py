"""What a program sees as `/`, built before it is needed and but for `/proc`, so that bubblewrap has one mount to make.

    skeleton/   folders, links and small files, in memory; whatever is mounted has its place here
    root/       the same, read-only, with what it shows of the machine: `/usr`, devices, some of `/etc`
    <n>/root/   the same with what is one program's own, in a mount namespace that nobody else has

What is mounted by this process is beyond a program's reach: to the user namespace of a sandbox it is locked.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from . import kernel

HOME = "/workspace"
"""Where a program finds the workspace."""
UID = 1000
"""The user that a program is, inside."""
_ROOT = ("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin")
_COPIED = ("/etc/ld.so.cache", "/etc/ld.so.conf")
_BOUND = ("/etc/ld.so.conf.d", "/etc/alternatives")
_FOLDERS = ("/dev/pts", "/dev/shm", "/etc", "/proc", "/tmp", "/usr", HOME)  # noqa: S108  # the sandbox's own
_DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero")
_LINKS = {
    "/dev/core": "/proc/kcore",
    "/dev/fd": "/proc/self/fd",
    "/dev/ptmx": "pts/ptmx",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
}
_TEXTS = {
    "/etc/group": f"root:x:0:\nuser:x:{UID}:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/passwd": f"root:x:0:0:root:/root:/bin/sh\nuser:x:{UID}:{UID}::/tmp:/bin/sh\n",
}
_TERMINALS = "newinstance,ptmxmode=0666,mode=620"


class Root:
    """What is the same for all programs of a keeper.

    Attributes:
        filter: Where its owner puts the seccomp filter.
    """

    def __init__(self, home: str) -> None:
        self.filter = f"{home}/filter"
        self._skeleton, self._tree = f"{home}/skeleton", f"{home}/root"
        self._seen: dict[str, tuple[int, int, int] | None] = {}
        Path(self._skeleton).mkdir()  # A file system of its own, for programs can ask how full it is.
        kernel.mount("tmpfs", self._skeleton, "tmpfs", flags=kernel.NOSUID | kernel.NODEV, data="mode=755")
        _lay(self._skeleton)
        self.refresh()
        _furnish(self._skeleton, self._tree)

    def refresh(self) -> None:
        """Show what the machine's loader knows now."""
        for path in _COPIED:
            seen = _look(path)
            if self._seen.get(path) != seen:
                _copy(path, self._skeleton) if seen else Path(self._skeleton + path).unlink()
                self._seen[path] = seen

    def show(self, folder: str, places: Mapping[str, bool] | None = None) -> None:
        """Build the root of one sandbox at `root` in its folder. The mounts of this process must be its own.

        Args:
            folder: Of the sandbox.
            places: Where bubblewrap is to mount more, and whether that is a folder.
        """
        root, tree = f"{folder}/root", self._tree
        if places:
            kernel.unmount(root)
            skeleton, tree = f"{folder}/skeleton", f"{folder}/tree"
            _lay(skeleton)
            for path, seen in self._seen.items():
                if seen:
                    _copy(path, skeleton)
            for place, is_folder in places.items():
                _make_place(Path(skeleton + place), is_folder=is_folder)
            _furnish(skeleton, tree)
        kernel.mount(tree, root, None, flags=kernel.BIND | kernel.REC)
        for name, place in (("shm", "/dev/shm"), ("tmp", "/tmp"), ("work", HOME)):  # noqa: S108
            kernel.mount(f"{folder}/{name}", root + place, None, flags=kernel.BIND)
        flags = kernel.NOSUID | kernel.NOEXEC
        kernel.mount("devpts", f"{root}/dev/pts", "devpts", flags=flags, data=_TERMINALS)


def _lay(skeleton: str) -> None:
    for place in _FOLDERS:
        Path(skeleton + place).mkdir(parents=True)
    for place in _ROOT:
        path = Path(place)
        if path.is_symlink():
            Path(skeleton + place).symlink_to(path.readlink())
        elif path.is_dir():
            Path(skeleton + place).mkdir()
    for place in filter(os.path.isdir, _BOUND):
        Path(skeleton + place).mkdir()
    for place in _DEVICES:
        Path(skeleton + place).touch()
    for place, target in _LINKS.items():
        Path(skeleton + place).symlink_to(target)
    for place, text in _TEXTS.items():
        Path(skeleton + place).write_text(text)


def _look(path: str) -> tuple[int, int, int] | None:
    with contextlib.suppress(FileNotFoundError):
        there = os.stat(path)  # noqa: PTH116  # a system call, not a question about a name
        return there.st_ino, there.st_size, there.st_mtime_ns
    return None


def _copy(path: str, skeleton: str) -> None:
    """Show a file as it is now; who reads the old one goes on with that."""
    new = Path(f"{skeleton}{path}.new")
    new.write_bytes(Path(path).read_bytes())
    new.rename(skeleton + path)


def _make_place(path: Path, *, is_folder: bool) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if is_folder else path.touch()


def _furnish(skeleton: str, tree: str) -> None:
    Path(tree).mkdir()
    kernel.mount(skeleton, tree, None, flags=kernel.BIND)
    kernel.mount("none", tree, None, flags=kernel.PRIVATE)  # Else what is mounted in one copy would be in all.
    for place in ("/usr", *_ROOT, *_BOUND):
        seen = Path(skeleton + place)
        if seen.is_dir() and not seen.is_symlink():
            kernel.mount(place, tree + place, None, flags=kernel.BIND | kernel.REC)
    kernel.narrow(tree, kernel.RDONLY | kernel.NOSUID | kernel.NODEV)
    for place in _DEVICES:
        kernel.mount(place, tree + place, None, flags=kernel.BIND)
        kernel.narrow(tree + place, kernel.NOSUID)
