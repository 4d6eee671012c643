"""Tests of invisible worlds: paid work that their tools show undone is proven, sound ones pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.false_resolution import undone_in_sight
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


@pytest.fixture(scope="module")
def huts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("huts") / "huts.py"
    path.write_text(HUTS)
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
