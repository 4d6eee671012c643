"""Tests of numbers that equal the score: a leaked grade is found, a count in the world is not reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, audit
from quintain.audit.checks import leak
from quintain.audit.checks._leak_grades import is_scale
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

CHECKS = [one for one in checks_of(leak) if one.id == "x.no_verdict_before_the_end"]
REPORTS = '''
FACTS = ("Colour: red", "Crew: Marlow", "Mooring: 4711")


class Silent:
    """Reports on boats, graded line by line; the last one counts."""

    described = "File a report, or replace it."

    def tasks(self):
        return ["t0", "t1", "t2"]

    def tools(self):
        report = {"type": "object", "properties": {"report": {"type": "string"}}, "required": ["report"]}
        return [{"name": "get_boat", "description": "The boat.", "parameters": {"type": "object", "properties": {}}},
                {"name": "file_report", "description": self.described, "parameters": report}]

    def facts(self, task):
        return [f"{line} {task}" for line in FACTS]

    def reset(self, task, seed):
        self.task, self.report, self.rows = task, "", []
        return "Report what there is to say about the boat."

    def call(self, name, arguments):
        if name == "get_boat":
            return {"boat": self.facts(self.task)}
        self.report = arguments["report"]
        return {"ok": True, **self.grade_fields()}

    def grade_fields(self):
        return {}

    def good(self):
        return sum(line in self.facts(self.task) for line in self.report.split("\\n"))

    def state(self):
        return {"report": self.report, "rows": list(self.rows)}

    def oracle(self, task):
        return [["get_boat", {}], ["file_report", {"report": "\\n".join(self.facts(task))}]]

    def score(self):
        return self.good() / len(FACTS)


class Graded(Silent):
    def grade_fields(self):
        return {"quality": round(100 * self.score())}


class Announced(Graded):
    described = "File a report, or replace it; answers with its grade."


class Counted(Silent):
    """Each line that is about the boat becomes a row: how many there are is to be seen."""

    def grade_fields(self):
        self.rows = [line for line in self.report.split("\\n") if line in self.facts(self.task)]
        return {"rows": len(self.rows)}


class Final(Graded):
    """The first report counts."""

    def call(self, name, arguments):
        if name == "file_report" and self.report:
            return {"error": "the report is filed"}
        return super().call(name, arguments)
'''


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reports") / "reports.py"
    path.write_text(REPORTS, "utf-8")
    return path


def _found(reports: Path, factory: str) -> tuple[Finding, ...]:
    report = audit(Subject(f"{reports}:{factory}"), CHECKS)
    assert not [one for one in report.checks if one.reason.startswith(BROKE)]
    return report.findings


@pytest.mark.slow
def test_a_grade_that_is_told_is_proven(reports: Path) -> None:
    (found,) = _found(reports, "Graded")
    assert found.title == "file_report tells at /quality how good the verifier finds what was said"
    assert (found.severity, found.confidence) == ("error", "proven")


@pytest.mark.slow
def test_a_grade_that_is_announced_is_a_warning(reports: Path) -> None:
    (found,) = _found(reports, "Announced")
    assert (found.severity, found.confidence) == ("warning", "likely")


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["Silent", "Counted", "Final"])
def test_no_finding_for_world_counts_or_final_grades(reports: Path, factory: str) -> None:
    assert _found(reports, factory) == ()


def test_a_scale_is_the_score_in_another_unit() -> None:
    assert is_scale([(1.0, 4), (0.75, 3), (0.75, 3), (0.5, 2)])
    assert not is_scale([(1.0, 4), (0.75, 3), (0.5, 2)])  # No level was met twice.
    assert not is_scale([(1.0, 4), (0.75, 3), (0.75, 2), (0.5, 2)])
    assert not is_scale([(1.0, 1), (0.0, 0), (0.0, 0)])
