"""Episodes that failed replay as well: up to the failure, and with it where no real clock decided it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.errors import ModelError, ReplayDivergence
from quintain.harness import Model, Session
from quintain.replay import find_divergence
from quintain.trace import Reply, Trace

from .worlds import Forgiving, blamed, call, environment, first_task, one_by_one, play, says, script, single


def again(env: qn.Environment[Any], trace: Trace) -> Trace:
    return asyncio.run(qn.replay(env, first_task(env), trace))


class Fragile(qn.State):
    @qn.tool
    def crash(self) -> None:
        """Crash."""
        raise OSError("no such file")

    @qn.tool
    def stall(self, seconds: float) -> str:
        """Take its time.

        Args:
            seconds: How much of it.
        """
        time.sleep(SLOW[0] * seconds)
        return "done"

    @qn.tool
    def work(self) -> str:
        """Work."""
        return self.new_id("w")


SLOW = [0.0]


def test_a_bug_of_the_world_replays() -> None:
    env = single(Fragile())
    trace = play(env, one_by_one(call("work"), call("crash")))
    assert again(env, trace).to_bytes() == trace.to_bytes()


class Endpoint:
    """Model of an author, with its own stack and exception type."""

    def __init__(self, error: BaseException, *, after: int) -> None:
        self.error, self.left = error, after

    async def __call__(self, request: Any) -> Reply:
        self.left -= 1
        return says(call("work")) if self.left >= 0 else await self.deeper()

    async def deeper(self) -> Reply:
        raise self.error


@pytest.mark.parametrize(
    "error", [ConnectionError("refused"), ModelError("429", kind="provider_quota_exhausted"), SystemExit(1)]
)
@pytest.mark.parametrize("harness", [None, Forgiving()])
def test_a_failure_of_the_model_replays(error: BaseException, harness: Any) -> None:
    env = single(Fragile(), harness=harness)
    trace = play(env, Endpoint(error, after=2))
    assert blamed(trace).component == "model"
    assert again(env, trace).to_bytes() == trace.to_bytes()


def test_a_reply_that_was_no_reply_replays() -> None:
    async def garbage(request: Any) -> Any:
        return {"message": 5}

    env = environment()
    trace = play(env, garbage)
    assert again(env, trace).to_bytes() == trace.to_bytes()


def test_a_timeout_replays_up_to_its_turn() -> None:
    env = single(Fragile(), tool_timeout_s=0.2)
    SLOW[0] = 1.0
    trace = play(env, one_by_one(call("work"), call("stall", seconds=9)))
    SLOW[0] = 0.0
    assert (blamed(trace).kind, len(trace.turns)) == ("quintain:tool_timeout", 2)
    assert again(env, trace).turns[0] == trace.turns[0]
    spoiled = msgspec.structs.replace(trace.turns[0], state_digest="0" * 32)
    trace.turns[0] = spoiled
    with pytest.raises(ReplayDivergence, match="turn 0, state_digest"):
        again(env, trace)


def test_a_replay_must_reach_the_turn_of_a_timeout() -> None:
    env = environment(harness=Forgiving())
    trace = play(env, one_by_one(call("nod"), call("nod")))
    trace.failure = blamed(play(environment(harness=Hangs(), episode_timeout_s=0.01), script()))
    trace.failure = msgspec.structs.replace(trace.failure, turn=2)
    short = msgspec.structs.replace(trace, turns=trace.turns[:1])
    diverged = find_divergence(trace, short)
    assert diverged is not None
    assert (diverged.turn, diverged.field) == (1, "turns")


class Hangs(msgspec.Struct, frozen=True):
    async def play(self, session: Session, model: Model) -> None:
        await asyncio.Event().wait()
