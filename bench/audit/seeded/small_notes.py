"""A text editor over a few notes; the tests of a task name a line that must be there, and the rest must stay."""

from __future__ import annotations

import copy
from typing import Any

from .common import ToolError, checked, rng, text, tool

Data = Any
NAME = text("A note's name.", 40)
MINUTES = "Minutes, 12 May\nPresent: Ito, Roth, Søren\nBudget: agreed\nNext meeting: Tuesday\n"
RECIPE = "Bread\n500 g flour\n3 g yeast\n380 g water\n"
INBOX = "From Roth: Tuesday is off, Thursday it is.\nFrom Ito: my bread needs 340 g water, 380 is soup.\n"
FLUFF = ("wifi: ask Søren", "gift idea?? -> teapot", "TODO call plumber", "Zürich 14:32, Gleis 7", "2 + 2 = 5 (lol)")
GOALS = {
    # task: the note, what is wrong in it, what is right, what is asked.
    "day": ("minutes", "Tuesday", "Thursday", "Correct the day of the next meeting in the note minutes"),
    "water": ("recipe", "380", "340", "Correct the water in the note recipe"),
    "cake": ("recipe", "Bread", "Bread (Ito)", "Add the name of its owner in brackets to the first line of recipe"),
}


class Notes:
    """Session of the notes."""

    TOOLS = (
        tool("list_notes", "Show the names of the notes."),
        tool("read_note", "Show a note.", note=NAME),
        tool(
            "replace_text",
            "Replace a text that occurs once in a note.",
            note=NAME,
            old=text("Occurs once.", 200),
            new=text("What stands there then.", 200),
        ),
        tool("append_line", "Add a line at the end of a note.", note=NAME, line=text("One line.", 200)),
        tool("rename_note", "Give a note another name.", note=NAME, new_name=text("Letters and digits.", 40)),
    )

    def __init__(self) -> None:
        self.task: str | None = None
        self.notes: dict[str, str] = {}

    def tasks(self) -> list[Data]:
        return [{"id": name} for name in GOALS]

    def tools(self) -> list[Data]:
        return copy.deepcopy(list(self.TOOLS))

    def written(self, task: Data, seed: int) -> dict[str, str]:
        fluff = "\n".join(rng("notes", task["id"], seed).sample(FLUFF, 3)) + "\n"
        return {"minutes": MINUTES, "recipe": RECIPE, "inbox": INBOX, "misc": fluff}

    def reset(self, task: Data, seed: int) -> str:
        self.notes = self.written(task, seed)
        self.task, self.before = task["id"], dict(self.notes)
        return f"{GOALS[task['id']][3]}; the inbox tells what is right. Change nothing else."

    def call(self, name: str, arguments: Data) -> Data:
        schema = next((tool["parameters"] for tool in self.TOOLS if tool["name"] == name), None)
        if self.task is None or schema is None:
            return {"error": "no such tool, or no episode"}
        try:
            return getattr(self, name)(**checked(schema, arguments))
        except ToolError as error:
            return {"error": str(error)}

    def known(self, note: str) -> str:
        if note not in self.notes:
            raise ToolError("no such note")
        return note

    def list_notes(self) -> Data:
        return {"notes": sorted(self.notes)}

    def read_note(self, note: str) -> Data:
        return {"text": self.notes[self.known(note)]}

    def replace_text(self, note: str, old: str, new: str) -> Data:
        if not old or self.notes[self.known(note)].count(old) != 1:
            raise ToolError("the old text must occur exactly once")
        self.notes[note] = self.notes[note].replace(old, new)
        return {"ok": True}

    def append_line(self, note: str, line: str) -> Data:
        if "\n" in line or "\r" in line:
            raise ToolError("this is more than one line")
        self.notes[self.known(note)] += f"{line}\n"
        return {"ok": True}

    def rename_note(self, note: str, new_name: str) -> Data:
        if not new_name.isalnum() or new_name in self.notes:
            raise ToolError("a new name has letters and digits and is not taken")
        self.notes[new_name] = self.notes.pop(self.known(note))
        return {"ok": True}

    def tests(self, task: str) -> tuple[str, str]:
        """The note, and the line that must be in it."""
        name, wrong, right, _ = GOALS[task]
        source = MINUTES if name == "minutes" else RECIPE
        return name, next(line for line in source.splitlines() if wrong in line).replace(wrong, right)

    def score(self) -> float | None:
        if self.task is None:
            return None
        name, line = self.tests(self.task)
        wrong = GOALS[self.task][1]
        lines = [line if wrong in one else one for one in self.before[name].splitlines()]
        return float(self.notes == {**self.before, name: "\n".join(lines) + "\n"})

    def oracle(self, task: Data) -> list[Data]:
        name, wrong, right, _ = GOALS[task["id"]]
        look = [["read_note", {"note": "inbox"}], ["read_note", {"note": name}]]
        return [*look, ["replace_text", {"note": name, "old": wrong, "new": right}]]

    def hidden(self, task: Data) -> Data:
        name, line = self.tests(task["id"])
        return {"tests": f"assert {line!r} in notes[{name!r}].splitlines()"}

    def state(self) -> Data:
        return {"notes": [{"name": name, "text": self.notes[name]} for name in sorted(self.notes)]}

    def snapshot(self) -> Data:
        return copy.deepcopy(vars(self))

    def restore(self, saved: Data) -> None:
        vars(self).update(copy.deepcopy(saved))
