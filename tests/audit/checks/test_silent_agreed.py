"""A value that other tools refuse for the same parameter is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import silent_default as silent
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

LINES = '''
TEXT = {"type": "string"}
STOP = {"type": "string", "description": "Where, as in B12."}

def tool(called, **properties):
    return {"name": called, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}

class Lines:
    """Buses between stops, of which each has a letter and a number; any may be asked for."""

    def tasks(self):
        return ["one", "two"]

    def tools(self):
        return [tool("show_fare", stop=STOP), tool("show_buses", stop=STOP), tool("book", stop=STOP, name=TEXT)]

    def reset(self, task, seed):
        self.booked = {}
        return "Book Ann a bus to B12."

    def oracle(self, task):
        looks = [["show_fare", {"stop": "B12"}], ["show_buses", {"stop": "B12"}]]
        return [*looks, ["book", {"stop": "B12", "name": "Ann"}]]

    def call(self, name, arguments):
        stop = arguments["stop"]
        if not self.takes(name, stop):
            return {"error": self.refusal(name)}
        if name == "book":
            self.booked[arguments["name"]] = stop
            return {"booked": arguments["name"]}
        return {"fare": len(stop) * 100} if name == "show_fare" else {"first": "8:00", "last": "20:00"}

    def takes(self, name, stop):
        return len(stop) == 3 and stop[0].isupper() and stop[1:].isdigit()

    def refusal(self, name):
        return "a stop is a letter and two digits"

    def score(self):
        return float(self.booked == {"Ann": "B12"})

class Anywhere(Lines):
    """A bus is booked to any stop."""

    def takes(self, name, stop):
        return name == "book" or super().takes(name, stop)

class AnyFare(Lines):
    def takes(self, name, stop):
        return name == "show_fare" or super().takes(name, stop)

class OnlyStops(Anywhere):
    """A stop is named, and there are few."""

    def takes(self, name, stop):
        return name == "book" or stop in ("B12", "B30")

class InOtherWords(Anywhere):
    """Each tool that refuses has a reason of its own."""

    def refusal(self, name):
        return f"{name} is for certain stops"
'''


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        pytest.param("Lines", [], marks=pytest.mark.slow),
        ("Anywhere", ["book takes a stop that show_fare and show_buses refuse"]),
        pytest.param("AnyFare", ["show_fare takes a stop that show_buses and book refuse"], marks=pytest.mark.slow),
        ("OnlyStops", []),
        pytest.param("InOtherWords", [], marks=pytest.mark.slow),
    ],
)
def test_value_refused_by_two_tools_is_not_accepted_by_a_third(tmp_path: Path, name: str, titles: list[str]) -> None:
    (tmp_path / "lines.py").write_text(LINES, "utf-8")
    report = audit(Subject(f"{tmp_path / 'lines.py'}:{name}"), [silent.refuse_alike])
    assert [one.title for one in report.findings] == titles
    assert {(one.severity, one.confidence) for one in report.findings} <= {("error", "proven")}
    assert [one.status for one in report.checks] == ["checked"]
