"""A workspace as a folder on disk, in which programs work.

    stage      write a folder: for an overlay the differences from the base, else everything
    restage    push the changes of Python since                 O(changes)
    collect    take over the changes of programs since          O(differences from the base); a copy is read whole

A program finds the workspace's times, and its changes get the world's time when they are collected, on disk too: so
neither `ls -l` nor `make` depends on the time of the machine. Among the files of one collect, a few nanoseconds keep
their order on disk.

Files from a program may be hostile; see `disk.py`. Sockets, pipes and devices are not part of a workspace and are left
where they are. Hard links become files of their own, set-user-id bits are dropped, and so are owners, extended
attributes and access lists. While an overlay is mounted, only `collect` may be called, and only when no program runs;
the overlay does not show files that `restage` pushes.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from quintain.errors import UsageError

from . import Workspace
from .bases import EMPTY
from .difference import FileChange, changes
from .disk import Cursor, content, kind
from .images import FILE, FOLDER, SYMLINK, Entry
from .paths import Quota, QuotaExceeded
from .trees import SECOND, Tree, floor, look
from .writing import Changes


class Stage:
    """A folder on disk that holds what a workspace holds.

    Attributes:
        folder: What it was given.
        lower: For an overlay, the files of the base, read-only and shared by all; None for a copy.
        upper: For an overlay, what differs from the base, in overlayfs's own format; else everything.
        work: For an overlay, an empty folder; None for a copy.
        dirty: Whether what is in the folder is not to be collected: the next `restage` lays it out anew.
    """

    def __init__(self, folder: Path, tree: Tree, *, lower: Path | None) -> None:
        self.folder = folder
        self.lower = lower
        self.upper = tree.root
        self.work = None if lower is None else folder / "work"
        self.dirty = False
        self.tree = tree


class _Found(NamedTuple):
    entry: Entry | None
    """None where nothing of ours is: a whiteout, a socket."""
    status: os.stat_result
    is_written: bool = False
    """True if its bytes were written, or it is new."""
    is_opaque: bool = False
    is_known: bool = False
    """True if its status is unchanged."""

    @property
    def hides(self) -> bool:
        """True if the former entries below it are gone, except those that were found there."""
        return self.entry is None or self.entry.kind != FOLDER or self.is_opaque


def stage(workspace: Workspace, folder: Path, *, overlay: bool, userxattr: bool = False) -> Stage:
    """Lays a workspace out in a folder, which is made if it is missing.

    Args:
        workspace: What it holds.
        folder: On a file system that can hold it; for an overlay one that can be its upper layer.
        overlay: For a mount with `lowerdir=lower,upperdir=upper,workdir=work,redirect_dir=off,metacopy=off`; else
            `upper` is the folder in which programs work.
        userxattr: For an overlay mounted with `userxattr`, as one without privilege is.

    Raises:
        FileExistsError: The folder is in use.
        OSError: The disk is full, or refuses.
    """
    base = workspace.image.base
    lower = floor(base) if overlay else None
    upper = folder / "upper"
    upper.mkdir(parents=True)
    upper.chmod(0o755)
    tree = Tree(upper, base if overlay else EMPTY, prefix="user" if userxattr else "trusted")
    made = Stage(folder, tree, lower=lower)
    if made.work is not None:
        made.work.mkdir()
    tree.push(workspace.image)
    return made


def restage(workspace: Workspace, stage: Stage) -> None:
    """Pushes the changes of Python since the last stage, restage or collect. Collect those of programs first.

    Raises:
        UsageError: The workspace has another base than the stage.
        OSError: The disk is full, or refuses. The next `restage` writes everything anew.
    """
    tree = stage.tree
    if stage.lower is not None and workspace.image.base is not tree.base:
        raise UsageError(f"the stage stands on base {tree.base.digest}, the workspace on {workspace.image.base.digest}")
    if stage.dirty:
        tree.clear()
    stage.dirty = True
    tree.push(workspace.image)
    stage.dirty = False


def collect(workspace: Workspace, stage: Stage) -> list[FileChange]:
    """Takes the content of the folder over into the workspace; returns the changes, sorted by path.

    Raises:
        QuotaExceeded: The content exceeds the quota. The workspace is as before, and the next `restage` writes it anew.
        UsageError: The workspace was changed since the last `restage`, or that failed.
        ImageError: A program is still at work and moves folders.
    """
    tree, before = stage.tree, workspace.image
    if stage.dirty or before is not tree.image:
        raise UsageError("restage() first: the stage does not stand where the workspace stands")
    stage.dirty = True
    now = workspace.now()
    found = dict(_scan(tree, workspace.quota, now))
    delta = _delta(tree, found)
    after = workspace.commit(before, delta, floor=now + 1) if delta else before
    _settle(tree, found)
    tree.image = after
    stage.dirty = False
    return changes(before, after)


def _scan(tree: Tree, quota: Quota, now: int) -> Iterator[tuple[bytes, _Found]]:
    """Everything that stands in the tree, folders before what is in them."""
    most = max(quota.inodes, tree.image.count) + len(tree.below)
    reader = _FolderReader(tree, quota, now)
    todo: list[bytes] = [b""]
    count = 0
    with tree.cursor() as cursor:
        while todo:
            folder = todo.pop()
            cursor.go(folder)
            opaque = bool(folder) and tree.is_opaque(cursor)
            here: list[tuple[bytes, os.stat_result]] = []
            for each in cursor.names():
                count += 1
                if count > most:
                    raise QuotaExceeded(f"programs left more than {quota.inodes} files and folders")
                here.append(each)
            if opaque:
                yield folder, reader.folder(folder, os.fstat(cursor.fd), is_opaque=True)
            above = folder + b"/" if folder else b""
            for name, status in sorted(here, key=operator.itemgetter(0), reverse=True):
                path = above + name
                if len(path) > quota.path_length:
                    raise QuotaExceeded(f"programs left a path of more than {quota.path_length} bytes")
                yield path, reader.look(cursor, path, status)
                if kind(status) == FOLDER:
                    todo.append(path)


class _FolderReader:
    """Makes entries of what stands on disk; reads only what was touched."""

    def __init__(self, tree: Tree, quota: Quota, now: int) -> None:
        self._tree = tree
        self._most = max(quota.bytes, tree.image.stored)
        self._now = now
        self._kept = 0

    def look(self, cursor: Cursor, path: bytes, status: os.stat_result) -> _Found:
        name = path.rpartition(b"/")[2]
        what = kind(status)
        if what is None or self._tree.is_whiteout(cursor, name, status):
            return _Found(None, status)
        if what == FOLDER:
            return self.folder(path, status)
        return self._file(cursor, path, status)

    def folder(self, path: bytes, status: os.stat_result, *, is_opaque: bool = False) -> _Found:
        old = self._tree.image.get(path)
        mode = status.st_mode & 0o777
        if old is None or old.kind != FOLDER:
            entry = Entry(FOLDER, mode, self._now)
        else:
            entry = old if old.mode == mode else old.at(old.mtime, mode=mode)
        return _Found(entry, status, is_opaque=is_opaque)

    def _file(self, cursor: Cursor, path: bytes, status: os.stat_result) -> _Found:
        old = self._tree.image.get(path)
        seen = self._tree.seen.get(path)
        what = kind(status) or ""
        if old is not None and old.kind != what:
            old = None
        if old is not None and seen == look(status):
            return _Found(old, status, is_known=True)
        new = self._read(cursor, path, status)
        if old is None:
            return _Found(new, status, is_written=True)
        # What was copied up from the base, for its permissions or by a program that then wrote nothing, has its time.
        # Seconds decide: the nanoseconds that keep an order depend on how fast programs were.
        time = seen.mtime if seen else old.mtime * SECOND
        same = (new.content.digest, new.target) == (old.content.digest, old.target)
        if time // SECOND != status.st_mtime_ns // SECOND or not same:
            return _Found(new, status, is_written=True)
        kept = old if old.mode == new.mode else old.at(old.mtime, mode=new.mode)
        return _Found(kept, status)

    def _read(self, cursor: Cursor, path: bytes, status: os.stat_result) -> Entry:
        name = path.rpartition(b"/")[2]
        if kind(status) == SYMLINK:
            return Entry(SYMLINK, 0o777, self._now, target=os.readlink(name, dir_fd=cursor.fd))
        fd = cursor.opened(name)
        try:
            held = content(fd, most=self._most - self._kept)
        except OverflowError:
            raise QuotaExceeded(f"programs wrote more than {self._most} bytes") from None
        finally:
            os.close(fd)
        self._kept += held.stored
        return Entry(FILE, status.st_mode & 0o777, self._now, content=held)


def _delta(tree: Tree, found: dict[bytes, _Found]) -> Changes:
    """Returns the differences between the found entries and the tree's image."""
    before = tree.image
    new: Changes = {}
    for path, one in found.items():
        old = before.get(path)
        if one.entry is not old:
            new[path] = one.entry
        if one.hides and old is not None and old.kind == FOLDER:
            new |= {child: None for child, _ in before.below(path) if child not in found}
    for path in tree.seen.keys() - found.keys():  # what stood here and does not any more
        shown = None if _is_hidden(path, found) else tree.below.get(path)
        if shown is not before.get(path):
            new[path] = shown
    return dict(sorted(new.items()))


def _is_hidden(path: bytes, found: dict[bytes, _Found]) -> bool:
    above = path.rpartition(b"/")[0]
    while above:
        one = found.get(above)
        if one is not None and one.hides:
            return True
        above = above.rpartition(b"/")[0]
    return False


def _settle(tree: Tree, found: dict[bytes, _Found]) -> None:
    """Gives what was written its new time on disk, and remembers how everything looks."""
    times = {one.status.st_mtime_ns for one in found.values() if one.is_written}
    order = {time: rank for rank, time in enumerate(sorted(times))}
    tree.opaque = {path for path, one in found.items() if one.is_opaque}
    for path in tree.seen.keys() - found.keys():
        del tree.seen[path]
    with tree.cursor() as cursor:
        for path, one in sorted((path, one) for path, one in found.items() if not one.is_known):
            if one.entry is None:
                tree.seen.pop(path, None)
                continue
            time = one.entry.mtime * SECOND
            if one.is_written:
                time += order[one.status.st_mtime_ns]
            elif one.entry.kind != FOLDER:
                time = one.status.st_mtime_ns
            status = one.status
            if status.st_mtime_ns != time:
                folder, _, name = path.rpartition(b"/")
                cursor.go(folder)
                if look(cursor.lstat(name))[:3] == look(status)[:3]:  # else it changed meanwhile, and is read again
                    cursor.date(name, time)
                    status = cursor.lstat(name)
            tree.see(path, status)
        cursor.go(b"")
        os.utime(cursor.fd, ns=(0, 0))
