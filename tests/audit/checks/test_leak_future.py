"""Logs that go on beyond the moment at which a task begins, and lists of what is planned, which may."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, audit
from quintain.audit.checks import leak
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

CHECKS = [one for one in checks_of(leak) if one.id == "x.history_holds_no_future"]
BOILERS = '''
def tool(name, **properties):
    return {"name": name, "description": name,
            "parameters": {"type": "object", "properties": properties, "required": list(properties)}}


class Boilers:
    """Boilers that are too hot, and the log of what was done to them."""

    def tasks(self):
        return [f"t{n}" for n in range(4)]

    def tools(self):
        return [tool("list_log"), tool("cool_down", degrees={"type": "integer"})]

    def reset(self, task, seed):
        self.task, self.heat = task, 80
        self.log = [self.row(n, f"2031-05-{n + 1:02d}T08:00Z", f"heat: {n} -> {n + 1}") for n in range(9)]
        self.log += self.later(self.wanted(task))
        return "Cool the boiler down as far as the handbook says."

    def row(self, number, at, what):
        return {"id": f"L{number}", "at": at, "what": what, "by": f"worker {number % 5}"}

    def later(self, wanted):
        return []

    def wanted(self, task):
        return 20 + int(task[1:])

    def call(self, name, arguments):
        if name == "list_log":
            return {"log": [dict(row) for row in self.log]}
        self.log.append(self.done(f"heat: {self.heat} -> {arguments['degrees']}"))
        self.heat = arguments["degrees"]
        return {"ok": True}

    def done(self, what):
        return self.row(70, "2031-05-20T08:00Z", what) | {"by": "you"}

    def state(self):
        return {"heat": self.heat, "log": [dict(row) for row in self.log]}

    def oracle(self, task):
        return [["list_log", {}], ["cool_down", {"degrees": self.wanted(task)}]]

    def score(self):
        return float(self.heat == self.wanted(self.task))


class Dumped(Boilers):
    """The log was copied when all was done."""

    def later(self, wanted):
        return [self.row(88, "2031-05-21T08:00Z", f"heat: 80 -> {wanted}")]


class Planned(Boilers):
    """What is planned stands among what was done, and says so."""

    def row(self, number, at, what):
        return super().row(number, at, what) | {"status": "planned" if number == 88 else "done"}

    def later(self, wanted):
        return [self.row(88, "2031-05-21T08:00Z", f"heat: 80 -> {wanted}")]


class Foreseen(Boilers):
    """Something else is to be done later."""

    def later(self, wanted):
        return [self.row(88, "2031-05-21T08:00Z", "heat: 80 -> 90")]
'''


@pytest.fixture(scope="module")
def boilers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("boilers") / "boilers.py"
    path.write_text(BOILERS, "utf-8")
    return path


def _found(boilers: Path, factory: str) -> tuple[Finding, ...]:
    report = audit(Subject(f"{boilers}:{factory}"), CHECKS)
    assert not [one for one in report.checks if one.reason.startswith(BROKE)]
    return report.findings


def test_a_log_of_what_the_solution_will_do_is_proven(boilers: Path) -> None:
    (found,) = _found(boilers, "Dumped")
    assert found.title == "list_log shows in log what the solution will do, dated after it"
    assert (found.severity, found.confidence) == ("error", "proven")
    assert found.observed.startswith("heat: 80 -> 2")


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["Boilers", "Planned", "Foreseen"])
def test_no_finding_for_past_planned_or_unrelated_rows(boilers: Path, factory: str) -> None:
    assert _found(boilers, factory) == ()
