"""Days as a run plays them: each task in the world that the one before left to the same member."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import quintain as qn
from quintain.chain import TaskChain
from quintain.environments.enterprise import env
from quintain.environments.enterprise.desk import Desk
from quintain.environments.enterprise.tasks import TASKS_A_DAY
from quintain.harness import Agent, Model
from quintain.models.agents import noop, oracle
from quintain.record import RunFolder, read_traces

from .office import every_task


class Forgetful:
    """An oracle that does nothing in some tasks."""

    name = "forgetful"

    def __init__(self, *forgotten: str) -> None:
        self.forgotten = forgotten

    def model(self, task: qn.Task[Desk], seed: int) -> Model:
        return (noop() if task.id in self.forgotten else oracle()).model(task, seed)


def played(agent: Agent, tasks: list[qn.Task[Desk]], folder: RunFolder | None = None) -> list[qn.Trace]:
    async def law() -> list[qn.Trace]:
        groups = qn.rollouts(env, agent, tasks, ordered=True, folder=folder)
        return [group.traces[0] async for group in groups]

    return asyncio.run(law())


def purchase() -> list[qn.Task[Desk]]:
    """A day of one story, in which each task needs those before it."""
    return list(env.tasks("test")[:TASKS_A_DAY])


@pytest.mark.slow
def test_every_day_of_solutions_scores_one_throughout() -> None:
    traces = played(oracle(), every_task())
    assert [trace.score for trace in traces] == [1.0] * 200
    assert sum(not trace.continues for trace in traces) == 25, "only the first task of a day begins in its own world"


def test_a_day_of_solutions_scores_one_and_replays(tmp_path: Path) -> None:
    with RunFolder(tmp_path, {}) as folder:
        traces = played(oracle(), purchase(), folder)
    assert [trace.score for trace in traces] == [1.0] * TASKS_A_DAY
    assert [trace.continues for trace in traces[1:]] == [(trace.task, 0) for trace in traces[:-1]]
    known = {task.id: task for task in purchase()}

    async def law() -> None:
        days = TaskChain(env)
        for trace in read_traces(tmp_path):
            assert (await days.replay(known[trace.task], trace)).to_bytes() == trace.to_bytes()

    asyncio.run(law())


def test_undone_work_is_missing_for_the_rest_of_the_day() -> None:
    tasks = purchase()
    scores = [trace.score for trace in played(Forgetful(tasks[0].id), tasks)]
    assert scores[0] == 0.0
    assert max(score or 0.0 for score in scores[1:4]) < 1.0, "nothing was requested, so nothing can be ordered"
    alone = [played(oracle(), [task])[0].score for task in tasks[1:4]]
    assert alone == [1.0] * 3
