"""Tests of environments with few turns: what one long probe shows is found, and proven by a short one."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks.false_resolution import status_without_work
from quintain.audit.checks.silent_default import limits
from quintain.audit.checks.stale_cache import read_your_writes
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.probe import Op, answer, call, reset, together, turns
from tests.audit.checks._found import audited

SUBJECTS = Path(__file__).with_name("_tight_subjects.py")


def test_stale_cache_is_proven_within_the_turns_of_an_episode() -> None:
    report = audited(SUBJECTS, "env_stale", [read_your_writes])
    assert [(one.class_, one.confidence) for one in report.findings] == [("stale_cache", "proven")]
    assert max(turns(report.findings[0].probes[0].ops).values()) <= 6


@pytest.mark.slow
def test_sound_environment_with_few_turns_is_left_alone() -> None:
    report = audited(SUBJECTS, "env", [read_your_writes, limits, status_without_work])
    assert not report.findings
    assert {one.status for one in report.checks} == {"checked"}


def test_environment_is_not_checked_without_time() -> None:
    report = audit(Subject(f"{SUBJECTS}:env"), [read_your_writes], budget=0.0)
    assert [one.status for one in report.checks] == ["not_checked"]


def test_turns_are_counted_by_session() -> None:
    look = call("look")
    ops = (reset("t"), look, reset("t", on="b"), look.moved("b"), together([look], [look.moved("b")]), answer("x"))
    assert turns(ops) == {0: 3, 2: 2}
    assert turns((look, reset("t"), Op("call", times=3), reset("t"))) == {1: 3, 3: 0}
