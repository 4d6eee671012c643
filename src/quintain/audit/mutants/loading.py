"""Import hook that loads a source file with a change; the file and its bytecode cache stay unchanged."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import msgspec

from quintain.errors import UsageError


class Mutant(msgspec.Struct, frozen=True):
    """One change of one file, at a byte offset."""

    path: str
    at: int
    before: str
    after: str

    def text(self) -> bytes:
        """Returns the file's text with the change; raises UsageError if the file has another text at that place."""
        try:
            source = Path(self.path).read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {self.path!r}, which is to be mutated: {error.strerror}") from error
        before = self.before.encode()
        if source[self.at : self.at + len(before)] != before:
            raise UsageError(f"{self.path} has changed: {self.before!r} does not stand at byte {self.at} any more")
        return source[: self.at] + self.after.encode() + source[self.at + len(before) :]


def install(mutant: Mutant) -> None:
    """Makes imports of the file load the mutant; raises UsageError if the file is imported already."""
    path = Path(mutant.path).resolve()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and Path(file).resolve() == path:
            raise UsageError(f"{mutant.path} cannot be mutated: it was imported before the subject was")
    hook(mutant)


def hook(mutant: Mutant) -> None:
    """Makes later imports of the file load the mutant, whether or not the file is imported already."""
    path, text = Path(mutant.path).resolve(), mutant.text()
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        if Path(loader.get_filename(fullname)).resolve() != path:
            return original(loader, fullname)
        code: CodeType = loader.source_to_code(text, str(path))
        return code

    setattr(SourceFileLoader, "get_code", get_code)  # noqa: B010 (type checkers take a plain assignment for a mistake)
