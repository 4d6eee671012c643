"""Tests that unknowable goals and accidental verdicts are proven, and sound look-alikes pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import flaky_verifier, unsolvable
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.loader import Subject
from tests.audit.checks._found import highest

pytestmark = pytest.mark.slow

SUBJECTS = Path(__file__).with_name("_unsolv_subjects.py")


def asked(name: str, *checks: Check, tasks: int = 30) -> Report:
    return audit(Subject(f"{SUBJECTS}:{name}"), checks, tasks=tasks)


ALL = (
    unsolvable.oracle_max, unsolvable.solved_under_seeds, unsolvable.gold_rule,
    unsolvable.strictness, unsolvable.task_set,
    unsolvable.idle_under_seeds, unsolvable.refused_look,

    flaky_verifier.spelling_by_task,
    flaky_verifier.verifier_purity,
)  # fmt: skip


@pytest.mark.parametrize("name", ["Garage", "Lamps", pytest.param("Sums", marks=pytest.mark.slow)])
def test_a_sound_subject_is_let_alone(name: str) -> None:
    assert not [one for one in asked(name, *ALL).findings if one.confidence != "hint"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("Fine", unsolvable.gold_rule),
        ("Strict", flaky_verifier.spelling_by_task),
        ("Lenient", unsolvable.strictness),
    ],
)
def test_a_look_alike_is_let_alone(name: str, check: Check) -> None:
    assert not asked(name, check).findings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "check", "part", "title", "tasks"),
    [
        ("Hasty", unsolvable.strictness, "V", "more looks than it needs", None),
        ("FullOnTuesdays", unsolvable.solved_under_seeds, "T", "not under another", {"service 0", "service 4"}),
        ("LitBefore", unsolvable.idle_under_seeds, "T", "under some seeds", None),
        ("OldGold", unsolvable.gold_rule, "T", "of calculate is the answer of all", {"sum 6"}),
        ("Coarse", unsolvable.gold_rule, "S", "calculate rounds off digits", None),
        ("Unfiled", unsolvable.refused_look, "T", "reads by read_list is not there", {"sum 5"}),
        ("Twins", unsolvable.task_set, "T", "two tasks look the same", {"sum 1", "sum 2"}),
        ("Uneven", flaky_verifier.spelling_by_task, "V", "a number as 5.0 in place of 5", {"sum 4"}),
    ],
)
def test_wrong_task_is_proven(name: str, check: Check, part: str, title: str, tasks: set[str] | None) -> None:
    [found] = asked(name, check).findings
    assert title in found.title
    assert (found.part, found.confidence, found.severity) == (part, highest(found), "error")
    assert tasks is None or set(found.tasks) == tasks


def test_a_number_may_be_written_as_the_world_writes_it() -> None:
    [found] = [one for one in asked("Marked", unsolvable.strictness).findings if one.stops]
    assert "marks between thousands, as the world writes numbers" in found.title


def test_a_task_that_was_not_chosen_is_looked_at_as_well() -> None:
    [found] = asked("OneBad", unsolvable.oracle_max, tasks=3).findings
    assert found.tasks == ("service 3",)
    assert found.stops
