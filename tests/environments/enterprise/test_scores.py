"""Scores: full for the solution; less for nothing, half of it, more than it, or it in another name."""

from __future__ import annotations

import asyncio

import pytest

import quintain as qn
from quintain.environments.enterprise import env
from quintain.environments.enterprise.desk import passcode_of
from quintain.environments.enterprise.goals import Call
from quintain.environments.enterprise.stories import STORIES
from quintain.harness import Agent
from quintain.models.agents import noop, oracle, random
from quintain.trace import Level

from .office import Task, able, every_task, first, office, play, reasons, score, solution, wanted

FAMILIES = [step.__name__ for steps in STORIES.values() for step in steps]
EVERY = pytest.param(slice(None), marks=pytest.mark.slow, id="all")
SOME = pytest.mark.parametrize("some", [pytest.param(slice(0, None, 5), id="some"), EVERY])


def played(agent: Agent, some: slice) -> list[qn.Trace]:
    async def every() -> list[qn.Trace]:
        return [(await qn.rollout(env, task, agent.model(task, 0))).trace for task in every_task()[some]]

    return asyncio.run(every())


@SOME
def test_the_oracle_scores_exactly_one_and_is_never_refused(some: slice) -> None:
    for trace in played(oracle(), some):
        assert trace.score == 1.0, (trace.task, trace.failure, reasons(trace))
        assert not [step.observation for turn in trace.turns for step in turn.steps if step.is_error], trace.task
        assert all(reward.value == 1.0 for reward in trace.every_reward() if reward.level is not Level.TURN), trace.task
        steps = [reward.value or 0.0 for reward in trace.every_reward() if reward.name == "progress"]
        assert sum(steps) == pytest.approx(1.0), trace.task


@SOME
def test_doing_nothing_scores_exactly_zero(some: slice) -> None:
    assert {trace.score for trace in played(noop(), some)} == {0.0}


@SOME
def test_valid_calls_at_random_score_zero(some: slice) -> None:
    assert {trace.score for trace in played(random(calls=10), some)} == {0.0}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_write_of_the_solution_counts(family: str) -> None:
    task = first(family)
    calls, goal = solution(task), wanted(task)
    writes = [place for place, (name, _) in enumerate(calls) if name in goal]
    assert writes
    half = score(task, calls[: writes[-1]])
    assert half < 1.0
    assert score(task, calls[: writes[0]]) == 0.0
    assert (half > 0.0) == (len(writes) > 1) or half == 0.0


def more(task: Task, *calls: Call) -> qn.Trace:
    """Plays the solution, and then calls that the task did not ask for."""
    return play(task, [*solution(task), *calls])


@pytest.mark.parametrize("family", FAMILIES[::6])
def test_collateral_damage_leaves_nothing(family: str) -> None:
    task = first(family)
    one: Call = ("corporate_make_suggestion", {"title": "Longer days"})
    two: Call = ("corporate_make_suggestion", {"title": "Shorter nights"})
    assert more(task, one).score == 0.5
    assert more(task, one, two).score == 0.0
    assert "a suggestion with title longer days" in reasons(more(task, one))


def test_reading_and_refused_calls_cost_nothing() -> None:
    task = first("approve_requisition")
    peek: Call = ("people_find_employees", {"team": "Legal"})
    wrong: Call = ("people_close_termination", {"termination": "TERM-1"})
    trace = more(task, peek, wrong)
    assert trace.score == 1.0
    refused = [reward for reward in trace.every_reward() if reward.name == "sound_call" and not reward.value]
    assert [reward.reason for reward in refused] == ["people_close_termination was refused"]


def test_the_right_thing_in_the_name_of_somebody_else_is_wrong() -> None:
    task = first("approve_requisition")
    calls = solution(task)
    others = [n for n in able(office(), "procurement.approver") if f"EMP-{n}" != calls[0][1]["employee"]]
    boss = next(n for n in others if n <= 8)
    swapped = [("sign_in", {"employee": f"EMP-{boss}", "passcode": passcode_of(boss)}), *calls[1:]]
    trace = play(task, swapped)
    assert trace.score is not None
    assert trace.score < 0.5
    assert f"approved_by = {boss}" in reasons(trace)
    assert any(reward.name == "own_name" and reward.value == 0 for reward in trace.every_reward())


def test_an_order_of_calls_that_leads_to_the_same_is_as_good() -> None:
    task = first("equip")
    calls = solution(task)
    kinds = [name for name, _ in calls]
    account, laptop = kinds.index("it_create_user_account"), kinds.index("it_assign_asset")
    calls[account], calls[laptop] = calls[laptop], calls[account]
    assert score(task, calls) == 1.0


def test_a_way_round_that_leads_to_the_same_is_as_good() -> None:
    task = first("tender")
    calls = solution(task)
    names = [name for name, _ in calls]
    one = names.index("procurement_record_bid")
    calls[one], calls[one + 1] = calls[one + 1], calls[one]  # other ids for the same bids
    assert score(task, calls) == 1.0


def test_free_text_is_free_and_all_else_is_not() -> None:
    task = first("escalate")
    calls = solution(task)
    name, given = calls[-1]
    assert score(task, [*calls[:-1], (name, given | {"reason": "They shout."})]) == 1.0
    assert score(task, [*calls[:-1], (name, given | {"owner": "EMP-1"})]) < 0.5


def test_the_same_done_twice_is_damage() -> None:
    task = first("propose_renewal")
    assert more(task, solution(task)[-1]).score == 0.5


def test_change_that_is_undone_again_costs_nothing() -> None:
    task = first("finish_tasks")
    calls = solution(task)
    (key,) = calls[-1][1].values()
    controller = next(n for n in able(office(), "finance.controller"))
    undo = [
        ("sign_in", {"employee": f"EMP-{controller}", "passcode": passcode_of(controller)}),
        ("finance_reopen_close_task", {"close_task": key}),
    ]
    trace = play(task, [*calls, *undo])
    assert trace.score is not None
    assert trace.score < 1.0
    progress = [reward.value or 0.0 for reward in trace.every_reward() if reward.name == "progress"]
    assert min(progress) < 0
    assert score(task, [*calls, *undo, calls[0], calls[-1]]) == 1.0


def test_rewards_come_at_all_four_levels() -> None:
    task = first("order")
    trace = play(task, solution(task))
    assert {reward.level for reward in trace.every_reward()} == set(Level) - {Level.GROUP}
    reached = [reward.name for reward in trace.every_reward() if reward.level is Level.PHASE]
    assert reached == ["signed_in", "begun", "finished"]


def test_missing_facts_are_named_in_the_reason() -> None:
    task = first("approve_invoice")
    words = reasons(play(task, solution(task)[:-1]))
    assert ".status = approved" in words
    assert ".approved_by = " in words
