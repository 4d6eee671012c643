"""How a mutant runs: the loader of one source file is told another text; the file and its cache stay as they are."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import msgspec

from quintain.errors import UsageError


class Mutant(msgspec.Struct, frozen=True):
    """One change of one file.

    Attributes:
        path: The file.
        at: Offset in bytes of what is replaced.
        before: What stands there.
        after: What is to stand there.
    """

    path: str
    at: int
    before: str
    after: str

    def text(self) -> bytes:
        """The file's text with the change.

        Raises:
            UsageError: The file is gone, or something else stands there now.
        """
        try:
            source = Path(self.path).read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {self.path!r}, which is to be mutated: {error.strerror}") from error
        before = self.before.encode()
        if source[self.at : self.at + len(before)] != before:
            raise UsageError(f"{self.path} has changed: {self.before!r} does not stand at byte {self.at} any more")
        return source[: self.at] + self.after.encode() + source[self.at + len(before) :]


def install(mutant: Mutant) -> None:
    """From now on an import of the file in this process runs the mutant; a compiled copy of the file is not looked at.

    Raises:
        UsageError: The file is not as it was, or has been imported already.
    """
    path = Path(mutant.path).resolve()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and Path(file).resolve() == path:
            raise UsageError(f"{mutant.path} cannot be mutated: it was imported before the subject was")
    hook(mutant)


def hook(mutant: Mutant) -> None:
    """From now on an import of the file in this process runs the mutant, whether or not it was imported before.

    Raises:
        UsageError: The file is not as it was.
    """
    path, text = Path(mutant.path).resolve(), mutant.text()
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        if Path(loader.get_filename(fullname)).resolve() != path:
            return original(loader, fullname)
        code: CodeType = loader.source_to_code(text, str(path))
        return code

    setattr(SourceFileLoader, "get_code", get_code)  # noqa: B010 (type checkers take a plain assignment for a mistake)
