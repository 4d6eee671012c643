"""Crashes that need a certain row, or a certain order of calls that are all right."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks.races import every_row
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

CLUB = '''
import copy

ID = {"type": "string"}

def tool(name, **properties):
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}

class Club:
    """Members, some of whom have no phone; they join and leave."""

    def tasks(self):
        return ["greet 1", "greet 2"]

    def tools(self):
        return [tool("get_member", member_id=ID), tool("leave", member_id=ID), tool("oldest")]

    def reset(self, task, seed):
        phones = [None if n == 7 else f"0{n} 11" for n in range(9)]
        self.members = {f"M{n}": {"id": f"M{n}", "phone": phones[n], "age": 20 + n} for n in range(9)}
        return f"Greet: {task}."

    def call(self, name, arguments):
        return getattr(self, name)(**arguments)

    def get_member(self, member_id):
        if member_id not in self.members:
            return {"error": "no such member"}
        one = self.members[member_id]
        return {**one, "area": self.area(one["phone"])}

    def area(self, phone):
        return phone.split()[0] if phone else None

    def leave(self, member_id):
        if member_id not in self.members:
            return {"error": "no such member"}
        del self.members[member_id]
        return {"ok": True}

    def oldest(self):
        return {"age": max((one["age"] for one in self.members.values()), default=None)}

    def state(self):
        return copy.deepcopy({"members": list(self.members.values())})

    def score(self):
        return float("M1" not in self.members)

    def oracle(self, task):
        return [["get_member", {"member_id": "M1"}], ["oldest", {}], ["leave", {"member_id": "M1"}]]

class Phones(Club):
    def area(self, phone):
        return phone.split()[0]

class Emptied(Club):
    def oldest(self):
        if "M3" not in self.members and "M5" not in self.members:
            return {}["missing"]
        return super().oldest()
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("club") / "club.py"
    path.write_text(CLUB.replace(" for n in range(9)}\n", "\n            for n in range(9)}\n"), "utf-8")
    return path


def _audited(file: Path, factory: str) -> Report:
    return audit(Subject(f"{file}:{factory}"), [every_row])


def test_a_sound_club_is_left_in_peace(file: Path) -> None:
    report = _audited(file, "Club")
    assert report.findings == ()
    assert [one.status for one in report.checks] == ["checked"]


def test_a_row_that_breaks_a_read_is_proven(file: Path) -> None:
    (found,) = _audited(file, "Phones").findings
    assert (found.class_, found.part, found.severity, found.confidence) == ("races", "S", "error", "proven")
    assert [line["arguments"] for line in found.trajectory[1:]] == [{"member_id": "M7"}]


@pytest.mark.slow
def test_an_order_of_right_calls_that_breaks_is_proven_by_the_fewest(file: Path) -> None:
    (found,) = _audited(file, "Emptied").findings
    assert (found.severity, found.confidence) == ("error", "proven")
    assert sorted(line.get("name", "") for line in found.trajectory[1:]) == ["leave", "leave", "oldest"]
