"""Criteria of groups, and criteria whose verdict a replay takes from the record."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.errors import JudgeError, ReplayDivergence, RunStopped
from quintain.harness import Request
from quintain.record import RunFolder, read_traces
from quintain.replay import replay
from quintain.rollouts import Group
from quintain.trace import Level, Reply, Reward, Trace
from quintain.verifier import Criterion, EpisodeView, GroupView, Score

from .worlds import Yard, call, environment, first_task, play, says


@qn.reward
def length(view: EpisodeView[Any]) -> float:
    return len(view.trace.turns) / 10


@qn.reward(level="group", weight=0.5)
def rank(view: GroupView[Any]) -> list[Score]:
    """Scores the share of the others that wrote fewer notes."""
    notes = [len(episode.state.notes) for episode in view.episodes]
    others = len(notes) - 1
    return [Score(sum(n > m for m in notes) / others, "notes", {"notes": notes}) for n in notes]


def only(*criteria: Criterion[Any], **config: Any) -> qn.Environment[Any]:
    return environment(*criteria, concurrency=2, **config)


class Writer:
    """A model that writes one note more in each episode than in the one before."""

    def __init__(self, broken: tuple[int, ...] = ()) -> None:
        self.members: dict[int | None, int] = {}
        self.broken = broken

    async def __call__(self, request: Request) -> Reply:
        said = sum(message.role == "assistant" for message in request.messages)
        if said == 0:
            self.members[request.seed] = len(self.members)
        if len(self.members) - 1 in self.broken and said == 0:
            raise ConnectionError("gone")
        if said == 0:
            return says(*(call("note", text=f"{n}") for n in range(len(self.members))))
        return says(text="done")


def play_group(env: qn.Environment[Any], size: int = 3, **names: Any) -> Group:
    async def play() -> list[Group]:
        task = first_task(env)
        return [one async for one in qn.rollouts(env, names.pop("model", Writer()), [task], group=size, **names)]

    (one,) = asyncio.run(play())
    return one


def given(trace: Trace, name: str) -> Reward:
    (one,) = [reward for reward in trace.rewards if reward.name == name]
    return one


def test_each_member_gets_its_own_verdict_of_the_group() -> None:
    group = play_group(only(length, rank))
    values = {len(trace.turns[0].steps): given(trace, "rank").value for trace in group.traces}
    assert values == {1: 0.0, 2: 0.5, 3: 1.0}
    for trace in group.traces:
        reward = given(trace, "rank")
        assert (reward.level, reward.weight, reward.reason) == (Level.GROUP, 0.5, "notes")
        assert sorted(reward.details["notes"]) == [1, 2, 3]
        assert trace.score == pytest.approx(0.2 + 0.5 * (reward.value or 0.0))
        assert Trace.from_json(trace.to_json()).to_bytes() == trace.to_bytes()


def test_a_replay_takes_the_verdict_of_the_group_from_the_record() -> None:
    env = only(length, rank)
    for trace in play_group(env).traces:
        assert asyncio.run(replay(env, first_task(env), trace)).to_bytes() == trace.to_bytes()


def test_an_episode_alone_skips_the_criterion_of_a_group() -> None:
    trace = play(only(length, rank), Writer())
    assert (given(trace, "rank").value, trace.score, trace.validity) == (None, 0.2, "valid")


def test_an_episode_alone_has_no_score_if_only_groups_are_judged() -> None:
    trace = play(only(rank), Writer())
    assert (trace.failure, trace.score, trace.validity) == (None, None, "unknown")
    assert {trace.validity for trace in play_group(only(rank)).traces} == {"valid"}


def test_failed_members_are_not_shown_to_the_group() -> None:
    env = only(length, rank, gate_rate=None)
    group = play_group(env, 4, model=Writer(broken=(1,)))
    assert [trace.validity for trace in group.traces].count("invalid") == 1
    for trace in group.traces:
        if trace.failure is None:
            assert len(given(trace, "rank").details["notes"]) == 3


def test_one_valid_member_is_no_group() -> None:
    group = play_group(only(length, rank, gate_rate=None, group_retries=0), 2, model=Writer(broken=(0,)))
    (valid,) = [trace for trace in group.traces if trace.failure is None]
    assert given(valid, "rank").value is None
    assert not group.kept


def too_few(view: GroupView[Any]) -> list[float]:
    return [1.0]


def too_high(view: GroupView[Any]) -> list[float]:
    return [7.0 for _ in view.episodes]


def raises(view: GroupView[Any]) -> list[float]:
    raise KeyError("x")


def unparsed(view: GroupView[Any]) -> list[float]:
    raise JudgeError("no JSON", kind="judge_unparseable")


@pytest.mark.parametrize(
    ("fn", "kind"),
    [(too_few, "judge_failed"), (too_high, "judge_failed"), (raises, "judge_failed"), (unparsed, "judge_unparseable")],
)
def test_a_group_without_verdicts_has_no_valid_member(fn: Any, kind: str, tmp_path: Path) -> None:
    env = only(length, qn.reward(level="group")(fn))
    with RunFolder(tmp_path, {}) as folder, pytest.raises(RunStopped, match=kind):
        play_group(env.replace(config=qn.Config(group_retries=0)), folder=folder)
    traces = list(read_traces(tmp_path))
    assert len(traces) == 3
    for trace in traces:
        assert trace.failure is not None
        assert (trace.failure.component, trace.failure.kind, trace.score) == ("V", kind, None)
        asyncio.run(replay(env, first_task(env), trace))


def test_a_group_criterion_cannot_change_a_record() -> None:
    @qn.reward(level="group")
    def vandal(view: GroupView[Any]) -> list[float]:
        for episode in view.episodes:
            episode.trace.turns.clear()
            episode.trace.tags["a"] = "b"
        return [1.0] * len(view.episodes)

    for trace in play_group(only(vandal)).traces:
        assert trace.turns
        assert "a" not in trace.tags


def test_a_group_criterion_may_be_async_and_a_resumed_run_does_not_judge_again(tmp_path: Path) -> None:
    calls: list[int] = []

    @qn.reward(level="group")
    async def slow(view: GroupView[Any]) -> list[float]:
        await asyncio.sleep(0)
        calls.append(len(view.episodes))
        return [0.5] * len(view.episodes)

    env = only(slow)
    with RunFolder(tmp_path, {}) as folder:
        first = play_group(env, folder=folder)
    with RunFolder(tmp_path, {}, resume=True) as folder:
        second = play_group(env, folder=folder)
    assert calls == [3]
    assert [trace.to_bytes() for trace in first.traces] == [trace.to_bytes() for trace in second.traces]


def test_the_next_task_of_a_day_begins_after_the_group_is_judged() -> None:
    env = only(rank)
    tasks = [qn.Task(id=f"d{n}", prompt="write", start=Yard(), day="monday") for n in range(2)]

    async def play() -> list[Group]:
        return [one async for one in qn.rollouts(env, Writer(), tasks, group=2)]

    for group in asyncio.run(play()):
        assert {trace.validity for trace in group.traces} == {"valid"}


# --- external verdicts


def judge(values: list[Any], level: Level = Level.TRAJECTORY) -> Criterion[Any]:
    """Returns a criterion that gives the next of some verdicts, as a language model may."""
    left = iter(values)

    def fn(view: Any) -> Score:
        one = next(left)
        if isinstance(one, Exception):
            raise one
        return Score(one, "so it is", {"votes": [one]})

    return Criterion(name="judge", level=level, fn=fn, external=True)


def test_a_replay_does_not_ask_a_judge_again() -> None:
    env = only(length, judge([0.25, 0.75]))
    trace = play(env, Writer())
    again = asyncio.run(replay(env, first_task(env), trace))
    assert again.to_bytes() == trace.to_bytes()
    assert given(again, "judge").details == {"votes": [0.25]}
    assert play(env, Writer()).rewards[-1].value == 0.75


def test_a_judge_of_turns_is_replayed_turn_by_turn() -> None:
    env = only(length, judge([0.1, 0.2], Level.TURN))
    trace = play(env, Writer())
    assert asyncio.run(replay(env, first_task(env), trace)).to_bytes() == trace.to_bytes()
    assert [turn.rewards[0].value for turn in trace.turns] == [0.1, 0.2]


@pytest.mark.parametrize("error", [JudgeError("no verdict"), KeyError("x")])
def test_a_failed_judge_agrees_with_its_replay(error: Exception) -> None:
    env = only(length, judge([error]))
    trace = play(env, Writer())
    assert trace.failure is not None
    assert trace.failure.component == "V"
    asyncio.run(replay(env, first_task(env), trace))


def test_a_record_without_a_verdict_of_its_judge_diverges() -> None:
    env = only(length, judge([0.25]))
    trace = play(env, Writer())
    trace.rewards = [reward for reward in trace.rewards if reward.name != "judge"]
    with pytest.raises(ReplayDivergence):
        asyncio.run(replay(env, first_task(env), trace))


def test_details_that_a_record_cannot_hold_fail_the_episode() -> None:
    @qn.reward
    def odd(view: EpisodeView[Any]) -> Score:
        return Score(1.0, details={"x": object()})

    trace = play(only(odd), Writer())
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("V", "verifier_error")
