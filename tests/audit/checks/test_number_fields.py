"""Tests of numbers in a JSON answer: a field that takes any larger number is proven, an exact one is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.reward_clipping import near
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
'''


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("costs") / "costs.py"
    path.write_text(COSTS)
    return path


def test_field_that_takes_larger_numbers_is_proven(costs: Path) -> None:
    [one] = found(costs, "Larger", [near])
    assert (one.confidence, one.severity, one.title) == (
        "proven",
        "error",
        "a wrong number is paid in full: a hundred times it",
    )


@pytest.mark.slow
def test_exact_fields_are_left_alone(costs: Path) -> None:
    assert not found(costs, "Exact", [near])
