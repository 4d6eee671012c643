"""Questions about a table of towns, answered by a number: 1 within a hundredth, a half within a tenth, one try."""

from __future__ import annotations

import copy
from typing import Any

from .common import rng

Data = Any
TOWNS = ("Arvendal", "Bosk", "Celmare", "Dunroth", "Elsby", "Fontana Alta", "Grünwil")
NAME = {"name": {"type": "string", "enum": list(TOWNS), "description": "A town's name."}}
VALUE = {"value": {"type": "number", "minimum": -1e12, "maximum": 1e12}}


def tool(name: str, description: str, properties: Data) -> Data:
    required, closed = list(properties), {"additionalProperties": False}
    parameters = {"type": "object", "properties": properties, "required": required, **closed}
    return {"name": name, "description": description, "parameters": parameters}


class Quiz:
    """Session of the quiz."""

    graded = True
    task: str | None = None
    TOOLS = (
        tool("list_towns", "Show the names of the towns.", {}),
        tool("get_town", "Show how many people live in a town, and its area in square kilometres.", NAME),
        tool("submit", "Answer the question with a number. There is one try.", VALUE),
    )

    def tasks(self) -> list[Data]:
        kinds = ("density", "together", "more")
        return [{"id": f"{kind}-{number}", "kind": kind, "number": number} for kind in kinds for number in (1, 2)]

    def tools(self) -> list[Data]:
        return copy.deepcopy(list(self.TOOLS))

    def reset(self, task: Data, seed: int) -> str:
        dice = rng("quiz", task["id"], seed)
        self.table: dict[str, Data] = {}
        for town in TOWNS:
            people, area = int(10 ** dice.uniform(3.5, 6.5)), round(10 ** dice.uniform(0.7, 2.9), 1)
            self.table[town] = {"people": people, "area_km2": area}
        self.task, self.kind, (self.one, self.other) = task["id"], task["kind"], dice.sample(TOWNS, 2)
        self.given: float | None = None
        asked = {
            "density": f"How many people live on a square kilometre in {self.one}?",
            "together": f"How many people live in {self.one} and {self.other} together?",
            "more": f"How many more people live in {self.one} than in {self.other}? It may be a negative number.",
        }
        return f"{asked[self.kind]} Submit the number; full marks are given within one percent, half within ten."

    def call(self, name: str, arguments: Data) -> Data:
        if self.task is None:
            return {"error": "no episode has begun; reset first"}
        schema = next((tool["parameters"] for tool in self.TOOLS if tool["name"] == name), None)
        if schema is None or not isinstance(arguments, dict) or list(arguments) != schema["required"]:
            return {"error": "unknown tool or wrong arguments"}
        if name == "submit":
            return self.submit(arguments["value"])
        if name == "list_towns":
            return {"towns": list(TOWNS)}
        return self.town(arguments["name"])

    def town(self, name: Data) -> Data:
        if not isinstance(name, str) or name not in self.table:
            return {"error": "no such town"}
        return dict(self.table[name])

    def submit(self, value: Data) -> Data:
        if isinstance(value, bool) or not isinstance(value, int | float) or not -1e12 <= value <= 1e12:
            return {"error": "a value is a number between -1e12 and 1e12"}
        if self.given is not None:
            return {"error": "there was one try"}
        self.given = float(value)
        return {"submitted": value}

    def right(self) -> float:
        one, other = self.table[self.one], self.table[self.other]
        if self.kind == "density":
            return float(one["people"] / one["area_km2"])
        return float(one["people"] + other["people"] * (1 if self.kind == "together" else -1))

    def score(self) -> Data:
        if self.task is None:
            return None
        off = abs(self.given - self.right()) / max(abs(self.right()), 1) if self.given is not None else 1.0
        exact, close = 0.5 * (off <= 0.01), 0.5 * (off <= 0.1)
        return {"score": exact + close, "exact": exact, "close": close}
