from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import quintain as qn
from quintain.judges import (
    as_number,
    exact,
    final_answer,
    gsm8k_answer,
    last_block,
    last_number,
    normalized,
    numeric,
    same_json,
    same_set,
    squad_text,
    unicode_text,
)
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
    assert as_number(last_number(text) or "") == (None if number is None else Fraction(number))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 4 ", 4), ("4.00", 4), ("4e0", 4), ("1,000", 1000), ("1e999", 10**999), ("\N{MINUS SIGN}1/2", "-1/2"),
        ("4 or 5", None), ("4.", None), ("1.000,00", None), ("1 000", None), ("1'000", None), ("1_000", None),
        ("10,00", None), ("nan", None), ("inf", None), ("1e1000", None), ("9" * 1001, None), ("", None), ("1/0", None),
        ("\N{FULLWIDTH DIGIT FOUR}", None), ("\N{ARABIC-INDIC DIGIT FOUR}", None), ("0x10", None),
    ],
)  # fmt: skip
def test_as_number_reads_a_text_that_is_one_number(text: str, number: Any) -> None:
    assert as_number(text) == (None if number is None else Fraction(number))


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


def test_numeric_has_a_relative_tolerance() -> None:
    said = ("101", "99", "102", "-100")
    assert [reward(numeric(relative=0.01), text, 100).value for text in said] == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_numeric_refuses_a_tolerance_that_is_none(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance must be a finite number"):
        numeric(tolerance)
    with pytest.raises(ValueError, match="relative must be a finite number"):
        numeric(relative=tolerance)


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


def gsm8k_cases(data: Path) -> list[dict[str, Any]]:
    with gzip.open(data / "gsm8k" / "dev" / "model_solutions.jsonl.gz") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("criterion", [numeric(), exact(extract=gsm8k_answer)], ids=["numeric", "gsm8k_answer"])
def test_criterion_agrees_with_every_published_verdict_on_gsm8k(criterion: Any, reference_data: Path) -> None:
    cases = gsm8k_cases(reference_data)
    assert len(cases) > 2_000
    for case in cases:
        view = SimpleNamespace(answer=case["solution"], task=SimpleNamespace(id="", truth=case["ground_truth"]))
        assert criterion.fn(view).value == case["reference_is_correct"], case


def test_normalized_agrees_with_every_published_verdict_on_hotpotqa(reference_data: Path) -> None:
    lines = (reference_data / "multihop" / "dev" / "hotpot_scorer_cases.jsonl").read_text("utf-8").splitlines()
    assert len(lines) > 600
    equal: Any = normalized().fn
    f1: Any = normalized(value="f1").fn
    for case in map(json.loads, lines):
        view = SimpleNamespace(answer=case["prediction"], task=SimpleNamespace(id="", truth=case["gold"]))
        assert (equal(view).value, f1(view).value) == (case["em"], case["f1"]), case


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("5 + 5 = 10\n#### 1,010", "1010"), ("#### -3.5 eggs", "-3.5"), ("So it is 4.\nA: 4", "4"),
        ("#### 4\n#### 5", "4"),
        ("4", None), ("####4", None), ("", None), ("#### \N{FULLWIDTH DIGIT FOUR}", None),
    ],
)  # fmt: skip
def test_gsm8k_answer_is_the_number_after_the_mark(text: str, answer: str | None) -> None:
    assert gsm8k_answer(text) == answer


def test_last_block_is_the_content_of_the_last_fence() -> None:
    assert last_block("```\n1\n```\nor\n```json\n[2]\n```\n") == "[2]"
    assert last_block(" [3] ") == "[3]"


@pytest.mark.parametrize(
    ("said", "truth", "value"),
    [
        ("b, a", ["a", "b"], 1.0), ("The answer is {b,a}", "a, b", 1.0), ("a, a, b,", ["a", "b"], 1.0),
        ("a", ["a", "b"], 0.0), ("a, b, c", ["a", "b"], 0.0), ("", ["a"], 0.0), ("2, 1", [1, 2], 1.0),
        ("1.0, 2", [1, 2], 0.0),
        ("[]", ["a"], 0.0),
    ],
)  # fmt: skip
def test_same_set_ignores_order(said: str, truth: Any, value: float) -> None:
    assert reward(same_set(), said, truth).value == value


def test_same_set_names_missing_and_extra_items() -> None:
    found = reward(same_set(normalize=squad_text), "The A; c", ["a", "b"])
    assert found.value == 0
    found = reward(same_set(separator=";", normalize=squad_text), "THE X; c", ["x", "b"])
    assert "missing ['b'], extra ['c']" in found.reason


@pytest.mark.parametrize(
    ("said", "truth", "value", "reason"),
    [
        ('{"b": [1.0], "a": null}', {"a": None, "b": [1]}, 1.0, ""),
        ("```json\n[0.1]\n```", [0.1], 1.0, ""),
        ('{"a": 1}', {"a": True}, 0.0, "$.a is 1, expected true"),
        ('["1"]', [1], 0.0, '$[0] is "1", expected 1'),
        ("[1, 2]", [1], 0.0, "$ has 2 items, expected 1"),
        ('{"a": 1, "b": 2}', {"a": 1}, 0.0, "$.b is 2, expected missing"),
        ("{}", {"a": 1}, 0.0, "$.a is missing, expected 1"),
        ('{"a": 2, "a": 1}', {"a": 1}, 0.0, "a key stands twice"),
        ("[NaN]", [1], 0.0, "NaN is not a number of JSON"),
        ("1e999", 1, 0.0, "$ is"),
        ("1e" + "9" * 30, 1, 0.0, "not JSON"),
        ("9" * 5000, 1, 0.0, "not JSON"),
        ("[" * 100_000, [1], 0.0, "not JSON"),
        ("[" * 900 + "]" * 900, [1], 0.0, "expected 1"),
        ("", [1], 0.0, "not JSON"),
    ],
)
def test_same_json_compares_structures(said: str, truth: Any, value: float, reason: str) -> None:
    found = reward(same_json(), said, truth)
    assert found.value == value
    assert reason in found.reason


def test_same_json_tells_integers_from_decimals_when_declared() -> None:
    assert [reward(same_json(numbers="kind"), said, [1]).value for said in ("[1.0]", "[1]")] == [0.0, 1.0]


def test_normalizations_differ_in_accents_articles_and_width() -> None:
    assert squad_text("The  Caf\u00e9, an\tinn!") == "caf\u00e9 inn"
    assert unicode_text("\uff34he Stra\u00dfe\u2014") == "the strasse"


@pytest.mark.parametrize(
    "criterion", [exact(), numeric(), same_set(), same_json(), normalized(), normalized(value="f1")]
)
def test_empty_answer_is_wrong(criterion: Criterion[Any]) -> None:
    assert reward(criterion, "", 4).value == 0.0


@pytest.mark.parametrize(
    ("criterion", "truth", "message"),
    [(same_set(), "{}", "lists no items"), (same_json(), "a", "is not JSON"), (normalized(), "the", "nothing of the")],
)
def test_criterion_fails_where_the_truth_cannot_be_compared(criterion: Any, truth: str, message: str) -> None:
    env = from_rows("one", [{"prompt": "?", "answer": truth}], scorer=criterion)
    failure = asyncio.run(qn.rollout(env, env.tasks("test")[0], Scripted.calls((), "4"))).trace.failure
    assert failure is not None
    assert failure.component == "V"
    assert message in failure.message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: same_set(separator=""), "separator must be text"),
        (lambda: same_json(numbers="float"), "numbers must be 'value' or 'kind'"),  # type: ignore[arg-type]
        (lambda: normalized(value="em"), "value must be 'exact' or 'f1'"),  # type: ignore[arg-type]
    ],
)
def test_criterion_refuses_an_unknown_option(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_tolerance_is_part_of_the_fingerprint() -> None:
    rows = [{"prompt": "?", "answer": 4}]
    prints = {from_rows("one", rows, scorer=numeric(tolerance)).fingerprint for tolerance in (0.0, 0.0, 0.5)}
    assert len(prints) == 2
