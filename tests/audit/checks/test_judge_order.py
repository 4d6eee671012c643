"""A judge that goes by the place of what it is given is caught; one that does not is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import judge
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

SUBJECT = """
import hashlib
import html
import json

CRITERIA = ["It names the capital of France.", "It names no other town.", "It is a single sentence."]
ONE, TWO = "Paris, I think.", "Lyon it is."


class Pairs:
    mode = "both"

    def tasks(self):
        return ["q1", "q2"]

    def reset(self, task, seed):
        return "What is the capital of France?"

    def score(self):
        return 0.0

    def asked(self, one, two):
        if self.mode == "tags":
            return f"Which is better?\\n<answer_a>\\n{one}\\n</answer_a>\\n<answer_b>\\n{two}\\n</answer_b>\\nA or B?"
        return f"Which is better?\\n\\n### Response A\\n{one}\\n\\n### Response B\\n{two}\\n\\nReply with A or B."

    def judge(self, task, answer, complete):
        safe, mode, other = html.escape(answer), self.mode, ONE if task == "q1" else TWO
        if mode == "letters":
            reply = complete(f"Capital?\\nPredicted answer: {safe}\\nA: CORRECT\\nB: INCORRECT\\nReply A or B.")
            return {"A": 1.0, "B": 0.0}.get(reply)
        if mode == "option":
            reply = complete(f"Reply option B if it is wrong or option A if it is right.\\nAnswer: {safe}")
            return {"A": 1.0, "B": 0.0}.get(reply)
        if mode in ("alone", "tags"):
            return {"A": 1.0, "B": 0.0}.get(complete(self.asked(safe, other)))
        if mode == "drawn":
            swaps = hashlib.sha256(answer.encode()).digest()[0] % 2
            reply = complete(self.asked(other, safe) if swaps else self.asked(safe, other))
            return {"A": 1.0 - swaps, "B": 0.0 + swaps}.get(reply)
        first, second = complete(self.asked(safe, other)), complete(self.asked(other, safe))
        if not {first, second} <= {"A", "B"}:
            return None
        wins = (first == "A") + (second == "B")
        if mode == "unmapped":
            wins = (first == "A") + (second == "A")
        return {"both": wins / 2, "strict": float(wins == 2), "lenient": float(wins >= 1), "unmapped": wins / 2}[mode]


class Rubric(Pairs):
    mode = "each"

    def hidden(self, task):
        return {"rubric": CRITERIA, "gold": "Paris"}

    def judge(self, task, answer, complete):
        safe, mode, count = html.escape(answer), self.mode, len(CRITERIA)
        if mode in ("keyed", "positions", "lines", "whole"):
            listed = "\\n".join(f"{place}. {one}" for place, one in enumerate(CRITERIA, 1))
            reply = complete(f"{listed}\\n<answer>{safe}</answer>\\nReply with JSON, true or false by number.")
            if mode == "whole":
                return {"yes": 1.0, "no": 0.0}.get(reply)
            try:
                given = json.loads(reply)
            except ValueError:
                return None
            if not isinstance(given, dict) or set(given) != {"1", "2", "3"}:
                return None
            if not all(isinstance(one, bool) for one in given.values()):
                return None
            if mode == "keyed":
                return sum(given.values()) / count
            return sum(share * one for share, one in zip((0.6, 0.3, 0.1), given.values()))
        grades = []
        for one in CRITERIA:
            reply = complete(f"Does it meet this? {one}\\n<answer>{safe}</answer>\\nyes or no")
            if reply not in ("yes", "no"):
                return None
            grades.append(float(reply == "yes"))
            if mode == "until" and reply == "no":
                break
        if mode == "last":
            return grades[-1]
        if mode == "falling":
            return sum(grade / 2**place for place, grade in enumerate(grades)) / 1.75
        return min(grades) if mode == "every" else sum(grades) / count


class Weighted(Rubric):
    mode = "falling"

    def hidden(self, task):
        return {"rubric": [{"text": one, "weight": 3 - place} for place, one in enumerate(CRITERIA)]}


for mode in ("both", "strict", "lenient", "unmapped", "alone", "tags", "drawn", "letters", "option"):
    globals()[f"pairs_{mode}"] = type(mode, (Pairs,), {"mode": mode})
for mode in ("each", "every", "last", "until", "falling", "keyed", "positions", "whole"):
    globals()[f"rubric_{mode}"] = type(mode, (Rubric,), {"mode": mode})


class Kin(Pairs):
    models = {"policy": "Qwen/Qwen3-8B", "judge": {"model": "qwen-max", "temperature": 0.7}}


class Strangers(Pairs):
    models = {"policy": {"model": "Qwen/Qwen3-8B", "temperature": 1.0}, "grader": "gpt-4o-2024-08-06"}
"""
MINE = ("x.judge_ignores_place", "x.judge_ignores_order", "x.judge_is_another_family")


def found(folder: Path, kind: str) -> list[Finding]:
    """Returns the findings of the order and family checks in a variant of the subject."""
    path = folder / "subject.py"
    path.write_text(SUBJECT, "utf-8")
    report = audit(Subject(f"{path}:{kind}"), [one for one in checks_of(judge) if one.id in MINE])
    assert all("broke" not in one.reason for one in report.checks), report.checks
    return list(report.findings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "check", "words", "confidence"),
    [
        ("pairs_alone", "x.judge_ignores_place", "one order alone", "likely"),
        ("pairs_tags", "x.judge_ignores_place", "one order alone", "likely"),
        ("pairs_lenient", "x.judge_ignores_place", "always prefers one place", "proven"),
        ("pairs_unmapped", "x.judge_ignores_place", "follows the place", "proven"),
        ("rubric_last", "x.judge_ignores_order", "of 3 criteria one alone", "proven"),
        ("rubric_until", "x.judge_ignores_order", "count by their place", "likely"),
        ("rubric_falling", "x.judge_ignores_order", "count by their place", "likely"),
        ("rubric_positions", "x.judge_ignores_order", "in another order", "proven"),
    ],
)
def test_a_judge_that_goes_by_places_is_caught(
    tmp_path: Path, kind: str, check: str, words: str, confidence: str
) -> None:
    said = found(tmp_path, kind)
    assert [one.check for one in said] == [check], [(one.check, one.title) for one in said]
    assert words in said[0].title
    assert said[0].confidence == confidence
    assert said[0].class_ == "judge"


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["pairs_strict", "pairs_letters", "pairs_option", "rubric_every", "rubric_whole", "Weighted", "Strangers"]
)
def test_other_careful_judges_are_left_alone(tmp_path: Path, kind: str) -> None:
    assert not found(tmp_path, kind)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("pairs_both", marks=pytest.mark.slow),
        pytest.param("pairs_drawn", marks=pytest.mark.slow),
        "rubric_each",
        pytest.param("rubric_keyed", marks=pytest.mark.slow),
    ],
)
def test_a_judge_that_does_not_is_left_alone(tmp_path: Path, kind: str) -> None:
    assert not found(tmp_path, kind)


@pytest.mark.slow
def test_a_judge_of_the_policys_family_is_told(tmp_path: Path) -> None:
    said = {one.title: one.confidence for one in found(tmp_path, "Kin")}
    assert said == {
        "judge and policy are of one family: qwen": "likely",
        "the judge's model is not pinned to a version": "hint",
        "the judge is asked at a temperature above 0": "hint",
    }
