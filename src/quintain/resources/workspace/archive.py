"""Workspaces as tar archives: equal ones give equal bytes, and what is read in may be hostile."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from typing import IO, Any, cast

from quintain.errors import ToolError, UsageError

from .content import CHUNK, Content, FileChunk, chunk
from .images import FILE, FOLDER, SYMLINK, Entry, TreeImage
from .paths import Quota, QuotaExceeded, parts, raw, shown, text

_MOST = 2**30
"""Bytes of the files in an archive, their holes included."""
_AT_ONCE = 2**24
"""Bytes that are read at once; only a header that lies needs more."""
_HEADERS = 2**14
"""Bytes of the headers of one member."""
_TYPES = {FILE: tarfile.REGTYPE, FOLDER: tarfile.DIRTYPE, SYMLINK: tarfile.SYMTYPE}


def pack(image: TreeImage) -> bytes:
    """Returns a tar archive in the pax format, sorted by path, without owners.

    Raises:
        ToolError: It would be larger than the memory should hold: sparse files are written out.
    """
    whole = sum(entry.content.size for _, entry in image.below(b""))
    if whole > _MOST:
        raise ToolError(f"an archive would have {whole} bytes, at most {_MOST} are possible")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar:
        for path, entry in image.below(b""):
            member = tarfile.TarInfo(text(path))
            member.type = _TYPES[entry.kind]
            member.mode, member.mtime, member.linkname = entry.mode, entry.mtime, text(entry.target)
            member.size = entry.content.size
            tar.addfile(member, _Reader(entry.content) if entry.kind == FILE else None)
    return out.getvalue()


def unpack(source: bytes | IO[bytes], quota: Quota) -> dict[bytes, Entry]:
    """Returns the content of an archive; gzip is recognised. Of several members with one name the last counts.

    Raises:
        UsageError: The bytes are not a tar, or a member leads outside, through a symlink or to a device.
        QuotaExceeded: The content exceeds the quota.
    """
    file: IO[bytes] = io.BytesIO(source) if isinstance(source, bytes) else source
    zipped = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    most = max(quota.bytes, _MOST)
    stream: Any = _Guarded(gzip.GzipFile(fileobj=file) if zipped else file, most + _HEADERS * quota.inodes)
    try:
        with tarfile.open(fileobj=stream, mode="r:", encoding="utf-8") as tar:
            found = _members(tar, quota, most)
    except (UsageError, QuotaExceeded):
        raise
    except ToolError as error:
        raise UsageError(f"a member of the archive: {error}") from error
    except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, RecursionError) as error:
        raise UsageError(f"no tar archive: {error}") from error
    return with_folders(found)


def with_folders(files: dict[bytes, Entry]) -> dict[bytes, Entry]:
    """Returns these entries and their parent folders.

    Raises:
        UsageError: The parent of an entry is not a folder.
    """
    everything: dict[bytes, Entry] = {}
    for path in sorted(files):
        at = path.find(b"/")
        while at >= 0:
            parent = everything.setdefault(path[:at], files.get(path[:at]) or Entry(FOLDER, 0o755, 0))
            if parent.kind != FOLDER:
                raise UsageError(f"{shown(path)!r} stands in {shown(path[:at])!r}, which is a {parent.kind}")
            at = path.find(b"/", at + 1)
        everything[path] = files[path]
    return everything


class _Reader(io.RawIOBase):
    """A content as a file."""

    def __init__(self, held: Content) -> None:
        self._held = held
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        data = self._held.read(self._at, size)
        self._at += len(data)
        return data


class _Guarded:
    """A file that is not read at once or beyond what an honest archive needs."""

    def __init__(self, file: Any, most: int) -> None:
        self._file = file
        self._most = most

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _AT_ONCE:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return self._at(cast(bytes, self._file.read(size)))

    def seek(self, offset: int, whence: int = 0) -> int:
        if offset > self._most:
            raise tarfile.ReadError(f"it is longer than {self._most} bytes")
        return cast(int, self._file.seek(offset, whence))

    def tell(self) -> int:
        return cast(int, self._file.tell())

    def _at(self, data: bytes) -> bytes:
        if self._file.tell() > self._most:
            raise tarfile.ReadError(f"it is longer than {self._most} bytes")
        return data


def _members(tar: tarfile.TarFile, quota: Quota, most: int) -> dict[bytes, Entry]:
    found: dict[bytes, Entry] = {}
    size = 0
    for member in tar:
        path = _path(member.name)
        size += member.size
        if size > most or len(found) >= quota.inodes:
            raise QuotaExceeded(f"the archive holds more than {most} bytes or {quota.inodes} members")
        if path:
            found[path] = _entry(tar, member, found)
    return found


def _path(name: str) -> bytes:
    names = parts(raw(name))
    if b".." in names:
        raise UsageError(f"member {shown(name)!r} leads outside of the workspace")
    return b"/".join(names)


def _entry(tar: tarfile.TarFile, member: tarfile.TarInfo, found: dict[bytes, Entry]) -> Entry:
    mode, mtime = member.mode & 0o777, int(member.mtime)
    if not 0 <= mtime < 2**33:
        raise UsageError(f"member {shown(member.name)!r} is of the second {mtime}")
    if member.isdir():
        return Entry(FOLDER, mode, mtime)
    if member.issym():
        target = raw(member.linkname)
        if not target:
            raise UsageError(f"member {shown(member.name)!r} is a symlink without a target")
        return Entry(SYMLINK, 0o777, mtime, target=target)
    if member.islnk():
        other = found.get(_path(member.linkname))
        if other is None or other.kind != FILE:
            raise UsageError(f"member {shown(member.name)!r} is a hard link to no file before it")
        return other.at(mtime, mode=mode)
    if not member.isreg():
        raise UsageError(f"member {shown(member.name)!r} is neither file, folder nor link")
    return Entry(FILE, mode, mtime, content=_content(tar, member))


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Content:
    stream = tar.extractfile(member)
    assert stream is not None
    chunks: list[tuple[int, FileChunk]] = []
    for number in range(-(-member.size // CHUNK)):
        data = stream.read(min(CHUNK, member.size - number * CHUNK))
        if not data:
            raise UsageError(f"member {shown(member.name)!r} is cut off")
        made = chunk(data)
        if made is not None:
            chunks.append((number, made))
    return Content(member.size, chunks)
