"""Mutants run instead of compiled copies, and the author's file stays unchanged."""

from __future__ import annotations

import importlib.util
import inspect
import py_compile
from pathlib import Path

import pytest

from quintain.audit.kernel.child import Child
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.probe import Probe, call, reset
from quintain.audit.mutants import loading
from quintain.audit.mutants.loading import Mutant
from quintain.errors import UsageError

DESK = """
from helper import two

class Desk:
    def tasks(self): return ["t"]
    def tools(self): return ["count"]
    def reset(self, task, seed): return "go"
    def call(self, name, arguments): return [1, two()]
    def score(self): return 1.0
"""
HELPER = "def two():\n    return 2\n"


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text(HELPER)
    path = tmp_path / "desk.py"
    path.write_text(DESK)
    return path


def counted(desk: Path, mutant: Mutant | None) -> object:
    subject = Subject(f"{desk}:Desk", mutant=mutant)
    with Child(subject) as child:
        return child.play(Probe((reset("t"), call("count", mark="it"))), 30).at("it").value


def edit(path: Path, before: str, after: str) -> Mutant:
    return Mutant(str(path), path.read_text().index(before), before, after)


def test_the_mutant_runs_and_the_file_stays(desk: Path) -> None:
    text = desk.read_text()
    assert counted(desk, None) == [1, 2]
    assert counted(desk, edit(desk, "[1,", "[5,")) == [5, 2]
    assert desk.read_text() == text
    assert counted(desk, None) == [1, 2]


def test_a_compiled_copy_of_an_imported_file_is_not_looked_at(desk: Path) -> None:
    helper = desk.parent / "helper.py"
    py_compile.compile(str(helper), doraise=True)
    compiled = Path(importlib.util.cache_from_source(str(helper)))
    before = compiled.read_bytes()
    assert counted(desk, edit(helper, "return 2", "return 7")) == [1, 7]
    assert compiled.read_bytes() == before


def test_a_file_that_has_changed_since_is_not_mutated(desk: Path) -> None:
    mutant = edit(desk, "[1,", "[5,")
    desk.write_text(f"# other\n{DESK}")
    with pytest.raises(UsageError, match=r"has changed: '\[1,' does not stand"):
        counted(desk, mutant)


def test_a_file_that_is_gone_is_not_mutated(desk: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        counted(desk, Mutant(str(desk.parent / "gone.py"), 0, "a", "b"))


def test_a_file_that_runs_already_is_not_mutated() -> None:
    path = Path(inspect.getfile(loading))
    with pytest.raises(UsageError, match="was imported before"):
        loading.install(edit(path, "def install", "def other"))


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [("[1, two()]", "[(1), two()]", True), ("1.0", "1", False), ("[1, ", "[2, ", False), ("[1, ", "[1 ", False)],
)
def test_a_mutant_with_equal_code_is_the_same(desk: Path, before: str, after: str, is_same: bool) -> None:
    assert Mutant(str(desk), desk.read_text().index(before), before, after).is_same is is_same
