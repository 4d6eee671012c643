"""Replay of episodes that something outside of the process drove or ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.episode import Episode
from quintain.errors import Failure, ReplayDivergence
from quintain.models import Scripted
from quintain.replay import ReplayHarness, ReplayModel
from quintain.trace import End, Message, Step, ToolCall, Trace

from .worlds import Yard, call, environment, first_task, says

Drive = Callable[[Episode[Yard]], Awaitable[None]]

LOST = Failure(
    component="H", kind="session_lost", stage="agent", type="Lost", message="a cable", turn=1, traceback_digest="0" * 16
)


def record(drive: Drive, **names: Any) -> Trace:
    """Returns the trace of an episode that `drive` leads, without a harness."""

    async def run() -> Trace:
        env = environment(harness=qn.ToolLoop())
        episode = await Episode[Yard].begin(env, first_task(env), **names)
        await drive(episode)
        await episode.verify()
        return episode.trace

    return asyncio.run(run())


def assert_replays(trace: Trace) -> None:
    env = environment(harness=qn.ToolLoop())
    twin = asyncio.run(qn.replay(env, first_task(env), Trace.from_json(trace.to_json())))
    assert twin.to_json() == trace.to_json()


async def two_actors(episode: Episode[Yard]) -> None:
    """Two actors, a context that is replaced, and calls that are not those of the reply."""
    await episode.session.step(says(call("note", text="a")))
    user = episode.session.add_actor("user", Message("user", "hello"))
    await user.step(says(text="Go on."))
    episode.session.set_context([Message("user", "What is left?")])
    left = iter([call("roll", sides=6), call("note", text="b")])

    async def next_call(_: Step | None) -> ToolCall | None:
        return next(left, None)

    await episode.session.step(says(text="I note it."), next_call)


@pytest.mark.parametrize("reason", ["enough", "gone"])
def test_episode_of_another_harness_replays(reason: str) -> None:
    async def drive(episode: Episode[Yard]) -> None:
        await two_actors(episode)
        episode.terminate(reason)

    trace = record(drive, external_harness="another")
    assert [turn.thread for turn in trace.turns] == [0, 1, 0]
    assert [step.call.name for step in trace.turns[2].steps] == ["roll", "note"]
    assert (trace.end, trace.reason) == (End.TERMINATED, reason)
    assert_replays(trace)


def test_failure_of_another_harness_is_replayed_as_it_was() -> None:
    async def drive(episode: Episode[Yard]) -> None:
        await two_actors(episode)
        episode.trace.fail(LOST)
        episode.trace.fail(msgspec.structs.replace(LOST, kind="provider_oom_killed"))

    trace = record(drive, external_harness="")
    assert (trace.failure, trace.end, trace.reason, trace.score) == (LOST, End.FAILED, "session_lost", None)
    assert_replays(trace)


def test_interrupted_episode_replays_up_to_its_end() -> None:
    async def drive(episode: Episode[Yard]) -> None:
        await episode.session.step(says(call("note", text="a")))
        episode.terminate("the agent left")
        episode.trace.interrupted = True

    trace = record(drive)
    assert (len(trace.turns), trace.validity, trace.interrupted) == (1, "valid", True)
    assert_replays(trace)


def test_remote_episode_is_begun_by_its_environment() -> None:
    env = environment(harness=qn.ToolLoop())
    begun: list[tuple[Any, ...]] = []

    async def remote_begin(task: Any, start: Any, **names: Any) -> Episode[Any]:
        begun.append((task.id, start, names))
        return await Episode[Any].begin(environment(harness=qn.ToolLoop()), task)

    env.remote_begin = remote_begin
    episode = asyncio.run(Episode[Any].begin(env, first_task(env), member=3))
    assert isinstance(episode, Episode)
    named = {"seed": 0, "member": 3, "attempt": 0, "split": "", "agent": ""}
    rest = {"continues": msgspec.UNSET, "forked": msgspec.UNSET, "external_harness": msgspec.UNSET}
    assert begun == [(first_task(env).id, None, named | rest)]


def test_limit_of_another_harness_is_replayed() -> None:
    async def run() -> Trace:
        env = environment(harness=qn.ToolLoop(), max_turns=3)
        episode = await Episode[Yard].begin(env, first_task(env), external_harness="another")
        await two_actors(episode)
        await episode.verify()
        return episode.trace

    trace = asyncio.run(run())
    assert (trace.end, trace.reason) == (End.TRUNCATED, "max_turns")
    assert_replays(trace)


def test_record_that_was_not_interrupted_diverges_from_one_that_claims_it() -> None:
    env = environment(harness=qn.ToolLoop())
    trace = asyncio.run(qn.rollout(env, first_task(env), Scripted([says(text="done")]))).trace
    trace.interrupted = True
    with pytest.raises(ReplayDivergence, match="cut: the trace has True"):
        asyncio.run(qn.replay(env, first_task(env), trace))


def test_a_record_that_goes_on_is_played_without_an_end() -> None:
    async def run() -> tuple[Trace, Trace]:
        env = environment(harness=qn.ToolLoop())
        episode = await Episode[Yard].begin(env, first_task(env))
        await two_actors(episode)
        twin = await Episode[Yard].begin(env, first_task(env))
        await ReplayHarness(episode.trace).play(twin.session, ReplayModel(episode.trace))
        return episode.trace, twin.trace

    trace, again = asyncio.run(run())
    assert again.end is None
    assert again.turns == trace.turns
