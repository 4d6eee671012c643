"""Tests of moves between two places: the place that is left must show the move, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import stale_cache as stale
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

DESKS = '''
ID = {"type": "string"}

def tool(name, *given):
    properties = dict.fromkeys(given, ID)
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(given)}}

class Desks:
    """People sit at desks, of which each has a few seats."""

    DESKS = ("north", "south", "west")

    def __init__(self):
        self.counted = {}

    def tasks(self):
        return ["ann", "bob"]

    def tools(self):
        return [tool("list_desks"), tool("seat_person", "person", "desk_id")]

    def reset(self, task, seed):
        self.task, self.seats = task, {}
        self.counted.clear()
        return f"Seat {task} at the south desk."

    def oracle(self, task):
        return [["list_desks", {}], ["seat_person", {"person": task, "desk_id": "south"}]]

    def call(self, name, arguments):
        if name == "list_desks":
            return {"desks": [{"id": desk, "free": self.free(desk)} for desk in self.DESKS]}
        if arguments["desk_id"] not in self.DESKS:
            return {"error": "no such desk"}
        self.seats[arguments["person"]] = arguments["desk_id"]
        self.counted.pop(arguments["desk_id"], None)
        return {"ok": True}

    def free(self, desk):
        return 4 - list(self.seats.values()).count(desk)

    def state(self):
        return dict(self.seats)

    def score(self):
        return float(self.seats.get(self.task) == "south")

class LeftBehind(Desks):
    """Seats are counted once for each desk, and anew when somebody comes."""

    def free(self, desk):
        return self.counted.setdefault(desk, super().free(desk))
'''


def test_the_place_that_is_left_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "desks.py").write_text(DESKS)
    bad = audit(Subject(f"{tmp_path / 'desks.py'}:LeftBehind"), [stale.read_walks])
    assert {(one.check, one.confidence) for one in bad.findings} == {("x.read_walks", "proven")}
    assert "list_desks gives after seat_person" in bad.findings[0].title
    assert not audit(Subject(f"{tmp_path / 'desks.py'}:Desks"), [stale.read_walks]).findings
