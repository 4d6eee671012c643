"""Tasks: the same everywhere, solvable from what an agent can know, chained over a day, judged where they begin."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain import codec
from quintain.environments.enterprise import env
from quintain.environments.enterprise import tasks as days
from quintain.environments.enterprise.description import company
from quintain.environments.enterprise.desk import Desk
from quintain.environments.enterprise.goals import CallGoal, judge, play
from quintain.models.agents import oracle
from quintain.trace import plain
from tests.environments.sampled import sampled

from .office import every_task, first, solution, use
from .office import play as played

DIGESTS = """
import asyncio
from tests.environments.enterprise.test_tasks import digests
print(" ".join(asyncio.run(digests())))
"""


async def digests() -> list[str]:
    """Returns digests of some tasks, and of the episodes that their solutions make."""
    found: list[str] = []
    for split in env.splits:
        for task in env.tasks(split)[5:40:7]:
            trace = (await qn.rollout(env, task, oracle().model(task, 0))).trace
            found += [await task.digest(task.world()), codec.digest(trace.to_bytes())]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_tasks_and_episodes_are_the_same_in_every_process_that_seeds_the_company(
    hash_seed: str, tmp_path: Path
) -> None:
    environ = os.environ | {"PYTHONHASHSEED": hash_seed, "TZ": "Asia/Kolkata", "LC_ALL": "C"}
    environ["QUINTAIN_CACHE"] = str(tmp_path)  # Without a base image, as on another machine.
    command = [sys.executable, "-c", DIGESTS]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environ, cwd=Path(__file__).parents[3]
    )
    assert done.stdout.split() == asyncio.run(digests())


@pytest.mark.parametrize(
    "some", [slice(0, None, 5), pytest.param(slice(None), marks=pytest.mark.slow)], ids=["fifth", "all"]
)
def test_solution_uses_only_names_from_the_prompt_or_earlier_results(some: slice) -> None:
    """Names, keys, titles and dates; numbers may have to be reckoned, and free text is the agent's own."""
    for task in every_task()[some]:
        trace = played(task, solution(task))
        seen = plain(task.prompt).casefold()
        for turn in trace.turns:
            for step in turn.steps:
                for name, said in _texts(step.call.name, step.call.arguments):
                    assert said.casefold() in seen, (task.id, step.call.name, name, said)
                seen += plain(step.observation).casefold()


def _texts(tool: str, arguments: str) -> list[tuple[str, str]]:
    action = company().actions.get(tool)
    given: dict[str, Any] = env.tools[tool].decode(arguments)
    skipped = {c.name for c in action.parameters if c.options or c.kind == "note"} if action else set[str]()
    return [(name, value) for name, value in given.items() if isinstance(value, str) and name not in skipped]


def test_each_prompt_names_the_employee_the_passcode_and_the_day() -> None:
    for task in every_task():
        goal: CallGoal = task.truth
        (_, given), *_ = solution(task)
        assert f"(EMP-{goal.actor}, passcode {given['passcode']})" in plain(task.prompt)
        assert task.world().today in plain(task.prompt)


def test_a_task_begins_where_the_solution_of_the_one_before_ends() -> None:
    for split in env.splits:
        for before, after in zip(env.tasks(split), env.tasks(split)[1:], strict=False):
            if before.tags["day"] == after.tags["day"]:
                world = before.world().copy()
                assert play(world, before.truth)[1] == []
                assert world.db.diff(after.world().db) == [], after.id
            else:
                assert after.id.partition("-1-")[1]


def test_no_two_prompts_are_alike_and_families_differ_in_their_parts() -> None:
    prompts = [plain(task.prompt) for task in every_task()]
    assert len(set(prompts)) == 200
    people = {task.truth.actor for task in every_task()}
    assert len(people) > 60


# -- a day that went otherwise than planned


def a_day(split: str, number: int) -> list[qn.Task[Desk]]:
    return list(env.tasks(split)[8 * number : 8 * number + 8])


def chain(tasks: list[qn.Task[Desk]], *, skipped: int) -> list[float]:
    """The scores of a day's solutions, each in the world that those before it left; one task is not done."""
    world, scores = tasks[0].world().copy(), list[float]()
    for place, task in enumerate(tasks):
        start = world.copy()
        if place != skipped:
            for name, arguments in solution(task):
                try:
                    env.tools[name].bind(world)(**env.tools[name].decode(codec.text(arguments)))
                except qn.ToolError:
                    continue
        verdict = judge(task.truth, start, world)
        done = (1 - len(verdict.missing) / verdict.total) if verdict.total else 0.0
        scores.append(done * max(0.0, 1 - len(verdict.stray) / 2))
    return scores


@pytest.mark.parametrize("number", sampled(range(15), every=5))
def test_a_day_of_solutions_scores_one_each_in_one_world(number: int) -> None:
    assert chain(a_day("train", number), skipped=-1) == [1.0] * 8


def test_skipped_task_costs_only_the_tasks_that_depend_on_it() -> None:
    purchase = a_day("train", 1)
    nothing = [0.0] * 8
    nothing[6] = 1.0  # of a payment run with an invoice that never came, the run itself can be prepared
    assert chain(purchase, skipped=0) == nothing
    assert chain(purchase, skipped=3)[:3] == [1.0, 1.0, 1.0]
    two = a_day("train", 0)  # an onboarding, and an incident beside it
    scores = chain(two, skipped=0)
    stories = [task.tags["story"] for task in two]
    assert [score for score, story in zip(scores, stories, strict=True) if story == "incident"] == [1.0] * 3
    assert max(score for score, story in zip(scores, stories, strict=True) if story == "onboarding") < 1.0


def test_a_goal_that_holds_already_is_worth_nothing_to_whoever_does_nothing() -> None:
    task = first("approve_requisition")
    world = task.world().copy()
    play(world, task.truth)
    verdict = judge(task.truth, world, world)
    assert verdict.total == 0
    assert verdict.left_out == [
        f"procurement_approve_requisition: 409: {_key(world)} is approved, it would have to be submitted"
    ]


def _key(world: Desk) -> str:
    return f"PR-{world.db.execute('SELECT max(id) FROM requisitions')[0][0]}"


def test_the_truth_follows_the_world_in_which_an_episode_begins() -> None:
    """The same goal after other people's work: other ids, another total, and still exactly one right end."""
    task = first("approve_requisition")
    plan = solution(task)
    before = next(t for t in every_task() if t.tags == task.tags | {"family": "request"})
    world = before.world().copy()
    use(world, 150, "procurement_create_requisition", title="Another", budget="BUD-2", needed_by="2025-08-01")
    play(world, before.truth)
    start = world.copy()
    for name, arguments in plan:
        env.tools[name].bind(world)(**arguments)
    verdict = judge(task.truth, start, world)
    assert (verdict.missing, verdict.stray) == ([], [])
    assert verdict.total == 3  # state, approver, budget
    assert judge(task.truth, task.world(), world).missing


def test_days_are_on_working_days_of_their_own() -> None:
    dates = {task.tags["day"]: task.world().clock.date for task in every_task()}
    assert len({date.date() for date in dates.values()}) == len(dates) == 25
    assert all(date.weekday() < 5 for date in dates.values())
    assert days.TASKS_A_DAY * len(dates) == 200
