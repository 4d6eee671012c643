"""Tests of promised full marks: some number must be paid 1, although the right one is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import reward_clipping as clipping
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

YARD = '''
def tool(called, **properties):
    return {"name": called, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}

class Yard:
    """How much fence a yard needs; there is one try."""

    DEMAND = "Hand in how long its fence is; full marks for 2 % off, and fewer for 20 %."
    YARDS = {"north": (31.5, 12.25), "south": (104.0, 66.5)}

    def tasks(self):
        return list(self.YARDS)

    def tools(self):
        return [tool("get_yard", name={"type": "string", "enum": list(self.YARDS)}),
                tool("hand_in", length={"type": "number", "minimum": 0})]

    def reset(self, task, seed):
        self.task, self.given = task, None
        return f"There is a yard in the {task}, fenced on two sides. {self.DEMAND}"

    def call(self, name, arguments):
        if name == "get_yard":
            return dict(zip(("long", "wide"), self.YARDS[arguments["name"]]))
        if self.given is not None:
            return {"error": "there was one try"}
        self.given = arguments["length"]
        return {"ok": True}

    def off(self):
        right = sum(self.YARDS[self.task])
        return abs(self.given - right) / right if self.given is not None else 1.0

    def score(self):
        return 0.6 * (self.off() <= 0.02) + 0.4 * (self.off() <= 0.2)

class NineTenths(Yard):
    """The parts do not add up to 1."""

    def score(self):
        return super().score() * 0.9

class Unpromised(NineTenths):
    DEMAND = "Hand in how long its fence is."

class Reasons(NineTenths):
    """The rest is paid for something else."""

    def score(self):
        return {"score": super().score(), "near": super().score(), "reasons": 0.0}
'''


@pytest.mark.parametrize(
    ("name", "status", "titles"),
    [
        ("Yard", "checked", []),
        ("NineTenths", "checked", ["no number is paid more than 0.9, where the task tells of full marks"]),
        ("Unpromised", "not_checked", []),
        pytest.param("Reasons", "checked", [], marks=pytest.mark.slow),
    ],
)
def test_some_number_is_paid_in_full(tmp_path: Path, name: str, status: str, titles: list[str]) -> None:
    (tmp_path / "yard.py").write_text(YARD, "utf-8")
    report = audit(Subject(f"{tmp_path / 'yard.py'}:{name}"), [clipping.full_marks])
    assert [one.title for one in report.findings] == titles
    assert {(one.severity, one.confidence) for one in report.findings} <= {("error", "likely")}
    assert [one.status for one in report.checks] == [status]
