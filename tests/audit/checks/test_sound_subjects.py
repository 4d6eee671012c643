"""Sound subjects that look like faulty ones are let alone: each is what a check once took for its bug."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks import _drift_nested as lists
from quintain.audit.checks import _silent_unknown as silent_unknown
from quintain.audit.checks import action_drift, false_resolution, reward_hack, unsolvable
from quintain.audit.kernel.check import Check
from tests.audit.checks._found import found

SUBJECTS = Path(__file__).with_name("_sound_subjects.py")


@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param("Orders", unsolvable.one_is_meant, marks=pytest.mark.slow),
        pytest.param("Refunded", unsolvable.one_is_meant, marks=pytest.mark.slow),
        ("Asked", unsolvable.one_is_meant),
        pytest.param("Over", false_resolution.described_effect, marks=pytest.mark.slow),
        pytest.param("Fans", false_resolution.paid_without_effect, marks=pytest.mark.slow),
        pytest.param("Pieces", reward_hack.right_in_sum, marks=pytest.mark.slow),
        ("Steps", reward_hack.right_in_sum),
        ("Places", lists.nested),
        ("Files", silent_unknown.unknown_names),
        ("Files", action_drift.prompts),
    ],
)
def test_no_finding_for_sound_subjects_that_look_like_bugs(name: str, check: Check) -> None:
    assert not found(SUBJECTS, name, [check])


def test_session_local_changes_are_not_proven_damage() -> None:
    assert not [one for one in found(SUBJECTS, "Desktop", [reward_hack.collateral_damage]) if one.stops]
