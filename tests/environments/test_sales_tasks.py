"""Tasks: pure functions of split and number, solvable from what the agent can know, and not solved at the start."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys

import pytest

from quintain.environments.sales import env
from quintain.environments.sales.goals import Truth
from quintain.trace import plain

from .sales_desk import Task, play, solution

SOME = pytest.mark.parametrize(
    "some", [slice(0, 18), pytest.param(slice(18, 1000), marks=pytest.mark.slow)], ids=["first", "all"]
)

DIGESTS = """
import asyncio, json
from quintain.environments.sales import env
async def digests():
    return [await task.digest(task.world()) for split in env.splits for task in env.tasks(split)[11:47:7]]
print(json.dumps(asyncio.run(digests())))
"""


@pytest.mark.parametrize("hash_seed", ["4242", *(pytest.param(seed, marks=pytest.mark.slow) for seed in ("0", "1"))])
def test_a_task_is_the_same_in_every_process(hash_seed: str) -> None:
    environ = os.environ | {"PYTHONHASHSEED": hash_seed, "TZ": "Asia/Kolkata", "LC_ALL": "C"}
    done = subprocess.run([sys.executable, "-c", DIGESTS], capture_output=True, text=True, check=True, env=environ)

    async def here() -> list[str]:
        return [await task.digest(task.world()) for split in env.splits for task in env.tasks(split)[11:47:7]]

    assert json.loads(done.stdout) == asyncio.run(here())


def test_a_task_does_not_depend_on_those_made_before() -> None:
    tasks = env.tasks("train")
    assert _sealed(tasks[500]) == _sealed(tasks[500])
    assert [_sealed(task) for task in tasks[3:9]] == [_sealed(tasks[n]) for n in range(3, 9)]


@pytest.mark.slow
def test_a_thousand_tasks_per_split_no_two_alike_and_none_too_long() -> None:
    assert [len(env.tasks(split)) for split in env.splits] == [1000] * 3
    every = [task for split in env.splits for task in env.tasks(split)]
    assert len({str(task.prompt) for task in every}) == len(every)
    assert len({task.id for task in every[:1000]}) == 1000
    assert max(len(solution(task)) for task in every) + 1 <= env.config.max_turns - 10


@SOME
def test_goals_do_not_hold_at_the_start(some: slice) -> None:
    for task in env.tasks("train")[some]:
        truth: Truth = task.truth
        assert [goal for goal in truth.goals if not goal.missing(task.world(), task.world())] == [], task.id


@SOME
def test_a_solution_uses_only_what_its_player_has_seen(some: slice) -> None:
    for task in env.tasks("train")[some]:
        known = str(task.prompt).casefold()
        trace = play(task, solution(task))
        for turn in trace.turns:
            for step in turn.steps:
                unknown = [word for word in _names(step.call.arguments) if word not in known]
                assert not unknown, (task.id, step.call)
                known += plain(step.observation).casefold()
        assert trace.score == 1.0


def test_prompt_holds_no_sealed_ids() -> None:
    for task in env.tasks("test")[:90]:
        assert not re.search(r"\b[A-Z]-[0-9]{5}\b", str(task.prompt))


def test_copying_a_world_costs_the_same_after_many_writes() -> None:
    world = env.tasks("test")[12].world().copy()
    sizes = [len(world.shared.pack())]
    for _ in range(600):
        world.crm.log(record_id=next(iter(world.crm.contacts)), kind="note", text="called again")
    world.copy()
    sizes.append(len(world.shared.pack()))
    assert sizes[1] <= sizes[0] + 8
    assert len(world.crm.activities._rows.layers) < 12


def _sealed(task: Task) -> str:
    return hashlib.sha256(repr((task.prompt, task.truth, task.solution, task.answer)).encode()).hexdigest()


def _names(arguments: str) -> list[str]:
    """Ids and addresses in a call."""
    return [word.casefold() for word in re.findall(r'[A-Z]-[0-9]{5}|[^\s"]+@[^\s"]+', arguments)]
