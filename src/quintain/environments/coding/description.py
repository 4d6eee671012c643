"""Material of the tasks, read from `packages/*.toml` and `functions/*.toml`.

A package is a small Python package with tests that the agent sees, hidden tests, defects that can be seeded, and
harmless changes. A function is a stub to complete. msgspec reads the files and names the place of a value that it
refuses, such as `$.defects[3].tests`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from quintain.errors import DefinitionError
from quintain.judges.code import HiddenTest

T = TypeVar("T")

FOLDER = Path(__file__).parent


class Edit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of one file: a text that occurs once in it, and what stands in its place."""

    file: str
    old: str
    new: str

    def __post_init__(self) -> None:
        if self.old == self.new or not self.old or not self.new:
            raise ValueError(f"an edit of {self.file!r} needs an old and a new text that differ")

    def reversed(self) -> Edit:
        """Returns the edit that undoes this one."""
        return Edit(file=self.file, old=self.new, new=self.old)


class Defect(Edit, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A defect of a package.

    Attributes:
        id: Its name in the package.
        title: Subject of the issue that reports it.
        symptom: The report: what a user does, sees and expects, and nothing about the code.
        tests: Hidden tests that fail with this defect; all others pass.
    """

    id: str
    title: str
    symptom: str
    tests: tuple[str, ...]


class Package(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Python package without a defect.

    Attributes:
        about: What it is for, in a sentence.
        files: Path to content. Modules are in the folder that has the package's name, tests in `tests/`.
        tests: Hidden tests.
        defects: Defects that can be seeded, alone or two together.
        changes: Changes that keep the behaviour, for diffs to review.
    """

    about: str
    files: dict[str, str]
    tests: tuple[HiddenTest, ...]
    defects: tuple[Defect, ...]
    changes: tuple[Edit, ...]

    def __post_init__(self) -> None:
        names = {test.name for test in self.tests}
        for defect in self.defects:
            if not defect.tests or not names.issuperset(defect.tests):
                raise ValueError(f"defect {defect.id!r} names the tests {defect.tests}; hidden are {sorted(names)}")
        for edit in (*self.defects, *self.changes):
            self.edited([edit])

    def edited(self, edits: Iterable[Edit]) -> dict[str, str]:
        """Returns the files after some edits.

        Raises:
            ValueError: The old text of an edit does not occur exactly once.
        """
        files = dict(self.files)
        for edit in edits:
            if (found := files.get(edit.file, "").count(edit.old)) != 1:
                raise ValueError(f"{edit.file}: the old text of an edit occurs {found} times, not once: {edit.old!r}")
            files[edit.file] = files[edit.file].replace(edit.old, edit.new)
        return files


class Function(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A function to complete.

    Attributes:
        name: Its name.
        level: How hard it is.
        stub: The source that the agent finds: imports, signature, a docstring with examples, and
            `raise NotImplementedError`.
        body: What takes the place of `raise NotImplementedError` in a correct solution, indented alike.
        tests: Hidden tests, at least two; they call the function by its name.
    """

    name: str
    level: Literal["easy", "medium", "hard"]
    stub: str
    body: str
    tests: tuple[HiddenTest, ...]

    def __post_init__(self) -> None:
        if self.stub.count(HOLE) != 1 or not self.stub.endswith(f"{HOLE}\n"):
            raise ValueError(f"the stub of {self.name!r} ends with one line {HOLE!r}")
        if len(self.tests) < 2:
            raise ValueError(f"{self.name!r} needs two hidden tests at least")

    @property
    def solution(self) -> str:
        """The whole source of a correct solution."""
        return self.stub.replace(HOLE, self.body.rstrip("\n"))


HOLE = "    raise NotImplementedError"


class _Functions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    functions: tuple[Function, ...]


@functools.cache
def packages() -> Mapping[str, Package]:
    """Returns the packages by name."""
    return {path.stem: _read(path, Package) for path in _files("packages")}


@functools.cache
def functions() -> Sequence[Function]:
    """Returns the functions, in the order of the files."""
    return [function for path in _files("functions") for function in _read(path, _Functions).functions]


def _files(folder: str) -> list[Path]:
    return sorted((FOLDER / folder).glob("*.toml"))


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise DefinitionError(f"{path.parent.name}/{path.name}: {error}") from error
