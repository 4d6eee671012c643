from __future__ import annotations

import asyncio
import gzip
import json
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import quintain as qn
from quintain.judges import exact, final_answer, last_number, numeric
from quintain.models import Scripted
from quintain.tasks import from_rows
from quintain.verifier import Criterion


def reward(criterion: Criterion[Any], said: str, truth: Any) -> qn.Reward:
    env = from_rows("one", [{"prompt": "?", "answer": truth}], scorer=criterion)
    (found,) = asyncio.run(qn.rollout(env, env.tasks("test")[0], Scripted.calls((), said))).trace.rewards
    return found


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (" Paris \n", "Paris"),
        ("It is far. The answer is Paris", "Paris"),
        ("Answer: 3\nThe answer is:\n\n 4 \nI am sure.", "4"),
        ("2 + 2 = 4\n#### 4", "4"),
        (r"So \boxed{1}, no: \boxed{\frac{1}{2}} and the answer is 3.", r"\frac{1}{2}"),
        (r"\boxed{1", r"\boxed{1"),
        ("The answerer is Bob", "The answerer is Bob"),
        ("My answer depends", "My answer depends"),
        ("", ""),
    ],
)
def test_final_answer_is_the_end_of_a_text(text: str, answer: str) -> None:
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4", 4), ("4.0", 4), ("4.00", 4), ("4e0", 4), ("+4", 4), ("-4", -4), ("\N{MINUS SIGN}4", -4), (".5", "1/2"),
        ("$1,234,567.50", "1234567.5"), ("3/4", "3/4"), ("3 / 4", "3/4"), ("5-3", 3), ("50%", 50), ("4.", 4),
        ("1, 2, 3", 3), ("0.1", "1/10"), ("12345678901234567891", 12345678901234567891), ("1e-3", "1/1000"),
        ("1,2345", 2345), ("1e9999", None), ("1/0", None), ("nan", None), ("inf", None), ("", None), ("none", None),
        ("\N{FULLWIDTH DIGIT FOUR}", None), ("9" * 5000, None), ("x4", None), ("5 kg", 5),
        ("12e9999", None), ("1.2.3", None),
    ],
)  # fmt: skip
def test_last_number_reads_one_number_in_each_spelling(text: str, number: Any) -> None:
    assert last_number(text) == (None if number is None else Fraction(number))


@pytest.mark.parametrize(
    ("said", "truth", "value"),
    [
        ("4.00", 4, 1.0), ("The answer is 4.", "4", 1.0), ("3, then 4", 4.0, 1.0), ("4 or 5", 4, 0.0), ("3/4", 4, 0.0),
        ("0.3", 0.1 + 0.2, 0.0), ("72 in all", "48 + 24 = 72\n#### 72", 1.0), ("", 0, 0.0), ("nan", 4, 0.0),
    ],
)  # fmt: skip
def test_numeric_compares_numbers(said: str, truth: Any, value: float) -> None:
    assert reward(numeric(), said, truth).value == value


def test_numeric_has_a_tolerance() -> None:
    assert [reward(numeric(tolerance=0.01), said, 3.14).value for said in ("3.15", "3.13", "3.16")] == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_numeric_refuses_a_tolerance_that_is_none(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance must be a finite number"):
        numeric(tolerance)


def test_numeric_fails_where_the_truth_holds_no_number() -> None:
    env = from_rows("one", [{"prompt": "?", "answer": "Paris"}], scorer=numeric())
    trace = asyncio.run(qn.rollout(env, env.tasks("test")[0], Scripted.calls((), "4"))).trace
    assert trace.failure is not None
    assert trace.failure.component == "V"
    assert "'Paris'" in trace.failure.message
    assert "`exact`" in trace.failure.message


@pytest.mark.parametrize(
    ("said", "truth", "value"),
    [
        ("Paris", "Paris", 1.0),
        (" Paris\n", "Paris", 1.0),
        ("paris", "Paris", 0.0),
        ("true", True, 1.0),
        ("4.0", 4, 0.0),
    ],
)
def test_exact_compares_letter_by_letter(said: str, truth: Any, value: float) -> None:
    found = reward(exact(), said, truth)
    assert found.value == value
    assert "expected" in found.reason


def test_numeric_agrees_with_every_published_verdict_on_gsm8k(reference_data: Path) -> None:
    with gzip.open(reference_data / "gsm8k" / "dev" / "model_solutions.jsonl.gz") as lines:
        cases = [json.loads(line) for line in lines]
    assert len(cases) > 2_000
    score: Any = numeric().fn
    for case in cases:
        view = SimpleNamespace(answer=case["solution"], task=SimpleNamespace(id="", truth=case["ground_truth"]))
        assert score(view).value == case["reference_is_correct"], case


def test_tolerance_is_part_of_the_fingerprint() -> None:
    rows = [{"prompt": "?", "answer": 4}]
    prints = {from_rows("one", rows, scorer=numeric(tolerance)).fingerprint for tolerance in (0.0, 0.0, 0.5)}
    assert len(prints) == 2
