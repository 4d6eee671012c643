"""HotpotQA and MuSiQue: the published scorer's verdicts, the real questions, and files that are wrong."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.environments.multihop import AnswerScores, load, scores
from quintain.errors import UsageError
from quintain.models.agents import noop, oracle
from quintain.models.scripted import Scripted

pytest.importorskip("bm25s")

CORPUS = {
    "Anna Lee": ["Anna Lee wrote Blue Tide.", " She was born in Leeds."],
    "Leeds": ["Leeds is a city in England.", " It lies on the Aire."],
    "Derby": ["Derby is a city, too."],
}
ROWS = [
    {
        "_id": f"q{n}",
        "question": "In which country was the author of Blue Tide born?",
        "answer": "England",
        "supporting_facts": [["Anna Lee", 1], ["Leeds", 0]],
        "type": "bridge",
        "level": "easy",
    }
    for n in range(20)
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "hotpotqa_train.json").write_text(json.dumps(ROWS))
    (tmp_path / "hotpotqa_train_corpus.json").write_text(json.dumps(CORPUS))
    return tmp_path


def play(env: qn.Environment[Any], model: Any, index: int = 0) -> qn.Trace:
    return asyncio.run(qn.rollout(env, env.tasks("train")[index], model)).trace


def values(trace: qn.Trace) -> dict[str, float | None]:
    return {one.name: one.value for one in trace.rewards}


def test_scores_agree_with_every_published_verdict(reference_data: Path) -> None:
    lines = (reference_data / "multihop" / "dev" / "hotpot_scorer_cases.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 612
    for case in map(json.loads, lines):
        facts, truth = ([tuple(one) for one in case[name]] for name in ("sp", "gold_sp"))
        found = scores(case["prediction"], facts, answers=[case["gold"]], truth=truth)
        own = (found.em, found.f1, found.precision, found.recall, found.facts_em, found.facts_f1)
        expected = tuple(case[name] for name in ("em", "f1", "prec", "recall", "sp_em", "sp_f1"))
        assert own == pytest.approx(expected, abs=1e-12), case


@pytest.mark.parametrize("name", ["hotpotqa", "musique"])
def test_real_questions_are_solved_by_their_solutions(name: str, reference_data: Path) -> None:
    env = load(name, data=reference_data / "multihop", score="joint_f1")
    tasks = {split: list(env.tasks(split)) for split in ("train", "test")}
    assert sum(map(len, tasks.values())) == 100
    assert not {one.id for one in tasks["train"]} & {one.id for one in tasks["test"]}
    for index in range(0, len(tasks["train"]), 3):
        solved = play(env, oracle(), index)
        assert set(values(solved).values()) == {1.0}, (tasks["train"][index].id, solved.failure)
    assert play(env, noop()).score == 0.0


def test_an_agent_searches_reads_and_submits(data: Path) -> None:
    env = load("hotpotqa", data=data)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("web_search", {"query": "Blue Tide"}),
        ("web_fetch", {"url": "p1"}),
        ("submit", {"answer": "England", "facts": [{"url": "p9", "passage": 0}]}),
        ("submit", {"answer": "the England of old", "facts": [{"url": "p1", "passage": 1}]}),
    ]
    trace = play(env, Scripted.calls(calls))
    seen = [step.observation for turn in trace.turns for step in turn.steps]
    assert seen[1] == "# Anna Lee\n\n[0] Anna Lee wrote Blue Tide.\n[1] She was born in Leeds."
    assert seen[2] == "no page has the address 'p9'"
    found = AnswerScores(**values(trace))  # type: ignore[arg-type]
    assert (found.em, found.facts_em) == (0.0, 0.0)
    assert trace.score == found.f1 == pytest.approx(0.5)
    assert found.facts_f1 == pytest.approx(2 / 3)
    assert found.joint_f1 == pytest.approx(2 * (1 / 3) * 0.5 / (1 / 3 + 0.5))


def test_the_best_of_several_right_answers_counts() -> None:
    found = scores("G. Hall", [], answers=["Granville Stanley Hall", "G Hall"], truth=[("p", 0)])
    assert (found.em, found.f1, found.facts_f1, found.joint_f1) == (1.0, 1.0, 0.0, 0.0)


def test_wrong_names_and_files_are_refused(data: Path) -> None:
    with pytest.raises(UsageError, match="multihop has hotpotqa, musique"):
        load("squad", data=data)
    with pytest.raises(UsageError, match=r"no file musique_train\.json"):
        load("musique", data=data)
    for text, words in (('[{"question": 1}]', "have another form"), ("[", "cannot read")):
        (data / "hotpotqa_train.json").write_text(text)
        with pytest.raises(qn.DefinitionError, match=words):
            load("hotpotqa", data=data).tasks("train")
