"""Tests that an answer's claims are checked against the world, the price and the named thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, Report, audit
from quintain.audit.checks import false_resolution
from quintain.audit.checks._drift_production import rate_of
from quintain.audit.checks._drift_told import done_as_told
from quintain.audit.kernel.loader import Subject

SUBJECTS = Path(__file__).with_name("_said_subjects.py")
CHECKS = (
    false_resolution.answers_are_true,
    done_as_told,
)


def audited(name: str) -> Report:
    report = audit(Subject(f"{SUBJECTS}:{name}"), CHECKS)
    assert not [one.reason for one in report.checks if one.reason.startswith(BROKE)]
    return report


@pytest.mark.slow
def test_a_sound_desk_is_let_alone() -> None:
    report = audited("Desk")
    assert [one.title for one in report.findings] == []
    assert all(one.looked for one in report.checks)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "class_", "title"),
    [
        pytest.param(
            "Unpaid",
            "false_resolution",
            "cancel answers that its refund is refunded, and nothing in the world depends on it",
            marks=pytest.mark.slow,
        ),
        (
            "Unkept",
            "false_resolution",
            "remark answers as if it had kept a quotation, and nothing in the world is another one",
        ),
        pytest.param(
            "Dearer", "action_drift", "add_bags counts its bags 60 times, where it says 50", marks=pytest.mark.slow
        ),
    ],
)
def test_false_answer_is_proven(name: str, class_: str, title: str) -> None:
    [one] = audited(name).findings
    assert (one.class_, one.title) == (class_, title)
    assert one.stops


@pytest.mark.parametrize(
    ("text", "name", "rate"),
    [
        ("Charge 50 for each one of `charged`.", "charged", 50),
        ("Costs 120 per night.", "nights", 120),
        ("Charges 7.5 points for every seat_row.", "seat_rows", 7.5),
        ("Costs 120 per night plus tax.", "nights", None),
        ("Costs 120 per night and 30 per meal.", "nights", None),
        ("Costs 120 per guest.", "nights", None),
        ("Book some nights.", "nights", None),
    ],
)
def test_a_rate_is_read_where_nothing_else_is_meant(text: str, name: str, rate: float | None) -> None:
    assert rate_of(text, name) == rate
