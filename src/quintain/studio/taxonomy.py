"""Taxonomy of failure modes: a TOML file of the team; the one of this package is its beginning."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Self

import msgspec

from quintain import codec
from quintain.errors import UsageError

from .reviews import OWNERS

FILE = "taxonomy.toml"
SHIPPED = Path(__file__).with_name(FILE)
RESERVED = "gjkmnprsuy"
"""Letters that are other keys of the review screen."""


class Mode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Kind of failure.

    Attributes:
        id: Owner and name, such as "env.stale_read"; it never changes.
        means: One sentence.
        class_: Class of the audit, where it is one.
        key: Letter of the review screen.
        example: Address of an episode that shows it.
        merged: Mode that replaces this one.
    """

    id: Annotated[str, msgspec.Meta(pattern=r"^[a-z]+\.[a-z0-9_]+$")]
    title: str = ""
    means: str = ""
    class_: str = msgspec.field(default="", name="class")
    key: Annotated[str, msgspec.Meta(pattern="^[a-z]?$")] = ""
    example: str = ""
    merged: str = ""

    @property
    def owner(self) -> str:
        return self.id.partition(".")[0]


class Taxonomy(msgspec.Struct, frozen=True, kw_only=True):
    """Modes of failure, and the revision that reviews name."""

    version: int
    revision: int
    mode: tuple[Mode, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Taxonomy:
        """Returns the taxonomy of a TOML text.

        Raises:
            UsageError: The text is not a taxonomy; the message names each fault.
        """
        try:
            found = msgspec.convert(tomllib.loads(text), cls)
        except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise UsageError(f"this is not a taxonomy: {error}") from error
        if faults := list(found.faults()):
            raise UsageError(f"the taxonomy has faults: {'; '.join(faults)}")
        return found

    def faults(self) -> Iterator[str]:
        if self.version != 1:
            yield f"its version is {self.version}, this program reads version 1"
        ids, keys = set[str](), set[tuple[str, str]]()
        for mode in self.mode:
            if mode.owner not in OWNERS:
                yield f"{mode.id}: the owner is one of {', '.join(OWNERS)}"
            if mode.id in ids:
                yield f"{mode.id} stands there twice"
            if mode.key and mode.key in RESERVED:
                yield f"{mode.id}: the key {mode.key!r} has another meaning on the review screen"
            if mode.key and (mode.owner, mode.key) in keys:
                yield f"{mode.id}: another mode of {mode.owner} has the key {mode.key!r}"
            ids.add(mode.id)
            keys.add((mode.owner, mode.key))
        for mode in self.mode:
            if mode.merged and (mode.merged not in ids or self.resolve(mode.id) is None):
                yield f"{mode.id}: it is merged into {mode.merged!r}, which is not a mode or merged back into it"

    def resolve(self, name: str) -> str | None:
        """Returns the mode that an id counts as; itself if the taxonomy lacks it, None for a circle."""
        merged = {mode.id: mode.merged for mode in self.mode if mode.merged}
        seen = set[str]()
        while name in merged:
            if name in seen:
                return None
            seen.add(name)
            name = merged[name]
        return name


class TaxonomyFile:
    """Taxonomy of the folder that the studio was opened with; that of this package until the team writes its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    @classmethod
    def of_run(cls, folder: Path) -> Self:
        """Returns that of a run folder, by default that of the folder around it."""
        return cls(folder if (folder / FILE).is_file() else folder.parent)

    def read(self) -> tuple[str, str]:
        """Returns the text and its tag, which a writer must name."""
        path = self.path if self.path.is_file() else SHIPPED
        text = path.read_text("utf-8")
        return text, codec.digest(text.encode())

    def taxonomy(self) -> Taxonomy:
        return Taxonomy.parse(self.read()[0])

    def write(self, text: str, tag: str) -> None:
        """Replaces the text, unless another editor has replaced it since `tag` was read.

        Raises:
            UsageError: It was replaced, it has faults, its revision is not higher, or it lacks a mode of before.
        """
        before, now = self.read()
        if tag != now:
            raise UsageError("another editor has changed the taxonomy since you loaded it; load it again")
        old, new = Taxonomy.parse(before), Taxonomy.parse(text)
        if new.revision <= old.revision:
            raise UsageError(f"the revision must be above {old.revision}, got {new.revision}")
        if lost := {mode.id for mode in old.mode} - {mode.id for mode in new.mode}:
            raise UsageError(
                f"modes are merged, never removed, for reviews name them; missing: {', '.join(sorted(lost))}"
            )
        part = self.path.with_name(f"{FILE}-{os.getpid()}")
        try:
            part.write_text(text, "utf-8")
            part.replace(self.path)
        except OSError as error:
            raise UsageError(f"cannot write {str(self.path)!r}: {error.strerror}") from error
