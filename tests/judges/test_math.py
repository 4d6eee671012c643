"""Answers in LaTeX: hand-made cases, and every verdict of the reference."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from quintain.judges import math_answer
from quintain.judges.math import math_text, same_math
from tests.judges.helpers import play, shelf


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\\frac12", "\\dfrac{1}{2}"),
        ("1/2", "0.5"),
        (".5", "\\tfrac{1}{2}"),
        ("\\frac1{72}", "\\frac{1}{72}"),
        ("x=\\left( 1, 2 \\right)", "(1,2)"),
        ("90^\\circ", "90"),
        ("12 \\text{ cm}", "12"),
        ("\\sqrt3", "\\sqrt{3}"),
        ("50\\%", "50"),
        ("-3/4", "\\frac{-3}{4}"),
        ("\\frac", "\\frac"),
        ("\\sqrt", "\\sqrt"),
    ],
)
def test_spellings_of_one_answer_are_equal(one: str, other: str) -> None:
    assert same_math(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("0.25", "\\frac{1}{4}"), ("2/4", "1/2"), ("$5$", "5"), ("-0/1", "0/1"), ("5", "5.0"), ("\\sqrt", "\\sqrt ")],
)
def test_other_spellings_are_different(one: str, other: str) -> None:
    assert not same_math(one, other)


def test_unreadable_text_has_no_form() -> None:
    assert math_text("1 \\text{ cm} and \\text{ m}") is None
    assert math_text("\\frac{1}{2}+\\frac") is None
    assert math_text("\\frac1") == "\\frac1"


def test_criterion_compares_what_was_extracted() -> None:
    env = shelf(math_answer(), truth="The root is \\boxed{\\frac{1}{2}}.")
    assert play(env, said="So it is $\\boxed{1/2}$").score == 1
    assert play(env, said="The answer is 2").score == 0
    assert play(env, said="").score == 0


def test_verdicts_of_the_reference_are_reproduced(reference_data: Path) -> None:
    with gzip.open(reference_data / "math_graders" / "dev" / "cases.jsonl.gz", "rt") as lines:
        cases = [json.loads(line) for line in lines]
    assert len(cases) > 4000
    assert [one for one in cases if same_math(one["prediction"], one["gold"]) != one["hendrycks"]] == []
