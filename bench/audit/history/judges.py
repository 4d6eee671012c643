"""Judges whose words were misread; rebuilt from public reports.

A reply without a verdict counted as the worst one: https://github.com/NVIDIA-NeMo/Evaluator/pull/1094
Numbers out of range, or out of an error message, counted as full marks:
https://github.com/modelscope/evalscope/issues/1575
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, ClassVar

from .plain import Answer, Plain, Solution, text

QUESTIONS = {
    "capital": ("What is the capital of Portugal?", "Lisbon"),
    "planet": ("Which planet has the most moons?", "Saturn"),
    "metal": ("Which metal is liquid at room temperature?", "Mercury"),
}
Complete = Callable[[str], str]


class Judged(Plain):
    """A question, an answer, and a judge with a language model that also reads the reference.

    By default the judge calls a stand-in for the model, which compares the words; `judge` takes any model.
    """

    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "submit": ("Hand in the final answer.", {"answer": text("One word")}),
    }
    FAULTS: ClassVar[dict[str, str]] = {"empty": "", "500": "[ERROR] 500: upstream failed after 1 try"}
    instruction = ""

    def __init__(self) -> None:
        self.task = "capital"
        self.answer_given = ""
        self.fault = ""

    def tasks(self) -> list[str]:
        return list(QUESTIONS)

    def reset(self, task: str, seed: int) -> str:
        self.task, self.answer_given, self.fault = task, "", ""
        return QUESTIONS[task][0]

    def do_submit(self, answer: str) -> Answer:
        self.answer_given = answer
        return {"ok": True}

    def inject(self, fault: str) -> None:
        if fault not in self.FAULTS:
            raise ValueError(f"the judge's model cannot fail by {fault}")
        self.fault = fault

    def score(self) -> float | None:
        return self.judge(self.task, self.answer_given, self._stand_in)

    def oracle(self, task: str) -> Solution:
        return [["submit", {"answer": QUESTIONS[task][1]}]]

    def judge(self, task: str, answer: str, complete: Complete) -> float | None:
        question, reference = QUESTIONS[task]
        case = json.dumps({"question": question, "reference": reference, "answer": answer})
        return self.read(complete(f"{self.instruction}\n{case}"))

    def read(self, reply: str) -> float | None:
        raise NotImplementedError

    def verdict(self, *, right: bool) -> str:
        raise NotImplementedError

    def _stand_in(self, prompt: str) -> str:
        if self.fault:
            return self.FAULTS[self.fault]
        case = json.loads(prompt.splitlines()[-1])
        return self.verdict(right=case["answer"].strip().casefold() == case["reference"].casefold())


class JsonJudge(Judged):
    """The verdict is an object with a score from 1 to 5."""

    instruction = 'Grade the answer. Reply with {"score": N} alone, N from 1 (wrong) to 5 (right).'

    def __init__(self, *, unreadable: float | None) -> None:
        super().__init__()
        self.unreadable = unreadable

    def verdict(self, *, right: bool) -> str:
        return json.dumps({"score": 5 if right else 1})

    def read(self, reply: str) -> float | None:
        found = re.fullmatch(r'\s*\{\s*"score"\s*:\s*([1-5])\s*\}\s*', reply)
        return (int(found[1]) - 1) / 4 if found else self.unreadable


class MarkJudge(Judged):
    """The verdict is a mark from 0 to 1 in double brackets."""

    instruction = "Grade the answer. Reply with [[mark]] alone, the mark from 0 (wrong) to 1 (right)."

    def __init__(self, *, generous: bool) -> None:
        super().__init__()
        self.generous = generous

    def verdict(self, *, right: bool) -> str:
        return f"[[{float(right)}]]"

    def read(self, reply: str) -> float | None:
        if self.generous:
            anywhere = re.findall(r"\d+(?:\.\d+)?", reply)
            return min(1.0, float(anywhere[-1])) if anywhere else 0.0
        found = re.fullmatch(r"\s*\[\[(\d+(?:\.\d+)?)\]\]\s*", reply)
        return float(found[1]) if found and float(found[1]) <= 1 else None


def unreadable_before() -> JsonJudge:
    return JsonJudge(unreadable=0.0)


def unreadable_after() -> JsonJudge:
    return JsonJudge(unreadable=None)


def generous_before() -> MarkJudge:
    return MarkJudge(generous=True)


def generous_after() -> MarkJudge:
    return MarkJudge(generous=False)
