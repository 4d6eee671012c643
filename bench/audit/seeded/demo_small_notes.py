"""The bugs of the small editor, shown."""

from __future__ import annotations

from typing import Any

from .lab import Lab, shows

Data = Any


@shows(0.0)
def line_is_enough(lab: Lab) -> Data:
    return lab.reward("day", [["append_line", {"note": "minutes", "line": "Next meeting: Thursday"}]])


@shows(4)
def old_notes_stay(lab: Lab) -> Data:
    world, _ = lab.play("day", [["rename_note", {"note": "misc", "new_name": "other"}]])
    world.reset(lab.task("water"), 1)
    return len(world.call("list_notes", {})["notes"])


@shows(False)  # noqa: FBT003
def tests_among_the_notes(lab: Lab) -> Data:
    world = lab.begin("day")
    read = [world.call("read_note", {"note": name})["text"] for name in world.call("list_notes", {})["notes"]]
    return any(world.hidden(lab.task("day"))["tests"] in text for text in read)
