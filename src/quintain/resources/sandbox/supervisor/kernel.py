"""System calls that Python 3.11 has no function for: namespaces and mounts."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import signal
import socket
import struct
import time
from pathlib import Path

NEWNS, NEWUSER, NEWTIME, NEWIPC, NEWNET = 0x00020000, 0x10000000, 0x00000080, 0x08000000, 0x40000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC = 1, 2, 4, 8, 32, 4096, 16384
PRIVATE, SLAVE, SHARED = 1 << 18, 1 << 19, 1 << 20
_DETACH = 2
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same on every architecture
_AT_FDCWD, _AT_EMPTY_PATH, _CLOEXEC = -100, 0x1000, 0o2000000
_CLONE, _RECURSIVE, _EMPTY, _IDMAP = 1, 0x8000, 4, 0x00100000
_PARENT_DEATH, _SUBREAPER = 1, 36
_SET_FLAGS, _UP = 0x8914, 1
_EXITING = 4
_WORDS = {"ro": RDONLY, "nosuid": NOSUID, "nodev": NODEV, "noexec": NOEXEC, "nosymfollow": 1 << 8, "noatime": 1 << 10,
          "nodiratime": 1 << 11, "relatime": 1 << 21}  # fmt: skip
"""Flags of one mount, as `mountinfo` writes them."""

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Leaves some of the namespaces that this process shares with others."""
    _check(_libc.unshare(flags), f"unshare({flags:#x})")


def mount(source: str, target: str, kind: str | None, *, flags: int = 0, data: str = "") -> None:
    """Mounts a file system at a place, or changes a mount there."""
    kind_bytes = kind.encode() if kind else None
    done = _libc.mount(source.encode(), target.encode(), kind_bytes, ctypes.c_ulong(flags), data.encode())
    _check(done, f"mount {kind or source} on {target}")


def unmount(target: str) -> None:
    """Takes a mount away; what still uses it keeps it until then."""
    _check(_libc.umount2(target.encode(), _DETACH), f"unmount {target}")


def narrow(place: str, flags: int) -> None:
    """Adds these flags to whatever is mounted at a place and below it; those that are there stay."""
    for line in read("/proc/self/mountinfo").splitlines():
        name, words = line.split()[4:6]
        target = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), name)
        if target == place or target.startswith(f"{place}/"):
            had = sum(_WORDS.get(word, 0) for word in words.split(","))
            mount("none", target, None, flags=REMOUNT | BIND | had | flags)


def raise_loopback() -> None:
    """Lets a new network namespace reach itself, at 127.0.0.1 and ::1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))


def become_subreaper() -> None:
    """Makes this process the parent of its orphaned descendants."""
    _check(_libc.prctl(_SUBREAPER, 1, 0, 0, 0), "prctl(PR_SET_CHILD_SUBREAPER)")


def die_with(parent: int) -> None:
    """Makes the kernel kill this process when the parent dies; at once if it has. A change of user undoes this."""
    _check(_libc.prctl(_PARENT_DEATH, int(signal.SIGKILL), 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def enter_namespaces() -> bool:
    """Enters a mount namespace of its own. True if that took a user namespace as well.

    Raises:
        OSError: The kernel lets this user have neither.
    """
    uid, gid = os.getuid(), os.getgid()
    try:
        unshare(NEWNS)
    except PermissionError:
        unshare(NEWUSER | NEWNS)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
        mount("none", "/", None, flags=REC | PRIVATE)
        return True
    mount("none", "/", None, flags=REC | PRIVATE)
    return False


def fix_time() -> None:
    """Lets the clocks that count from the machine's start begin at 0, for what this process becomes and its children.

    It must have left the time of others by `unshare(NEWTIME)`, and not begun anything since.
    """
    lines: list[str] = []
    for name, clock in (("monotonic", time.CLOCK_MONOTONIC), ("boottime", time.CLOCK_BOOTTIME)):
        seconds, nanoseconds = divmod(-time.clock_gettime_ns(clock), 10**9)
        lines.append(f"{name} {seconds} {nanoseconds}\n")
    write("/proc/self/timens_offsets", "".join(lines))


def can_fix_time() -> bool:
    """True if `fix_time` works here."""
    child = os.fork()
    if child == 0:
        try:
            unshare(NEWTIME)
            fix_time()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def mapping(uid: int) -> int:
    """Returns a user namespace, as a descriptor, that shows the files of user and group 0 as those of `uid`.

    What user 0 itself makes there is shown as its own, and is user 1's in truth: overlayfs makes its working folder so.
    """
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            unshare(NEWUSER)
            os.write(tell, b".")
            signal.pause()
        finally:
            os._exit(1)
    os.close(tell)
    try:
        if not os.read(ready, 1):
            raise OSError("no user namespace for the owners of files")
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{child}/{kind}").write_text(f"0 {uid} 1\n1 0 1\n")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    finally:
        os.close(ready)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


def mount_mapped(source: str, target: str, userns: int) -> None:
    """Binds a folder, its files owned as the user namespace says. Needs Linux 5.12 and a file system that can."""
    tree = _check(
        _libc.syscall(_OPEN_TREE, _AT_FDCWD, source.encode(), _CLONE | _CLOEXEC | _RECURSIVE), f"open_tree {source}"
    )
    try:
        wanted = _Attributes(set=_IDMAP, userns=userns)
        size = ctypes.c_size_t(ctypes.sizeof(wanted))
        done = _libc.syscall(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, ctypes.byref(wanted), size)
        _check(done, f"other owners for {source}")
        done = _libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, target.encode(), _EMPTY)
        _check(done, f"move_mount {target}")
    finally:
        os.close(tree)


def read(path: str) -> str:
    """Returns all of a file of the kernel's; in fewer calls, and a fifth of the time, than a file object needs."""
    fd = os.open(path, os.O_RDONLY)
    try:
        parts = list(iter(lambda: os.read(fd, 65536), b""))
    finally:
        os.close(fd)
    return b"".join(parts).decode()


def write(path: str, text: str) -> None:
    """Writes a text to a file of the kernel, in one call."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def own(folder: str, uid: int) -> None:
    """Gives everything below a folder, and the folder, to a user. Follows no link, crosses into nothing else."""
    pending = [folder]
    os.chown(folder, uid, uid, follow_symlinks=False)
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_uid != uid:
                    # A change of owner takes these bits away.
                    mode = entry.stat(follow_symlinks=False).st_mode & 0o7777
                    os.chown(entry.path, uid, uid, follow_symlinks=False)
                    if mode & 0o6000 and not entry.is_symlink():
                        Path(entry.path).chmod(mode)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)


def is_alive(pid: int) -> bool:
    """True if a process runs; False for a zombie."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def is_ending(pid: int) -> bool:
    """True if a process has begun to end, or has ended: it closes its files before others see that it is gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return words[0] in "ZX" or bool(int(words[6]) & _EXITING)
    return True


def children(pid: int) -> list[int]:
    """Returns the processes that this process started, directly."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [int(word) for word in read(f"/proc/{pid}/task/{pid}/children").split()]
    return []
