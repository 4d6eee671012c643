"""Noise of the product: the oracle still scores one under each dial, and what was planned stands in the record."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import quintain as qn
from quintain.environments.helpdesk import make
from quintain.environments.helpdesk.family import FAMILIES
from quintain.errors import UsageError
from quintain.models.agents import oracle

DIALS: dict[str, dict[str, Any]] = {
    "rate_limited": {"rate_limited": 0.3}, "unavailable": {"unavailable": 0.3}, "conflict": {"conflict": 0.6},
    "duplicate": {"duplicate": 1.0}, "stale": {"stale": 1.0}, "lag_s": {"lag_s": 60.0},
}  # fmt: skip
EVERY: dict[str, Any] = {
    "rate_limited": 0.2,
    "unavailable": 0.2,
    "conflict": 0.3,
    "duplicate": 0.5,
    "stale": 0.5,
    "lag_s": 60.0,
}


def play(env: qn.Environment[Any], place: int) -> qn.Trace:
    return asyncio.run(qn.rollout(env, env.tasks("validation")[place], oracle())).trace


def faults(trace: qn.Trace) -> list[str]:
    return [step.fault for turn in trace.turns for step in turn.steps if step.fault]


@pytest.mark.parametrize("dial", DIALS)
@pytest.mark.parametrize("interface", ["api", pytest.param("pages", marks=pytest.mark.slow)])
def test_oracle_scores_one_under_a_dial(dial: str, interface: str) -> None:
    env = make(interface=interface, **DIALS[dial])
    places = range(len(FAMILIES))
    traces = [play(env, place) for place in (places if interface == "api" else places[:3])]
    assert [(trace.score, trace.failure) for trace in traces] == [(1.0, None)] * len(traces)
    if dial in {"rate_limited", "unavailable", "conflict"}:
        met = {fault for trace in traces for fault in faults(trace)}
        assert met == {dial}


@pytest.mark.parametrize("interface", ["api", "pages"])
def test_oracle_scores_one_under_all_dials(interface: str) -> None:
    env = make(interface=interface, **EVERY)
    for place in range(0, len(FAMILIES), 3):
        trace = play(env, place)
        assert (trace.score, trace.failure) == (1.0, None)
        assert faults(trace)


def test_members_of_a_group_meet_the_same_and_a_replay_repeats_it() -> None:
    env = make(**EVERY)
    task = env.tasks("train")[1]

    async def group() -> list[qn.Trace]:
        return [(await qn.rollout(env, task, oracle(), member=member)).trace for member in range(2)]

    first, second = asyncio.run(group())
    assert faults(first) == faults(second) != []
    assert [turn.state_digest for turn in first.turns] == [turn.state_digest for turn in second.turns]


def test_another_task_meets_something_else() -> None:
    env = make(rate_limited=0.5)
    found = {str([step.fault for turn in play(env, place).turns for step in turn.steps][:6]) for place in range(4)}
    assert len(found) > 1


def test_planned_refusals_cost_no_reward_of_a_step() -> None:
    trace = play(make(rate_limited=0.5), 1)
    names = {"possible", "idle"}
    values = {(one.name, one.value) for one in trace.every_reward() if one.name in names}
    assert faults(trace)
    assert values <= {("possible", 1.0), ("possible", None), ("idle", 0.0)}


def test_a_dial_is_a_known_one_in_its_range() -> None:
    unknown: dict[str, Any] = {"twin": "stale_cache", "conflict": 0.1}
    for wrong in ({"rate_limited": 1.5}, {"lag": 60.0}, {"lag_s": -1.0}, unknown):
        with pytest.raises(UsageError):
            make(**wrong)
