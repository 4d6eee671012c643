"""Trees of untrusted files on disk: no symlink is followed, no path is too long.

A `Cursor` is in one folder, holds one descriptor, and goes down and up by single names. So it follows no symlink, is
bound by neither PATH_MAX nor the number of descriptors, and notices a folder that was moved away below it. A folder
whose permissions keep this process out is opened by changing them, and gets them back when the cursor leaves it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from .content import CHUNK, Content, FileChunk, ImageError, chunk
from .images import FILE, FOLDER, SYMLINK, Entry

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NONE = -1


class _TreeLevel(NamedTuple):
    inode: tuple[int, int]
    mode: int
    """The permissions that it gets back; -1 where they were not changed."""


class Cursor:
    """Cursor in one folder of the tree below `root`.

    Args:
        root: The folder in which it begins.
        mode: Permissions that the root gets first, if it has others.
    """

    def __init__(self, root: Path, *, mode: int | None = None) -> None:
        if mode is not None:
            held = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if stat.S_IMODE(os.fstat(held).st_mode) != mode:
                    Path(f"/proc/self/fd/{held}").chmod(mode)
            finally:
                os.close(held)
        self.fd = os.open(root, _FOLDER)
        self._names: list[bytes] = []
        self._levels = [_TreeLevel(_inode(os.fstat(self.fd)), _NONE)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.go(b"")
        finally:
            os.close(self.fd)

    @property
    def path(self) -> bytes:
        """Returns the path of the present folder."""
        return b"/".join(self._names)

    def join(self, name: bytes) -> bytes:
        """Returns the path of something in this folder."""
        return b"/".join((*self._names, name))

    def down(self, name: bytes) -> None:
        """Enters a folder.

        Raises:
            FileNotFoundError, NotADirectoryError: There is none.
        """
        try:
            fd, mode = os.open(name, _FOLDER, dir_fd=self.fd), _NONE
        except PermissionError:
            fd, mode = self._forced(name, _FOLDER)
        else:
            bits = os.fstat(fd)
            if bits.st_mode & 0o700 != 0o700 and os.geteuid() and bits.st_uid == os.geteuid():
                mode = stat.S_IMODE(bits.st_mode)
                os.fchmod(fd, mode | 0o700)
        os.close(self.fd)
        self.fd = fd
        self._names.append(name)
        self._levels.append(_TreeLevel(_inode(os.fstat(fd)), mode))

    def up(self) -> None:
        """Leaves the folder.

        Raises:
            ImageError: It does not lie any more where it was entered.
        """
        above = os.open(b"..", _FOLDER, dir_fd=self.fd)
        mode = self._levels.pop().mode
        if mode != _NONE:
            os.fchmod(self.fd, mode)
        os.close(self.fd)
        self.fd = above
        self._names.pop()
        if _inode(os.fstat(above)) != self._levels[-1].inode:
            raise ImageError("a folder was moved while it was read: a program is still at work in it")

    def go(self, folder: bytes) -> None:
        """Enters any folder of the tree, by the shortest way."""
        names = folder.split(b"/") if folder else []
        common = 0
        for mine, other in zip(self._names, names, strict=False):
            if mine != other:
                break
            common += 1
        while len(self._names) > common:
            self.up()
        for name in names[common:]:
            self.down(name)

    def lstat(self, name: bytes) -> os.stat_result:
        """Returns the status of a name in this folder."""
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def names(self) -> Iterator[tuple[bytes, os.stat_result]]:
        """Everything in this folder. It may be left on the way only for good."""
        with os.scandir(self.fd) as found:
            for each in found:
                yield os.fsencode(each.name), each.stat(follow_symlinks=False)

    def opened(self, name: bytes) -> int:
        """Returns a descriptor to read a file; never of anything else."""
        try:
            return os.open(name, _READ, dir_fd=self.fd)
        except PermissionError:
            fd, mode = self._forced(name, _READ)
            os.fchmod(fd, mode)
            return fd

    def remove(self, name: bytes) -> None:
        """Deletes whatever has this name here, with all that is in it; nothing may."""
        try:
            is_folder = stat.S_ISDIR(self.lstat(name).st_mode)
        except FileNotFoundError:
            return
        if not is_folder:
            os.unlink(name, dir_fd=self.fd)
            return
        depth = len(self._names)
        self.down(name)
        while True:
            inner = self._emptied()
            if inner is not None:
                self.down(inner)
                continue
            done = self._names[-1]
            self.up()
            os.rmdir(done, dir_fd=self.fd)
            if len(self._names) == depth:
                return

    def make(self, name: bytes, entry: Entry) -> None:
        """Puts an entry where nothing is. Its time is not set."""
        if entry.kind == SYMLINK:
            os.symlink(entry.target, name, dir_fd=self.fd)
        elif entry.kind == FOLDER:
            os.mkdir(name, dir_fd=self.fd)
            self.chmod(name, entry.mode)
        else:
            fd = os.open(name, _MAKE, 0o600, dir_fd=self.fd)
            try:
                _pour(fd, entry.content)
                os.fchmod(fd, entry.mode)
            finally:
                os.close(fd)

    def chmod(self, name: bytes, mode: int) -> None:
        """Sets the permissions of a file or folder."""
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            Path(f"/proc/self/fd/{fd}").chmod(mode)
        finally:
            os.close(fd)

    def date(self, name: bytes, nanoseconds: int) -> None:
        """Sets the times."""
        os.utime(name, ns=(nanoseconds, nanoseconds), dir_fd=self.fd, follow_symlinks=False)

    def _emptied(self) -> bytes | None:
        """Deletes everything here but folders; returns the name of a folder that is left."""
        for name, status in list(self.names()):
            if stat.S_ISDIR(status.st_mode):
                return name
            os.unlink(name, dir_fd=self.fd)
        return None

    def _forced(self, name: bytes, flags: int) -> tuple[int, int]:
        """Opens a folder against its permissions; returns (descriptor, former permissions)."""
        held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            mode = stat.S_IMODE(os.fstat(held).st_mode)
            Path(f"/proc/self/fd/{held}").chmod(mode | 0o700)
            return os.open(name, flags, dir_fd=self.fd), mode
        finally:
            os.close(held)


def content(fd: int, *, most: int) -> Content:
    """Returns the content of a file, up to its size at the beginning. Holes are not read.

    Args:
        fd: The file.
        most: Bytes that may be stored.

    Raises:
        OverflowError: The file has more.
    """
    size = os.fstat(fd).st_size
    chunks: list[tuple[int, FileChunk]] = []
    kept = 0
    following = 0
    while following * CHUNK < size:
        try:
            data = os.lseek(fd, following * CHUNK, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # the rest is a hole
                raise
            break
        number = max(following, data // CHUNK)
        following = number + 1
        bytes_ = _slice(fd, number * CHUNK, min(CHUNK, size - number * CHUNK))
        made = chunk(bytes_) if bytes_ else None
        if made is not None:
            chunks.append((number, made))
            kept += made.size
            if kept > most:
                raise OverflowError
    return Content(size, chunks)


def _slice(fd: int, start: int, size: int) -> bytes:
    """Returns bytes of a file, with zeros beyond its end."""
    data = os.pread(fd, size, start)
    while len(data) < size:
        more = os.pread(fd, size - len(data), start + len(data))
        if not more:
            return data + bytes(size - len(data))
        data += more
    return data


def _pour(fd: int, held: Content) -> None:
    for number, one in held.chunks:
        data = memoryview(one.read())
        at = number * CHUNK
        while data:
            written = os.pwrite(fd, data, at)
            data, at = data[written:], at + written
    last = held.chunks[-1] if held.chunks else None
    if held.size and (last is None or last[0] * CHUNK + last[1].size < held.size):
        os.ftruncate(fd, held.size)


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def kind(status: os.stat_result) -> str | None:
    """Returns the kind of an entry; None for devices, sockets and pipes."""
    if stat.S_ISREG(status.st_mode):
        return FILE
    if stat.S_ISDIR(status.st_mode):
        return FOLDER
    return SYMLINK if stat.S_ISLNK(status.st_mode) else None
