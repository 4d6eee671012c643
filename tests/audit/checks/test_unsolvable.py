"""Tasks that cannot be solved, or solve themselves, are found; the others are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import unsolvable
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

DESKS = Path(__file__).with_name("_reward_subjects.py")
WORDS = Path(__file__).with_name("_reward_words.py")


def audited(name: str, *ids: str) -> Report:
    checks = [one for one in checks_of(unsolvable) if not ids or one.id in ids]
    file = WORDS if f"class {name}" in WORDS.read_text() else DESKS
    return audit(Subject(f"{file}:{name}"), checks)


@pytest.mark.parametrize("name", ["Desk", pytest.param("Tolerant", marks=pytest.mark.slow)])
def test_a_sound_subject_can_be_solved(name: str) -> None:
    assert not audited(name).findings


@pytest.mark.parametrize(
    ("name", "check", "part", "title"),
    [
        ("Mean", "semantic.oracle_max", "V", "the task's own solution is not paid in full"),
        pytest.param(
            "WrongOrder",
            "semantic.oracle_max",
            "T",
            "the task's own solution is refused by refund_order",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "Always",
            "semantic.floor_gap",
            "V",
            "doing nothing is paid as much as solving the task",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "Anything",
            "semantic.floor_gap",
            "V",
            "the word 'done' alone is paid as much as solving the task",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "Tight", "x.budget", "C", "the solution takes more calls than an episode allows", marks=pytest.mark.slow
        ),
        pytest.param("Silent", "x.task_set", "T", "a task says nothing to the agent", marks=pytest.mark.slow),
    ],
)
def test_unsolvable_or_trivial_task_is_proven(name: str, check: str, part: str, title: str) -> None:
    [found] = audited(name, check).findings
    assert (found.class_, found.part, found.title) == ("unsolvable", part, title)
    assert found.stops


@pytest.mark.slow
def test_a_solution_that_cannot_be_had_is_told_apart_from_one_that_is_not_known() -> None:
    broken, lacking = audited("NoOracle", "semantic.oracle_max").findings
    assert (broken.severity, broken.tasks) == ("error", ("refund 1",))
    assert (lacking.severity, lacking.confidence, lacking.tasks) == ("note", "hint", ("refund 2",))


def test_a_subject_without_tasks_says_so() -> None:
    [found] = audited("Empty", "x.task_set").findings
    assert found.title == "the subject has no tasks"


@pytest.mark.slow
def test_the_order_of_independent_writes_is_no_reason_to_pay_less() -> None:
    [found] = audited("Ordered", "x.strictness").findings
    assert (found.severity, found.confidence) == ("error", "proven")
    assert not audited("Pair").findings


@pytest.mark.slow
def test_another_spelling_of_a_number_is_likely_right() -> None:
    found = audited("Quiz", "x.strictness").findings
    assert [one.confidence for one in found if "5.0" in one.title] == ["likely"]
    assert not any(one.stops for one in found)
