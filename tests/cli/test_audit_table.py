"""Terminal text of findings: the difference first, then trajectory, place, lesson and mend."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from quintain.audit.kernel.finding import MENDS, Finding
from quintain.cli import exits
from quintain.cli.audit_table import print_finding

LONG = "the same words " * 40
"""Beginning of two results that differ only after 600 characters."""


def printed(**more: Any) -> str:
    """Returns the terminal text of a finding."""
    made: dict[str, Any] = {
        "check": "x.reads", "class_": "stale_cache", "part": "S", "severity": "error", "confidence": "proven",
        "title": "look is stale",
    }  # fmt: skip
    out = Console(file=io.StringIO(), width=1000, highlight=False, markup=False)
    print_finding(out, 1, Finding(**{**made, **more}))
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def look(observed: Any) -> dict[str, Any]:
    return {"do": "call", "name": "look", "arguments": {}, "observed": observed}


@pytest.mark.parametrize("wrap", [str, lambda text: {"book": text}, lambda text: [1, {"book": text}]])
def test_long_sides_are_cut_around_their_first_difference(wrap: Any) -> None:
    said = printed(expected=wrap(LONG + "ann"), observed=wrap(LONG + "bob")).splitlines()
    expected, observed = (next(line for line in said if line.strip().startswith(name)) for name in ("expec", "observ"))
    assert "words ann" in expected
    assert "words bob" in observed
    assert len(expected) < 250


def test_only_the_first_differences_of_two_values_are_printed() -> None:
    said = printed(expected=dict.fromkeys("abcde", 1), observed=dict.fromkeys("abcde", 2))
    assert "expected: a: 1\n   observed: a: 2\n" in said
    assert "and: 2 further differences" in said
    assert "d: 1" not in said


def test_long_results_are_cut_around_their_difference_from_another_run() -> None:
    beside = {"context": {"hash_seed": 1}, "trajectory": [look(LONG + "bob")]}
    said = printed(trajectory=[look(LONG + "ann"), look(LONG + "ann")], beside=[beside, beside])
    assert "words ann\n     - call look → the same as before\n   beside it, look, hash_seed 1:\n" in said
    assert "words bob\n" in said
    assert said.count("beside it") == 1


def test_the_difference_comes_before_place_lesson_and_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    where = f"{Path.cwd()}/desk.py:7"
    said = printed(expected=1, observed=2, where=where, teaches="to act twice", trajectory=[look("it")])
    words = (
        "look is stale", "expected: 1", "observed: 2", "- call look", "at desk.py:7",
        "A model would learn to act twice.", f"To mend it: {MENDS['stale_cache']}",
    )  # fmt: skip
    places = [said.index(one) for one in words]
    assert places == sorted(places)
    assert "at quintain/cli/exits.py:3" in printed(where=f"{exits.__file__}:3")
    assert "To mend it: Lock it." in printed(mend="Lock it.")
