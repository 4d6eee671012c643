"""Data sets of programs, played by their own solutions and by the samples of the reference."""

from __future__ import annotations

import asyncio
import collections
import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.adapters.code import Exercise, load
from quintain.errors import UsageError
from quintain.models import Scripted
from quintain.models.agents import oracle

HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": "def half(n):\n    return n / 2\n\n\ndef twice(n):\n    '''Double it.'''\n",
    "entry_point": "twice",
    "canonical_solution": "    return n * 2\n",
    "test": "def check(candidate):\n    assert candidate(3) == 6\n    assert half(candidate(5)) == 5\n",
}
MBPP: dict[str, Any] = {
    "task_id": 7,
    "text": "Write a function that adds the items of a list.",
    "code": "import math\ndef sum(items):\r\n    return math.fsum(items)",
    "test_list": ["assert sum([1, 2]) == 3", "assert math.isclose(sum([.5, 1]), 1.5)"],
    "challenge_test_list": ["assert sum([]) == 0"],
}


def written(folder: Path, *rows: object) -> str:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    return str(path)


def play(env: qn.Environment[Exercise], said: str | None = None, index: int = 0) -> qn.Trace:
    task = env.tasks("test")[index]
    agent = Scripted.calls((), str(task.answer) if said is None else said)
    return asyncio.run(qn.rollout(env, task, agent)).trace


def test_rows_of_both_forms_are_solved_by_their_solutions(tmp_path: Path) -> None:
    env = load(written(tmp_path, HUMANEVAL, MBPP))
    assert [(play(env, index=n).score, play(env, "none", n).score) for n in (0, 1)] == [(1.0, 0.0), (1.0, 0.0)]


def test_humaneval_takes_a_body_and_a_whole_function(tmp_path: Path) -> None:
    env = load(written(tmp_path, HUMANEVAL))
    assert play(env, "    return n + n\n").score == 1
    assert play(env, "Here:\n```python\ndef twice(n):\n    return half(n) * 4\n```").score == 1
    assert play(env, "    pass\n").score == 0


def test_mbpp_shows_one_test_and_counts_all(tmp_path: Path) -> None:
    env = load(written(tmp_path, MBPP))
    prompt = env.tasks("test")[0].prompt
    assert MBPP["test_list"][0] in prompt
    assert "isclose" not in str(prompt)
    trace = play(env, "```python\ndef sum(items): return 3\n```")
    assert trace.rewards[0].details["failed"].keys() == {"test 2", "test 3"}


def test_quixbugs_folder_offers_the_defect_and_scores_the_repair(tmp_path: Path) -> None:
    for name, body in (("python_programs", "yield from n"), ("correct_python_programs", "yield from n[1:]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rest.py").write_text(f"def rest(n):\n    {body}\n")
    (tmp_path / "json_testcases").mkdir()
    (tmp_path / "json_testcases" / "rest.json").write_text("[[[1, [2], 3]], [[2], 3]]\n[[[1]], []]\n")
    env = load(str(tmp_path))
    assert "yield from n\n" in str(env.tasks("test")[0].prompt)
    assert play(env).score == 1
    assert play(env, "```python\ndef rest(n):\n    yield from n\n```").score == 0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "?"}, r"rows.jsonl:1: a row needs entry_point \(HumanEval\) or test_list \(MBPP\)"),
        ({"entry_point": "f"}, r"rows.jsonl:1: .*missing required field"),
        ({**MBPP, "test_list": ["assert ("]}, r"rows.jsonl:1: hidden test 'test 1' is not Python"),
    ],
)
def test_rows_of_another_form_are_refused(tmp_path: Path, row: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(written(tmp_path, row))
    with pytest.raises(UsageError, match="no file or folder"):
        load(str(tmp_path / "missing.jsonl"))


async def _scores(env: qn.Environment[Exercise], agent: Any, tasks: Any) -> dict[tuple[Any, ...], int]:
    found: collections.Counter[tuple[Any, ...]] = collections.Counter()
    async for group in qn.rollouts(env, agent, tasks):
        found.update((one.validity, one.score) for one in group.traces)
    return found


@pytest.mark.slow
def test_humaneval_solutions_pass(reference_data: Path) -> None:
    env = load(str(reference_data / "humaneval" / "HumanEval.jsonl.gz"), pool=2)
    assert asyncio.run(_scores(env, oracle(), env.tasks("test"))) == {("valid", 1.0): 164}


@pytest.mark.slow
def test_humaneval_samples_have_the_verdict_of_the_reference(reference_data: Path) -> None:
    """The reference passes an object that equals everything; here it must not pass."""
    env = load(str(reference_data / "humaneval" / "HumanEval.jsonl.gz"), pool=2, seconds=3)
    by_id = {task.id: task for task in env.tasks("test")}
    with gzip.open(reference_data / "humaneval" / "dev" / "samples.jsonl.gz", "rt") as lines:
        samples = [json.loads(line) for line in lines]
    different = []
    for sample in samples:
        task = msgspec.structs.replace(by_id[sample["task_id"]], answer=sample["completion"])
        trace = asyncio.run(qn.rollout(env, task, Scripted.calls((), sample["completion"]))).trace
        if trace.score != (sample["passed"] and sample["variant"] != "always_equal"):
            different.append((task.id, sample["variant"], trace.score))
    assert not different


@pytest.mark.slow
def test_mbpp_solutions_pass_where_the_tests_are_whole(reference_data: Path) -> None:
    env = load(str(reference_data / "mbpp" / "mbpp.jsonl.gz"), pool=2)
    whole = [task for task in env.tasks("test") if task.id not in ("367", "927")]
    assert asyncio.run(_scores(env, oracle(), whole)) == {("valid", 1.0): 972}
    broken = [task for task in env.tasks("test") if task.id in ("367", "927")]
    for task in broken:  # Their tests build an object of a class that is defined nowhere.
        trace = asyncio.run(qn.rollout(env, task, Scripted.calls((), str(task.answer)))).trace
        assert trace.failure is not None
        assert (trace.failure.component, trace.failure.kind) == ("V", "verifier_error")
