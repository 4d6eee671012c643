"""A to-do list: four tools, three tasks, a verdict. It offers nothing but what must be there."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from .common import rng

Data = Any
CHORES = ("Water the plants", "call mum back", "Dentist!!", "Renew passport", "fix bike", "Rückruf Bank", "pay rent")
NONE = {"type": "object", "properties": {}, "additionalProperties": False}
ID = {
    "type": "object",
    "properties": {"todo_id": {"type": "integer", "minimum": 1, "maximum": 999}},
    "required": ["todo_id"],
    "additionalProperties": False,
}
TITLE = {
    "type": "object",
    "properties": {"title": {"type": "string", "minLength": 1, "maxLength": 80}},
    "required": ["title"],
    "additionalProperties": False,
}
PROMPTS = {
    "milk": "Add a to-do with the title Buy milk. Change nothing else.",
    "report": "Mark the to-do Send report as done. Change nothing else.",
    "tidy": "Delete the to-dos that are done, and no others.",
}


class Todo:
    """Session of the to-do list."""

    task: str | None = None
    TOOLS: ClassVar[list[Data]] = [
        {"name": "list_todos", "description": "Show all to-dos.", "parameters": NONE},
        {"name": "add_todo", "description": "Add a to-do; its title is one printable line.", "parameters": TITLE},
        {"name": "finish_todo", "description": "Mark a to-do as done.", "parameters": ID},
        {"name": "delete_todo", "description": "Delete a to-do.", "parameters": ID},
    ]

    def tasks(self) -> list[str]:
        return list(PROMPTS)

    def tools(self) -> list[Data]:
        return copy.deepcopy(self.TOOLS)

    def reset(self, task: str, seed: int) -> str:
        dice = rng("todo", task, seed)
        titles = [*dice.sample(CHORES, 5), "Send report"]
        dice.shuffle(titles)
        done = set(dice.sample(titles, 2)) - {"Send report"}
        self.todos = {number: {"title": one, "done": one in done} for number, one in enumerate(titles, 1)}
        self.task, self.before = task, copy.deepcopy(self.todos)
        self.last = len(titles)
        return PROMPTS[task]

    def call(self, name: str, arguments: Data) -> Data:
        schema = next((tool["parameters"] for tool in self.TOOLS if tool["name"] == name), None)
        if self.task is None or schema is None:
            return {"error": "no such tool, or no episode"}
        if not isinstance(arguments, dict) or set(arguments) != set(schema.get("required", ())):
            return {"error": "the tool takes other arguments"}
        if name == "list_todos":
            return {"todos": [{"id": number, **one} for number, one in self.todos.items()]}
        if name == "add_todo":
            return self.add(arguments["title"])
        return self.change(name, arguments["todo_id"])

    def change(self, name: str, number: Data) -> Data:
        if type(number) is not int or number not in self.todos:
            return {"error": "no to-do has this id"}
        if name == "delete_todo":
            del self.todos[number]
            return {"deleted": number}
        self.todos[number]["done"] = True
        return {"finished": number}

    def add(self, title: Data) -> Data:
        if not isinstance(title, str) or not title.strip() or not title.isprintable() or len(title) > 80:
            return {"error": "a title is one printable line of at most 80 characters"}
        if self.last == 999:
            return {"error": "the list has had 999 to-dos; it has no room for more"}
        self.last += 1
        self.todos[self.last] = {"title": title.strip(), "done": False}
        return {"added": self.last}

    def score(self) -> float | None:
        if self.task is None:
            return None
        old = {number: one for number, one in self.todos.items() if number in self.before}
        new = [one for number, one in self.todos.items() if number not in self.before]
        wanted = copy.deepcopy(self.before)
        if self.task == "tidy":
            wanted = {number: one for number, one in wanted.items() if not one["done"]}
        if self.task == "report":
            next(one for one in wanted.values() if one["title"] == "Send report")["done"] = True
        return float(old == wanted and new == [{"title": "Buy milk", "done": False}] * (self.task == "milk"))
