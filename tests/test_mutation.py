"""The mutation run changes what it says, and finds the place of each planted bug."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import mutation

SOURCE = b'''
def f(a: int = 3) -> int:
    """Words."""
    if a == 1 and not g(a):
        raise ValueError(f"{a} is 2")
    g(a)
    a += 4
    return a if a else h(True)
    return None
'''


def test_mutants_change_what_runs() -> None:
    found = [edit.words.partition(": ")[2] for edit in mutation.mutants("m.py", SOURCE, ())]
    assert sorted(found) == [
        "1 -> 2",
        "4 -> 5",
        "True -> False",
        "a += 4 -> pass",
        "a == 1 -> (a != 1)",
        "a == 1 and not g(a) -> ((a == 1) or (not g(a)))",
        "a if a else h(True) -> (h(True) if a else a)",
        "g(a) -> pass",
        "not g(a) -> bool(g(a))",
        "return a if a else h(True) -> return None",
    ]


def test_mutant_that_no_test_sees_survives(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_bytes(SOURCE)
    test = tmp_path / "test_m.py"
    test.write_text("def test_m():\n    assert '4' in open('m.py').read()\n")
    edits = {edit.words: edit for edit in mutation.mutants("m.py", SOURCE, (test.as_posix(),))}
    verdicts = {
        words: mutation.run(edits[f"m.py:{words}"], tmp_path, slow=False, root=tmp_path)
        for words in ("7: 4 -> 5", "8: True -> False")
    }
    assert verdicts == {"7: 4 -> 5": "caught", "8: True -> False": "survived"}
    assert (tmp_path / "m.py").read_bytes() == SOURCE


@pytest.mark.slow
def test_planted_bugs_have_one_place_each() -> None:
    assert not [bug for bug in mutation.planted() if isinstance(bug, str)]
