"""Evolving rubrics: what is generated, what passes the audit, what retires, and what survives a restart."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.errors import DefinitionError, JudgeError, ModelError, UsageError
from quintain.harness import Request
from quintain.judges import Judge
from quintain.judges.rubric import NULL_ANSWER, Rubric, RubricSet, RubricStore, evolving_rubric
from quintain.models import Scripted
from quintain.trace import Message, Reply
from quintain.verifier import EpisodeView, GroupView, Score
from tests.judges.helpers import Shelf, shelf

GOLD = "polite short sourced"
Words = dict[str, Any]


def judge(answer: Callable[[str], Any], name: str) -> Judge:
    async def model(request: Request) -> Reply:
        said = answer(str(request.messages[-1].content))
        return Reply(Message("assistant", said if isinstance(said, str) else json.dumps(said)))

    return Judge(model, name=name)


def between(prompt: str, name: str) -> str:
    found = re.search(rf"<{name} \w+>\n(.*?)\n</{name} \w+>", prompt, re.DOTALL)
    assert found is not None
    return found[1]


def by_word(prompt: str) -> Words:
    """A judge for rubrics whose description is one word: 2 if the text has it, 1 if it has it in capitals."""
    text, rubrics = between(prompt, "text").split(), between(prompt, "rubrics").splitlines()
    words = [line.rpartition(": ")[2] for line in rubrics]
    grades = [2 if word in text else 1 if word.upper() in text else 0 for word in words]
    return {"grades": [{"number": n, "grade": grade} for n, grade in enumerate(grades, 1)]}


def rubrics(*positive: str, negative: tuple[str, ...] = ()) -> Words:
    sides = {"positive": positive, "negative": negative}
    return {side: [{"title": word.title(), "description": word} for word in words] for side, words in sides.items()}


def group(*answers: str) -> GroupView[Shelf]:
    env = shelf(qn.reward(lambda _: 1.0))
    task = env.tasks("test")[0]
    traces = [asyncio.run(qn.rollout(env, task, Scripted.calls((), said))).trace for said in answers]
    return GroupView(task, tuple(EpisodeView(task, task.world(), task.world(), trace) for trace in traces))


def scored(
    answers: tuple[str, ...],
    generated: Any,
    *,
    store: RubricStore | None = None,
    grade: Callable[[str], Any] = by_word,
    **rule: Any,
) -> list[Score]:
    def generate(_: str) -> Any:
        if isinstance(generated, Exception):
            raise generated
        return generated

    criterion = evolving_rubric(
        judge(grade, "gpt-4.1-mini"), judge(generate, "gpt-4.1"), gold=lambda _: GOLD, store=store, **rule
    )
    found: Any = criterion.fn(group(*answers))

    async def wait() -> list[Score]:
        return list(await found)

    return asyncio.run(wait())


def persistent(*words: str) -> Callable[[Any], list[Rubric]]:
    return lambda _: [Rubric(word.title(), word) for word in words]


def test_scores_by_hand() -> None:
    """Persistent "polite", new "short" and the mistake "rude": (1 + 1/2 - 1) / 2, and so on."""
    found = scored(
        ("polite SHORT rude", "polite", "short rude", ""),
        rubrics("short", negative=("rude",)),
        persistent=persistent("polite"),
    )
    assert [one.value for one in found] == [0.25, 0.5, 0.0, 0.0]
    assert found[0].details["grades"] == {"Polite": 1.0, "Short": 0.5, "Rude": 1.0}
    assert found[0].details["generated"] == ["Short", "Rude"]


def test_audit_rejects_what_a_gold_answer_lacks_or_a_null_answer_has() -> None:
    found = scored(
        ("polite x", "y"),
        rubrics("short", "verbose", "answer", negative=("sourced", "rude", "cannot")),
        persistent=persistent("polite"),
    )
    assert "answer" in NULL_ANSWER
    assert found[0].details["generated"] == ["Short", "Rude"]
    assert found[0].details["rejected"] == {
        "Verbose": "does not hold on the gold answer",
        "Answer": "does not hold on the gold answer",
        "Sourced": "blames the gold answer",
        "Cannot": "holds on the null answer",
    }


def test_generator_that_repeats_or_quotes_is_ignored() -> None:
    said = "polite and this is a long sentence that the policy wrote itself"
    generated = rubrics("Polite", "short", "SHORT ", f"It says: {said}")
    found = scored((said, "short"), generated, persistent=persistent("polite"))
    assert found[0].details["generated"] == ["Short"]
    assert sorted(found[0].details["rejected"].values()) == ["quotes an episode", *["repeats another one"] * 2]


@pytest.mark.parametrize("broken", [ModelError("HTTP 503"), "no JSON", {"positive": []}])
def test_generator_that_fails_leaves_the_stored_rubrics(broken: Any) -> None:
    found = scored(("polite", "x"), broken, persistent=persistent("polite"))
    assert [one.value for one in found] == [1.0, 0.0]
    assert found[0].details["generator_failed"]


def test_task_without_any_rubric_has_no_score() -> None:
    with pytest.raises(JudgeError, match="no rubric counts"):
        scored(("a", "b"), rubrics())


@pytest.mark.parametrize("grades", [[], [{"number": 2, "grade": 1}], [{"number": 1, "grade": 1}] * 2])
def test_judge_that_grades_other_rubrics_is_unparseable(grades: list[Words]) -> None:
    with pytest.raises(JudgeError) as caught:
        scored(("a", "b"), rubrics(), grade=lambda _: {"grades": grades}, persistent=persistent("polite"))
    assert caught.value.kind == "judge_unparseable"


@pytest.mark.parametrize("grade", [3, 5, -1, 0.5, "2", None])
def test_grade_outside_of_the_scale_is_unparseable(grade: Any) -> None:
    reply = {"grades": [{"number": 1, "grade": grade}]}
    with pytest.raises(JudgeError) as caught:
        scored(("a", "b"), rubrics(), grade=lambda _: reply, persistent=persistent("polite"))
    assert caught.value.kind == "judge_unparseable"


def test_rubric_that_tells_nothing_apart_retires_for_good() -> None:
    store = RubricStore()
    scored(("short polite", "short", ""), rubrics("short", "polite"), store=store)
    kept = store.get("one")
    assert [one.title for one in kept.active] == ["Polite"]
    assert [one.title for one in kept.inactive] == ["Short"]
    found = scored(("short", "x"), rubrics("short"), store=store)
    assert found[0].details["rejected"] == {"Short": "repeats another one"}


def test_rubrics_with_the_least_deviation_retire_beyond_the_limit() -> None:
    store = RubricStore()
    scored(
        ("short POLITE sourced", "POLITE", "polite", "polite"),
        rubrics("short", "polite", "sourced"),
        store=store,
        max_active=2,
    )
    assert {one.title for one in store.get("one").active} == {"Short", "Sourced"}


def test_store_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "rubrics.jsonl"
    first = scored(("short", "polite"), rubrics("short"), store=RubricStore(path))
    scored(("sourced", "polite"), rubrics("sourced"), store=RubricStore(path))
    again = RubricStore(path).get("one")
    assert [one.title for one in again.active] == ["Sourced"]
    assert [one.title for one in again.inactive] == ["Short"]
    assert len(path.read_text().splitlines()) == 2
    assert again.version == 2
    assert first[0].details["version"] == 0
    path.write_text("{}\n")
    with pytest.raises(UsageError, match=r"rubrics.jsonl:1"):
        RubricStore(path)


def test_score_names_the_set_that_counted() -> None:
    found = scored(("short", "x"), rubrics("short"))
    assert found[0].details["rubrics"] == RubricSet(active=(Rubric("Short", "short"),)).digest


@pytest.mark.parametrize(
    ("answers", "drift"),
    [
        (("polite short", "POLITE SHORT", "x"), 1.0),
        (("polite", "POLITE SHORT", "short"), -1.0),
        (("polite short", "polite"), None),
    ],
)
def test_drift_is_the_correlation_of_both_kinds(answers: tuple[str, ...], drift: float | None) -> None:
    found = scored(answers, rubrics("short"), persistent=persistent("polite"))
    assert found[0].details["drift"] == (None if drift is None else pytest.approx(drift))


def test_limit_of_active_rubrics_is_checked() -> None:
    panel = judge(by_word, "gpt-4.1-mini")
    with pytest.raises(DefinitionError, match="max_active"):
        evolving_rubric(panel, panel, gold=lambda _: GOLD, max_active=0)
