"""Names of files: from what a model wrote to a path in the image, and back to text that it can read.

A workspace is seen as mounted at `/workspace`. So `/workspace/a`, `a` and `./b/../a` are one file, and nothing outside
can be named: not by `..`, not by another absolute path, not by a symlink. Paths come from the model, so what is wrong
with one is a ToolError.
"""

from __future__ import annotations

import msgspec

from quintain.errors import ToolError

from .images import FOLDER, SYMLINK, Entry, TreeImage

MOUNT = b"/workspace"
_LINKS = 40
"""Symlinks that one path may lead through, as on Linux."""
_NAME = 255
"""Bytes of one name, as on Linux."""


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a workspace.

    Attributes:
        bytes: Sum over its files, in bytes. Megabytes of zeros between data are free; data that forks share counts in
            each.
        inodes: Files, folders and symlinks.
        path_length: Bytes of one path.
        file_size: Bytes of one file, its holes included.
    """

    bytes: int = 2**30
    inodes: int = 200_000
    path_length: int = 4095
    file_size: int = 2**40


class QuotaExceeded(ToolError):
    """The workspace would hold more than its quota; it is as it was before."""


def shown(path: str | bytes) -> str:
    """Returns a path as text that can be encoded: bytes that are not UTF-8 become hexadecimal escapes."""
    raw = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
    return raw.decode("utf-8", "backslashreplace")


def text(path: bytes) -> str:
    """Returns a path as str that names the same file again; it can be encoded if the path is UTF-8."""
    return path.decode("utf-8", "surrogateescape")


def raw(path: str | bytes) -> bytes:
    """Returns the bytes of a path.

    Raises:
        ToolError: They hold a NUL, or the text is none.
    """
    data = path if isinstance(path, bytes) else encoded(path, errors="surrogateescape")
    if b"\0" in data:
        raise ToolError(f"the path {shown(data.replace(bytes(1), b'?'))!r} holds a NUL byte")
    return data


def encoded(words: str, *, errors: str = "strict") -> bytes:
    """UTF-8.

    Raises:
        ToolError: The text has half of a surrogate pair; a model can write that in JSON.
    """
    try:
        return words.encode("utf-8", errors)
    except UnicodeEncodeError as error:
        raise ToolError(f"UTF-8 cannot hold U+{ord(words[error.start]):04X}") from error


def parts(path: bytes, *, of: bytes = b"") -> list[bytes]:
    """Returns the names of a path, without empty ones and dots; relative to the workspace.

    Args:
        path: Relative, or below `/workspace`.
        of: The symlink that says so; empty for a path that was given.

    Raises:
        ToolError: It is another absolute path, or a name in it is too long.
    """
    if path.startswith(b"/"):
        names = [name for name in path.split(b"/") if name and name != b"."]
        if not names or names.pop(0) != MOUNT[1:]:
            raise _outside(of or path)
    else:
        names = [name for name in path.split(b"/") if name and name != b"."]
    for name in names:
        if len(name) > _NAME:
            raise ToolError(f"the name {shown(name[:20])}... has {len(name)} bytes, at most {_NAME} are possible")
    return names


def resolve(image: TreeImage, path: str | bytes, *, follow: bool = True, made: bool = False) -> bytes:
    """Returns the destination of a path, which need not exist.

    Args:
        image: The files.
        path: As the model wrote it.
        follow: True to follow a symlink at its end.
        made: True if folders on the way may be missing.

    Raises:
        ToolError: The path leads outside, in circles, or through a missing folder or a file.
    """
    given = raw(path)
    todo = parts(given)[::-1]
    here = b""
    links = 0
    while todo:
        name = todo.pop()
        if name == b"..":
            if not here:
                raise _outside(given)
            here = here.rpartition(b"/")[0]
            continue
        step = b"%s/%s" % (here, name) if here else name
        entry = image.get(step)
        if entry is not None and entry.kind == SYMLINK and (follow or todo):
            links += 1
            if links > _LINKS:
                raise ToolError(f"{shown(given)!r} leads through more than {_LINKS} symlinks")
            todo += parts(entry.target, of=given)[::-1]
            if entry.target.startswith(b"/"):
                here = b""
            continue
        if todo and (entry is None or entry.kind != FOLDER):
            if entry is not None:
                raise ToolError(f"{shown(step)!r} is no folder")
            if not made or b".." in todo:
                raise missing(step)
        here = step
    return here


def found(image: TreeImage, path: str | bytes, *, follow: bool = True) -> tuple[bytes, Entry]:
    """Returns the destination of a path, and its entry.

    Raises:
        ToolError: The destination does not exist.
    """
    at = resolve(image, path, follow=follow)
    entry = image.get(at)
    if entry is None:
        raise missing(at if follow else raw(path))
    return at, entry


def missing(path: bytes) -> ToolError:
    """Returns the error for a path that does not exist."""
    return ToolError(f"there is no {shown(path)!r}")


def _outside(path: bytes) -> ToolError:
    return ToolError(
        f"{shown(path)!r} leads outside of the workspace; paths are relative, or begin with {text(MOUNT)}/"
    )
