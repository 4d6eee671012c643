"""`sales` reports the failure of a service, changes nothing, and goes on; `coding` has tests of its own."""

from __future__ import annotations

import asyncio

import pytest

import quintain as qn
from quintain import resource
from quintain.environments.faults import FAULTS, Unavailable
from quintain.environments.sales.crm import Crm

from .playing import made, verdict_under, world

TIME = {"now", "wait", "now_is"}
"""Tools that stand on no service."""


@pytest.mark.parametrize("fault", FAULTS)
def test_every_tool_says_that_its_service_is_down(fault: str) -> None:
    env = made("sales")
    state = world(env, env.tasks("validation")[0])
    for tool in env.tools.keys() - TIME:
        state.inject(fault)
        with pytest.raises(Unavailable, match=FAULTS[fault]):
            env.tools[tool].bind(state)()


def test_a_call_that_met_a_fault_changed_nothing_but_the_time() -> None:
    env = made("sales")
    task = env.tasks("validation")[0]
    state = world(env, task)
    for tool, arguments in task.solution or ():
        calm = state.copy()
        now = state.clock.now
        state.inject("timeout")
        with pytest.raises(Unavailable):
            env.tools[tool].bind(state)(**arguments)
        state.clock.now = now
        assert _digest(state) == _digest(calm)
        env.tools[tool].bind(state)(**arguments)


def test_a_fault_is_met_once_and_lies_in_copies_too() -> None:
    env = made("sales")
    state = world(env, env.tasks("validation")[0])
    tool = env.tools["crm_colleagues"]
    state.inject("429")
    copy = state.copy()
    for one in (state, copy):
        with pytest.raises(Unavailable, match="429"):
            tool.bind(one)()
        assert tool.bind(one)()


@pytest.mark.parametrize("fault", ["timeout", "truncated"])
def test_no_verdict_is_reached_on_what_cannot_be_read(fault: str) -> None:
    env = made("sales")
    task = env.tasks("validation")[0]
    assert task.solution is not None
    trace = verdict_under(fault, env, task=task, calls=task.solution)
    assert trace.score is None
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("V", "verifier_error")
    assert FAULTS[fault] in trace.failure.message


def test_an_unknown_fault_is_refused() -> None:
    state = world(made("sales"), made("sales").tasks("validation")[0])
    with pytest.raises(ValueError, match="unknown fault 'earthquake'; known: timeout, refused, 500"):
        state.inject("earthquake")
    assert state.fault == ""


def test_a_part_alone_has_no_service_that_fails() -> None:
    rows = made("sales").tasks("validation")[0].world().crm
    alone = Crm(**{name: getattr(rows, name).fork() for name in ("accounts", "contacts", "leads", "opportunities",
                                                                 "activities", "team")})  # fmt: skip
    assert alone.colleagues()


def _digest(state: qn.State) -> str:
    return asyncio.run(resource.digest(state))
