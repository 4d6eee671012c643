"""Trajectories: rows of tokens for a trainer."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quintain as qn
from quintain import codec
from quintain.episode import blank
from quintain.errors import Failure, UsageError
from quintain.trace import End, Level, Message, Reply, Reward, Tokens, Trace, Turn
from quintain.trajectory import TokenReward

from . import worlds
from .test_context import PLAYS
from .worlds import environment, first_task

ENV = environment()
DOWN = Failure(component="model", kind="transport_timeout", stage="agent", type="X", message="", turn=0)


def trace(*turns: Turn, score: float | None = 1.0, failure: Failure | None = None, member: int = 0) -> Trace:
    one = blank(ENV, first_task(ENV), member=member)
    one.turns, one.score, one.failure = list(turns), score, failure
    one.end = End.FAILED if failure else End.TERMINATED
    return one


def turn(
    index: int,
    prompt: list[int],
    completion: list[int],
    *,
    logprobs: list[float] | None = None,
    version: int | None = None,
    finish: str = "",
    rewards: tuple[tuple[float | None, float], ...] = (),
    **fields: Any,
) -> Turn:
    tokens = Tokens(prompt, completion, logprobs or [])
    reply = Reply(Message("assistant"), tokens, policy_version=version, finish_reason=finish)
    given_ = tuple(
        Reward(name=f"r{n}", level=Level.TURN, raw=value, value=value, weight=weight)
        for n, (value, weight) in enumerate(rewards)
    )
    return Turn(index=index, reply=reply, rewards=given_, **fields)


def test_one_branch_is_one_sequence() -> None:
    one = trace(
        turn(0, [1, 2], [3], logprobs=[-0.1], version=4, rewards=((1.0, 0.5), (None, 9.0), (2.0, 1.0))),
        turn(1, [4], [5, 6], logprobs=[-0.2, -0.3], version=5),
        turn(2, [7], [8], logprobs=[-0.4], version=5, finish="length", rewards=((None, 1.0),)),
        score=0.75,
    )
    (found,) = qn.trajectories([one])
    assert found.token_ids == [1, 2, 3, 4, 5, 6, 7, 8]
    assert found.mask == [False, False, True, False, True, True, False, True]
    assert found.logprobs == [0.0, 0.0, -0.1, 0.0, -0.2, -0.3, 0.0, -0.4]
    assert found.rewards == [TokenReward(2, 0, "r0", Level.TURN, 0.5), TokenReward(2, 0, "r2", Level.TURN, 2.0)]
    assert found.versions == [(2, 4), (4, 5), (7, 5)]
    assert (found.prompt_length, found.turns) == (2, [(0, 2, 3), (1, 4, 6), (2, 7, 8)])
    assert (found.environment, found.task, found.member, found.seed) == (ENV.name, "test-0", 0, 0)
    assert (found.role, found.thread, found.branch, found.last, found.group) == ("agent", 0, 0, True, "test-0/0/0")
    assert (found.score, found.group_scores, found.advantage) == (0.75, [0.75], 0.75)
    assert (found.temperature, found.end, found.finish_reason) == (ENV.config.temperature, End.TERMINATED, "length")


def test_a_weight_swap_inside_a_reply_is_in_the_row() -> None:
    swapped = Tokens([1, 2], [3, 4, 5], versions=[(0, 6), (2, 7)])
    first = Turn(index=0, reply=Reply(Message("assistant"), swapped, policy_version=7))
    (found,) = qn.trajectories([trace(first, turn(1, [6], [7], version=7))])
    assert found.versions == [(2, 6), (4, 7), (6, 7)]


def test_versions_are_all_there_or_none() -> None:
    known, nothing, unknown = turn(0, [1], [2], version=3), turn(1, [3], []), turn(1, [3], [4])
    assert qn.trajectories([trace(known, nothing)])[0].versions == [(1, 3)]
    assert qn.trajectories([trace(known, unknown)])[0].versions == []


def test_a_row_is_read_back_from_json_and_messagepack() -> None:
    (found,) = qn.trajectories([trace(turn(0, [1], [2], version=4, rewards=((1.0, 0.5),)))])
    assert msgspec.json.decode(codec.json(found), type=qn.Trajectory) == found
    assert codec.loads(codec.dumps(found), qn.Trajectory) == found
    with pytest.raises(msgspec.ValidationError, match=r"Expected `float`, got `null` - at `\$.score`"):
        msgspec.json.decode(codec.json(msgspec.structs.asdict(found) | {"score": None}), type=qn.Trajectory)


def test_the_row_with_the_last_turn_of_the_role_is_the_last() -> None:
    one = trace(
        turn(0, [1], [2]),
        turn(1, [3], [4], role="user", thread=1),
        turn(2, [5], [6], branch=1, keep=0),
        turn(3, [7], [8], thread=2),
        turn(4, [9], [10], branch=1),
    )
    found = qn.trajectories([one])
    assert [(t.thread, t.branch, t.token_ids) for t in found] == [(0, 0, [1, 2]), (0, 1, [5, 6, 9, 10]), (2, 0, [7, 8])]
    assert [(t.last, t.score) for t in found] == [(False, 1.0), (True, 1.0), (False, 1.0)]
    (user,) = qn.trajectories([one], role="user")
    assert (user.token_ids, user.last) == ([3, 4], True)
    assert qn.trajectories([one], role="nobody") == []


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (turn(1, [4], [5], logprobs=[-1.0]), [0.0, -0.5, 0.0, -1.0]),
        (turn(1, [4], [5]), []),
        (turn(1, [4], []), [0.0, -0.5, 0.0]),
    ],
    ids=["all", "one missing", "nothing drawn"],
)
def test_logprobs_are_all_there_or_none(second: Turn, expected: list[float]) -> None:
    (found,) = qn.trajectories([trace(turn(0, [1], [2], logprobs=[-0.5]), second)])
    assert found.logprobs == expected


def test_without_token_ids_there_is_nothing_to_train_on() -> None:
    bare = Turn(index=0, reply=Reply(Message("assistant")))
    with pytest.raises(UsageError, match=r"turn 0 of 'test-0' has no token ids: .*return_token_ids"):
        qn.trajectories([trace(bare)])


@pytest.mark.parametrize(("field", "value"), [("task", "test-1"), ("seed", 7), ("attempt", 1)])
def test_traces_of_several_groups_are_refused(field: str, value: Any) -> None:
    first, second = (trace(turn(0, [1], [2]), member=member) for member in (0, 1))
    setattr(second, field, value)
    with pytest.raises(UsageError) as raised:
        qn.trajectories([first, second])
    named = ", ".join([second.task, f"seed {second.seed}", f"attempt {second.attempt}"])
    assert "one task, seed and attempt, got ['test-0, seed 0, attempt 0', " in str(raised.value)
    assert f"'{named}']; call trajectories() once for each" in str(raised.value)


def test_a_group_may_be_a_generator() -> None:
    group = [trace(turn(0, [1], [2]), score=score, member=n) for n, score in enumerate((2.0, 0.0))]
    assert [one.advantage for one in qn.trajectories(one for one in group)] == [1.0, -1.0]
    assert qn.trajectories(iter(())) == []


@given(st.lists(st.one_of(st.none(), st.floats(-5, 5)), min_size=1, max_size=9))
def test_the_baseline_is_the_mean_of_the_valid(scores: list[float | None]) -> None:
    group = [
        trace(turn(0, [1], [2]), score=score, failure=None if score is not None else DOWN, member=n)
        for n, score in enumerate(scores)
    ]
    valid = [score for score in scores if score is not None]
    found = qn.trajectories(group)
    if len(valid) < (1 if len(scores) == 1 else max(2, -(-len(scores) // 2))):
        assert found == []
        return
    mean = sum(valid) / len(valid) if len(scores) > 1 else 0.0
    assert [one.advantage for one in found] == [pytest.approx(score - mean) for score in valid]
    assert [one.member for one in found] == [n for n, score in enumerate(scores) if score is not None]
    assert [one.group_scores for one in found] == [valid] * len(found)


def test_a_rejected_sibling_poisons_no_advantage() -> None:
    """A rejected row with reward 100 once turned an accepted one's advantage from +1 into -49.5 (verl#6375)."""
    rejected = trace(turn(0, [1], [2]), score=None, failure=DOWN)
    rejected.rewards = [Reward(name="r", level=Level.TRAJECTORY, raw=100.0, value=100.0)]
    group = [trace(turn(0, [1], [2]), score=score) for score in (2.0, 0.0)]
    assert [one.advantage for one in qn.trajectories([*group, rejected])] == [1.0, -1.0]
    unknown = trace(turn(0, [1], [2]), score=None)
    assert [one.advantage for one in qn.trajectories([*group, unknown])] == [1.0, -1.0]


@given(PLAYS)
@settings(max_examples=40)
def test_a_sequence_is_what_the_sampler_saw(ops: list[worlds.Op]) -> None:
    """The last prompt of every branch, as it was sent, is the sequence up to its last completion."""

    async def law() -> None:
        env = environment(max_turns=30)
        episode = await qn.Episode[Any].begin(env, first_task(env))
        sent: dict[tuple[str, int, int], list[int]] = {}
        for op in ops:
            if op[0] == "step":
                if episode.ended:
                    break
                session = episode.sessions[op[1] % len(episode.sessions)]
                prompt = [word for one in session.messages for word in worlds.words(one, op[4] or 0)]
                await worlds.act(episode, (*op[:4], op[4] or 0))
                last = episode.trace.turns[-1]
                tokens = last.reply.tokens
                assert tokens is not None
                sent[last.role, last.thread, last.branch] = prompt + tokens.completion
            else:
                await worlds.act(episode, op)
        episode.terminate("the end")
        await episode.verify()
        for role in ("agent", "user"):
            for found in qn.trajectories([episode.trace], role=role):
                assert found.token_ids == sent.pop((role, found.thread, found.branch))
                assert len(found.token_ids) == len(found.mask) == len(found.logprobs)
                assert sum(found.mask) == sum(
                    len(turn.reply.tokens.completion)
                    for turn in episode.trace.turns
                    if turn.reply.tokens and (turn.thread, turn.branch) == (found.thread, found.branch)
                )
        assert sent == {}

    asyncio.run(law())


# --- 600 turns ---


def counted(work: Callable[[], Any]) -> tuple[int, Any]:
    """Returns the number of Python function calls of some work, and its result."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        result = work()
    finally:
        sys.setprofile(before)
    return calls, result


class Long(msgspec.Struct, frozen=True):
    """Folds its context every `fold` turns, if at all."""

    fold: int | None

    async def play(self, session: qn.Session, model: Any) -> None:
        turns = 0
        while not session.ended:
            if self.fold and turns and turns % self.fold == 0:
                session.set_context([session.messages[0], Message("user", "what happened so far")])
            await session.step(await model(session.request()))
            turns += 1


def long(turns: int, *, tokens: bool, fold: int | None) -> Trace:
    env = environment(harness=Long(fold), max_turns=turns)

    async def model(request: Any) -> Reply:
        message = worlds.says(worlds.call("nod")).message
        prompt = [8 if one.role == "assistant" else 7 for one in request.messages]
        ids = Tokens(prompt, [8], [-0.5]) if tokens else None
        return Reply(message, ids, policy_version=1)

    return asyncio.run(qn.rollout(env, first_task(env), model)).trace


@pytest.mark.parametrize(
    ("tokens", "fold"),
    [
        (False, None),
        (True, 50),
        pytest.param(True, None, marks=pytest.mark.slow),
        pytest.param(False, 50, marks=pytest.mark.slow),
    ],
)
def test_a_long_episode_costs_linear_bytes_and_work(
    tokens: bool, fold: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apart from what a request shows anew each time: the context itself, and its token ids."""
    dumps, encoded = codec.dumps, 0

    def measured(value: Any, *args: Any, **kwargs: Any) -> bytes:
        nonlocal encoded
        data = dumps(value, *args, **kwargs)
        encoded += 0 if isinstance(value, Reply) else len(data)
        return data

    monkeypatch.setattr(codec, "dumps", measured)
    costs: list[tuple[int, ...]] = []
    for turns in (150, 300):
        encoded = 0
        played, one = counted(functools.partial(long, turns, tokens=tokens, fold=fold))
        assert len(one.turns) == turns
        dumped, data = counted(one.to_json)
        made, found = counted(functools.partial(qn.trajectories, [one] if tokens else []))
        assert len(found) == (turns // 50 if fold else 1) * tokens
        costs.append((played, dumped, made, len(data), encoded))
    for few, many in zip(*costs, strict=True):
        assert many < 2.2 * few + 20
