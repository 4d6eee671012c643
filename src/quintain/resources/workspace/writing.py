"""Writes, each as a function from an image and a call to the changed entries."""

from __future__ import annotations

from collections.abc import Callable

from quintain.errors import ToolError

from .content import EMPTY, Content
from .images import FILE, FOLDER, SYMLINK, Delta, Entry, TreeImage
from .paths import Quota, QuotaExceeded, found, raw, resolve, shown

Changes = dict[bytes, Entry | None]


def put(image: TreeImage, path: str | bytes, change: Callable[[Content], Content], *, now: int) -> Changes:
    """Returns the changes that make a file, or replace its content."""
    at = resolve(image, path, made=True)
    entry = image.get(at)
    if entry is not None and entry.kind != FILE:
        raise ToolError(f"{shown(at) or '/workspace'!r} is a {entry.kind}")
    delta = folders(image, at, now=now)
    old = entry.content if entry else EMPTY
    delta[at] = Entry(FILE, entry.mode if entry else 0o644, now, content=change(old))
    return delta


def folder(image: TreeImage, path: str | bytes, *, now: int) -> Changes:
    """Returns the changes that make a folder, if it is missing."""
    at = resolve(image, path, made=True)
    entry = image.get(at)
    if entry is not None:
        if entry.kind != FOLDER:
            raise ToolError(f"{shown(at)!r} is there already, a {entry.kind}")
        return {}
    delta = folders(image, at, now=now)
    delta[at] = Entry(FOLDER, 0o755, now)
    return delta


def link(image: TreeImage, path: str | bytes, target: str | bytes, *, now: int) -> Changes:
    """Returns the changes that make a symlink."""
    at = _vacant(image, path)
    if image.get(at) is not None:
        raise ToolError(f"{shown(at)!r} is there already")
    pointed = raw(target)
    if not pointed:
        raise ToolError("a symlink needs a target")
    delta = folders(image, at, now=now)
    delta[at] = Entry(SYMLINK, 0o777, now, target=pointed)
    resolve(image.write(delta), at, made=True)  # refuses what leads outside
    return delta


def transfer(image: TreeImage, source: str | bytes, target: str | bytes, *, now: int, is_move: bool) -> Changes:
    """Returns the changes that move or copy a file, folder or symlink."""
    start, entry = found(image, source, follow=False)
    end = _vacant(image, target)
    if start == end:
        return {}
    if not start or end.startswith(start + b"/"):
        raise ToolError(f"{shown(start) or '/workspace'!r} cannot go into itself")
    inside = list(image.below(start)) if entry.kind == FOLDER else []
    delta = folders(image, end, now=now)
    # A copy is made now; what moves was written when it was.
    for path, one in [(start, entry), *inside]:
        delta[end + path[len(start) :]] = one.at(one.mtime if is_move else now)
    if is_move:
        delta |= dict.fromkeys([start, *(path for path, _ in inside)])
    return delta


def deletion(image: TreeImage, path: str | bytes, *, recursive: bool) -> Changes:
    """Returns the changes that delete a path, and everything below it."""
    at, _ = found(image, path, follow=False)
    if not at:
        raise ToolError("the workspace itself cannot be deleted")
    inside = [child for child, _ in image.below(at)]
    if inside and not recursive:
        raise ToolError(f"the folder {shown(at)!r} is not empty: it holds {len(inside)}")
    return dict.fromkeys([at, *inside])


def permissions(image: TreeImage, path: str | bytes, mode: int) -> Changes:
    """Returns the changes that set the permission bits of a file or folder."""
    at, entry = found(image, path)
    if not 0 <= mode <= 0o777:
        raise ToolError(f"permission bits are 0 to 0o777, got {mode:#o}")
    if not at:
        raise ToolError("the permissions of the workspace itself are fixed")
    return {at: entry.at(entry.mtime, mode=mode)}


def folders(image: TreeImage, path: bytes, *, now: int) -> Changes:
    """Returns the folders above a path that are missing."""
    delta: Changes = {}
    above = path.rpartition(b"/")[0]
    while above and image.get(above) is None:
        delta[above] = Entry(FOLDER, 0o755, now)
        above = above.rpartition(b"/")[0]
    return delta


def check(after: TreeImage, delta: Delta, quota: Quota, *, before: TreeImage | None = None) -> None:
    """Checks that an image is within a quota, or has not grown beyond it.

    Raises:
        QuotaExceeded: The image is beyond the quota.
    """
    for path, entry in delta.items():
        if entry is None:
            continue
        if len(path) > quota.path_length:
            raise QuotaExceeded(f"the path {shown(path[:40])}... has {len(path)} bytes, of {quota.path_length}")
        if entry.content.size > quota.file_size:
            raise QuotaExceeded(
                f"{shown(path)!r} would have {entry.content.size} bytes, of {quota.file_size} for a file"
            )
    if after.count > quota.inodes and (before is None or after.count > before.count):
        raise QuotaExceeded(f"the workspace would hold {after.count} entries, of {quota.inodes}")
    if after.stored > quota.bytes and (before is None or after.stored > before.stored):
        raise QuotaExceeded(f"the workspace would hold {after.stored} bytes, of {quota.bytes}")


def _vacant(image: TreeImage, path: str | bytes) -> bytes:
    """Returns the place of a new entry, or of a file to replace."""
    at = resolve(image, path, follow=False, made=True)
    entry = image.get(at)
    if entry is not None and entry.kind == FOLDER:
        raise ToolError(f"{shown(at) or '/workspace'!r} is a folder; give the new name in it")
    return at
