"""A diary of rooms and slips: answers that only look done, numbers made up, offers never taken, and goals shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, Report, audit
from quintain.audit.checks import _drift_told, false_resolution, leak
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

IDS = ("x.answered_and_not_done", "x.solutions_are_not_shown")
MODULES = (_drift_told, false_resolution, leak)
CHECKS = [one for module in MODULES for one in checks_of(module) if one.id in IDS]

DIARY = '''
import copy
import re

TEXT = {"type": "string", "maxLength": 20}
DAYS = {"type": "string", "enum": ["mon", "tue", "wed"]}
ROWS = {
    "t1": {"id": "t1", "day": "mon", "room": "red", "price": 4}, "t2": {"id": "t2", "day": "tue", "room": "blue",
    "price": 7}, "t3": {"id": "t3", "day": "wed", "room": "red", "price": 12},
}


def tool(name, **properties):
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": [*properties]}}


class Diary:
    """No two talks stand in one room on one day; prices are numbers."""

    def tasks(self):
        return ["t1", "t2"]

    def tools(self):
        return [tool("move", talk=TEXT, day=DAYS, room=TEXT), tool("set_price", talk=TEXT, price=TEXT),
                tool("show", talk=TEXT), tool("list_day", day=DAYS)]

    def reset(self, task, seed):
        self.task, self.talks = task, copy.deepcopy(ROWS)
        return f"Move {task} to the green room on Wednesday, and let it cost 25."

    def oracle(self, task):
        return [["move", {"talk": task, "day": "wed", "room": "green"}], ["set_price", {"talk": task, "price": "25"}]]

    def call(self, name, arguments):
        if name == "list_day":
            return self.listed(arguments["day"])
        if arguments.get("talk") not in self.talks:
            return {"error": f"no such talk: {arguments.get('talk')}"}
        row = self.talks[arguments["talk"]]
        if name == "show":
            return self.shown(row)
        if name == "set_price":
            return self.priced(row, arguments["price"])
        if arguments["day"] not in DAYS["enum"] or not arguments["room"]:
            return {"error": "a talk has a day and a room"}
        if any(one["day"] == arguments["day"] and one["room"] == arguments["room"] for one in self.talks.values()):
            return self.taken(row, arguments)
        row.update(day=arguments["day"], room=arguments["room"])
        return dict(row)

    def taken(self, row, arguments):
        return {"error": f"{arguments['room']} is taken"}

    def priced(self, row, price):
        if not re.fullmatch("[0-9]+", price):
            return self.unread(row, price)
        row["price"] = int(price)
        return dict(row)

    def unread(self, row, price):
        return {"error": "a price is a number"}

    def listed(self, day):
        if day not in DAYS["enum"]:
            return {"error": f"unknown day {day}"}
        return {"talks": [one["id"] for one in self.talks.values() if one["day"] == day]}

    def shown(self, row):
        return dict(row)

    def state(self):
        return {"talks": copy.deepcopy(self.talks)}

    def score(self):
        row = self.talks[self.task]
        return float((row["day"], row["room"], row["price"]) == ("wed", "green", 25))


class Echoes(Diary):
    """A conflict is answered with the talk as it would be."""

    def taken(self, row, arguments):
        return {**row, "day": arguments["day"], "room": arguments["room"]}


class Says(Diary):
    """The same, and the answer says that it is so."""

    def taken(self, row, arguments):
        return {**row, "day": arguments["day"], "room": arguments["room"], "price": "unchanged: the room is taken"}


class Nought(Diary):
    """A price that cannot be read is nothing."""

    def unread(self, row, price):
        row["price"] = 0
        return dict(row)


class ByNumber(Diary):
    """Lists want the day's number, which no schema says."""

    def listed(self, day):
        if day not in ("1", "2", "3"):
            return {"error": f"unknown day {day}"}
        return {"talks": []}


class Shows(Diary):
    """A talk is shown with what the author expects of it."""

    def shown(self, row):
        wanted = {"day": "wed", "room": "green"}
        return {**row, "_expected": wanted} if row["id"] == self.task else dict(row)


class Links(Diary):
    """A talk is shown with fields that only look like an author's."""

    def shown(self, row):
        return {**row, "_links": {"room": row["room"]}, "checks": {"day": row["day"], "room": row["room"]}}
'''


def audited(folder: Path, name: str) -> Report:
    path = folder / "diary.py"
    path.write_text(DIARY)
    report = audit(Subject(f"{path}:{name}"), CHECKS, budget=120)
    assert not [one for one in report.checks if one.reason.startswith(BROKE)]
    return report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "check", "class_"),
    [
        ("Echoes", "x.answered_and_not_done", "false_resolution"),
        ("Nought", "x.done_as_told", "silent_default"),
        ("Shows", "x.solutions_are_not_shown", "leak"),
    ],
)
def test_found_as_what_it_is(tmp_path: Path, name: str, check: str, class_: str) -> None:
    found = audited(tmp_path, name).findings
    assert (check, class_, "proven") in {(one.check, one.class_, one.confidence) for one in found}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Diary", "Links"])
def test_sound_ones_are_not_accused(tmp_path: Path, name: str) -> None:
    assert [one.title for one in audited(tmp_path, name).findings] == []


@pytest.mark.slow
def test_answer_that_denies_the_effect_is_not_a_finding(tmp_path: Path) -> None:
    assert "x.answered_and_not_done" not in {one.check for one in audited(tmp_path, "Says").findings}
