"""Sound subjects that look like faulty ones are let alone: each is what a check once took for its bug."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit import auditor
from quintain.audit.auditor import audit
from quintain.audit.checks import _silent_unknown as silent_unknown
from quintain.audit.checks import (
    action_drift,
    races,
    reward_clipping,
    reward_hack,
    stale_cache,
    unsolvable,
)
from quintain.audit.facts import failure_rate
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.loader import Subject
from tests.audit.checks._found import found

SUBJECTS = Path(__file__).with_name("_sound_subjects.py")
DESIGNS = Path(__file__).with_name("_sound_designs.py")


@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param("Pieces", reward_hack.right_in_sum, marks=pytest.mark.slow),
        ("Steps", reward_hack.right_in_sum),
        ("Files", silent_unknown.unknown_names),
        ("Files", action_drift.prompts),
        pytest.param("Overdue", reward_hack.collateral_damage, marks=pytest.mark.slow),
    ],
)
def test_no_finding_for_sound_subjects_that_look_like_bugs(name: str, check: Check) -> None:
    assert not found(SUBJECTS, name, [check])


def test_session_local_changes_are_not_proven_damage() -> None:
    assert not [one for one in found(SUBJECTS, "Desktop", [reward_hack.collateral_damage]) if one.stops]


@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param("Sums", reward_hack.answer_battery, marks=pytest.mark.slow),
        pytest.param("Squares", races.odd_calls, marks=pytest.mark.slow),
        ("Forms", action_drift.prompts),
        pytest.param("Cached", reward_hack.collateral_damage, marks=pytest.mark.slow),
        pytest.param("Acting", reward_hack.collateral_damage, marks=pytest.mark.slow),
        ("Cached", stale_cache.read_your_writes),
        pytest.param("Diary", reward_hack.oracle_ablation, marks=pytest.mark.slow),
        ("Diary", races.state_contract),
    ],
)
def test_no_finding_for_sound_designs(name: str, check: Check) -> None:
    assert not found(DESIGNS, name, [check])


@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param("Lengths", reward_clipping.near, marks=pytest.mark.slow),
    ],
)
def test_finding_is_a_likely_warning_when_a_design_may_show_it(name: str, check: Check) -> None:
    [finding] = found(DESIGNS, name, [check])
    assert (finding.severity, finding.confidence) == ("warning", "likely")


@pytest.mark.parametrize(
    ("name", "check", "title"),
    [
        pytest.param(
            "StaleCached",
            stale_cache.read_your_writes,
            "get_account does not show what raise_limit",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "Blind",
            reward_hack.oracle_ablation,
            "add_event is part of the solution, and is paid for",
            marks=pytest.mark.slow,
        ),
        ("Unreadable", races.state_contract, "state() breaks after send_message"),
    ],
)
def test_bug_beside_a_sound_design_is_proven(name: str, check: Check, title: str) -> None:
    [finding] = found(DESIGNS, name, [check])
    assert finding.title.startswith(title)
    assert finding.stops


def test_episodes_without_a_solution_and_a_verdict_are_no_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditor, "measure", failure_rate.measure)
    rate = audit(Subject(f"{DESIGNS}:Ends"), [unsolvable.floor_gap]).failures
    assert rate.is_low
    assert set(rate.scores) == {"0", "1"}
