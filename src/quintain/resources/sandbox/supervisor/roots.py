"""Root file system of a program, built before it is needed and without `/proc`, so that bubblewrap makes one mount.

    root/           a file system in memory, so that a program that reads how full its root is learns nothing else
      skeleton/     folders, links and small files; mount points
      tree/         the same, read-only, with parts of the machine: `/usr`, devices, some of `/etc`
    <n>/root/       a copy of the tree with one program's own files, in a mount namespace of its own

Mounts of this process are beyond a program's reach: they are locked for the user namespace of a sandbox.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from . import kernel

HOME = "/workspace"
"""Path of the workspace for a program."""
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
    """Files that all programs of a supervisor share.

    Attributes:
        filter: Path of the seccomp filter, which the owner writes.
    """

    def __init__(self, home: str) -> None:
        self.filter = f"{home}/filter"
        self._place = f"{home}/root"
        self._seen: dict[str, tuple[int, int, int] | None] = {}
        Path(self._place).mkdir()
        _lay(self._place)
        self.refresh()
        _furnish(self._place)

    def refresh(self) -> None:
        """Copies the present state of the machine's loader."""
        for path in _COPIED:
            seen = _look(path)
            if self._seen.get(path) != seen:
                _copy(path, self._place) if seen else Path(f"{self._place}/skeleton{path}").unlink()
                self._seen[path] = seen

    def show(self, folder: str, places: Mapping[str, bool] | None = None) -> None:
        """Builds the root of one sandbox at `root` in its folder. Needs a mount namespace of its own.

        Args:
            folder: Folder of the sandbox.
            places: Further mount points of bubblewrap, each True for a folder.
        """
        root, tree = f"{folder}/root", f"{self._place}/tree"
        if places:
            kernel.unmount(root)
            _lay(root)
            for path in filter(_look, _COPIED):
                _copy(path, root)
            _furnish(root)
            tree = f"{root}/tree"
            for place, is_folder in places.items():
                if not Path(tree + place).exists():  # in `/usr`, say, whatever link leads there
                    _make_place(Path(f"{root}/skeleton{place}"), is_folder=is_folder)
        kernel.mount(tree, root, None, flags=kernel.BIND | kernel.REC)
        for name, place in (("shm", "/dev/shm"), ("tmp", "/tmp"), ("work", HOME)):  # noqa: S108
            # The kernel finds the folder before it locks the mounts. Without REC, a mount of the program's files that
            # comes between the two would stay below this one.
            kernel.mount(f"{folder}/{name}", root + place, None, flags=kernel.BIND | kernel.REC)
        flags = kernel.NOSUID | kernel.NOEXEC
        kernel.mount("devpts", f"{root}/dev/pts", "devpts", flags=flags, data=_TERMINALS)


def _lay(place: str) -> None:
    kernel.mount("tmpfs", place, "tmpfs", flags=kernel.NOSUID | kernel.NODEV, data="mode=755")
    skeleton = f"{place}/skeleton"
    for path in _FOLDERS:
        Path(skeleton + path).mkdir(parents=True)
    for path in _ROOT:
        there = Path(path)
        if there.is_symlink():
            Path(skeleton + path).symlink_to(there.readlink())
        elif there.is_dir():
            Path(skeleton + path).mkdir()
    for path in filter(os.path.isdir, _BOUND):
        Path(skeleton + path).mkdir()
    for path in _DEVICES:
        Path(skeleton + path).touch()
    for path, target in _LINKS.items():
        Path(skeleton + path).symlink_to(target)
    for path, text in _TEXTS.items():
        Path(skeleton + path).write_text(text)


def _look(path: str) -> tuple[int, int, int] | None:
    with contextlib.suppress(FileNotFoundError):
        there = os.stat(path)  # noqa: PTH116  # a system call, not a question about a name
        return there.st_ino, there.st_size, there.st_mtime_ns
    return None


def _copy(path: str, place: str) -> None:
    """Replaces a file by its present content; open readers keep the old one."""
    shown = Path(f"{place}/skeleton{path}")
    new = shown.with_name(f".{shown.name}")
    new.write_bytes(Path(path).read_bytes())
    new.rename(shown)


def _make_place(path: Path, *, is_folder: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if is_folder else path.touch()


def _furnish(place: str) -> None:
    skeleton, tree = f"{place}/skeleton", f"{place}/tree"
    Path(tree).mkdir()
    kernel.mount(skeleton, tree, None, flags=kernel.BIND)
    kernel.mount("none", tree, None, flags=kernel.PRIVATE)  # Else what is mounted in one copy would be in all.
    for path in ("/usr", *_ROOT, *_BOUND):
        seen = Path(skeleton + path)
        if seen.is_dir() and not seen.is_symlink():
            kernel.mount(path, tree + path, None, flags=kernel.BIND | kernel.REC)
    kernel.narrow(tree, kernel.RDONLY | kernel.NOSUID | kernel.NODEV)
    for path in _DEVICES:
        kernel.mount(path, tree + path, None, flags=kernel.BIND)
        kernel.narrow(tree + path, kernel.NOSUID)
