"""Scores: full for the oracle, next to nothing for agents that do not do the work."""

from __future__ import annotations

import asyncio
from statistics import mean

import pytest

import quintain as qn
from quintain.environments.sales import env
from quintain.environments.sales.goals import Truth
from quintain.models.agents import noop, oracle, random
from quintain.trace import Level

from .sales_desk import EVERY_KIND, KINDS, READS, Calls, Task, calls_of, each, play, reasons, score, solution

TEST = env.tasks("test")
SOME = pytest.mark.parametrize(
    "some", [slice(0, 18), pytest.param(slice(18, 300), marks=pytest.mark.slow)], ids=["each kind", "300"]
)


def _play_all(agent: object, tasks: list[Task]) -> list[qn.Trace]:
    async def every() -> list[qn.Trace]:
        return [(await qn.rollout(env, task, agent)).trace for task in tasks]  # type: ignore[arg-type]

    return asyncio.run(every())


@SOME
def test_the_oracle_scores_exactly_one_on_300_tasks_and_is_never_refused(some: slice) -> None:
    for trace in _play_all(oracle(), list(TEST[some])):
        assert trace.score == 1.0, (trace.task, trace.failure, reasons(trace))
        assert not [step.observation for turn in trace.turns for step in turn.steps if step.is_error], trace.task
        assert all(reward.value == 1.0 for reward in trace.every_reward() if reward.level is not Level.TURN), trace.task


@SOME
def test_doing_nothing_scores_exactly_zero(some: slice) -> None:
    assert {trace.score for trace in _play_all(noop(), list(TEST[some]))} == {0.0}


@pytest.mark.parametrize("count", [18, pytest.param(90, marks=pytest.mark.slow)])
def test_valid_calls_at_random_score_next_to_nothing(count: int) -> None:
    scores = [trace.score for trace in _play_all(random(calls=20), list(TEST[:count]))]
    assert mean(score for score in scores if score is not None) < 0.05
    assert None not in scores


@pytest.mark.parametrize(("family", "level"), EVERY_KIND)
def test_agent_that_only_sets_flags_scores_low(family: str, level: str) -> None:
    for task in [task for task, _ in zip(each(family, level), range(3), strict=False)]:
        assert score(task, _flags(task)) < 0.3, task.id


def _flags(task: Task) -> Calls:
    """Every status of every record of the job set to what looks like success, and nothing else done."""
    truth: Truth = task.truth
    success = {
        "L-": ("crm_decide_lead", "lead_id", {"status": "qualified"}),
        "O-": ("crm_set_stage", "opportunity_id", {"stage": "won"}),
        "C-": ("crm_mark_opt_out", "contact_id", {}),
    }
    known = [(success[key[:2]], key) for key in truth.focus if key[:2] in success]
    calls: Calls = [(tool, {name: key, **rest}) for (tool, name, rest), key in known]
    return calls + [("mail_cancel", given) for given in calls_of(task, "mail_cancel")]


@pytest.mark.parametrize(("family", "level"), EVERY_KIND)
def test_every_write_of_the_solution_counts(family: str, level: str) -> None:
    task = next(each(family, level))
    calls = solution(task)
    writes = [n for n, (name, _) in enumerate(calls) if name not in READS]
    assert len(writes) >= 2
    for n in writes:
        assert score(task, calls[:n] + calls[n + 1 :]) < 1.0, (task.id, calls[n])


@pytest.mark.parametrize(("family", "level"), EVERY_KIND)
def test_half_the_work_is_worth_something_but_less_than_half(family: str, level: str) -> None:
    task = next(each(family, level))
    scores = [score(task, solution(task)[:n]) for n in range(len(solution(task)) + 1)]
    assert scores[0] == 0.0
    assert scores[-1] == 1.0
    assert scores == sorted(scores)
    assert any(0 < one < 1 for one in scores)


def test_every_family_comes_at_every_level() -> None:
    assert {(task.tags["family"], task.tags["level"]) for task in TEST[:18]} == set(KINDS)


def test_levels_differ_in_the_size_of_the_world_and_of_the_job() -> None:
    made = TEST[:27]

    def sizes(level: str) -> tuple[float, float]:
        tasks = [task for task in made if task.tags["level"] == level]
        return mean(len(task.world().crm.contacts) for task in tasks), mean(len(solution(task)) for task in tasks)

    easy, medium, hard = sizes("easy"), sizes("medium"), sizes("hard")
    assert 30 <= easy[0] < medium[0] < hard[0] <= 150
    assert easy[1] < medium[1] < hard[1]


def test_rewards_come_at_all_four_levels() -> None:
    trace = play(TEST[0], solution(TEST[0]))
    assert {reward.level for reward in trace.every_reward()} == set(Level) - {Level.GROUP}
    progress = [reward.value or 0.0 for reward in trace.every_reward() if reward.name == "progress"]
    assert sum(progress) == pytest.approx(1.0)
    reached = [reward.turn for reward in trace.every_reward() if reward.level is Level.PHASE]
    assert reached == sorted(turn for turn in reached if turn is not None)


def test_missing_goals_are_named_in_the_reason() -> None:
    assert "no note on" in reasons(play(TEST[0], solution(TEST[0])[:-1]))


def test_a_step_that_breaks_a_rule_is_told_apart_from_the_others() -> None:
    task = next(each("optout", "easy"))
    truth: Truth = task.truth
    letter = ("mail_send", {"to": truth.never[0], "subject": "Prices", "body": "Dear customer, our new prices."})
    trace = play(task, [*solution(task)[:3], letter, ("crm_get", {"record_id": "C-1"}), *solution(task)[3:]])
    bad = [reward for reward in trace.every_reward() if reward.level is Level.STEP and reward.value == 0]
    assert [(reward.name, reward.turn) for reward in bad] == [("lawful_call", 3), ("sound_call", 4)]
    assert truth.never[0] in bad[0].reason
    assert bad[1].reason == "crm_get was refused"


def test_undoing_is_a_step_back() -> None:
    task = next(each("revive", "medium"))
    calls = solution(task)
    stage = next(given for name, given in calls if name == "crm_set_stage")
    trace = play(task, [*calls, ("crm_set_stage", stage | {"stage": "negotiation"})])
    progress = [reward.value or 0.0 for reward in trace.every_reward() if reward.name == "progress"]
    assert progress[len(calls)] < 0
    assert 0 < sum(progress) < 1
