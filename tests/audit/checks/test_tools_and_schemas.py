"""Tests of tools that contradict their schemas or themselves, and of sound tools that look like them."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.action_drift import counted_alike, declared, set_twice
from quintain.audit.checks.silent_default import unknown_names
from tests.audit.checks._found import found

SUBJECT = '''
class ToolError(Exception):
    pass


TOWNS = {"Basel": (4, 31), "Chur": (2, 17), "Olten": (7, 52)}
COUNT = {"type": "integer", "minimum": 1, "maximum": 100000}


def tool(name, description, **properties):
    return {"name": name, "description": description, "parameters": {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}}


class Shed:
    """A lamp, nails, notes by number, and what towns have ordered."""

    TOOLS = [
        tool("show_shed", "Show the lamp and the nails."),
        tool("set_lamp", "Light the lamp or not.", lit={"type": "boolean"}),
        tool("receive", "Take nails.", count=COUNT),
        tool("get_town", "Show what a town has ordered.", town={"type": "string", "enum": list(TOWNS)}),
        tool("write_note", "Write a note.", text={"type": "string"}),
        tool("drop_note", "Drop a note.", number=COUNT),
    ]

    def tasks(self):
        return ["one", "two"]

    def tools(self):
        return self.TOOLS

    def reset(self, task, seed):
        self.lit, self.nails, self.notes = False, 10, []
        return "Light the lamp, take 40 nails and write it down."

    def call(self, name, arguments):
        declared = next(one for one in self.TOOLS if one["name"] == name)["parameters"]["properties"]
        for one in declared:
            if one not in arguments:
                raise ToolError(f"argument {one} is missing")
        for one in arguments:
            if one not in declared:
                raise ToolError(f"unknown argument {one}")
        return getattr(self, name)(**arguments)

    def show_shed(self):
        return {"lamp_lit": self.lit, "nails": self.nails, "notes": list(self.notes)}

    def set_lamp(self, lit):
        self.lit = lit
        return "done"

    def receive(self, count):
        self.nails += count
        return "done"

    def get_town(self, town):
        if town not in TOWNS:
            raise ToolError(f"town must be one of {', '.join(TOWNS)}")
        return self.ordered(town)

    def ordered(self, town):
        return {"orders": TOWNS[town][0], "nails": TOWNS[town][1]}

    def write_note(self, text):
        self.notes.append(text)
        return {"number": len(self.notes)}

    def drop_note(self, number):
        if not 1 <= number <= len(self.notes):
            raise ToolError("no such note")
        return {"dropped": self.notes.pop(number - 1)}

    def oracle(self, task):
        return [["set_lamp", {"lit": True}], ["receive", {"count": 40}], ["write_note", {"text": "40 nails"}]]

    def score(self):
        return float(self.lit and self.nails == 50)


class Flips(Shed):
    """The lamp's tool ignores what it is given."""

    def set_lamp(self, lit):
        return super().set_lamp(not self.lit)


class Pressed(Shed):
    """A switch that has another parameter."""

    TOOLS = [
        tool("set_lamp", "Press the switch.", hard={"type": "boolean"}) if one["name"] == "set_lamp" else one
        for one in Shed.TOOLS
    ]

    def set_lamp(self, hard):
        return super().set_lamp(not self.lit)

    def oracle(self, task):
        return [["set_lamp", {"hard": True}], *super().oracle(task)[1:]]


class Toggled(Flips):
    """The tool says that it toggles."""

    TOOLS = [
        tool("set_lamp", "Toggle the lamp.", lit={"type": "boolean"}) if one["name"] == "set_lamp" else one
        for one in Shed.TOOLS
    ]


class Pallets(Shed):
    """Many nails ask for an argument that the schema does not have."""

    def receive(self, count):
        if count > 1000:
            raise ToolError("argument pallet_id is missing")
        return super().receive(count)


class Full(Shed):
    """Many nails do not fit, and what lacks is no argument."""

    def receive(self, count):
        if count > 1000:
            raise ToolError("a loading_ramp is missing here")
        return super().receive(count)


class Codes(Shed):
    """Towns are known by a code that the schema does not have."""

    def get_town(self, town):
        if town not in TOWNS:
            raise ToolError(f"town must be one of {', '.join(TOWNS)}")
        raise ToolError(f"unknown town {town}")


class Gone(Codes):
    """One of the towns is known."""

    def get_town(self, town):
        return super().ordered(town) if town == "Chur" else super().get_town(town)


class Zeros(Shed):
    """A town that is none has ordered nothing."""

    def get_town(self, town):
        return super().ordered(town) if town in TOWNS else {"orders": 0, "nails": 0}


class Counted(Shed):
    """The number of orders of a town that is none is 0."""

    def get_town(self, town):
        return {"orders": TOWNS[town][0] if town in TOWNS else 0}


class FromZero(Shed):
    """Notes are dropped as if they were counted from 0."""

    def drop_note(self, number):
        if number >= len(self.notes):
            raise ToolError("no such note")
        return {"dropped": self.notes.pop(number)}


class Queue(Shed):
    """The oldest note goes first."""

    def drop_note(self, number):
        if number > 1:
            raise ToolError("the first note goes first")
        return super().drop_note(number)
'''


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("shed") / "shed.py"
    file.write_text(SUBJECT)
    return file


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Flips", "set_lamp takes back its lit when it is given again"),
        ("Pallets", "receive demands pallet_id, which its schema does not have"),
        ("Codes", "get_town refuses every town that its schema offers"),
        ("Zeros", "get_town answers for a town that its schema does not have as if it did"),
        ("FromZero", "drop_note takes another number than write_note returns"),
        *((name, "") for name in ("Shed", "Pressed", "Toggled", "Full", "Counted", "Queue")),
    ],
)
def test_tools_that_contradict_their_schema_are_proven(subject: Path, name: str, title: str) -> None:
    findings = found(subject, name, [counted_alike, declared, set_twice, unknown_names])
    proven = [one.title for one in findings if (one.confidence, one.severity) == ("proven", "error")]
    assert proven == ([title] if title else [])


def test_tool_that_takes_one_of_its_choices_is_not_called_unusable(subject: Path) -> None:
    titles = [one.title for one in found(subject, "Gone", [declared])]
    assert titles == [f"get_town refuses town={town!r}, which its schema offers" for town in ("Basel", "Olten")]
