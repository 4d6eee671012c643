"""Base images on disk: each database is seeded once, named by its content, and mapped by every process that needs it.

In the cache folder, which `QUINTAIN_CACHE` names (`~/.cache/quintain` when it is not set), stand

    databases/<digest of the bytes>.db     an ordinary SQLite file
    databases/<digest of the recipe>.key   the name of the image that this recipe made

A recipe is schema, roles and source of the seed (`sources.py`), with the versions of SQLite and of this format. Files
are put there by one rename, so that processes may build at the same time, and one that is killed leaves nothing
half-written under a name. Bytes are compared with their name when a process maps them first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from quintain.errors import QuintainError

from .connection import retire
from .pages import SIZE, Base, PageImage

_KEPT = 16
"""Bases whose connections are kept warm; of more, those opened first are closed."""

_NAME = re.compile("[0-9a-f]{32}")

EMPTY = Base()
"""Base of a database without a schema."""

_opened: dict[str, Base] = {}
_lock = threading.RLock()


class ImageError(QuintainError, ValueError):
    """Error for bytes that are not an image of a database, or whose base is not on this machine."""


def folder() -> Path:
    """Returns the folder of the base images."""
    return Path(os.environ.get("QUINTAIN_CACHE") or Path.home() / ".cache" / "quintain") / "databases"


def find(digest: str) -> Base:
    """Returns the base of this name.

    Raises:
        ImageError: The cache folder does not have it, or has other bytes under its name.
    """
    if not digest:
        return EMPTY
    if not _NAME.fullmatch(digest):
        raise ImageError(f"{digest!r} is not a digest of a base image")
    with _lock:
        found = _opened.get(digest)
        if found is not None:
            return found
        path = folder() / f"{digest}.db"
        try:
            true = _digest(path)
        except FileNotFoundError:
            raise ImageError(f"base image {digest} is not in {folder()}; build the same database here first") from None
        if true != digest:
            raise ImageError(f"{path} was changed: its bytes have the digest {true}")
        base = _opened[digest] = Base(path, digest)
        for old in list(_opened)[:-_KEPT]:
            retire(_opened.pop(old))
        return base


def made(recipe: str | None, build: Callable[[], PageImage]) -> Base:
    """Returns the base that a recipe makes: from the cache, or built now.

    Args:
        recipe: Digest of everything that decides the content; None where that is not known, so it is built each time.
        build: Makes the content.
    """
    with _lock:
        key = folder() / f"{recipe}.key"
        if recipe is not None and key.exists():
            with contextlib.suppress(ImageError):  # changed or gone: it is built again
                return find(key.read_text("ascii", "replace") or "an empty file")
        image = build()
        if not image.count:
            return EMPTY
        digest = store(image.chunks())
        if recipe is not None:
            _write(key, [digest.encode()])
        return find(digest)


def store(chunks: Iterable[bytes]) -> str:
    """Puts an image into the cache folder; its digest."""
    hasher = hashlib.blake2b(digest_size=16)

    def hashed() -> Iterable[bytes]:
        for chunk in chunks:
            hasher.update(chunk)
            yield chunk

    folder().mkdir(parents=True, exist_ok=True)
    _write(folder() / "new", hashed(), name=lambda: f"{hasher.hexdigest()}.db")
    return hasher.hexdigest()


def _write(path: Path, chunks: Iterable[bytes], name: Callable[[], str] | None = None) -> None:
    """Writes a file that is there entirely or not at all; `name` is asked for its name when it is written."""
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(chunks)
        Path(temporary).replace(path.with_name(name()) if name else path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _digest(path: Path) -> str:
    if path.stat().st_size % SIZE:
        return f"of no image, for {path.stat().st_size} bytes are no pages"
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
