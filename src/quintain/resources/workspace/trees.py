"""From images to files on disk: only what differs is touched.

For an overlay the disk holds what differs from the base, in overlayfs's own words: a path of the base that is gone is a
whiteout (a character device 0:0), and a folder that hides the base's folder is marked opaque.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

from .bases import EMPTY
from .content import cache
from .disk import Cursor
from .images import FOLDER, ROOT, Base, Entry, Layer, TreeImage

SECOND = 10**9
"""One second in nanoseconds."""


class Seen(NamedTuple):
    """Status of a file when it agreed with the image; if equal, it was not touched since."""

    inode: int
    size: int
    mtime: int
    """Modification time in nanoseconds."""
    ctime: int
    """Change time in nanoseconds."""


def look(status: os.stat_result) -> Seen:
    """Returns the present status of a file."""
    return Seen(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class Tree:
    """A folder on disk that follows an image.

    Attributes:
        root: The folder.
        base: What an overlay shows through it; the empty base for a plain copy.
        below: The entries of that.
        prefix: Of the extended attributes that overlayfs reads: "trusted" or "user".
        image: What it holds.
        seen: How everything looked that stands in it.
        opaque: Folders in it through which the base does not show.
    """

    def __init__(self, root: Path, base: Base = EMPTY, *, prefix: str = "trusted") -> None:
        self.root = root
        self.base = base
        self.below: Layer = base.layer
        self.prefix = prefix
        self.image = TreeImage.on(base)
        self.seen: dict[bytes, Seen] = {}
        self.opaque: set[bytes] = set()

    def cursor(self) -> Cursor:
        """Returns a cursor in the root, whose permissions are reset: a program may have changed them."""
        return Cursor(self.root, mode=0o755)

    def push(self, after: TreeImage) -> None:
        """Changes the folder to another image. Costs O(changes)."""
        paths = self.image.changed(after)
        if paths:
            touched: set[bytes] = set()
            with self.cursor() as cursor:
                self._remove(cursor, paths, after=after, touched=touched)
                for path in paths:
                    entry = after.get(path)
                    if entry is not None:
                        self._put(cursor, path, entry, touched=touched)
                self._dates(cursor, after, touched)
        self.image = after

    def clear(self) -> None:
        """Deletes everything, so that what it holds is known again: the base."""
        with self.cursor() as cursor:
            for name, _ in list(cursor.names()):
                cursor.remove(name)
        self.image = TreeImage.on(self.base)
        self.seen, self.opaque = {}, set()

    def is_whiteout(self, cursor: Cursor, name: bytes, status: os.stat_result) -> bool:
        """True if the entry is a whiteout, which deletes a path of the base."""
        if not self._overlays():
            return False
        if stat.S_ISCHR(status.st_mode):
            return not status.st_rdev
        if not stat.S_ISREG(status.st_mode) or status.st_size:
            return False
        fd = cursor.opened(name)
        try:
            return f"{self.prefix}.overlay.whiteout" in os.listxattr(fd)
        finally:
            os.close(fd)

    def is_opaque(self, cursor: Cursor) -> bool:
        """True if the cursor is in a folder that hides the base's."""
        name = f"{self.prefix}.overlay.opaque"
        return self._overlays() and name in os.listxattr(cursor.fd) and os.getxattr(cursor.fd, name) == b"y"

    def _overlays(self) -> bool:
        return bool(self.below)

    def _remove(self, cursor: Cursor, paths: list[bytes], *, after: TreeImage, touched: set[bytes]) -> None:
        """Removes entries that are gone, or change their kind."""
        gone: set[bytes] = set()
        for path in paths:
            old, new = self.image.get(path), after.get(path)
            if new is None:
                self.seen.pop(path, None)
            folder, _, name = path.rpartition(b"/")
            if old is None or (new is not None and old.kind == new.kind == FOLDER):
                continue
            gone.add(path)
            self.opaque.discard(path)
            if folder in gone:  # it went with that
                continue
            self._enter(cursor, folder, image=after, touched=touched)
            cursor.remove(name)
            if new is None and path in self.below and self._shows(folder):
                os.mknod(name, stat.S_IFCHR, os.makedev(0, 0), dir_fd=cursor.fd)
            touched.add(folder)

    def _shows(self, folder: bytes) -> bool:
        """True if the base shows through a folder. In an opaque one, a whiteout would be visible to programs."""
        while folder and self.opaque:
            if folder in self.opaque:
                return False
            folder = folder.rpartition(b"/")[0]
        return True

    def _put(self, cursor: Cursor, path: bytes, entry: Entry, *, touched: set[bytes]) -> None:
        folder, _, name = path.rpartition(b"/")
        old = self.image.get(path)
        if entry.kind == FOLDER and old is not None and old.kind == FOLDER:
            self._enter(cursor, path, image=self.image, touched=touched)
            cursor.go(folder)
            cursor.chmod(name, entry.mode)
            touched.add(path)
            return
        self._enter(cursor, folder, image=self.image, touched=touched)
        touched.add(folder)
        cursor.remove(name)
        cursor.make(name, entry)
        if entry.kind == FOLDER:
            touched.add(path)
            hidden = self.below.get(path)
            if hidden is not None and hidden.kind == FOLDER and self._shows(folder):
                cursor.down(name)
                os.setxattr(cursor.fd, f"{self.prefix}.overlay.opaque", b"y")
                self.opaque.add(path)
                cursor.up()
        else:
            cursor.date(name, entry.mtime * SECOND)
        self.see(path, cursor.lstat(name))

    def see(self, path: bytes, status: os.stat_result) -> None:
        """Records the status of an entry."""
        self.seen[path] = look(status)

    def _enter(self, cursor: Cursor, folder: bytes, *, image: TreeImage, touched: set[bytes]) -> None:
        """Goes to a folder, which is taken up from the base where only that has it."""
        if not self._overlays() or folder == cursor.path:
            cursor.go(folder)
            return
        names = folder.split(b"/") if folder else []
        for depth in range(1, len(names) + 1):
            path = b"/".join(names[:depth])
            if path in self.seen:
                continue
            cursor.go(b"/".join(names[: depth - 1]))
            entry = image.get(path) or ROOT
            cursor.make(names[depth - 1], entry)
            self.see(path, cursor.lstat(names[depth - 1]))
            touched.add(path)
        cursor.go(folder)

    def _dates(self, cursor: Cursor, image: TreeImage, folders: set[bytes]) -> None:
        for path in sorted(folders):
            entry = image.get(path)
            if entry is None or not path:
                continue
            folder, _, name = path.rpartition(b"/")
            cursor.go(folder)
            cursor.date(name, entry.mtime * SECOND)
        cursor.go(b"")
        os.utime(cursor.fd, ns=(0, 0))


def floor(base: Base) -> Path:
    """Returns the folder of a base's files, read-only and shared; written at the first call.

    Raises:
        OSError: The cache folder cannot be written. Nothing is left in it then.
    """
    path = cache() / f"{base.digest or 'empty'}.tree"
    if path.is_dir():
        return path
    cache().mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=cache()))
    tree = Tree(temporary)
    try:
        tree.push(TreeImage.on(base))
        temporary.chmod(0o755)
        os.utime(temporary, ns=(0, 0))
        if _placed(temporary, path):
            return path
    except BaseException:
        tree.clear()
        temporary.rmdir()
        raise
    tree.clear()
    temporary.rmdir()
    return path


def _placed(temporary: Path, path: Path) -> bool:
    """Gives a tree its name; False where another process was first."""
    try:
        temporary.rename(path)
    except OSError:
        if not path.is_dir():
            raise
        return False
    return True
