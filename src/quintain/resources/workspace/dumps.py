"""A workspace as bytes: the name of its base, all that differs from it, and the chunks that the base does not have."""

from __future__ import annotations

import collections

import msgspec

from quintain import codec

from . import bases
from .content import FileChunk, ImageError, content
from .images import FOLDER, Delta, Entry, TreeImage
from .paths import Quota

_FORMAT = "quintain workspace 1"


class _Dump(msgspec.Struct, array_like=True):
    format: str
    base: str
    quota: Quota
    floor: int
    rows: list[bases.Row]
    gone: list[bytes]
    chunks: list[bytes]


def dump(image: TreeImage, quota: Quota) -> bytes:
    """Equal images on one base give equal bytes."""
    below = image.base.layer
    known = image.base.chunks
    rows: list[bases.Row] = []
    gone: list[bytes] = []
    chunks: dict[bytes, FileChunk] = {}
    for path, entry in sorted(image.entries.changes().items()):
        old = below.get(path)
        if entry is None:
            gone += [path] if old else []
        elif old is None or old.weigh(path) != entry.weigh(path):
            rows.append(bases.row(path, entry))
            chunks |= {chunk.digest: chunk for _, chunk in entry.content.chunks if chunk.digest not in known}
    data = [chunks[digest].read() for digest in sorted(chunks)]
    return codec.dumps(_Dump(_FORMAT, image.base.digest, quota, image.floor, rows, gone, data))


def load(data: bytes) -> tuple[TreeImage, Quota]:
    """Returns the image and the quota of a dump.

    Raises:
        ImageError: The bytes are not a dump of a workspace, or the cache folder does not have the base.
    """
    try:
        dumped = codec.loads(data, _Dump)
    except msgspec.DecodeError as error:
        raise ImageError(f"no dump of a workspace: {error}") from error
    if dumped.format != _FORMAT:
        raise ImageError(f"no dump of a workspace: a {dumped.format!r}")
    base = bases.find(dumped.base)
    brought = {chunk.digest: chunk for one in dumped.chunks for _, chunk in content(one).chunks}
    chunks = collections.ChainMap(brought, base.chunks)
    try:
        delta: dict[bytes, Entry | None] = dict(bases.entries(dumped.rows, chunks))
        delta |= dict.fromkeys(dumped.gone)
        image = TreeImage.on(base).write(delta, floor=dumped.floor)
        _hangs_together(image, delta)
    except (KeyError, ValueError, OverflowError) as error:
        raise ImageError(f"no dump of a workspace: {error!r}") from error
    return image, dumped.quota


def _hangs_together(image: TreeImage, delta: Delta) -> None:
    for path, entry in delta.items():
        parent = image.get(path.rpartition(b"/")[0])
        if entry is not None and (parent is None or parent.kind != FOLDER):
            raise ValueError(f"{path!r} stands in no folder")
        if (entry is None or entry.kind != FOLDER) and next(image.below(path), None) is not None:
            raise ValueError(f"{path!r} is not a folder, and something is in it")


def digest(image: TreeImage, quota: Quota) -> str:
    """Equal for workspaces that will behave alike."""
    return codec.digest(codec.dumps((image.digest(), quota)))
