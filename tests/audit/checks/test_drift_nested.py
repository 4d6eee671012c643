"""Tests of consistent and inconsistent lists: narrow queries against wide and unreadable ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, audit
from quintain.audit.checks import _drift_nested
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject
from tests.audit.checks._found import highest

pytestmark = pytest.mark.slow

GARAGE = '''
class ToolError(Exception):
    pass


def tool(name, description, **properties):
    return {"name": name, "description": description,
            "parameters": {"type": "object", "properties": properties, "required": list(properties)}}


DAY = {"type": "string", "description": "Such as 2031-01-02."}


class Garage:
    def tasks(self):
        return ["park"]

    def tools(self):
        return [
            tool("find_places", "Show places.", length={"type": "integer", "minimum": 1, "maximum": 90,
                                                          "description": "At least so many metres."}),
            tool("find_cars", "Find cars.", plate={"type": "string", "description": "A part of the plate."}),
            tool("list_tickets", "The tickets of a day.", day=DAY),
        ]

    def reset(self, task, seed):
        self.places = [{"id": f"P{n}", "length": 4 + n} for n in range(7)]
        self.cars = [{"id": f"K{n}", "plate": f"BE{n % 3}{n}77 X{n}"} for n in range(9)]
        self.tickets = [{"id": f"T{n}", "day": f"2031-01-0{1 + n % 3}"} for n in range(9)]
        return "Park. Today is 2031-01-01; yesterday's tickets are those of 2031-01-02, if any."

    def call(self, name, arguments):
        return {"rows": getattr(self, "_" + name)(**arguments)}

    def _find_places(self, length):
        return [one for one in self.places if one["length"] >= length]

    def _find_cars(self, plate):
        return [one for one in self.cars if plate.lower() in one["plate"].lower()]

    def _list_tickets(self, day):
        return [one for one in self.tickets if one["day"] == day]

    def oracle(self, task):
        return [["find_places", {"length": 6}], ["find_cars", {"plate": "BE11"}], ["list_tickets", {
            "day": "2031-01-02"}]]

    def state(self):
        return {"places": self.places, "cars": self.cars, "tickets": self.tickets}

    def score(self):
        return 1.0


class Exact(Garage):
    """As long as asked for and no longer; plates are found by their beginning of four letters, or whole."""

    def _find_places(self, length):
        return [one for one in self.places if one["length"] == length]

    def _find_cars(self, plate):
        return [one for one in super()._find_cars(plate) if len(plate) > 3]

    def _list_tickets(self, day):
        known = {one["day"] for one in self.tickets}
        return super()._list_tickets(day if day in known else "2031-01-01")
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("garage") / "garage.py"
    path.write_text(GARAGE, encoding="utf-8")
    return path


CASES = [
    ("Garage", []),
    ("Exact", [("silent_default", "list_tickets")]),
]


@pytest.mark.parametrize(("name", "wrong"), CASES)
def test_lists_that_do_not_hold_together_are_found(file: Path, name: str, wrong: list[tuple[str, str]]) -> None:
    report = audit(Subject(f"{file}:{name}"), checks_of(_drift_nested))
    assert not [one for one in report.checks if one.reason.startswith(BROKE)]
    assert [one.status for one in report.checks] == ["checked"]
    assert sorted((one.class_, one.title.split()[0]) for one in report.findings) == wrong
    assert all((one.confidence, one.severity) == (highest(one), "error") for one in report.findings)
