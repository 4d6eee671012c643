"""Scores: full for the oracle, nothing for agents that do not do the work."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import pytest

import quintain as qn
from quintain.environments.support import env
from quintain.models.agents import noop, oracle, random
from quintain.trace import Level

from .desk import KINDS, Task, first, play, solution


def _traces(agent: object, tasks: Sequence[Task]) -> list[qn.Trace]:
    async def every() -> list[qn.Trace]:
        return [(await qn.rollout(env, task, agent)).trace for task in tasks]  # type: ignore[arg-type]  # an agent

    return asyncio.run(every())


def _oracle_is_perfect(tasks: Sequence[Task]) -> None:
    for trace in _traces(oracle(), tasks):
        why = [(reward.name, reward.value, reward.reason) for reward in trace.every_reward() if reward.value != 1.0]
        assert trace.score == 1.0, (trace.task, trace.failure, why)
        assert not [step.observation for turn in trace.turns for step in turn.steps if step.is_error], trace.task
        assert all(reward.value == 1.0 for reward in trace.every_reward() if reward.level is not Level.TURN), trace.task


KIND_TASKS = [first(*kind) for kind in KINDS]
SOME = pytest.mark.parametrize(
    "some",
    [slice(0, None, 4), *(pytest.param(slice(start, None, 4), marks=pytest.mark.slow) for start in (1, 2, 3))],
    ids=["first quarter", "second", "third", "last"],
)


@SOME
def test_the_oracle_scores_exactly_one_on_every_kind_and_is_never_refused(some: slice) -> None:
    _oracle_is_perfect(KIND_TASKS[some])


@SOME
def test_doing_nothing_scores_exactly_zero_on_every_kind(some: slice) -> None:
    assert {trace.score for trace in _traces(noop(), KIND_TASKS[some])} == {0.0}


@SOME
def test_valid_calls_at_random_score_exactly_zero_on_every_kind(some: slice) -> None:
    assert {trace.score for trace in _traces(random(calls=12), KIND_TASKS[some])} == {0.0}


@pytest.mark.slow
@pytest.mark.parametrize("split", ["validation", "test"])
def test_all_tasks_of_the_held_out_splits(split: str) -> None:
    tasks = list(env.tasks(split))
    _oracle_is_perfect(tasks)
    for agent in (noop(), random(calls=12)):
        assert {trace.score for trace in _traces(agent, tasks)} == {0.0}


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["oracle", "noop", "random"])
def test_three_other_processes_replay_every_kind_of_trouble_to_the_byte(agent: str, tmp_path: Path) -> None:
    def quintain(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "quintain", *arguments], check=True, capture_output=True, text=True
        ).stdout

    out = str(tmp_path / "run")
    quintain("run", "quintain.environments.support:env", "--agent", agent, "--tasks", "24", "--out", out)
    assert quintain("replay", out).count("equal to the byte") == 3


def test_every_family_comes_at_every_level() -> None:
    kinds = {(task.tags["family"], task.tags["level"]) for task in env.tasks("test")[:24]}
    assert kinds == {(family, level) for family, level, _ in KINDS}
    assert len(kinds) == 24


def test_harder_levels_take_more_work() -> None:
    lengths = {
        level: mean(len(solution(task)) for task in KIND_TASKS if task.tags["level"] == level)
        for level in ("easy", "medium", "hard")
    }
    assert lengths["easy"] < lengths["hard"]
    assert lengths["medium"] < lengths["hard"]


def test_splits_share_no_task() -> None:
    prompts = [{str(task.solution) for task in env.tasks(split)[:48]} for split in env.splits]
    assert len(set.union(*prompts)) == sum(map(len, prompts)) == 48 * 3


def test_rewards_come_at_all_four_levels() -> None:
    trace = play(KIND_TASKS[0], solution(KIND_TASKS[0]))
    assert {reward.level for reward in trace.every_reward()} == set(Level) - {Level.GROUP}
    progress = [reward.value or 0.0 for reward in trace.every_reward() if reward.name == "progress"]
    assert sum(progress) == pytest.approx(1.0)
    phases = [reward for reward in trace.every_reward() if reward.level is Level.PHASE]
    assert [reward.name for reward in phases] == ["informed", "repaired_it", "closed_it"]
    assert phases[0].turn == 0
    assert phases[2].turn == len(solution(KIND_TASKS[0])) - 1
