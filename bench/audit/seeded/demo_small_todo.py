"""The bugs of the small to-do list, shown; it has no oracle, so what solves its tasks stands here."""

from __future__ import annotations

from typing import Any

from .lab import Lab, paid, shows

Data = Any


def solve(task: str, world: Any) -> list[Data]:
    """Calls that solve the episode that the world is in."""
    todos = world.call("list_todos", {})["todos"]
    if task == "milk":
        return [["add_todo", {"title": "Buy milk"}]]
    if task == "report":
        return [["finish_todo", {"todo_id": one["id"]}] for one in todos if one["title"] == "Send report"]
    return [["delete_todo", {"todo_id": one["id"]}] for one in todos if one["done"]]


@shows(True)  # noqa: FBT003
def listed_by_length(lab: Lab) -> Data:
    world = lab.begin("report")
    call = solve("report", world)[0]
    world.call(*call)
    return next(one["done"] for one in world.call("list_todos", {})["todos"] if one["id"] == call[1]["todo_id"])


@shows(6)
def list_kept_at_the_top(lab: Lab) -> Data:
    world = lab.begin("milk", 5)
    world.call("add_todo", {"title": "Buy milk"})
    world.reset("milk", 5)
    return len(world.call("list_todos", {})["todos"])


@shows([0.0])
def done_already(lab: Lab) -> Data:
    return sorted({paid(lab.begin("report", seed)) for seed in range(20)})
