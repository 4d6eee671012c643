"""Subjects of the tests of reports and scales: a judge that reads lines and says a number, sound and with one bug."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

FACTS = {
    "r1": {"Ship": "Aurora", "Berth": "17", "Cargo": "timber"},
    "r2": {"Ship": "Fulmar", "Berth": "23", "Cargo": "copper"},
    "r3": {"Ship": "Kestrel", "Berth": "48", "Cargo": "oranges"},
}


class Harbour:
    """Report what lies in the harbour in three lines; a judge counts the lines that are right, from 0 to 3."""

    top, note = 4, ""

    def tasks(self) -> list[str]:
        return list(FACTS)

    def tools(self) -> list[dict[str, Any]]:
        parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        return [{"name": "submit_report", "description": "Hand in the report.", "parameters": parameters}]

    def reset(self, task: str, seed: int) -> str:
        self.task, self.text = task, ""
        return f"Report the ship of {task} in a line each, each once: Ship: ...; Berth: ...; Cargo: ..."

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name != "submit_report" or not isinstance(arguments.get("text"), str):
            return {"error": "submit_report takes a text"}
        self.text = arguments["text"]
        return {"ok": True}

    def oracle(self, task: str) -> list[Any]:
        return [["submit_report", {"text": "\n".join(f"{key}: {fact}" for key, fact in FACTS[task].items())}]]

    def judge(self, task: str, answer: str, complete: Callable[[str], str]) -> float | None:
        question = f"Of {task}, count.{self.note}\nFACTS: {json.dumps(FACTS[task])}\nREPORT: {json.dumps(answer)}\n"
        return self.grade(complete(f"{question}End with GRADE: and the number."))

    def grade(self, said: str) -> float | None:
        word, _, number = said.strip().splitlines()[-1].partition(": ") if said.strip() else ("", "", "")
        return self.worth(int(number)) if word == "GRADE" and number in {*map(str, range(self.top + 1))} else None

    def worth(self, number: int) -> float:
        return number / self.top

    def model(self, question: str) -> str:
        facts, text = (json.loads(line.partition(": ")[2]) for line in question.splitlines()[1:3])
        parts = [line.partition(":") for line in text.splitlines()]
        said = {key: [value.strip() for word, _, value in parts if word.strip() == key] for key in facts}
        return f"GRADE: {1 + sum(self.agrees(fact, said[key]) for key, fact in facts.items()) if text else 0}"

    def agrees(self, fact: str, said: list[str]) -> bool:
        return said == [fact]

    def score(self) -> float:
        return self.judge(self.task, self.text, self.model) or 0.0


class First(Harbour):
    def agrees(self, fact: str, said: list[str]) -> bool:
        return said[:1] == [fact]


class AnyLine(Harbour):
    def agrees(self, fact: str, said: list[str]) -> bool:
        return fact in said


class Contained(Harbour):
    def agrees(self, fact: str, said: list[str]) -> bool:
        return len(said) == 1 and fact in said[0]


class Part(Harbour):
    def agrees(self, fact: str, said: list[str]) -> bool:
        return len(said) == 1 and said[0] in fact


class Unsaid(Harbour):
    def agrees(self, fact: str, said: list[str]) -> bool:
        return all(one == fact for one in said)


class Unread(Harbour):
    """Harbour whose verifier ignores the lines, so that changes prove nothing."""

    def agrees(self, fact: str, said: list[str]) -> bool:
        return True


class Flat(Harbour):
    def worth(self, number: int) -> float:
        return max(2 * number / self.top - 1, 0.0)


class Mentioned(Flat):
    note = " Two lines at least must be right, or the report is worth nothing."


class Steps(Harbour):
    """Three marks only: not every number is worth one of its own, anywhere."""

    top = 10

    def worth(self, number: int) -> float:
        return 0.0 if number < 4 else 0.5 if number < 8 else 1.0


class OneDigit(Harbour):
    """The first digit is read: the best grade of ten is one of the worst."""

    top = 10

    def grade(self, said: str) -> float | None:
        word, _, number = said.strip().partition(": ")
        return int(number[0]) / 10 if word == "GRADE" and number.isdigit() else None


class Ranks(Harbour):
    """The first is the best."""

    def worth(self, number: int) -> float:
        return 1 - number / self.top

    def score(self) -> float:
        return 1.0 - super().score()
