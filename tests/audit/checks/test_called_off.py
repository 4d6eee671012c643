"""Tests that a cancelled plan that is carried out is found, and other effects of time are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks._drift_called_off import called_off
from tests.audit.checks._found import found

SUBJECT = '''
class ToolError(Exception):
    pass


class Painter:
    """A room is painted at a planned hour, unless the plan was cancelled."""

    about = "Cancel a plan; the room keeps its colour."

    def tasks(self):
        return ["red", "blue"]

    def tools(self):
        text = {"type": "string"}
        plan = {"colour": {**text, "enum": ["red", "blue"]}, "hours": {"type": "integer", "minimum": 1}}
        return [
            {"name": "plan", "description": "Plan the painting of the room.", "parameters": self.schema(plan)},
            {"name": "cancel", "description": self.about, "parameters": self.schema({"number": text})},
        ]

    def schema(self, properties):
        return {"type": "object", "properties": properties, "required": list(properties)}

    def reset(self, task, seed):
        self.want, self.now, self.made, self.plans, self.room = task, 0.0, 0, {}, {"colour": "white", "notes": []}
        return f"Have the room painted {task} in 90 hours."

    def call(self, name, arguments):
        if name == "plan":
            self.made += 1
            self.plans[f"P{self.made}"] = (self.now + 3600 * arguments["hours"], arguments["colour"])
            return f"P{self.made}"
        if arguments["number"] not in self.plans:
            raise ToolError("no such plan")
        self.cancel(arguments["number"])
        return "it is cancelled"

    def cancel(self, number):
        del self.plans[number]

    def advance(self, seconds):
        self.now += seconds
        for number, (due, colour) in list(self.plans.items()):
            if due <= self.now:
                self.room["colour"] = colour
                del self.plans[number]

    def state(self):
        return {"room": dict(self.room), "made": self.made}

    def oracle(self, task):
        return [["plan", {"colour": task, "hours": 90}]]

    def score(self):
        return float([colour for _, colour in self.plans.values()] == [self.want])


class Late(Painter):
    """A plan that is due within two days cannot be stopped any more, and the tool does not say so."""

    def cancel(self, number):
        if self.plans[number][0] > self.now + 2 * 86400:
            del self.plans[number]


class Warned(Late):
    """The tool says so."""

    about = "Cancel a plan, until two days before it."


class Noted(Painter):
    """A cancelled plan leaves a note later."""

    def cancel(self, number):
        self.plans[number] = (self.plans[number][0], self.room["colour"])
        self.room["notes"] = [f"{number} is off"]
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("called_off") / "subject.py"
    path.write_text(SUBJECT, "utf-8")
    return path


def test_plan_that_happens_after_its_cancellation_is_proven(file: Path) -> None:
    (finding,) = found(file, "Late", [called_off])
    assert (finding.class_, finding.confidence, finding.severity) == ("action_drift", "proven", "error")
    assert finding.title.startswith("cancel reports that it is done")


@pytest.mark.parametrize(
    "kind", ["Warned", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("Painter", "Noted"))]
)
def test_no_finding_when_a_cancelled_plan_does_not_happen_or_the_tool_says_so(file: Path, kind: str) -> None:
    assert not found(file, kind, [called_off])
