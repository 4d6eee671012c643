"""Plain classes with no state and no oracle: what they say and show themselves is enough to contradict them."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, Report, audit
from quintain.audit.checks import _drift_settings
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

CHECKS = [one for module in (_drift_settings,) for one in checks_of(module)]
PLAIN = '''
TOWNS = ["Aldbrook", "Birkfjord", "Casterly", "Dunmere"]
PEOPLE = {"Aldbrook": 1200, "Birkfjord": 870, "Casterly": 15300, "Dunmere": 402}


def tool(name, description, /, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "parameters": parameters}


class Shutters:
    """Shutters that are what they were set to, weather of towns, rows in the order of what was set."""

    NAMES = {"type": "string", "enum": TOWNS}

    def tasks(self):
        return ["close all"]

    def tools(self):
        return [
            tool("show_house", "How all stands."),
            tool("list_rooms", "Rooms, the darkest first."),
            tool("set_shutter", "Open or close the shutter.", shutter_closed={"type": "boolean"}),
            tool("set_mode", "Choose the mode.", mode={"type": "string", "enum": ["eco", "away", "party"]}),
            tool("set_level", "Set the light of the hall.", level={"type": "integer", "minimum": 0, "maximum": 9}),
            tool("add_litres", "Fill the tank.", litres={"type": "integer", "minimum": 1, "maximum": 50}),
            tool("list_towns", "All towns."),
            tool("get_town", "How many live in a town.", name=self.NAMES),
            tool("describe_town", "A line about a town.", town_name={"type": "string"}),
            tool("submit", "Say how many people live in Birkfjord. There is one try.", value={"type": "number"}),
            tool("find_people", "People of a name.", name={"type": "string"}),
        ]

    def reset(self, task, seed):
        self.house = {"shutter_closed": False, "mode": "eco", "litres": 0}
        self.said = []
        self.rooms = {"hall": 5, "attic": 3, "cellar": 7}
        return f"Please {task}."

    def call(self, name, arguments):
        return getattr(self, name)(**arguments)

    def show_house(self):
        return dict(self.house)

    def list_rooms(self):
        return [{"room": name, "level": level} for name, level in sorted(self.rooms.items(), key=lambda one: one[1])]

    def set_shutter(self, shutter_closed):
        self.house["shutter_closed"] = shutter_closed
        return {"ok": True}

    def set_mode(self, mode):
        self.house["mode"] = mode
        return {"ok": True}

    def set_level(self, level):
        self.rooms["hall"] = level
        return {"ok": True}

    def add_litres(self, litres):
        self.house["litres"] += litres
        return {"ok": True}

    def list_towns(self):
        return {"towns": TOWNS}

    def get_town(self, name):
        if name not in PEOPLE:
            return {"error": f"{name} is not a town"}
        return {"people": PEOPLE[name]}

    def describe_town(self, town_name):
        return f"{town_name} has {PEOPLE[town_name]} people."

    def find_people(self, name):
        return {"found": 0, "people": []}

    def submit(self, value):
        if len(self.said) == self.TRIES:
            return {"error": "that was all"}
        self.said.append(value)
        return {"submitted": value}

    TRIES = 1

    def score(self):
        return float(870 in self.said[-1:])


class Careful(Shutters):
    """What it does not have it says, by null, by an empty list, or in words."""

    def get_town(self, name):
        return {"people": PEOPLE.get(name)}

    def describe_town(self, town_name):
        return f"{town_name} has {PEOPLE[town_name]} people." if town_name in PEOPLE else "I do not know that town."


class FirstCounts(Shutters):
    """Further answers are taken and do not count."""

    TRIES = 9999

    def score(self):
        return float(870 in self.said[:1])


class UntilRight(Shutters):
    TRIES = 9999

    def score(self):
        return float(870 in self.said)


class LastCounts(Shutters):
    """Three tries by the prompt, a text in place of a number."""

    TRIES = 9999

    def tools(self):
        text = tool("submit", "Say how many people live in Birkfjord.", value={"type": "string"})
        return [text if one["name"] == "submit" else one for one in super().tools()]

    def reset(self, task, seed):
        return super().reset(task, seed) + " You have three attempts."

    def score(self):
        return float("870" in self.said[-1:])


class Toggling(Shutters):
    def set_shutter(self, shutter_closed):
        self.house["shutter_closed"] = not self.house["shutter_closed"]
        return {"ok": True}


class Once(Shutters):
    """The first word counts: a mode that was chosen stays."""

    chosen = False

    def set_mode(self, mode):
        if not self.chosen:
            self.house["mode"], self.chosen = mode, True
        return {"ok": True}

    def reset(self, task, seed):
        self.chosen = False
        return super().reset(task, seed)


class Adding(Shutters):
    def set_level(self, level):
        self.rooms["hall"] = min(9, level if self.rooms["hall"] == 5 else self.rooms["hall"] + level)
        return {"ok": True}


class Sunny(Shutters):
    def get_town(self, name):
        return {"people": PEOPLE.get(name, 1000)}


class Quiet(Shutters):
    def describe_town(self, town_name):
        return f"{town_name} has {PEOPLE.get(town_name, 0)} people."


class Open(Shutters):
    """The schema has no list; another tool has."""

    NAMES = {"type": "string"}

    def get_town(self, name):
        return {"people": PEOPLE.get(name, 0), "mayor": "Ann" if name in PEOPLE else ""}
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain") / "plain.py"
    path.write_text(PLAIN, encoding="utf-8")
    return path


def audited(file: Path, name: str) -> Report:
    report = audit(Subject(f"{file}:{name}"), CHECKS)
    assert not [one.reason for one in report.checks if one.reason.startswith(BROKE)]
    return report


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param("Shutters", marks=pytest.mark.slow), pytest.param("Careful", marks=pytest.mark.slow), "FirstCounts"],
)
def test_sound_plain_classes_are_left_alone(file: Path, name: str) -> None:
    report = audited(file, name)
    assert [one.title for one in report.findings] == []
    assert all(one.looked > 0 for one in report.checks)


CASES = {
    "Toggling": "set_shutter says that it is done, and shutter_closed is not the given shutter_closed",
    "Once": "set_mode says that it is done, and mode is not the given mode",
    "Adding": "set_level says that it is done, and hall/level is not the given level",
    "UntilRight": "submit counts more answers than the 1 that there are said to be",
    "LastCounts": "submit counts more answers than the 3 that there are said to be",
    "Sunny": "get_town answers for a name that is in no list with a default",
    "Quiet": "describe_town answers for a town_name that is in no list with a default",
    "Open": "get_town answers for a name that is in no list with a default",
}
QUICK = {"UntilRight"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in CASES])
def test_a_plain_class_contradicts_itself(file: Path, name: str) -> None:
    report = audited(file, name)
    assert [(one.title, one.confidence, one.severity) for one in report.findings] == [(CASES[name], "proven", "error")]
