"""Tests of a judge whose model lists one verdict per point and that must read the deciding one."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import judge
from quintain.audit.checks._judge_replies import ended, lists
from quintain.audit.kernel.loader import Subject

SUBJECTS = """
import json
import re


class Last:
    def tasks(self):
        return ["q1", "q2"]

    def reset(self, task, seed):
        return "Which town is the capital of France, and which river is it on?"

    def score(self):
        return 0.0

    def judge(self, task, answer, complete):
        said = complete(
            "Two points: it names Paris, it names the Seine. ANSWER: " + json.dumps(answer) + "\\\\nYour last line is "
            "VERDICT: and a JSON list of true or false, one for each point."
        )
        met = self.met(said)
        return None if met is None else sum(met) / 2

    def met(self, said):
        found = re.search(r"(?:^|\\\\n)VERDICT: \\\\[(true|false), (true|false)\\\\]\\\\s*$", said)
        return found and [one == "true" for one in found.groups()]


class First(Last):
    def met(self, said):
        found = re.findall("true|false", said)
        return [one == "true" for one in found[:2]] if len(found) > 1 else None


class LastLines(Last):
    counts = -1

    def judge(self, task, answer, complete):
        said = complete(
            "- town: It names Paris.\\\\n- river: It names the Seine.\\\\nANSWER: " + json.dumps(answer) + "\\\\nSay "
            "of each whether it is met, as NAME: met, or NAME: missing."
        )
        found = [re.findall(name + ": (met|missing)", said) for name in ("town", "river")]
        return sum(one[self.counts] == "met" for one in found) / 2 if all(found) else None


class FirstLines(LastLines):
    counts = 0
"""


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("subjects") / "subjects.py"
    path.write_text(SUBJECTS.replace("\\\\", "\\"), encoding="utf-8")
    return path


def asked(subjects: Path, name: str) -> Report:
    return audit(Subject(f"{subjects}:{name}"), (judge.reads,))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Last", "LastLines"])
def test_a_judge_that_reads_the_list_that_counts_is_let_alone(subjects: Path, name: str) -> None:
    report = asked(subjects, name)
    assert not report.findings
    assert [one.status for one in report.checks] == ["checked"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "how"),
    [("First", "the bad verdict last, as was asked"), ("FirstLines", "the good verdict quoted before")],
)
def test_a_judge_that_reads_the_first_words_is_found(subjects: Path, name: str, how: str) -> None:
    (found,) = asked(subjects, name).findings
    assert found.title == f"a reply that is not a good verdict is read as one: {how}"
    assert found.stops


def test_lists_are_said_only_where_they_are_asked_for() -> None:
    assert not list(lists("Is it right? VERDICT: true or false."))
    assert ("VERDICT: [true, true]", "VERDICT: [false, false]") in list(lists("A list of true or false after VERDICT:"))


@pytest.mark.parametrize(
    ("good", "bad", "question", "how"),
    [
        ("Points: 7", "Points: 0", "Give your reasons, then 'Points: N' with N from 0 to 7.", ["last"]),
        ("[true]", "[false]", "Your last line is VERDICT: and a JSON list of true or false.", ["last"]),
        ("yes", "no", "Begin with yes or no, and end with a reason.", ["first"]),
        ("yes", "no", "Say yes if the final answer is right. It is the last line.", []),
        ("Score: 5", "Score: 1", "First compare the two texts and give 'Score: N'.", []),
    ],
)
def test_order_of_verdicts_is_settled_by_the_words_before_them(
    good: str, bad: str, question: str, how: list[str]
) -> None:
    assert [reply.how.split()[3] for reply in ended(good, bad, question)] == [f"{one}," for one in how]
