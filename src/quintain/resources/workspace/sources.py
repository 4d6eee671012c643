"""Sources of a workspace's files: a mapping, a folder on disk, a tar archive."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from quintain.errors import ToolError, UsageError

from . import archive
from .content import content
from .disk import Cursor, kind
from .disk import content as content_of
from .images import FILE, FOLDER, SYMLINK, Entry
from .paths import Quota, QuotaExceeded, encoded, parts, raw, shown

Entries = dict[bytes, Entry]


def entries(files: object, quota: Quota) -> Entries:
    """Returns the first entries of a workspace, with all folders.

    Raises:
        UsageError: The object is not a source.
        QuotaExceeded: The content exceeds the quota.
    """
    if files is None:
        return {}
    if isinstance(files, Mapping):
        return _mapping(cast(Mapping[object, object], files))
    if not isinstance(files, Path):
        raise UsageError(f"a workspace begins with a mapping, a Path or nothing, not with a {type(files).__name__}")
    if files.is_dir():
        return _folder(files, quota)
    if not files.is_file():
        raise UsageError(f"{files} is neither a folder nor a tar archive")
    with files.open("rb") as file:
        return archive.unpack(file, quota)


def _mapping(files: Mapping[object, object]) -> Entries:
    found: Entries = {}
    for path, data in files.items():
        try:
            names = parts(raw(path)) if isinstance(path, str | bytes) else []
        except ToolError as error:
            raise UsageError(f"the path {path!r}: {error}") from error
        if not names or b".." in names:
            raise UsageError(f"{path!r} is not a path of a file in a workspace")
        if not isinstance(data, str | bytes):
            raise UsageError(f"{path!r} holds a {type(data).__name__}, where text or bytes were expected")
        held = content(data if isinstance(data, bytes) else encoded(data))
        found[b"/".join(names)] = Entry(FILE, 0o644, 0, content=held)
    return archive.with_folders(found)


def _folder(root: Path, quota: Quota) -> Entries:
    """Returns a folder on disk. What is neither file, folder nor symlink is refused, since the author put it there."""
    found: Entries = {}
    kept = 0
    todo = [b""]
    with Cursor(root) as cursor:
        while todo:
            cursor.go(todo.pop())
            for name, status in sorted(cursor.names()):
                path, what, mode = cursor.join(name), kind(status), status.st_mode & 0o777
                if what == FOLDER:
                    found[path] = Entry(FOLDER, mode, 0)
                    todo.append(path)
                elif what == SYMLINK:
                    found[path] = Entry(SYMLINK, 0o777, 0, target=os.readlink(name, dir_fd=cursor.fd))
                elif what == FILE:
                    fd = cursor.opened(name)
                    try:
                        found[path] = Entry(FILE, mode, 0, content=content_of(fd, most=quota.bytes - kept))
                    except OverflowError:
                        raise QuotaExceeded(f"{root} holds more than {quota.bytes} bytes") from None
                    finally:
                        os.close(fd)
                    kept += found[path].content.stored
                else:
                    raise UsageError(f"{root}/{shown(path)} is neither file, folder nor symlink")
            if len(found) > quota.inodes:
                raise QuotaExceeded(f"{root} holds more than {quota.inodes} files and folders")
    return found
