"""A model's own context window: the agent's is a limit of the episode, every other one a failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import quintain as qn
from quintain.errors import ContextOverflow
from quintain.harness import Model, Request
from quintain.harnesses import AgentLoop, Dialogue
from quintain.trace import End, Reply

from .worlds import call, environment, first_task, says


def narrow(*replies: Reply, role: str = "agent") -> Model:
    """Returns a model that gives the replies, and then says to one role that its context is too long."""
    left = list(replies)

    async def model(request: Request) -> Reply:
        if request.role != role:
            return says(text="go on")
        if left:
            return left.pop(0)
        raise ContextOverflow("the context is longer than the model takes: 9000 tokens > 8192")

    return model


def played(harness: qn.Harness, model: Model) -> tuple[qn.Environment[Any], qn.Trace]:
    env = environment(harness=harness)
    return env, asyncio.run(qn.rollout(env, first_task(env), model)).trace


@pytest.mark.parametrize("harness", [qn.ToolLoop(), AgentLoop(), Dialogue()])
def test_an_agent_whose_context_grows_over_the_window_is_truncated(harness: qn.Harness) -> None:
    env, trace = played(harness, narrow(says(call("note", text="a")), says(call("note", text="b"))))
    assert (trace.end, trace.reason, trace.failure) == (End.TRUNCATED, "context_window", None)
    assert trace.validity == "valid"
    assert [turn.index for turn in trace.turns if turn.steps]
    again = asyncio.run(qn.replay(env, first_task(env), trace))
    assert again.to_bytes() == trace.to_bytes()


@pytest.mark.parametrize("harness", [qn.ToolLoop(), Dialogue()])
def test_a_first_request_that_is_too_long_is_a_failure_of_the_model(harness: qn.Harness) -> None:
    _, trace = played(harness, narrow())  # In a dialogue the user has spoken before.
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.type) == ("model", "ContextOverflow")


def test_a_simulated_user_whose_context_is_too_long_is_a_failure_of_its_model() -> None:
    env, trace = played(Dialogue(), narrow(says(text="Hello"), role="user"))
    assert trace.failure is not None
    assert (trace.failure.component, trace.validity) == ("model", "invalid")
    assert asyncio.run(qn.replay(env, first_task(env), trace)).to_bytes() == trace.to_bytes()


def test_a_harness_that_hides_the_overflow_does_not_play_on() -> None:
    class Stubborn:
        async def play(self, session: qn.Session, model: Model) -> None:
            while not session.ended:
                try:
                    await session.step(await model(session.request()))
                except ContextOverflow:
                    session.terminate("the agent answered")

    _, trace = played(Stubborn(), narrow(says(call("note", text="a"))))
    assert (trace.end, trace.reason) == (End.TRUNCATED, "context_window")
