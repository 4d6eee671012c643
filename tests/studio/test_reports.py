"""Reports of audits and trainers in a run folder, as the studio reads them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from quintain.audit.report.document import indented
from quintain.studio.reports import findings, metrics
from tests.audit.page.documents import HOSTILE, stale


def report(folder: Path, digest: str) -> Path:
    """Writes the report of an audit into a run folder."""
    folder.mkdir(parents=True)
    made = (stale(), msgspec.structs.replace(stale(), title=HOSTILE, tasks=("other",)))
    plain = [{"name": one.title} | msgspec.to_builtins(one) for one in made]
    (folder / "report.json").write_bytes(indented({"digest": digest, "findings": plain}))
    return folder


def test_findings_name_tasks_and_tools_of_their_steps(tmp_path: Path) -> None:
    report(tmp_path / "audit", "f1")
    found, warnings = findings(tmp_path, {"f1"})
    first, second = found or []
    assert (first["class"], first["tasks"], first["tools"]) == (
        "stale_cache",
        ["one", "two", "three", "four"],
        ["look", "finish"],
    )
    assert HOSTILE in str(second)
    assert warnings == []


def test_report_of_another_version_is_a_warning_and_no_finding(tmp_path: Path) -> None:
    report(tmp_path / "audit-2", "f1")
    (tmp_path / "report.json").write_text("[]")
    found, warnings = findings(tmp_path, {"f2"})
    assert found is None
    assert [one.split()[0] for one in warnings] == ["audit-2/report.json", "report.json"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "metrics.jsonl",
            '{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 1e999, "note": "x"}\n{"step": 2, "loss": 0.25}\n{"st',
        ),
        ("trainer_state.json", '{"log_history": [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25, "epoch": null}]}'),
        ("training.jsonl", '{"step": 1, "metrics": {"loss": 0.5}}\n{"step": 2, "metrics": {"loss": 0.25}}\n'),
    ],
)
def test_metrics_are_steps_and_finite_numbers(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert metrics(tmp_path) == {name: {"loss": [(1, 0.5), (2, 0.25)]}}
