"""A solution that is changed where the task says how it is to be: what pays for it all the same is found, alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quintain.audit.auditor import BROKE, Report, audit
from quintain.audit.checks import false_resolution, reward_hack
from quintain.audit.checks._reward_changed import stated
from quintain.audit.checks._reward_related import forbids_more
from quintain.audit.checks._reward_tasks import attempts
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject
from tests.audit.checks._found import highest

SHOP = Path(__file__).with_name("_reward_shop.py")
MINE = (
    "x.changed_argument", "x.another_record", "x.undo", "x.collateral_damage",
    "x.every_candidate", "x.rest_of_the_file",
)  # fmt: skip


def slow(*values: Any) -> Any:
    """A case of a test that is left to the long run."""
    return pytest.param(*values, marks=pytest.mark.slow)


def audited(name: str, *ids: str) -> Report:
    every = [*checks_of(reward_hack), *checks_of(false_resolution)]
    report = audit(Subject(f"{SHOP}:{name}"), [one for one in every if one.id in ids])
    assert not [one.reason for one in report.checks if one.reason.startswith(BROKE)]
    return report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "checked"),
    [slow("Shop", MINE[:4]), slow("Tutor", MINE[4:5]), slow("Workshop", MINE[5:])],
)
def test_a_sound_subject_is_left_alone(name: str, checked: tuple[str, ...]) -> None:
    report = audited(name, *checked)
    assert not report.findings
    assert [one.check for one in report.checks if one.status != "checked"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "check", "title"),
    [
        ("HiddenNote", "x.changed_argument", "add_note is paid with another visible"),
        slow("AnyOrder", "x.another_record", "the same work on another row of orders"),
        slow("EverythingNamed", "x.every_candidate", "a reply that names every fact"),
        slow("OneIsEnough", "x.rest_of_the_file", "the rest of the file"),
        slow("AnyWay", "x.changed_argument", "move_money is paid with source and target"),
        slow("MoreIsFine", "x.changed_argument", "move_money is paid with another cents"),
        slow("Returned", "x.undo", "what was done is made void by call_back"),
        slow("OthersAreFree", "x.collateral_damage", "records that have nothing to do with the task"),
    ],
)
def test_paid_change_is_proven(name: str, check: str, title: str) -> None:
    found = audited(name, check).findings
    assert [one.title for one in found if one.title.startswith(title)]
    assert {(one.confidence == highest(one), one.severity) for one in found} == {(True, "error")}


@pytest.mark.slow
def test_an_answer_that_nobody_reads_is_no_shotgun() -> None:
    assert not audited("Unread", "x.every_candidate").findings


@pytest.mark.parametrize(
    ("key", "value", "prompt", "decided"),
    [
        ("amount", 250, "Refund 250 for it.", True),
        ("amount", 250, "Refund at least 250 for it.", False),
        ("amount", 250, "Refund 250 or more.", False),
        ("amount", 250, "Refund 1250 for it.", None),
        ("cents", 1250, "Refund 12.50 for it.", True),
        ("public", True, "Write a public comment.", True),
        ("public", True, "Write a comment.", None),
        ("title", "Spring retro", "Book it, titled Spring retro, today.", True),
        ("note", "was late", "The parcel was late. Send it again and leave a word.", False),
        ("start", "09:45", "Some time before 09:45.", False),
        ("people", ["Ann", "Bob"], "Invite people: Ann and Bob.", True),
        ("people", ["Ann", "Eve"], "Invite people: Ann and Bob.", None),
    ],
)
def test_stated_tells_which_values_a_prompt_decides(key: str, value: object, prompt: str, decided: bool | None) -> None:
    assert stated(key, value, prompt, schema={}) is decided


@pytest.mark.parametrize(
    ("prompt", "forbidden"),
    [
        ("Carry out these orders and nothing else.", True),
        ("Merge them. Change nothing else.", True),
        ("Correct it, and change no other file.", True),
        ("Send both there; leave all others, and those of her brother.", True),
        ("Refund the order, then close the ticket.", False),
        ("Leave a word for the others.", False),
    ],
)
def test_forbids_more_detects_prompts_that_forbid_other_changes(prompt: str, forbidden: bool) -> None:
    assert forbids_more(prompt) is forbidden


def test_numbers_of_the_question_are_tried_where_one_has_to_work_something_out() -> None:
    tried = list(attempts("(25 * 4) + 10", [], "Use 25, 4 and 10 to make 110."))
    assert "110" in [one.text for one in tried if one.kind == "copied"]
    assert not [one for one in attempts("110", [], "Use 25, 4 and 10.") if one.kind == "copied"]


def test_a_constant_that_the_right_answer_holds_is_not_wrong() -> None:
    assert "42" not in [one.text for one in attempts("So it is \\boxed{42}.", [], "")]
    assert "42" in [one.text for one in attempts("So it is \\boxed{43}.", [], "")]
