"""Import hook that loads a source file with a change; the file and its bytecode cache stay unchanged.

In the worker, `saw` records whether a mutated expression ever differs from the author's.
"""

from __future__ import annotations

import contextlib
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import msgspec

from quintain.audit.kernel.registry import probe_function
from quintain.errors import UsageError

_SEEN: list[tuple[str, str]] = []


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

    @property
    def is_same(self) -> bool:
        """True if the mutant compiles to the author's code."""
        texts = Path(self.path).read_bytes(), self.text()
        with contextlib.suppress(SyntaxError):
            old, new = (_without_places(compile(text, self.path, "exec", dont_inherit=True)) for text in texts)
            return old == new
        return False


def _without_places(code: CodeType) -> CodeType:
    """Returns code whose lines and columns are all the same, so that only what it does is compared."""
    consts = tuple(_without_places(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_consts=consts, co_firstlineno=1, co_linetable=b"")


def install(mutant: Mutant) -> None:
    """Makes imports of the file load the mutant; raises UsageError if the file is imported already."""
    path, text = Path(mutant.path).resolve(), mutant.text()
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    if any(isinstance(file, str) and Path(file).resolve() == path for file in files):
        raise UsageError(f"{mutant.path} cannot be mutated: it was imported before the subject was")
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        if Path(loader.get_filename(fullname)).resolve() != path:
            return original(loader, fullname)
        code: CodeType = loader.source_to_code(text, str(path))
        return code

    setattr(SourceFileLoader, "get_code", get_code)  # noqa: B010 (type checkers take a plain assignment for a mistake)


def saw(original: Any, mutated: Any) -> Any:
    """Records two values that differ, and returns the mutated one."""
    is_other = type(original) is not type(mutated) or not bool(original == mutated)
    if len(_SEEN) < 3 and is_other:
        _SEEN.append((repr(original)[:200], repr(mutated)[:200]))
    return mutated


@probe_function
def taken(_player: Any, _on: str, _value: Any) -> list[list[str]]:
    """Returns the values recorded since the last call; an op `ask` plays it."""
    seen = [list(pair) for pair in _SEEN]
    _SEEN.clear()
    return seen
