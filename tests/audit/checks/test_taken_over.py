"""Tests that undone handovers and versions that are paid are proven, and a sound board passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, audit
from quintain.audit.checks import false_resolution
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

SUBJECTS = Path(__file__).with_name("_taken_over_subjects.py")


def found(name: str) -> list[Finding]:
    report = audit(Subject(f"{SUBJECTS}:{name}"), [false_resolution.undo])
    assert not [one.reason for one in report.checks if one.reason.startswith(BROKE)]
    assert all(one.looked for one in report.checks), report.checks
    return list(report.findings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "title", "calls"),
    [
        (
            "SetIsEnough",
            "what was done is taken back by set_notice and emit, and paid for all the same",
            ["set_notice", "emit", "set_notice"],
        ),
        ("OnceInstalled", "what was done is taken back by install, and paid for all the same", ["install"]),
    ],
)
def test_undone_handover_or_installation_is_proven(name: str, title: str, calls: list[str]) -> None:
    [one] = found(name)
    assert (one.title, one.stops) == (title, True)
    assert [op.name for op in one.probes[0].ops if op.mark.startswith("back")] == calls


@pytest.mark.parametrize("name", ["Board", "Login"])
def test_a_sound_world_is_let_alone(name: str) -> None:
    assert not found(name)
