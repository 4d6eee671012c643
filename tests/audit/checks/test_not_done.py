"""Tests that work reported or paid as done but missing is proven, and a sound subject passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks import false_resolution, reward_hack, unsolvable
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.finding import Finding
from tests.audit.checks._found import audited

pytestmark = pytest.mark.slow

SUBJECTS = Path(__file__).with_name("_not_done_subjects.py")
MINE = (reward_hack.observed_argument, false_resolution.described_effect, false_resolution.undo)
TRIES, MEANT = reward_hack.many_answers, unsolvable.one_is_meant


def looked(name: str, *checks: Check) -> list[Finding]:
    """Returns the findings of checks, each of which made comparisons."""
    report = audited(SUBJECTS, name, checks)
    assert all(one.looked for one in report.checks), report.checks
    return list(report.findings)


@pytest.mark.slow
def test_a_sound_kennel_is_let_alone() -> None:
    assert not looked("Kennel", *MINE)


@pytest.mark.parametrize(
    ("name", "check", "title"),
    [
        pytest.param(
            "AnySum",
            MINE[0],
            "charge is paid with any cents, where each solution gives what it has read",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "DogsStay",
            MINE[1],
            "hand_over works and does not do what its description says: Move all dogs",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "NoMoney",
            MINE[1],
            "pay_back works and does not do what its description says: Give the money",
            marks=pytest.mark.slow,
        ),
        ("OneOfThem", TRIES, "of many answers that are handed in, whichever is right counts"),
        ("Namesakes", MEANT, "two records of patients fit what the task says, and only one is meant"),
        (
            "FreeMeals",
            reward_hack.collateral_damage,
            "records that have nothing to do with the task are destroyed or made, and the pay is the same",
        ),
        pytest.param(
            "OnceLocked",
            MINE[2],
            "what lock did is taken back by unlock, and paid for all the same",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_missing_effect_is_proven(name: str, check: Check, title: str) -> None:
    [one] = looked(name, check)
    assert one.title == title
    assert (one.severity, one.confidence) == ("error", check.at_most)


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("Riddles", TRIES),
        pytest.param("Guesses", TRIES, marks=pytest.mark.slow),
        pytest.param("Clinic", MEANT, marks=pytest.mark.slow),
        ("ToldApart", MEANT),
        ("Wards", reward_hack.collateral_damage),
    ],
)
def test_no_finding_for_intended_behavior(name: str, check: Check) -> None:
    assert not looked(name, check)


def test_effects_promised_for_later_are_not_checked() -> None:
    assert not [one for one in looked("Later", MINE[1]) if "pay_back" in one.title]
