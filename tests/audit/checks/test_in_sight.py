"""Tests of invisible worlds: paid work that their tools show undone is proven, sound ones pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.false_resolution import paid_without_effect, undone_in_sight
from tests.audit.checks._found import found

pytestmark = pytest.mark.slow

HUTS = '''
import json


def tool(called, **properties):
    return {"name": called, "description": "", "parameters": {
        "type": "object", "properties": properties, "required": list(properties)}}


TEXT, FLAG = {"type": "string"}, {"type": "boolean"}


class Hut:
    """A mountain hut; its keeper says what is to be done."""

    prompts = {
        "frost": "It will freeze tonight: empty the tank, light the stove. The guests have had their supper.",
        "guest": "Ada comes on foot: light the stove and write her into the book.",
    }

    def tasks(self):
        return list(self.prompts)

    def tools(self):
        return [
            tool("look_around"), tool("set_tank", full=FLAG), tool("start_stove"),
            tool("put_guest", name=TEXT), tool("get_guest", name=TEXT), tool("note_weather", sky=TEXT),
        ]

    def reset(self, task, seed):
        self.task = task
        self.hut = {"tank": "full", "stove": "cold", "weather": "?"}
        self.book = {}
        return self.prompts[task]

    def call(self, name, given):
        if name == "look_around":
            return json.dumps(self.hut)
        if name == "get_guest":
            return {"written": given["name"] in self.book}
        if name == "put_guest":
            self.book[given["name"]] = True
        elif name == "set_tank":
            self.hut["tank"] = "full" if given["full"] else "empty"
        elif name == "start_stove":
            self.hut["stove"] = "warm"
        else:
            self.hut["weather"] = given["sky"]
        return "ok"

    def oracle(self, task):
        first = ["set_tank", {"full": False}] if task == "frost" else ["put_guest", {"name": "Ada"}]
        return [["note_weather", {"sky": "grey"}], first, ["start_stove", {}]]

    def score(self):
        done = self.hut["tank"] == "empty" if self.task == "frost" else "Ada" in self.book
        return float(done and self.hut["stove"] == "warm")


class WarmIsEnough(Hut):
    def score(self):
        return float(self.hut["stove"] == "warm" and (self.task == "frost" or "Ada" in self.book))


class NobodyReadsTheBook(Hut):
    def score(self):
        return float(self.hut["stove"] == "warm" and (self.task == "guest" or self.hut["tank"] == "empty"))


class Dark(WarmIsEnough):
    """The same, and no tool shows it."""

    def tools(self):
        return [one for one in super().tools() if one["name"] != "look_around"]
'''

TILLS = '''
def tool(called, about="", **properties):
    return {"name": called, "description": about, "parameters": {
        "type": "object", "properties": properties, "required": list(properties)}}


TEXT, WHOLE = {"type": "string"}, {"type": "integer", "minimum": 1}
SHELF = {"type": "string", "enum": ["top", "middle", "floor", "cellar"]}


class Till:
    """Money is paid in, and crates have a shelf."""

    about = "Pay money in."

    def tasks(self):
        return ["small", "big"]

    def tools(self):
        return [tool("pay_in", self.about, box=TEXT, cents=WHOLE), tool("move_crate", crate=TEXT, shelf=SHELF),
                tool("get_box", box=TEXT), tool("get_crate", crate=TEXT)]

    def reset(self, task, seed):
        self.task, self.cents = task, 4100 if task == "small" else 52000
        self.boxes, self.crates, self.calls = {"B1": 150, "B2": 0}, {"C1": "top"}, []
        return f"Pay {self.cents} cents into B1 and move C1 to the cellar."

    def call(self, name, given):
        if name.startswith("get"):
            return {"holds": (self.boxes if name == "get_box" else self.crates).get(*given.values())}
        self.calls.append([name, given])
        if name == "pay_in" and self.books(given["cents"]):
            self.boxes[given["box"]] += given["cents"]
        elif name == "move_crate" and self.carries(given["shelf"]):
            self.crates[given["crate"]] = given["shelf"]
        return self.said(given)

    def books(self, cents):
        return True

    def carries(self, shelf):
        return True

    def said(self, given):
        return "ok"

    def oracle(self, task):
        cents = 4100 if task == "small" else 52000
        return [["pay_in", {"box": "B1", "cents": cents}], ["move_crate", {"crate": "C1", "shelf": "cellar"}]]

    def score(self):
        return float(self.calls == self.oracle(self.task))


class NotBooked(Till):
    def books(self, cents):
        return cents < 5000


class NotCarried(Till):
    def carries(self, shelf):
        return shelf != "cellar"


class SaysLater(NotBooked):
    """What is not booked at once is said to wait."""

    def said(self, given):
        return "ok" if given.get("cents", 0) < 5000 else "waits until tomorrow"


class TellsLater(NotBooked):
    about = "Pay money in; what is above 50.00 is booked when somebody has looked at it."
'''


@pytest.fixture(scope="module")
def huts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("huts") / "huts.py"
    path.write_text(HUTS)
    return path


@pytest.fixture(scope="module")
def tills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tills") / "tills.py"
    path.write_text(TILLS)
    return path


@pytest.mark.parametrize(
    ("name", "left_out", "shown_by"),
    [
        pytest.param("WarmIsEnough", "set_tank", "look_around", marks=pytest.mark.slow),
        ("NobodyReadsTheBook", "put_guest", "get_guest"),
    ],
)
def test_paid_work_that_a_tool_shows_undone_is_proven(huts: Path, name: str, left_out: str, shown_by: str) -> None:
    [one] = found(huts, name, [undone_in_sight])
    assert one.title == (
        f"{left_out} is left out, {shown_by} shows that nothing of it is done, and that is paid in full"
    )
    assert one.stops


@pytest.mark.parametrize("name", ["Hut", pytest.param("Dark", marks=pytest.mark.slow)])
def test_a_courtesy_and_what_no_tool_shows_are_let_alone(huts: Path, name: str) -> None:
    assert not found(huts, name, [undone_in_sight])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "call", "key"), [("NotBooked", "pay_in", "cents"), ("NotCarried", "move_crate", "shelf")]
)
def test_a_call_that_does_nothing_with_the_value_that_is_paid_is_proven(
    tills: Path, name: str, call: str, key: str
) -> None:
    [one] = found(tills, name, [paid_without_effect])
    assert one.title == (f"{call} says that it worked, does nothing of what it does with another {key}, and is paid")
    assert one.stops


@pytest.mark.parametrize(
    "name",
    [pytest.param("Till", marks=pytest.mark.slow), pytest.param("SaysLater", marks=pytest.mark.slow), "TellsLater"],
)
def test_no_finding_for_booked_or_pending_effects(tills: Path, name: str) -> None:
    assert not found(tills, name, [paid_without_effect])
