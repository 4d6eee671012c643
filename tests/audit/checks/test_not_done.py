"""Tests that work reported or paid as done but missing is proven, and a sound subject passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks import false_resolution
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.finding import Finding
from tests.audit.checks._found import audited

pytestmark = pytest.mark.slow

SUBJECTS = Path(__file__).with_name("_not_done_subjects.py")
MINE = (false_resolution.undo,)


def looked(name: str, *checks: Check) -> list[Finding]:
    """Returns the findings of checks, each of which made comparisons."""
    report = audited(SUBJECTS, name, checks)
    assert all(one.looked for one in report.checks), report.checks
    return list(report.findings)


@pytest.mark.slow
def test_a_sound_kennel_is_let_alone() -> None:
    assert not looked("Kennel", *MINE)
