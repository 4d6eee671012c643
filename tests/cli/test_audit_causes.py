"""Findings of one cause, grouped, in the terminal, in JSON and on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, call, reset
from quintain.audit.report import document
from quintain.cli.audit_causes import grouped
from quintain.cli.audit_table import print_report
from tests.audit.test_document import report

STEPS = (reset("ann"), call("lend", {"book": "b1"}), call("look", {"book": "b1"}))


def found(title: str, *ops: Op, check: str = "x.one", **more: Any) -> Finding:
    sides: Any = {"expected": {"reader": "ann"}, "observed": {"reader": None}}
    fields: Any = {"class_": "races", "part": "S", "severity": "error", "confidence": "proven"}
    return Finding(check=check, title=title, probes=(Probe(ops or STEPS),), **(fields | sides | more))


def titles(*findings: Finding) -> list[list[str]]:
    """Returns the title of each finding with those of its symptoms."""
    return [[one.title, *(symptom.title for symptom in one.symptoms)] for one in grouped(findings)]


def test_findings_of_one_check_tool_and_field_are_one() -> None:
    longer = found("reader is stale after two writes", *STEPS[:2], *STEPS[1:], observed={"reader": "bob"})
    assert titles(longer, found("reader is stale")) == [["reader is stale", "reader is stale after two writes"]]


def test_findings_about_one_argument_of_a_tool_are_one() -> None:
    sides: dict[str, Any] = {"expected": None, "observed": "done"}
    one, other = (found(f"look takes `book` {how}", **sides) for how in ("without a value", "of any type"))
    assert len(grouped([one, other, found("look takes `page`", **sides)])) == 2


def test_findings_of_two_checks_with_equal_steps_and_difference_are_one() -> None:
    other = found("look is stale", check="x.two", class_="stale_cache", confidence="likely")
    marked = [op.marked("seen") for op in STEPS]
    assert titles(other, found("reader is lost", *marked)) == [["reader is lost", "look is stale"]]


@pytest.mark.parametrize(
    "other",
    [
        found("b", observed={"reader": "bob"}, where="desk.py:7"),
        found("b", check="x.two", observed={"reader": "bob"}), found("b", observed={"title": 3, "reader": "ann"}),
        found("b", *STEPS[:2], call("lend", {"book": "b2"})), found("b", accepted="as in production"),
        found("b", *STEPS[:2], check="x.two"), found("b", check="x.two", expected=None),
    ],
)  # fmt: skip
def test_findings_of_other_causes_stay_apart(other: Finding) -> None:
    assert titles(found("a"), other) == [["a"], ["b"]]


def test_symptoms_are_in_the_terminal_the_report_and_the_page(tmp_path: Path) -> None:
    given = (found("reader is lost"), found("look is stale", check="x.judge", class_="judge"))
    saved = document.save(report(*grouped(given)), tmp_path)
    out = Console(record=True, width=1000, highlight=False, markup=False)
    print_report(out, saved, tmp_path)
    said = " ".join(out.export_text().split())
    assert f"reader is lost also: look is stale ({given[1].name})" in said
    assert "1 proven error: do not train on this." in said
    whole = msgspec.json.decode((tmp_path / "report.json").read_bytes())
    assert [one["title"] for one in whole["findings"][0]["symptoms"]] == ["look is stale"]
    assert {one["id"]: one["status"] for one in whole["properties"]} == {"x.races": "pass", "x.judge": "fail"}
    assert "look is stale <code>x.judge</code>" in (tmp_path / "report.html").read_text()
    assert document.known_before(tmp_path / "report.json") == {one.name for one in given}
