"""Audit of records alone: facts are likely, other classes are not checked, and nothing is proven."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quintain.audit.kernel.finding import CLASSES
from quintain.audit.traces import audit_traces, checks_of_traces
from quintain.errors import UsageError


def rows(*rewards: float | None, say: str = "done") -> str:
    """Returns rollouts of another tool, two of each task."""
    lines = [
        {
            "prompt": [{"role": "user", "content": f"Task {n // 2}: refund order {n // 2}."}],
            "completion": [{"role": "assistant", "content": say}],
            "reward": reward,
            "example_id": n // 2,
        }
        for n, reward in enumerate(rewards)
    ]
    return "\n".join(map(json.dumps, lines))


def test_groups_without_variance_are_a_hint(tmp_path: Path) -> None:
    (tmp_path / "rollouts.jsonl").write_text(rows(*[0.0] * 20))
    report = audit_traces(tmp_path, checks_of_traces())
    assert any(one.class_ == "reward_clipping" for one in report.findings)
    assert {one.confidence for one in report.findings} <= {"hint", "likely"}
    assert not report.stops


def test_a_missing_reward_is_a_failure_and_never_proven(tmp_path: Path) -> None:
    (tmp_path / "rollouts.jsonl").write_text(rows(1.0, None, 0.0, 1.0, float("nan"), 0.5))
    report = audit_traces(tmp_path, checks_of_traces())
    assert report.failures.episodes == 6
    assert report.failures.failures >= 2
    assert any(one.class_ == "silent_default" and one.confidence == "likely" for one in report.findings)


def test_classes_beyond_records_are_not_checked(tmp_path: Path) -> None:
    (tmp_path / "rollouts.jsonl").write_text(rows(1.0, 0.0))
    coverage = audit_traces(tmp_path, checks_of_traces()).coverage
    assert set(coverage) == set(CLASSES)
    assert coverage["data_realism"].startswith("not_checked")
    assert coverage["judge"].startswith("not_checked")
    assert coverage["stale_cache"] == "checked"


def test_requested_classes_alone_are_reported(tmp_path: Path) -> None:
    (tmp_path / "rollouts.jsonl").write_text(rows(*[0.0] * 20))
    wanted = [one for one in checks_of_traces() if one.class_ == "leak"]
    assert audit_traces(tmp_path, wanted).findings == ()


def test_an_empty_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        audit_traces(tmp_path, checks_of_traces())
