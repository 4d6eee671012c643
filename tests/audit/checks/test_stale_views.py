"""A list and a detail of one row: they agree after a write as they did before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import stale_cache as stale
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

GUESTS = '''
TEXT = {"type": "string"}

def tool(name, *given, description=""):
    parameters = {"type": "object", "properties": dict.fromkeys(given, TEXT), "required": list(given)}
    return {"name": name, "description": description, "parameters": parameters}

class Guests:
    """Guests of a house, each in a room; whoever is shown in a list is shown alone, too."""

    ROOMS = {"G1": "blue", "G2": "green", "G3": "old"}
    LIST = "Show all guests."

    def tasks(self):
        return ["G1", "G2"]

    def tools(self):
        listed = tool("list_guests", description=self.LIST)
        return [listed, tool("get_guest", "guest_id"), tool("move_guest", "guest_id", "room"),
                tool("rename_guest", "guest_id")]

    def reset(self, task, seed):
        self.task, self.rooms = task, dict(self.ROOMS)
        self.names, self.copy = dict.fromkeys(self.ROOMS, "Ann"), dict(self.ROOMS)
        return f"Move {task} to the red room."

    def oracle(self, task):
        return [["list_guests", {}], ["get_guest", {"guest_id": task}],
                ["move_guest", {"guest_id": task, "room": "red"}], ["rename_guest", {"guest_id": task}]]

    def call(self, name, arguments):
        if name == "list_guests":
            return {"guests": [{"id": key, "room": room, "name": "Ann"} for key, room in self.listed().items()]}
        key = arguments["guest_id"]
        if key not in self.rooms:
            return {"error": "no such guest"}
        if name == "get_guest":
            return {"guest": {"id": key, "room": self.shown(key), "name": self.names[key]}}
        if name == "rename_guest":
            self.names[key] += "a"
        else:
            self.rooms[key] = arguments["room"]
        return {"ok": True}

    def listed(self):
        return self.rooms

    def shown(self, key):
        return self.rooms[key]

    def score(self):
        return float(self.rooms[self.task] == "red")

class OldList(Guests):
    """The list reads a copy that is never renewed, even without an earlier read."""

    def listed(self):
        return self.copy

class OldDetail(Guests):
    def shown(self, key):
        return self.copy[key]

class DailyList(OldList):
    LIST = "Show all guests, as of this morning."
'''


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("Guests", []),
        ("OldList", ["list_guests goes on to show the room that move_guest changed, and get_guest the new one"]),
        ("OldDetail", ["get_guest goes on to show the room that move_guest changed, and list_guests the new one"]),
        ("DailyList", []),
    ],
)
def test_a_list_and_a_detail_agree_after_a_write(tmp_path: Path, name: str, titles: list[str]) -> None:
    (tmp_path / "guests.py").write_text(GUESTS, "utf-8")
    report = audit(Subject(f"{tmp_path / 'guests.py'}:{name}"), [stale.views_agree])
    assert [one.title for one in report.findings] == titles
    assert {one.confidence for one in report.findings} <= {"proven"}
    assert [one.status for one in report.checks] == ["not_checked" if name == "DailyList" else "checked"]
