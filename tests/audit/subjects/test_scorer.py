"""Scoring functions of every shape, with cases under other names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies

from quintain.audit.subjects import scorer
from quintain.audit.subjects.matching import TEXT, TRUTH
from quintain.errors import UsageError


def exact(prediction: str, gold: str) -> float:
    return float(prediction.strip() == gold)


def of(function: Callable[..., Any], *cases: Any) -> scorer.ScorerSubject:
    return scorer.of(function, list(cases))()


def test_a_case_is_a_task(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    lines = [
        {"id": "q1", "question": "2+2?", "prediction": "4", "gold": "4", "expected": 1},
        {"question": "2+2?", "prediction": "5", "gold": "4", "expected": False},
        {"prediction": "x", "gold": "y"},
    ]
    file.write_text("\ufeff" + "\n\n".join(map(json.dumps, lines)) + "\n")
    subject = scorer.of(exact, file)()
    assert subject.tasks() == ["q1", "case 3", "case 5"]
    assert subject.cases() == [
        {"task": "q1", "answer": "4", "expected": 1.0},
        {"task": "case 3", "answer": "5", "expected": 0.0},
        {"task": "case 5", "answer": "x", "expected": None},
    ]
    assert subject.hidden("case 3") == {"gold": "4"}
    assert subject.oracle("case 3") == subject.oracle("q1") == [{"answer": "4"}]
    assert subject.oracle("case 5") is None
    assert subject.reset("case 3", 0) == ""
    assert subject.score() == 0.0
    subject.answer(" 4\n")
    assert subject.score() == subject.score() == 1.0
    assert subject.absent == ("judge",)
    file.write_text(json.dumps(lines))
    assert scorer.of(exact, file)().tasks() == ["q1", "case 2", "case 3"]
    subject.close()


def test_the_question_is_the_prompt_if_the_function_takes_it() -> None:
    def asks(question: str, answer: str, gold: str) -> float:
        return float(question.startswith("2") and answer == gold)

    subject = of(asks, {"prompt": "2+2?", "response": "4", "target": "4"})
    assert subject.reset("case 1", 0) == "2+2?"
    assert subject.hidden("case 1") == {"gold": "4"}
    subject.answer("4")
    assert subject.score() == 1.0


@given(
    parameter=strategies.sampled_from(TEXT),
    other=strategies.sampled_from(TRUTH),
    key=strategies.sampled_from(TEXT),
    named=strategies.sampled_from([name for name in TRUTH if name != "expected"]),
)
def test_names_of_one_meaning_match_each_other(parameter: str, other: str, key: str, named: str) -> None:
    space: dict[str, Any] = {}
    exec(f"def score({parameter}, {other}): return ({parameter}, {other}) == ('said', 'true')", space)
    subject = of(space["score"], {named: "true", key: "wrong"})
    subject.reset("case 1", 0)
    subject.answer("said")
    assert subject.score() == 1.0, (parameter, other, key, named)


@pytest.mark.parametrize(
    ("parameters", "case", "seen"),
    [
        ("response, answer", {"response": "x", "answer": "t"}, {"response": "said", "answer": "t"}),
        ("prediction, answer", {"prediction": "x", "gold": "t"}, {"prediction": "said", "answer": "t"}),
        ("actual, expected", {"actual": "x", "expected": "t"}, {"actual": "said", "expected": "t"}),
        ("actual, expected", {"actual": "x", "gold": "t", "expected": 1}, {"actual": "said", "expected": "t"}),
        ("a, b", ["x", "t"], {"a": "said", "b": "t"}),
        ("a, b", ["x", "t", 1.0], {"a": "said", "b": "t"}),
        ("a, b, /", {"args": ["x", "t"]}, {"a": "said", "b": "t"}),
        ("a, *rest", {"args": ["x", 1, 2]}, {"a": "said", "rest": (1, 2)}),
        ("output, *, ref", {"kwargs": {"output": "x", "ref": "t"}}, {"output": "said", "ref": "t"}),
        ("completion, **more", {"completion": "x", "answer": "t"}, {"completion": "said", "more": {"answer": "t"}}),
        ("prediction, gold, strict=False", {"answer": "x", "gold": "t", "note": 1}, None),
        ("modelOutput, goldAnswer", {"model_output": "x", "gold_answer": "t"}, None),
        (
            "data_source, solution_str, ground_truth, extra_info=None",
            {"data_source": "gsm8k", "response": "x", "gold": "t"},
            {"data_source": "gsm8k", "solution_str": "said", "ground_truth": "t", "extra_info": None},
        ),
        (
            "completions, answer",
            {"completions": ["x"], "answer": ["t"]},
            {"completions": ["said"], "answer": ["t"]},
        ),
        (
            "completion, answer",
            {"completion": [{"role": "assistant", "content": "x"}], "answer": "t"},
            {"completion": [{"role": "assistant", "content": "said"}], "answer": "t"},
        ),
    ],
)
def test_arguments_reach_their_parameters(parameters: str, case: Any, seen: dict[str, Any] | None) -> None:
    space: dict[str, Any] = {"got": []}
    exec(f"def score({parameters}):\n got.append(dict(locals()))\n return 1.0", space)
    subject = of(space["score"], case)
    subject.reset("case 1", 0)
    subject.answer("said")
    assert subject.score() == 1.0
    arguments = space["got"][-1]
    if seen is None:
        assert {"said", "t"} <= {str(value) for value in arguments.values()}
    else:
        assert arguments == seen


@pytest.mark.parametrize(
    ("function", "case", "words"),
    [
        (exact, {"prediction": "x"}, "exact(prediction, gold) needs gold, and the case has prediction"),
        (exact, {}, "needs gold, and the case has no keys"),
        (exact, {"args": ["a", "b", "c"]}, "args has 3 values, the scorer takes prediction, gold"),
        (lambda: 1.0, {"x": 1}, "needs a parameter for the text"),
        (exact, "x", "neither an object nor an array"),
        (exact, {"prediction": "x", "gold": "y", "expected": "yes"}, "a number, not 'yes'"),
        (lambda *rest: 1.0, ["x"], "needs a parameter for the text"),
        (dict, {"x": 1}, "does not say what it takes"),
    ],
)
def test_a_case_that_does_not_fit_names_both_sides(function: Callable[..., Any], case: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        of(function, case)
    assert words in str(caught.value)


def test_unreadable_case_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    with pytest.raises(UsageError, match="cannot read"):
        scorer.of(exact, file)
    file.write_text("\n")
    with pytest.raises(UsageError, match="no case"):
        scorer.of(exact, file)
    file.write_text('["a", "b"]\n{"prediction"\n')
    with pytest.raises(UsageError, match="line 2 is not JSON"):
        scorer.of(exact, file)
    file.write_text('["a", "b"]\n["a", "a"]\n')
    assert len(scorer.of(exact, file)().tasks()) == 2
    file.write_text('{"id": 1, "prediction": "x", "gold": "y"}\n' * 2)
    with pytest.raises(UsageError, match="two cases have the name '1'"):
        scorer.of(exact, file)
    with pytest.raises(UsageError, match="no case 'nope'"):
        of(exact, {"prediction": "x", "gold": "y"}).reset("nope", 0)
    with pytest.raises(UsageError, match="call reset"):
        of(exact, {"prediction": "x", "gold": "y"}).score()


@dataclass
class Graded:
    score: float
    reason: str


async def waits(prediction: str, gold: str) -> float:
    await asyncio.sleep(0)
    return exact(prediction, gold)


@pytest.mark.parametrize(
    ("function", "score"),
    [
        (waits, 1.0),
        (lambda prediction, gold: prediction == gold, 1.0),
        (lambda prediction, gold: (0.5, "half"), 0.5),
        (lambda prediction, gold: [1], 1),
        (lambda prediction, gold: Graded(0.25, "why"), {"score": 0.25}),
        (lambda prediction, gold: {"score": 1, "style": 0}, {"score": 1, "style": 0}),
        (lambda prediction, gold: None, None),
    ],
)
def test_scores_of_every_shape(function: Callable[..., Any], score: Any) -> None:
    subject = of(function, {"prediction": "x", "gold": "y"})
    subject.reset("case 1", 0)
    subject.answer("y")
    assert subject.score() == score
    subject.close()


def test_numbers_stay_numbers_and_nothing_is_changed_by_the_scorer() -> None:
    def near(prediction: Any, gold: list[float]) -> float:
        gold.append(9.0)
        return float(isinstance(prediction, float) and abs(prediction - gold[0]) < 0.1 and len(gold) == 2)

    subject = of(near, {"prediction": 2.5, "gold": [2.5], "expected": 1})
    subject.reset("case 1", 0)
    subject.answer(subject.cases()[0]["answer"])
    assert subject.score() == subject.score() == 1.0
    subject.answer("2.45")
    assert subject.score() == 1.0
    subject.answer("about two")
    assert subject.score() == 0.0
    assert subject.oracle("case 1") == [{"answer": "2.5"}]


def test_exceptions_of_the_scorer_propagate() -> None:
    broken = of(lambda prediction, gold: 1 / 0, {"prediction": "x", "gold": "y"})
    broken.reset("case 1", 0)
    with pytest.raises(ZeroDivisionError):
        broken.score()


def test_a_judge_is_scored_without_an_environment() -> None:
    def graded(prediction: str, gold: str, complete: Callable[[str], str]) -> float:
        return float("yes" in complete(f"{prediction} = {gold}?"))

    subject = of(graded, {"prediction": "x", "gold": "y"})
    asked: list[str] = []

    def model(text: str) -> str:
        asked.append(text)
        return "yes"

    assert subject.absent == ("score",)
    assert subject.judge("case 1", "z", model) == 1.0
    assert asked == ["z = y?"]

    def either(prediction: str, gold: str, llm: Callable[[str], str] = str) -> float:
        return float(llm(prediction) == gold)

    assert of(either, {"prediction": "x", "gold": "y"}).absent == ()
