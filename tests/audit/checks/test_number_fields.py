"""Tests of numbers in a JSON answer: a field that takes any larger number is proven, an exact one is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.false_resolution import far_fields
from quintain.audit.checks.leak import example
from quintain.audit.checks.reward_clipping import near
from quintain.audit.checks.reward_hack import answer_battery, every_candidate
from quintain.audit.kernel.check import Check
from tests.audit.checks._found import found

COSTS = '''
import json


class Exact:
    """Each task asks for a cost and a number of portions, as JSON after some words."""

    TASKS = {"a": (2282, 5), "b": (950, 4), "c": (1207, 6)}

    def tasks(self):
        return list(self.TASKS)

    def reset(self, task, seed):
        self.task, self.said = task, ""
        return f"Cost recipe {task}. Answer with JSON: cost_cents and portions."

    def answer(self, text):
        self.said = text

    def right(self, cost, portions):
        return (cost, portions) == self.TASKS[self.task]

    def score(self):
        try:
            given = json.loads(self.said[self.said.index("{"):])
            return float(self.right(given["cost_cents"], given["portions"]))
        except (ValueError, KeyError, TypeError):
            return 0.0

    def oracle(self, task):
        cost, portions = self.TASKS[task]
        return [{"answer": "By the list: " + json.dumps({"cost_cents": cost, "portions": portions})}]


class Larger(Exact):
    def right(self, cost, portions):
        return cost >= self.TASKS[self.task][0] and portions == self.TASKS[self.task][1]


class Rounded(Exact):
    def right(self, cost, portions):
        return round(cost / 100) == round(self.TASKS[self.task][0] / 100) and portions == self.TASKS[self.task][1]


class Tolerant(Exact):
    def right(self, cost, portions):
        return abs(cost - self.TASKS[self.task][0]) <= 50 and portions == self.TASKS[self.task][1]


class Evaluated(Exact):
    def right(self, cost, portions):
        known = dict(zip(("cost_cents", "portions"), self.TASKS[self.task]))
        return (known.get(cost, cost), known.get(portions, portions)) == self.TASKS[self.task]


class Signed(Exact):
    TASKS = {"a": (-2282, 5), "b": (-950, 4), "c": (-1207, 6)}

    def score(self):
        return float(self.said == self.oracle(self.task)[0]["answer"])

    def oracle(self, task):
        return [{"answer": f"Answer: {self.TASKS[task][0] / 100} EUR"}]


class Unsigned(Signed):
    def score(self):
        return float(self.said.replace("-", "") == self.oracle(self.task)[0]["answer"].replace("-", ""))


class Difference(Unsigned):
    def reset(self, task, seed):
        return f"{super().reset(task, seed)} How much is the difference?"


class Example(Exact):
    def reset(self, task, seed):
        return f"{super().reset(task, seed)} Such as {json.dumps(self.shown())}"

    def shown(self):
        return {"cost_cents": 1000, "portions": 4}


class Answered(Example):
    def shown(self):
        return dict(zip(("cost_cents", "portions"), self.TASKS[self.task]))


class Contained(Exact):
    def score(self):
        return float(all(str(one) in self.said for one in self.TASKS[self.task]))

    TASKS = {"a": (2282, 25), "b": (950, 64), "c": (1207, 36)}
'''


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("costs") / "costs.py"
    path.write_text(COSTS)
    return path


@pytest.mark.parametrize(
    ("name", "check", "title"),
    [
        ("Larger", near, "a wrong number is paid in full: a hundred times it"),
        pytest.param(
            "Larger",
            far_fields,
            "a number far from the right one is paid in full in a field of the answer",
            marks=pytest.mark.slow,
        ),
        ("Unsigned", far_fields, "a number without its minus sign is paid in full in a field of the answer"),
        pytest.param(
            "Rounded", near, "a wrong number is paid in full: 2346, while 2250 is not", marks=pytest.mark.slow
        ),
        ("Answered", example, "the example in the prompt is the answer"),
        ("Evaluated", answer_battery, "an answer with the name of each field in place of its value is paid in full"),
        ("Contained", every_candidate, "a reply that names every fact that could be meant is paid in full"),
    ],
)
def test_wrong_field_that_is_paid_is_proven(costs: Path, name: str, check: Check, title: str) -> None:
    [one] = found(costs, name, [check])
    assert (one.confidence, one.severity, one.title) == ("proven", "error", title)


@pytest.mark.parametrize("name", [pytest.param("Signed", marks=pytest.mark.slow), "Difference"])
def test_sign_that_counts_or_is_not_asked_for_is_left_alone(costs: Path, name: str) -> None:
    assert not [one for one in found(costs, name, [far_fields, near]) if one.stops]


def test_example_with_values_of_its_own_is_left_alone(costs: Path) -> None:
    assert not found(costs, "Example", [example])


@pytest.mark.parametrize("name", [pytest.param("Exact", marks=pytest.mark.slow), "Tolerant"])
def test_exact_and_tolerant_fields_have_no_proven_error(costs: Path, name: str) -> None:
    named = found(costs, name, [near, far_fields, answer_battery, every_candidate])
    assert {one.severity for one in named} == ({"warning"} if name == "Tolerant" else set())
