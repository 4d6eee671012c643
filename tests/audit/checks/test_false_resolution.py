"""False resolutions are found where a verifier believes them, and not where it looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import false_resolution
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

DESKS = Path(__file__).with_name("_reward_subjects.py")
WORDS = Path(__file__).with_name("_reward_words.py")


def audited(name: str, *ids: str) -> Report:
    checks = [one for one in checks_of(false_resolution) if not ids or one.id in ids]
    file = WORDS if f"class {name}" in WORDS.read_text() else DESKS
    return audit(Subject(f"{file}:{name}"), checks)


@pytest.mark.parametrize(
    "name", ["Desk", *(pytest.param(name, marks=pytest.mark.slow) for name in ("Meter", "Dated", "Tolerant"))]
)
def test_a_sound_subject_resolves_what_it_says(name: str) -> None:
    assert not audited(name).findings


@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param("History", "x.undo", marks=pytest.mark.slow),
        ("Counted", "x.status_without_work"),
    ],
)
def test_a_false_resolution_is_proven(name: str, check: str) -> None:
    [found] = audited(name, check).findings
    assert (found.class_, found.part, found.confidence) == ("false_resolution", "V", "proven")
    assert found.stops
