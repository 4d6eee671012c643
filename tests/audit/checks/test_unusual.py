"""Tests of bugs that are written in an unusual way: each is reported, and its sound twin is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.kernel.check import registered
from tests.audit.checks._found import firm, found

pytestmark = pytest.mark.slow

SUBJECTS = Path(__file__).with_name("_unusual_subjects.py")
ORDER = "dates are in no order: "


@pytest.mark.parametrize(
    ("sound", "bugged", "check", "title", "confidence"),
    [
        ("Rooms", "Rounded", "x.ladder", "any one of 4 calls of set_status may be left out", "proven"),
        ("Rooms", "Rounded", "x.oracle_ablation", "set_status is part of the solution", "proven"),
        ("Rooms", "NeverWrong", "x.oracle_ablation", "nothing of what the task asks for is done", "proven"),
        ("Office", "Kept", "semantic.no_solution_leakage", "query shows the hidden refunds", "proven"),
        ("Archive", "AnyStay", "x.calendar", f"{ORDER}guests.arrived and guests.leaves", "likely"),
        ("Archive", "AnyReply", "x.calendar", f"{ORDER}letters.answers and its day", "likely"),
        ("Archive", "Filled", "x.calendar", "a name is a placeholder", "likely"),
    ],
)
def test_bug_is_reported_and_its_sound_twin_is_not(
    sound: str, bugged: str, check: str, title: str, confidence: str
) -> None:
    checks = [one for one in registered() if one.id == check]
    said = [one.confidence for one in found(SUBJECTS, bugged, checks) if one.title.startswith(title)]
    assert said[:1] == [confidence]
    assert not firm(found(SUBJECTS, sound, checks))
