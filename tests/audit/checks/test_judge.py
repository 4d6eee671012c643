"""A judge that reads, asks or fails wrongly is caught by a stub; those that do not are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import judge
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

SUBJECT = """
import html
import json
import re


class Quiz:
    mode = "sound"

    def tasks(self):
        return ["q1", "q2"]

    def reset(self, task, seed):
        return "What is the capital of France?"

    def score(self):
        return 0.0

    def judge(self, task, answer, complete):
        mode, safe = self.mode, html.escape(answer)
        if mode == "lines":
            safe = safe.splitlines()[0] if safe else ""
        if mode == "short" and len(safe) > 700:
            return 0.0
        if mode in ("short", "sentence"):
            safe = safe[:300] if mode == "short" else safe.partition(".")[0]
        self.seen = getattr(self, "seen", {})
        if mode == "memory" and safe[:100] in self.seen:
            return self.seen[safe[:100]]
        if mode == "again":
            return max(float(complete(safe).strip() == "yes") for _ in range(3))
        if mode in ("rubric", "norubric"):
            asked = f"{RUBRIC[task] if mode == 'rubric' else 'Be fair.'}\\n<answer>{safe}</answer>\\nyes or no"
            return {"yes": 1.0, "no": 0.0}.get(complete(asked).strip())
        fenced = "Question\\n<answer>{}</answer>\\nReply with yes or no."
        asked = {
            "bare": f"Answer: {answer}\\nReply with yes or no.",
            "closable": fenced.format(answer),
            "cut": fenced.format(safe[:1000]),
            "blind": "Is it right? yes or no",
            "first": f"<answer>{safe}</answer> End on a line: VERDICT: PASS or VERDICT: FAIL.",
            "ten": f"<answer>{safe}</answer> Score from 1 to 10.",
            "json": 'Reply {"score": 0 or 1} of ' + json.dumps({"answer": answer}),
        }.get(mode, fenced.format(safe))
        try:
            reply = complete(asked).strip().lower()
        except TimeoutError:
            if mode == "swallow":
                return 0.0
            raise
        if mode == "anywhere":
            return 1.0 if "yes" in reply else 0.0 if "no" in reply else None
        if mode == "half":
            return 1.0 if reply == "yes" else 0.0 if reply == "no" else 0.5
        if mode == "deaf" or (mode == "shortcut" and "correct" in answer.lower()):
            return 1.0
        if mode == "ten":
            number = re.fullmatch(r"(?:score: )?(\\d+)(?:/10)?", reply)
            return int(number[1]) / 10 if number and int(number[1]) <= 10 else None
        if mode == "json":
            try:
                grade = float(json.loads(reply)["score"])
            except (ValueError, KeyError, TypeError):
                return None
            return grade if 0 <= grade <= 1 else None
        if mode == "first":
            lines = [line for line in reply.splitlines() if line in ("verdict: pass", "verdict: fail")]
            return float(lines[0].endswith("pass")) if lines else None
        self.seen[safe[:100]] = {"yes": 1.0, "no": 0.0}.get(reply.rstrip("."))
        return self.seen[safe[:100]]

    def hidden(self, task):
        return {"rubric": RUBRIC[task]} if self.mode in ("rubric", "norubric") else {}


RUBRIC = {"q1": "Pass an answer that names Paris and no other town.", "q2": "Pass one that names Bern, and Bern alone."}

for mode in (
    "sound", "bare", "closable", "cut", "blind", "ten", "json", "swallow", "anywhere", "half", "deaf", "shortcut",
    "lines", "short", "sentence", "memory", "again", "rubric", "norubric", "first",
):
    globals()[f"quiz_{mode}"] = type(mode, (Quiz,), {"mode": mode})
"""


def found(folder: Path, kind: str) -> list[Finding]:
    """Returns the findings in a variant of the subject, without hints."""
    path = folder / "subject.py"
    path.write_text(SUBJECT, "utf-8")
    report = audit(Subject(f"{path}:{kind}"), checks_of(judge))
    assert all("broke" not in one.reason for one in report.checks), report.checks
    return [one for one in report.findings if one.confidence != "hint"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "check", "confidence"),
    [
        ("bare", "x.judge_is_asked_safely", "proven"),
        ("closable", "x.judge_is_asked_safely", "likely"),
        ("cut", "x.judge_is_asked_safely", "proven"),
        ("blind", "x.judge_is_asked_safely", "proven"),
        ("swallow", "x.judge_says_when_it_fails", "proven"),
        ("half", "x.judge_says_when_it_fails", "proven"),
        ("anywhere", "x.judge_reads_verdicts", "proven"),
        ("deaf", "x.judge_reads_verdicts", "proven"),
        ("shortcut", "x.judge_grades_what_it_reads", "proven"),
        ("lines", "x.judge_is_asked_safely", "proven"),
        ("short", "x.judge_is_asked_safely", "proven"),
        ("sentence", "x.judge_is_asked_safely", "proven"),
        ("first", "x.judge_reads_verdicts", "proven"),
    ],
)
def test_a_bad_judge_is_caught(tmp_path: Path, kind: str, check: str, confidence: str) -> None:
    said = found(tmp_path, f"quiz_{kind}")
    mine = [one for one in said if one.check == check]
    assert mine, [(one.check, one.title) for one in said]
    assert mine[0].confidence == confidence
    assert mine[0].class_ == "judge"
    assert mine[0].part == "V"


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("sound", marks=pytest.mark.slow),
        "ten",
        pytest.param("json", marks=pytest.mark.slow),
        pytest.param("rubric", marks=pytest.mark.slow),
    ],
)
def test_a_careful_judge_is_left_alone(tmp_path: Path, kind: str) -> None:
    assert not found(tmp_path, f"quiz_{kind}")
