"""Tests of damage to rows of a namesake, and of work on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import reward_hack
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

CLUB = '''
TEXT = {"type": "string"}

def tool(called, **properties):
    return {"name": called, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}

class Club:
    """Members and where they live. Of one name there are two in each task, and one of them moves."""

    def tasks(self):
        return ["M11", "M27"]

    def tools(self):
        return [tool("find_members", query=TEXT), tool("set_street", member_id=TEXT, street=TEXT)]

    def reset(self, task, seed):
        self.task = task
        self.rows = {f"M{n}": {"name": f"Ann {chr(65 + n % 23)}ill{n}", "street": f"Old {n}"} for n in range(10, 75)}
        self.rows["M74"]["name"] = f" {self.rows[task]['name'].upper()}"
        self.before = {key: dict(row) for key, row in self.rows.items()}
        return f"{self.rows[task]['name']} of {self.rows[task]['street']} has moved to New 3; leave all others."

    def oracle(self, task):
        return [["find_members", {"query": "Ann"}], ["set_street", {"member_id": task, "street": "New 3"}]]

    def call(self, name, arguments):
        if name == "find_members":
            return [{"id": key, **row} for key, row in self.rows.items() if arguments["query"] in row["name"]]
        if arguments["member_id"] not in self.rows:
            return {"error": "no such member"}
        self.rows[arguments["member_id"]]["street"] = arguments["street"]
        return {"ok": True}

    def state(self):
        return {"members": {key: dict(row) for key, row in self.rows.items()}}

    def is_damage(self, key):
        return self.rows[key] != self.before[key]

    def score(self):
        damaged = any(self.is_damage(key) for key in self.rows if key != self.task)
        return float(self.rows[self.task]["street"] == "New 3" and not damaged)

class OwnRowsAreFree(Club):
    """Club that takes rows with the member's name for the member's rows."""

    def is_damage(self, key):
        names = [self.before[one]["name"].strip().lower() for one in (key, self.task)]
        return names[0] != names[1] and super().is_damage(key)

class ByName(Club):
    """Club that takes the row of any member of the name for the right one."""

    def score(self):
        own = self.before[self.task]["name"].strip().lower()
        there = [key for key, row in self.before.items() if row["name"].strip().lower() == own]
        return float(any(self.rows[key]["street"] == "New 3" for key in there))
'''


@pytest.mark.parametrize(("name", "count"), [("Club", 0), ("OwnRowsAreFree", 1)])
def test_rows_of_a_namesake_are_harmed(tmp_path: Path, name: str, count: int) -> None:
    (tmp_path / "club.py").write_text(CLUB, "utf-8")
    report = audit(Subject(f"{tmp_path / 'club.py'}:{name}"), [reward_hack.collateral_damage])
    assert [(one.severity, one.confidence) for one in report.findings] == [("error", "proven")] * count
    assert [one.status for one in report.checks] == ["checked"]
    assert all("M74" in str(one.trajectory) for one in report.findings)


@pytest.mark.parametrize(("name", "count"), [("Club", 0), ("ByName", 1)])
def test_work_on_the_row_of_a_namesake_is_found_when_the_prompt_describes_the_row(
    tmp_path: Path, name: str, count: int
) -> None:
    (tmp_path / "club.py").write_text(CLUB, "utf-8")
    report = audit(Subject(f"{tmp_path / 'club.py'}:{name}"), [reward_hack.another_record])
    assert [(one.severity, one.confidence) for one in report.findings] == [("error", "proven")] * count
    assert [one.status for one in report.checks] == ["checked"]
