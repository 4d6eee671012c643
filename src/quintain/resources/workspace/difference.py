"""Metadata of files, and the differences between two images."""

from __future__ import annotations

from typing import Literal, cast

import msgspec

from .images import Entry, TreeImage
from .paths import text

Kind = Literal["file", "folder", "symlink"]


class Stat(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of a path.

    Attributes:
        path: Relative to the workspace; empty for itself. Bytes that are not UTF-8 are surrogates: see `shown`.
        kind: "file", "folder" or "symlink".
        mode: Permission bits, 0 to 0o777.
        mtime: Last write, for a folder its creation: seconds since 1970.
        size: Bytes of a file or of a symlink's target, 0 for a folder.
        target: Target of a symlink, else empty.
        digest: Digest of the bytes of a file, 40 hex digits; empty for others.
    """

    path: str
    kind: Kind
    mode: int
    mtime: int
    size: int
    target: str = ""
    digest: str = ""


class FileChange(msgspec.Struct, frozen=True):
    """A path at which two workspaces differ.

    Attributes:
        path: Relative to the workspace.
        before: What the first holds; None for nothing.
        after: What the second holds; None for nothing.
    """

    path: str
    before: Stat | None
    after: Stat | None


def stat(path: bytes, entry: Entry) -> Stat:
    return Stat(
        path=text(path),
        kind=cast(Kind, entry.kind),
        mode=entry.mode,
        mtime=entry.mtime,
        size=len(entry.target) or entry.content.size,
        target=text(entry.target),
        digest=entry.content.digest.hex() if entry.kind == "file" else "",
    )


def changes(before: TreeImage, after: TreeImage) -> list[FileChange]:
    """Returns the changes between two images, sorted by path, without those of the time alone."""
    found: list[FileChange] = []
    for path in before.changed(after):
        old, new = before.get(path), after.get(path)
        if old is None or not old.like(new):
            found.append(FileChange(text(path), stat(path, old) if old else None, stat(path, new) if new else None))
    return found
