"""Files as part of a world: read and written in Python or by programs, and copied, hashed and forked like plain data.

    images, content       the tree of files as an immutable value, and its chunks
    writing, finding      writes as functions of an image; search by path and by line
    paths, difference     names of files, and differences between two images
    bases, sources        first contents on disk, and where they come from
    staging, trees, disk  the same as a folder on disk, in which programs work
    dumps, archive        a workspace as bytes, and as a tar archive

A workspace is a pointer to an image. A write makes a new image and moves the pointer; a fork and a snapshot copy it. So
snapshots form a tree: each can be restored at any time. No disk is needed until a program wants one.
"""

from __future__ import annotations

import builtins
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, Self

from quintain.errors import ToolError, UsageError

from . import archive, bases, dumps, finding, sources, writing
from .content import ImageError, content
from .difference import FileChange, Stat, changes, stat
from .finding import Match
from .images import FILE, FOLDER, Delta, Entry, TreeImage
from .paths import Quota, QuotaExceeded, encoded, found, shown, text

__all__ = [
    "FileChange",
    "ImageError",
    "Match",
    "Quota",
    "QuotaExceeded",
    "Stat",
    "Workspace",
    "WorkspaceSnapshot",
    "shown",
]

_READ = 2**28
"""Bytes that one read gives at most: a sparse file may be larger than the memory."""

_swap = threading.Lock()


class _ClockLike(Protocol):
    now: float


class World(Protocol):
    """World whose clock dates the files."""

    @property
    def clock(self) -> _ClockLike: ...


class WorkspaceSnapshot:
    """Content of a workspace at one moment; `restore` brings it back, at any time and any number of times."""

    __slots__ = ("image",)

    def __init__(self, image: TreeImage) -> None:
        self.image = image


class Workspace:
    """Files, folders and symlinks, with O(1) `fork`, `snapshot`, `restore` and `digest`.

    Paths are relative, or begin with `/workspace/`; they are text or bytes. What is wrong with a call raises a
    ToolError, since paths come from the model. Folders that are missing on the way to a new file are made. Times are
    those of the world, when this is a field of a State; nothing that changes is older than what was there before.

    Args:
        files: What it begins with: a mapping from paths to contents, a folder on disk, or a `.tar` or `.tar.gz`. It is
            kept in the cache folder under its digest. Times of a folder on disk and of a mapping are 0.
        quota: How much it may hold.

    Attributes:
        image: The content.
        quota: How much it may hold.

    Raises:
        UsageError: `files` is none of these, or holds what no workspace can.
        QuotaExceeded: It is too much.
    """

    __slots__ = ("_world", "image", "quota")

    def __init__(self, files: Mapping[Any, str | bytes] | Path | None = None, *, quota: Quota | None = None) -> None:
        self.quota = quota or Quota()
        self._world: World | None = None
        self.image = TreeImage.on(bases.made(sources.entries(files, self.quota)))
        writing.check(self.image, self.image.base.layer, self.quota)

    @classmethod
    def _on(cls, image: TreeImage, quota: Quota) -> Self:
        workspace = object.__new__(cls)
        workspace.image, workspace.quota, workspace._world = image, quota, None
        return workspace

    def bind(self, world: World) -> None:
        """Takes the time from this world. A State does this for its fields, and for every copy."""
        self._world = world

    # -- reading

    def read(self, path: str | bytes, *, offset: int = 0, size: int | None = None) -> bytes:
        """Returns up to `size` bytes of a file from `offset`; all that follow without `size`."""
        at, entry = self._file(path)
        length = max(0, entry.content.size - offset) if size is None else min(size, entry.content.size)
        if offset < 0 or length < 0:
            raise ToolError(f"offset and size are 0 or more, got {offset} and {size}")
        if length > _READ:
            raise ToolError(f"{shown(at)!r} has {length} bytes; read at most {_READ} at once, with offset and size")
        return entry.content.read(offset, length)

    def text(self, path: str | bytes) -> str:
        """Returns a file as UTF-8 text, line ends as they are."""
        data = self.read(path)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ToolError(f"{shown(path)!r} is no text: byte {error.start} of {len(data)} is no UTF-8") from error

    def exists(self, path: str | bytes) -> bool:
        """True if a path leads to a file or folder; False for a broken symlink."""
        try:
            found(self.image, path)
        except ToolError:
            return False
        return True

    def stat(self, path: str | bytes, *, follow: bool = True) -> Stat:
        """Returns the metadata of a path; with `follow=False`, those of a symlink itself."""
        return stat(*found(self.image, path, follow=follow))

    def list(self, path: str | bytes = "") -> builtins.list[str]:
        """Names in a folder, sorted by their bytes."""
        folder = self._folder(path)
        return [text(child.rpartition(b"/")[2]) for child, _ in self.image.children(folder)]

    def walk(self, path: str | bytes = "") -> Iterator[Stat]:
        """Everything in a folder and in the folders in it, sorted by path as bytes. Symlinks are not followed."""
        return (stat(*each) for each in self.image.below(self._folder(path)))

    def glob(self, pattern: str) -> builtins.list[str]:
        """Returns paths that a pattern names, sorted: `*` and `?` within a name, `[...]`, and `**` for any folders."""
        return [text(path) for path in finding.glob(self.image, pattern)]

    def search(
        self, what: str | re.Pattern[str], path: str | bytes = "", *, glob: str = "**", limit: int = 1000
    ) -> builtins.list[Match]:
        """Returns lines of text files that hold `what`, sorted by path and line, `limit` at most.

        Args:
            what: Text that is looked for as it is, or a compiled pattern. A pattern that the model wrote may take
                forever: do not compile one.
            path: The folder, or the file, that is searched.
            glob: Which files in the workspace. Files that are not UTF-8, or larger than 16 MiB, are skipped.
            limit: Lines.
        """
        at, _ = found(self.image, path)
        return finding.search(self.image, what, at, glob=glob, limit=limit)

    # -- writing

    def write(self, path: str | bytes, data: str | bytes) -> None:
        """Makes a file, or replaces what it holds; text as UTF-8."""
        made = content(_bytes(data))
        self._change(lambda image, now: writing.put(image, path, lambda _: made, now=now))

    def append(self, path: str | bytes, data: str | bytes) -> None:
        """Adds to the end of a file, which is made if it is missing."""
        more = _bytes(data)
        self._change(lambda image, now: writing.put(image, path, lambda old: old.extended(more), now=now))

    def make_folder(self, path: str | bytes) -> None:
        """Makes a folder; one that is there stays as it is."""
        self._change(lambda image, now: writing.folder(image, path, now=now))

    def link(self, path: str | bytes, target: str | bytes) -> None:
        """Makes a symlink at `path` that points to `target`, which may be missing but not outside."""
        self._change(lambda image, now: writing.link(image, path, target, now=now))

    def move(self, source: str | bytes, target: str | bytes) -> None:
        """Gives a file, folder or symlink another path; a file that is there is replaced, a folder is not."""
        self._change(lambda image, now: writing.transfer(image, source, target, now=now, is_move=True))

    def copy(self, source: str | bytes, target: str | bytes) -> None:
        """Copies a file, a whole folder, or a symlink as such; a file that is there is replaced, a folder is not."""
        self._change(lambda image, now: writing.transfer(image, source, target, now=now, is_move=False))

    def delete(self, path: str | bytes, *, recursive: bool = False) -> None:
        """Deletes a file, a symlink, or a folder, which must be empty unless `recursive`."""
        self._change(lambda image, _: writing.deletion(image, path, recursive=recursive))

    def chmod(self, path: str | bytes, mode: int) -> None:
        """Sets permission bits, 0 to 0o777. They bind programs; Python reads and writes regardless."""
        self._change(lambda image, _: writing.permissions(image, path, mode))

    # -- a Resource

    def fork(self) -> Self:
        """Returns an independent twin, in O(1)."""
        twin = self._on(self.image, self.quota)
        twin._world = self._world
        return twin

    def dump(self) -> bytes:
        """Returns the name of the base and all that differs from it, with its bytes."""
        return dumps.dump(self.image, self.quota)

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Loads a dump, on any machine whose cache folder has the base.

        Raises:
            ImageError: The base is missing, or the bytes are not a dump of a workspace.
        """
        return cls._on(*dumps.load(data))

    def weight(self) -> int:
        """Returns the number of bytes that its files have beyond those of its base, in O(1)."""
        return max(0, self.image.stored - self.image.base.stored)

    def digest(self) -> str:
        """Names paths, contents, permissions, times and quota, in O(1): 32 hex digits, the same in every process."""
        return dumps.digest(self.image, self.quota)

    def __copy__(self) -> Self:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.fork()

    def __repr__(self) -> str:
        return f"Workspace({self.image.count} entries, {self.image.stored} bytes)"

    # -- a tree of snapshots, differences, archives

    def snapshot(self) -> WorkspaceSnapshot:
        """Returns a snapshot of the content."""
        return WorkspaceSnapshot(self.image)

    def restore(self, snapshot: WorkspaceSnapshot) -> None:
        """Restores the content of a snapshot of any workspace."""
        self.image = snapshot.image

    def diff(self, other: Workspace) -> builtins.list[FileChange]:
        """Returns the changes from this workspace to the other, by path, without those of the time alone.

        Costs O(changes) if both have one base.
        """
        return changes(self.image, other.image)

    def to_tar(self) -> bytes:
        """Returns a tar archive; equal workspaces give equal bytes."""
        return archive.pack(self.image)

    @classmethod
    def from_tar(cls, data: bytes, *, quota: Quota | None = None) -> Self:
        """Returns a workspace with the content of a tar archive, `.tar` or `.tar.gz`, with its times.

        Raises:
            UsageError: The bytes are not a tar, or a member of it leads outside or is a device.
            QuotaExceeded: The content exceeds the quota.
        """
        workspace = cls(quota=quota)
        workspace.image = TreeImage.on(bases.made(archive.unpack(data, workspace.quota)))
        writing.check(workspace.image, workspace.image.base.layer, workspace.quota)
        return workspace

    # -- inside

    def now(self) -> int:
        """Returns the time of what is written now: seconds since 1970, never before `image.floor`."""
        return max(int(self._world.clock.now) if self._world else 0, self.image.floor)

    def commit(self, before: TreeImage, delta: Delta, *, floor: int | None = None) -> TreeImage:
        """Replaces `before` by what it is with these entries, and returns that.

        Raises:
            QuotaExceeded: It would be too much; nothing has changed.
            UsageError: Another thread changed the workspace meanwhile.
        """
        after = before.write(delta, floor=floor)
        writing.check(after, delta, self.quota, before=before)
        with _swap:
            if self.image is not before:
                raise UsageError("a workspace is changed by one thread at a time; give the other one a fork")
            self.image = after
        return after

    def _change(self, write: Callable[[TreeImage, int], Delta]) -> None:
        before = self.image
        delta = write(before, self.now())
        if delta:
            self.commit(before, delta)

    def _file(self, path: str | bytes) -> tuple[bytes, Entry]:
        at, entry = found(self.image, path)
        if entry.kind != FILE:
            raise ToolError(f"{shown(at) or '/workspace'!r} is a {entry.kind}")
        return at, entry

    def _folder(self, path: str | bytes) -> bytes:
        at, entry = found(self.image, path)
        if entry.kind != FOLDER:
            raise ToolError(f"{shown(at)!r} is a {entry.kind}")
        return at


def _bytes(data: str | bytes) -> bytes:
    return data if isinstance(data, bytes) else encoded(data)
