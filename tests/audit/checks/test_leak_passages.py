"""Tests of a truth that the prompt holds: a passage to look for leaks nothing, the answer under its name does."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.leak import readable
from tests.audit.checks._found import found

CONTRACTS = '''
def clauses(task):
    n = 7 * int(task)
    return [f"The supplier repairs defects that are reported within {30 + n} weeks of delivery.",
            f"The service is available for all but {50 + n} minutes of a calendar month.",
            f"The customer may audit the supplier at most {3 + n} times in a calendar year.",
            f"Invoices are paid within {20 + n} days of their receipt by the customer.",
            f"Confidential information is protected for {24 + n} months after the end."]


def wanted(task):
    return clauses(task)[int(task)]


class Contract:
    """Each task asks for the clause of a contract that states a limit."""

    def tasks(self):
        return ["0", "1", "2", "3"]

    def prompt(self, task):
        lines = [f"Clause {place}. {text}" for place, text in enumerate(clauses(task), 1)]
        return "\\n".join([*lines, f"Quote clause {int(task) + 1}."])

    def reset(self, task, seed):
        self.task, self.said = task, ""
        return self.prompt(task)

    def hidden(self, task):
        return {"truth": {"number": int(task), "text": wanted(task)}}

    def answer(self, text):
        self.said = text

    def score(self):
        return float(self.said == wanted(self.task))


class Labelled(Contract):
    def prompt(self, task):
        return super().prompt(task) + f"\\ntext: {wanted(task)}"


class Asked(Contract):
    """The solution looks for the question's own words."""

    def prompt(self, task):
        return f"Which clause of the contract has number {int(task) + 1} in the list of clauses?"

    def hidden(self, task):
        return {"solution": [["search", {"query": self.prompt(task)}], ["say", {"text": wanted(task)}]]}


class Row(Asked):
    """The truth is the whole row of a data set, with the messages of the prompt."""

    def hidden(self, task):
        messages = [{"role": "user", "content": self.prompt(task)}]
        return {"truth": {"answer": int(task), "prompt": messages}}
'''


@pytest.fixture(scope="module")
def contracts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("contracts") / "contracts.py"
    path.write_text(CONTRACTS)
    return path


def test_passage_of_the_prompt_is_no_leak(contracts: Path) -> None:
    assert not found(contracts, "Contract", [readable])


@pytest.mark.parametrize("name", ["Asked", "Row"])
def test_question_is_no_leak_when_the_solution_or_the_truth_repeats_it(contracts: Path, name: str) -> None:
    assert not found(contracts, name, [readable])


def test_answer_beside_the_text_is_proven(contracts: Path) -> None:
    assert {one.confidence for one in found(contracts, "Labelled", [readable])} == {"proven"}
