"""Reasoning Gym's datasets give the original's scores. The library is heavy, so most tests are skipped without it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.adapters.reasoning_gym import APART, load
from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.models import Scripted
from quintain.replay import replay
from quintain.trace import Trace
from tests.serve.clients.venvs import Venv

ROOT = Path(__file__).parents[2]
STEPS = (("reasoning-gym==0.1.25", "msgspec", "hypothesis", "pytest==9.2.0", "pytest-timeout"),)


@pytest.fixture
def original() -> Any:
    return pytest.importorskip("reasoning_gym", reason="pip install 'quintain[reasoning-gym]'")


def _play(env: Environment[Any], words: str, *, index: int = 0) -> Trace:
    return asyncio.run(qn.rollout(env, env.tasks("test")[index], Scripted.calls((), words))).trace


@pytest.mark.parametrize("name", ["leg_counting", "spell_backward", "basic_arithmetic", "rubiks_cube", "countdown"])
def test_scores_equal_those_of_the_original(original: Any, name: str) -> None:
    env = load(name, size=3, seed=11)
    dataset = original.create_dataset(name, size=3, seed=11 + APART)
    for index, entry in enumerate(dataset):
        assert env.tasks("test")[index].prompt == entry["question"]
        for answer in (str(entry["answer"]), f"  {entry['answer']} of them", "7", "wrong", ""):
            trace = _play(env, f"<think>Hm.</think> <answer>no</answer> So <answer>{answer}</answer>.", index=index)
            assert trace.failure is None
            assert trace.score == dataset.score_answer(answer.strip(), entry)
            again = load(name, size=3, seed=11)
            assert asyncio.run(replay(again, again.tasks("test")[index], trace)).to_bytes() == trace.to_bytes()
        assert _play(env, str(entry["answer"]), index=index).score == dataset.score_answer(None, entry)


def test_the_oracle_answers_where_there_is_one_answer(original: Any) -> None:
    del original
    legs, cube = load("leg_counting").tasks("train")[0], load("rubiks_cube").tasks("train")[0]
    assert (legs.id, legs.solution, cube.solution) == ("train-0", (), None)
    env = load("leg_counting", min_animals="2")
    assert _play(env, env.tasks("test")[0].answer).score == 1.0


def test_an_item_that_changes_fails_with_component_t(original: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    env = load("leg_counting")
    task = env.tasks("test")[0]
    kind = type(original.create_dataset("leg_counting"))
    made = kind.__getitem__
    monkeypatch.setattr(kind, "__getitem__", lambda self, index: made(self, index) | {"answer": "1"})
    trace = asyncio.run(qn.rollout(env, task, Scripted.calls((), "<answer>1</answer>"))).trace
    assert trace.score is None
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("T", "quintain:reset_failed")
    assert "not deterministic: item 0 of leg_counting" in trace.failure.message


def test_options_are_fields_of_the_configuration_and_in_the_fingerprint(original: Any) -> None:
    del original
    plain, few = load("leg_counting", size="2"), load("leg_counting", size="2", max_animals="3")
    assert len(plain.tasks("train")) == 2
    assert plain.fingerprint == load("leg_counting", size="2").fingerprint != few.fingerprint
    assert plain.tasks("train")[0].prompt != load("leg_counting", seed="5").tasks("train")[0].prompt
    direct: Any = load("leg_counting", system="direct").harness
    assert direct.system.startswith("Answer the question directly.")


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("leg_countin", {}, "no dataset 'leg_countin'; did you mean leg_counting"),
        ("qqqq", {}, "no dataset 'qqqq'; known: ab, "),
        ("leg_counting", {"legs": "2"}, "has no option legs; it has min_animals, max_animals"),
        ("leg_counting", {"min_animals": "0"}, "min_animals must be positive"),
        ("leg_counting", {"size": "0"}, "size must be a whole number from 1, got '0'"),
        ("leg_counting", {"seed": "x"}, "seed must be a whole number from 0, got 'x'"),
        ("leg_counting", {"system": "rude"}, "no system prompt 'rude'; it has DeepSeekZero, default, "),
    ],
)
def test_load_refuses_unknown_names_and_options(original: Any, name: str, options: dict[str, str], says: str) -> None:
    del original
    with pytest.raises(UsageError) as refused:
        load(name, **options)
    assert says in str(refused.value)


def test_a_missing_library_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(UsageError, match=r"pip install 'quintain\[reasoning-gym\]'"):
        load("leg_counting")


@pytest.mark.slow
def test_all_tests_of_this_file_pass_with_the_library(tmp_path: Path) -> None:
    if "reasoning_gym" in sys.modules:
        pytest.skip("the library is installed here")
    kept = os.environ.get("QUINTAIN_VENVS")
    python = Venv(Path(kept) if kept else tmp_path, STEPS).python
    options = ["-q", "-p", "no:cacheprovider", "-m", "not slow", "-o", "addopts=--import-mode=importlib"]
    command = [str(python), "-m", "pytest", *options, __file__]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout
