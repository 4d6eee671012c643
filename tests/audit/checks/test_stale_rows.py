"""Tests of a reader that takes no id and is called with fields of the changed row."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks import stale_cache as stale
from tests.audit.checks._found import found

pytestmark = pytest.mark.slow

TRAINS = '''
DAYS = ["2031-05-12", "2031-05-13"]

def tool(name, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": "", "parameters": parameters}

class Trains:
    """Seats in trains. No solution looks at a timetable."""

    def tasks(self):
        return ["T1", "T2"]

    def tools(self):
        return [tool("find_trains", town={"type": "string"}, day={"type": "string", "enum": DAYS}),
                tool("book_seat", train_id={"type": "string"})]

    def reset(self, task, seed):
        self.task, self.found = task, {}
        rows = zip(("T1", "T2"), ("Bosk", "Elsby"), DAYS)
        self.trains = [{"train_id": key, "town": town, "departs": f"{day}T09:40", "free": 4} for key, town, day in rows]
        return f"Book a seat in {task}."

    def oracle(self, task):
        return [["book_seat", {"train_id": task}]]

    def call(self, name, arguments):
        if name == "find_trains":
            return self.find(arguments["town"], arguments["day"])
        for train in self.trains:
            if train["train_id"] == arguments["train_id"]:
                train["free"] -= 1
                return {"booked": train["train_id"]}
        return {"error": "no such train"}

    def find(self, town, day):
        return {"trains": [dict(one) for one in self.trains if one["town"] == town and one["departs"][:10] == day]}

    def state(self):
        return {"trains": [dict(one) for one in self.trains]}

    def score(self):
        return float(any(one["train_id"] == self.task and one["free"] == 3 for one in self.trains))

class Remembered(Trains):
    def find(self, town, day):
        if (town, day) not in self.found:
            self.found[town, day] = super().find(town, day)
        return self.found[town, day]
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "trains.py"
    path.write_text(TRAINS)
    return path


def test_a_search_that_is_remembered_is_proven(file: Path) -> None:
    (finding,) = found(file, "Remembered", [stale.read_your_writes])
    assert finding.stops
    assert finding.title == "find_trains does not show what book_seat brought, if it was read before"
    assert {"town": "Bosk", "day": "2031-05-12"} in [line.get("arguments") for line in finding.trajectory]


def test_one_that_looks_is_sound(file: Path) -> None:
    assert found(file, "Trains", [stale.read_your_writes]) == []
