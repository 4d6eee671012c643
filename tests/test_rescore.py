"""Scoring of recorded episodes under another verifier."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import quintain as qn
from quintain.errors import ReplayDivergence, UsageError
from quintain.rescore import Rescored, rescore
from quintain.trace import Trace
from quintain.verifier import EpisodeView, GroupView, StepView

from .test_group import Writer, only
from .worlds import Yard, first_task


@qn.reward
def notes(view: EpisodeView[Yard]) -> float:
    return min(1.0, len(view.state.notes) / 4)


@qn.reward
def none(view: EpisodeView[Yard]) -> float:
    return 0.0


@qn.reward
def broken(view: EpisodeView[Yard]) -> float:
    raise KeyError("x")


@qn.reward(level="group")
def most(view: GroupView[Yard]) -> list[float]:
    counts = [len(episode.state.notes) for episode in view.episodes]
    return [float(n == max(counts)) for n in counts]


@qn.reward(level="group")
def broken_group(view: GroupView[Yard]) -> list[float]:
    raise KeyError("x")


def play_all(env: qn.Environment[Any], tasks: list[qn.Task[Any]], model: Any = None, size: int = 3) -> list[Trace]:
    async def go() -> list[Trace]:
        groups = qn.rollouts(env, model or Writer(), tasks, group=size, ordered=True)
        return [trace async for group in groups for trace in group.traces]

    return asyncio.run(go())


def again(env: qn.Environment[Any], traces: list[Trace], *tasks: qn.Task[Any]) -> list[Rescored]:
    known = {task.id: task for task in tasks or (first_task(env),)}

    async def go() -> list[Rescored]:
        return [one async for one in rescore(env, [(known[trace.task], trace) for trace in traces])]

    return asyncio.run(go())


def test_the_same_verifier_gives_the_same_bytes() -> None:
    env = only(notes)
    traces = play_all(env, [first_task(env)])
    for one in again(env, traces):
        assert (one.kept, one.new.trace.to_bytes()) == ("", one.old.to_bytes())


def test_another_verifier_scores_the_final_world() -> None:
    env = only(none)
    traces = play_all(env, [first_task(env)], size=5)
    rescored = again(env.replace(verifier=qn.Verifier(notes)), traces)
    assert sorted(one.new.trace.score or 0.0 for one in rescored) == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert [one.old.score for one in rescored] == [0.0] * 5
    assert {one.new.trace.criteria for one in rescored} == {("notes",)}
    assert {one.new.trace.fingerprint for one in rescored}.isdisjoint(trace.fingerprint for trace in traces)


def test_episodes_that_their_verifier_failed_get_a_score() -> None:
    env = only(broken, gate_rate=None, group_retries=0)
    traces = play_all(env, [first_task(env)])
    assert {trace.validity for trace in traces} == {"invalid"}
    assert {one.new.trace.validity for one in again(env.replace(verifier=qn.Verifier(notes)), traces)} == {"valid"}


def test_a_verifier_that_fails_makes_episodes_invalid() -> None:
    env = only(notes)
    traces = play_all(env, [first_task(env)])
    for one in again(env.replace(verifier=qn.Verifier(broken)), traces):
        assert one.new.trace.failure is not None
        assert one.new.trace.failure.kind == "verifier_error"
        assert one.new.frames


def test_other_failures_stay() -> None:
    env = only(notes, gate_rate=None, group_retries=0)
    traces = play_all(env, [first_task(env)], Writer(broken=(0, 1, 2)))
    for one in again(env, traces):
        assert one.kept == "failed by model agent_request_failed"
        assert one.new.trace is one.old


def test_an_episode_that_its_verifier_ended_early_stays_as_it_is() -> None:
    @qn.reward(level="step")
    def strict(view: StepView[Yard]) -> float:
        raise KeyError("x")

    env = only(notes, strict, gate_rate=None, group_retries=0)
    traces = play_all(env, [first_task(env)])
    for one in again(env.replace(verifier=qn.Verifier(notes)), traces):
        assert one.kept == "ended early by its verifier"


def test_a_group_is_judged_as_a_whole() -> None:
    env = only(none)
    tasks = [qn.Task(id=f"t{n}", prompt="write", start=Yard()) for n in range(2)]
    traces = play_all(env, tasks)
    rescored = again(env.replace(verifier=qn.Verifier(most)), traces, *tasks)
    scores = [(one.old.task, one.new.trace.score) for one in rescored]
    assert sorted(scores, key=str) == [(task.id, score) for task in tasks for score in (0.0, 0.0, 1.0)]
    failed = again(env.replace(verifier=qn.Verifier(none, broken_group)), traces, *tasks)
    for one in failed:
        assert one.new.trace.failure is not None
        assert (one.new.trace.failure.kind, one.new.trace.score) == ("judge_failed", None)
        assert one.new.frames[-1].function == "broken_group"


def test_episodes_of_a_day_are_scored_in_the_worlds_in_which_they_began() -> None:
    env = only(none)
    tasks = [qn.Task(id=f"d{n}", prompt="write", start=Yard(), day="monday") for n in range(3)]
    traces = play_all(env, tasks, size=1)
    assert [bool(trace.continues) for trace in traces] == [False, True, True]
    rescored = again(env.replace(verifier=qn.Verifier(notes)), traces, *tasks)
    assert [one.new.trace.score for one in rescored] == [0.25, 0.75, 1.0]
    with pytest.raises(UsageError, match="must come before"):
        again(env, traces[1:], *tasks)


def test_a_world_that_answers_differently_is_refused() -> None:
    env = only(notes)
    (trace,) = play_all(env, [first_task(env)], size=1)
    first = trace.turns[0]
    step = first.steps[0]
    forged = qn.Trace.from_json(trace.to_json())
    forged.turns[0] = type(first)(
        index=0, added=first.added, reply=first.reply, state_digest=first.state_digest,
        steps=(type(step)(step.call, "another answer"),),
    )  # fmt: skip
    with pytest.raises(ReplayDivergence, match="observation"):
        again(env, [forged])


def test_no_episodes_are_no_scores() -> None:
    assert again(only(notes), []) == []
