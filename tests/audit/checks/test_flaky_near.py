"""Tests that a verifier that checks one of several things is found by one wrong thing or by damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import flaky_verifier as flaky
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

SUBJECTS = """
import random

WORD = {"type": "string"}
PUT = {"type": "object", "properties": {"shelf": WORD, "many": {"type": "integer"}}, "required": ["shelf", "many"]}
TAGS = {"type": "object", "properties": {"tags": {"type": "array", "items": WORD}}, "required": ["tags"]}
GOALS = {"alder": 3, "birch": 4, "cedar": 5}


class Sound:
    goals = GOALS

    def tasks(self):
        return ["fill", "refill"]

    def tools(self):
        return [{"name": "put", "parameters": PUT}]

    def reset(self, task, seed):
        self.shelves = dict.fromkeys((*GOALS, "elm", "fir", "gorse"), 0)
        return f"Put on the shelves: {self.goals}, and nothing elsewhere."

    def call(self, name, arguments):
        if arguments["shelf"] not in self.shelves:
            return {"error": "no such shelf"}
        self.shelves[arguments["shelf"]] = arguments["many"]
        return self.state()

    def state(self):
        return {"shelves": [{"shelf": name, "many": many} for name, many in self.shelves.items()]}

    def wrong(self):
        return sorted(name for name, many in self.shelves.items() if many != self.goals.get(name, 0))

    def score(self):
        return float(not self.wrong())

    def oracle(self, task):
        return [["put", {"shelf": shelf, "many": many}] for shelf, many in self.goals.items()]


class FirstOfASet(Sound):
    def score(self):
        first = next(iter({name for name, many in self.shelves.items() if many}), None)
        return float(first is not None and self.shelves[first] == GOALS.get(first))


class DamageInASample(Sound):
    def score(self):
        looked = {*random.sample(sorted(self.shelves), 3), *GOALS}
        return float(not looked & {*self.wrong()})


class Tags(Sound):
    def tools(self):
        return [{"name": "tag", "parameters": TAGS}]

    def reset(self, task, seed):
        self.tags = []
        return "Tag it oak, ash and yew."

    def call(self, name, arguments):
        self.tags = list(arguments["tags"])
        return {"tags": list(self.tags)}

    def state(self):
        return {"tags": list(self.tags)}

    def oracle(self, task):
        return [["tag", {"tags": ["oak", "ash", "yew"]}]]

    def score(self):
        return float({*self.tags} == {"oak", "ash", "yew"})


class Lines(Sound):
    right = ["OAK: 3", "ASH: 4", "YEW: 5"]

    def tools(self):
        return [{"name": "submit", "parameters": {"type": "object", "properties": {"answer": WORD}}}]

    def reset(self, task, seed):
        self.given = []
        return "How many are there of each? Submit lines such as OAK: 1."

    def call(self, name, arguments):
        self.given = arguments["answer"].split("\\n")
        return {"submitted": len(self.given)}

    def state(self):
        return {"given": list(self.given)}

    def oracle(self, task):
        return [["submit", {"answer": "\\n".join(self.right)}]]

    def score(self):
        return float(all(line in self.given for line in self.looked()))

    def looked(self):
        return self.right


class TwoLines(Lines):
    def looked(self):
        return list({*self.right})[:2]
"""


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("subjects") / "subjects.py"
    path.write_text(SUBJECTS)
    return path


def asked(subjects: Path, name: str) -> Report:
    return audit(Subject(f"{subjects}:{name}"), (flaky.verdict_near_the_solution,))


@pytest.mark.parametrize(
    "name", [pytest.param("Sound", marks=pytest.mark.slow), "Tags", pytest.param("Lines", marks=pytest.mark.slow)]
)
def test_a_verifier_that_looks_at_all_is_let_alone(subjects: Path, name: str) -> None:
    report = asked(subjects, name)
    assert not report.findings
    assert [one.status for one in report.checks] == ["checked"]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        pytest.param("FirstOfASet", "PYTHONHASHSEED", marks=pytest.mark.slow),
        pytest.param("TwoLines", "PYTHONHASHSEED", marks=pytest.mark.slow),
        ("DamageInASample", "more than right episode is not always scored alike"),
    ],
)
def test_a_verifier_that_looks_at_some_is_found(subjects: Path, name: str, title: str) -> None:
    (found,) = asked(subjects, name).findings
    assert title in found.title
    assert (found.confidence, found.severity, found.class_, found.part) == ("proven", "error", "flaky_verifier", "V")
