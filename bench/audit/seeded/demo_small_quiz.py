"""The bugs of the small quiz, shown; it has no oracle, so what solves its questions stands here."""

from __future__ import annotations

import re
from typing import Any

from .lab import Lab, paid, shows
from .small_quiz import TOWNS

Data = Any


def solve(_: Data, world: Any) -> list[Data]:
    """Calls that solve the episode that the world is in."""
    return [["get_town", {"name": world.one}], ["submit", {"value": world.right()}]]


@shows(0.0)
def until_right(lab: Lab) -> Data:
    world = lab.begin("density-1")
    for power in range(250):
        world.call("submit", {"value": 1.05**power})
    return paid(world)


@shows(True)  # noqa: FBT003
def unknown_town_is_empty(lab: Lab) -> Data:
    return "error" in lab.begin("density-1").call("get_town", {"name": "Nowhere"})


@shows(1.0)
def nine_tenths(lab: Lab) -> Data:
    world = lab.begin("density-1")
    for call in solve("density-1", world):
        world.call(*call)
    return paid(world)


@shows(True)  # noqa: FBT003
def one_table_for_all(lab: Lab) -> Data:
    world = lab.begin("density-1")
    before = [world.call("get_town", {"name": town}) for town in TOWNS]
    lab.begin("density-1", 2)
    return before == [world.call("get_town", {"name": town}) for town in TOWNS]


@shows(0.0)
def answer_in_the_table(lab: Lab) -> Data:
    world = lab.begin("together-1")
    said = world.call("get_town", {"name": "x"})["error"]
    for name in re.findall(r"_\w+", said):
        world.call("submit", {"value": world.call("get_town", {"name": name})["value"]})
    return paid(world)
