"""Judges of reports and judges that hear a number: what is said twice, or not at all, and what a number is worth."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, audit
from quintain.audit.checks import judge
from quintain.audit.checks._judge_scale import fallen, flat
from quintain.audit.facts.fields import wrong
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

SUBJECTS = Path(__file__).with_name("_report_subjects.py")


def found(name: str, *checks: Check) -> list[Finding]:
    report = audit(Subject(f"{SUBJECTS}:{name}"), checks)
    assert not [one.reason for one in report.checks if one.reason.startswith(BROKE)]
    return list(report.findings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("AnyLine", ["a report that says several things of each point, the right one among them, is paid in full"]),
        ("Contained", ["a report that lists several things for each point, the right one among them, is paid in full"]),
        (
            "Part",
            ["a report that says nothing behind its keys is paid in full",
             "a report that says one letter of each thing is paid in full"],
        ),
        ("Unsaid", ["a line of the report that is asked for is left out, and paid as if it were right"]),
    ],
)  # fmt: skip
def test_a_report_that_is_not_right_is_proven(name: str, titles: list[str]) -> None:
    said = found(name, judge.report_lines)
    assert [one.title for one in said] == titles
    assert all(one.stops and one.class_ == "judge" for one in said)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["Harbour", *(pytest.param(one, marks=pytest.mark.slow) for one in ("First", "Unread"))]
)
def test_a_report_that_is_read_as_it_is_or_not_at_all_is_let_alone(name: str) -> None:
    assert not found(name, judge.report_lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Flat", "of the judge's scale from 0 to 4, 0, 1, 2 are all worth the same"),
        ("OneDigit", "the judge grades 10 less than the number before it"),
    ],
)
def test_a_scale_that_does_not_rise_is_proven(name: str, title: str) -> None:
    [one] = found(name, judge.numbers)
    assert one.title == title
    assert one.stops


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["Harbour", *(pytest.param(one, marks=pytest.mark.slow) for one in ("Mentioned", "Steps", "Ranks"))]
)
def test_a_scale_that_rises_or_is_told_otherwise_is_let_alone(name: str) -> None:
    assert not found(name, judge.numbers)


@pytest.mark.slow
def test_a_sound_judge_of_numbers_is_let_alone_by_all_checks_of_judges() -> None:
    report = audit(Subject(f"{SUBJECTS}:Harbour"), [judge.reads, judge.fails, judge.follows])
    assert not report.findings
    assert all(one.looked for one in report.checks), report.checks


def test_other_things_that_might_be_said_do_not_hold_the_right_one() -> None:
    for value in ("17", "Aurora", "C433553", "1.11.1", "x"):
        others = wrong(value, ["Aurora II", "Fulmar", "aurora"])
        assert all(value.casefold() not in one.casefold() for one in others)
    assert wrong("17", ["23"])[0] == "23"


def test_fallen_and_flat_find_where_grades_turn() -> None:
    assert fallen({7: 0.7, 8: 0.8, 9: 0.9, 10: 0.1}) == 10
    assert fallen({0: 1.0, 1: 0.5, 2: 0.0}) is None
    assert fallen({7: 1.0, 8: 1.0, 9: 1.0, 10: 0.1}) is None
    assert flat({0: 0.0, 1: 0.0, 2: 0.0, 3: 0.5, 4: 1.0}) == [0, 1, 2]
    assert flat({0: 0.0, 1: 0.5, 2: 1.0, 3: 1.0, 4: 1.0}) == [2, 3, 4]
    assert not flat({0: 0.0, 1: 0.25, 2: 0.5, 3: 0.75, 4: 1.0})
    assert not flat({0: 0.0, 1: 0.0, 2: 0.0, 3: 1.0, 4: 1.0})
