"""Calls that are cut off midway, files of the verifier that a tool reaches, users who do not answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import reset_leak, reward_hack, silent_default
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The subjects alone, without the tests around them: what is copied is small."""
    there = tmp_path_factory.mktemp("subjects")
    for name in ("_cut_subjects.py", "_cut_grader.py"):
        shutil.copy(HERE / name, there)
    return there


def audited(folder: Path, name: str, id: str) -> Report:
    checks = [one for module in (reset_leak, reward_hack, silent_default) for one in checks_of(module) if one.id == id]
    return audit(Subject(f"{folder}/_cut_subjects.py:{name}"), checks)


@pytest.mark.slow
def test_a_call_that_is_cut_off_leaves_a_mark(folder: Path) -> None:
    (found,) = audited(folder, "Busy", "runtime.episode_isolation").findings
    assert found.title.endswith("after calls that were cut off midway")
    assert (found.class_, found.part, found.confidence, found.severity) == ("reset_leak", "S", "proven", "error")
    assert [step["do"] for step in found.trajectory] == ["reset", "ask", "reset", "call"]
    assert "TimeoutError" in found.trajectory[1]["observed"]["raised"]


@pytest.mark.slow
def test_a_call_that_is_cut_off_leaves_nothing(folder: Path) -> None:
    report = audited(folder, "Notes", "runtime.episode_isolation")
    assert not report.findings
    assert report.coverage["reset_leak"] == "checked"


def test_a_user_who_speaks_though_his_model_is_silent(folder: Path) -> None:
    (found,) = audited(folder, "deaf", "x.user_faults").findings
    assert found.observed == "Yes, that is fine."
    assert (found.class_, found.part, found.confidence, found.severity) == ("silent_default", "H", "proven", "error")


@pytest.mark.parametrize(
    ("name", "reason"), [("talking", "checked"), ("Notes", "not_checked: the subject has no user")]
)
def test_a_user_who_is_silent_with_his_model(folder: Path, name: str, reason: str) -> None:
    report = audited(folder, name, "x.user_faults")
    assert not report.findings
    assert report.coverage["silent_default"] == reason
