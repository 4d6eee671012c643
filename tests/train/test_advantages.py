"""Advantages: laws of their formulas, and a second implementation that reads traces instead of rows."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.errors import UsageError
from quintain.trace import Trace, Turn
from quintain.train import advantages
from quintain.train.advantages import EPSILON, PerToken, Rows
from tests.test_trajectory import DOWN, trace, turn

NUMBERS = st.integers(-300, 300).map(lambda n: n / 100)
REWARDS = st.lists(st.tuples(st.none() | NUMBERS, st.sampled_from([0.5, 1.0])), max_size=2).map(tuple)
TURNS = st.lists(st.tuples(st.integers(0, 2), REWARDS, st.booleans()), min_size=1, max_size=4)
MEMBERS = st.lists(st.tuples(st.none() | NUMBERS, TURNS), min_size=4, max_size=7).filter(
    lambda members: sum(score is not None for score, _ in members) * 2 >= len(members)
)
GROUPS = st.lists(MEMBERS, min_size=1, max_size=3)
OUTCOMES = (advantages.group_mean, advantages.leave_one_out, advantages.group_standardised)
EVERY: dict[str, Callable[[Rows], PerToken]] = {one.__name__: one for one in OUTCOMES} | {
    "turn_return": lambda rows: advantages.turn_return(rows, gamma=0.5),
    "batch_return": lambda rows: advantages.batch_return(rows, gamma=0.5),
    "hybrid": lambda rows: advantages.hybrid(rows, weight=0.25),
}
"""All estimators by name. A test draws groups once for all of them, because drawing takes most of its time."""


def group(members: Sequence[tuple[float | None, Sequence[Any]]], seed: int = 0) -> list[Trace]:
    """Returns traces of one group; a member is its score and its turns, a turn its tokens, rewards and a new branch."""
    found: list[Trace] = []
    for number, (score, turns) in enumerate(members):
        branches = itertools.accumulate(int(fresh) for _, _, fresh in turns)
        played = [
            turn(index, [1], [2] * count, rewards=rewards, branch=branch)
            for index, ((count, rewards, _), branch) in enumerate(zip(turns, branches, strict=True))
        ]
        one = trace(*played, score=score, failure=DOWN if score is None else None, member=number)
        one.seed = seed
        found.append(one)
    return found


def batch(groups: Sequence[Sequence[Any]]) -> tuple[list[list[Trace]], list[qn.Trajectory]]:
    traces = [group(members, seed) for seed, members in enumerate(groups)]
    return traces, [row for one in traces for row in qn.trajectories(one)]


# --- the second implementation: per turn, by the formulas, from the traces ---

Key = tuple[int, int, int]
"""Seed, member, index of the turn."""


def valid(traces: Sequence[Sequence[Trace]]) -> Iterator[tuple[Trace, list[float]]]:
    for one in traces:
        scores = [member.score for member in one if member.score is not None]
        yield from ((member, scores) for member in one if member.score is not None)


def earned(one: Turn) -> float:
    return sum(reward.value * reward.weight for reward in one.rewards if reward.value is not None)


def gained(one: Trace, index: int, gamma: float) -> float:
    later = [gamma ** (k - index) * earned(one.turns[k]) for k in range(index, len(one.turns))]
    return sum(later) + gamma ** (len(one.turns) - 1 - index) * (one.score or 0.0)


def standardised(values: dict[Key, float], key: Callable[[Key], object]) -> dict[Key, float]:
    sets: dict[object, list[float]] = defaultdict(list)
    for turn_, value in values.items():
        sets[key(turn_)].append(value)
    std = {name: statistics.stdev(members) if len(members) > 1 else 0.0 for name, members in sets.items()}
    return {t: (v - statistics.mean(sets[key(t)])) / (std[key(t)] + EPSILON) for t, v in values.items()}


def expected(name: str, traces: Sequence[Sequence[Trace]]) -> dict[Key, float]:
    per_turn: dict[Key, float] = {}
    for one, scores in valid(traces):
        for index in range(len(one.turns)):
            own, others = one.score or 0.0, list(scores)
            others.remove(own)
            per_turn[one.seed, one.member, index] = {
                "group_mean": own - statistics.mean(scores),
                "leave_one_out": own - statistics.mean(others),
                "group_standardised": (own - statistics.mean(scores)) / (statistics.stdev(scores) + EPSILON),
                "turn_return": gained(one, index, 0.5),
                "batch_return": gained(one, index, 0.5),
                "hybrid": own - statistics.mean(scores),
            }[name]
    if name == "turn_return":
        return standardised(per_turn, lambda turn_: (turn_[0], turn_[2]))
    if name == "batch_return":
        return standardised(per_turn, lambda turn_: None)
    if name == "hybrid":
        judged = {
            (one.seed, one.member, each.index): earned(each)
            for one, _ in valid(traces)
            for each in one.turns
            if any(reward.value is not None for reward in each.rewards)
        }
        credit = standardised(judged, lambda turn_: turn_[0])
        return {t: v + 0.25 * credit.get(t, 0.0) for t, v in per_turn.items()}
    return per_turn


@given(groups=GROUPS)
def test_a_second_implementation_agrees(groups: list[Any]) -> None:
    traces, rows = batch(groups)
    for name, function in EVERY.items():
        per_turn = expected(name, traces)
        for row, found in zip(rows, function(rows), strict=True):
            assert len(found) == len(row.token_ids), name
            assert {value for value, drawn in zip(found, row.mask, strict=True) if not drawn} <= {0.0}, name
            for index, first, end in row.turns:
                wanted = pytest.approx(per_turn[row.seed, row.member, index], abs=1e-9)
                assert found[first:end] == [wanted] * (end - first), name


# --- laws ---


def per_member(rows: Rows, values: PerToken) -> list[tuple[int, int, float]]:
    """Returns seed, member and the advantage of each episode that drew a token."""
    found = {
        (row.seed, row.member): one
        for row, tokens in zip(rows, values, strict=True)
        for one, drawn in zip(tokens, row.mask, strict=True)
        if drawn
    }
    return [(*key, value) for key, value in sorted(found.items())]


@pytest.mark.parametrize("function", OUTCOMES)
@given(scores=st.lists(NUMBERS, min_size=2, max_size=9))
def test_advantages_of_a_group_sum_to_zero(function: Callable[[Rows], PerToken], scores: list[float]) -> None:
    _, rows = batch([[(score, [(1, (), False)]) for score in scores]])
    assert sum(value for _, _, value in per_member(rows, function(rows))) == pytest.approx(0.0, abs=1e-9)


@given(scores=st.lists(NUMBERS, min_size=2, max_size=9))
def test_leave_one_out_is_a_multiple_of_the_group_mean(scores: list[float]) -> None:
    _, rows = batch([[(score, [(2, (), False)]) for score in scores]])
    factor = len(scores) / (len(scores) - 1)
    means = [[factor * value for value in row] for row in advantages.group_mean(rows)]
    assert advantages.leave_one_out(rows) == [pytest.approx(row) for row in means]


@given(groups=GROUPS)
def test_the_group_mean_is_the_advantage_of_the_rows(groups: list[Any]) -> None:
    _, rows = batch([*groups, [(0.7, [(1, (), False)])]])
    assert advantages.group_mean(rows) == [[row.advantage * drawn for drawn in row.mask] for row in rows]


@given(data=st.data())
def test_the_order_of_the_rows_makes_no_difference(data: st.DataObject) -> None:
    _, rows = batch(data.draw(GROUPS))
    order = data.draw(st.permutations(range(len(rows))))
    for name, function in EVERY.items():
        found = function(rows)
        assert function([rows[n] for n in order]) == [found[n] for n in order], name


@given(groups=GROUPS)
def test_a_hybrid_of_weight_zero_is_the_outcome_to_the_byte(groups: list[Any]) -> None:
    _, rows = batch(groups)
    for outcome in OUTCOMES:
        alone, mixed = outcome(rows), advantages.hybrid(rows, weight=0.0, outcome=outcome)
        assert msgspec.msgpack.encode(mixed) == msgspec.msgpack.encode(alone), outcome


@given(groups=GROUPS)
def test_a_failed_episode_changes_no_advantage(groups: list[Any]) -> None:
    failed = (None, [(2, ((100.0, 1.0),), False)])
    without = [[(0.0 if score is None else score, turns) for score, turns in members] for members in groups]
    _, rows = batch(without)
    _, poisoned = batch([[*members, *[failed] * len(members)] for members in without])
    assert [(row.group, row.member) for row in poisoned] == [(row.group, row.member) for row in rows]
    for name, function in EVERY.items():
        assert function(poisoned) == function(rows), name


def test_dense_rewards_are_consumed_by_turns_and_not_by_the_outcome() -> None:
    sparse = [(1.0, [(1, (), False), (1, (), False)]), (0.0, [(1, (), False), (1, (), False)])]
    dense = [(1.0, [(1, ((2.0, 1.0),), False), (1, (), False)]), sparse[1]]
    _, plain = batch([sparse])
    _, shaped = batch([dense])
    for function in OUTCOMES:
        assert function(shaped) == function(plain)
    turns = advantages.turn_return(shaped, gamma=0.5, epsilon=0.0)
    half = 0.5**0.5
    assert [[row[1], row[3]] for row in turns] == [pytest.approx([half, half]), pytest.approx([-half, -half])]
    returns = advantages.batch_return(shaped, gamma=0.5, epsilon=0.0)
    assert [row[1] for row in returns] == pytest.approx([(2.5 - 0.875) / 1.1814539, -0.875 / 1.1814539])
    mixed = advantages.hybrid(shaped, weight=1.0)
    assert mixed == advantages.group_mean(shaped), "one rewarded turn has no other to compare with"


def test_an_episode_of_several_rows_counts_once() -> None:
    folded = (1.0, [(1, (), False), (1, (), True), (1, (), True)])
    _, rows = batch([[folded, (0.0, [(1, (), False)])]])
    assert len(rows) == 4
    assert [row[-1] for row in advantages.group_mean(rows)] == [0.5, 0.5, 0.5, -0.5]


# --- what is refused ---


def test_rows_of_an_episode_that_are_missing_or_repeated_are_refused() -> None:
    _, rows = batch([[(1.0, [(1, (), False), (1, (), True)]), (0.0, [(1, (), False)])]])
    for wrong, count in ((rows[:1], "are 1, of which 0"), ([*rows, rows[0]], "are 3, of"), ([*rows, rows[1]], "are 3")):
        with pytest.raises(UsageError, match=rf"all rows of an episode.* member 0 of group 'test-0/0/0' there {count}"):
            advantages.turn_return(wrong)
    assert advantages.turn_return([]) == []


def test_a_group_of_one_has_no_baseline() -> None:
    _, rows = batch([[(1.0, [(1, (), False)])]])
    for function in (advantages.leave_one_out, advantages.group_standardised):
        with pytest.raises(UsageError, match=r"has one valid episode, .* play with group=2 or more"):
            function(rows)
    assert advantages.group_mean(rows) == [[0.0, 1.0]]


@pytest.mark.parametrize("gamma", [-0.1, 1.1, float("nan")])
def test_a_discount_out_of_its_range_is_refused(gamma: float) -> None:
    for function in (advantages.turn_return, advantages.batch_return):
        with pytest.raises(UsageError, match=f"gamma must be from 0 to 1, got {gamma}"):
            function([], gamma=gamma)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_weight_out_of_its_range_is_refused(weight: float) -> None:
    with pytest.raises(UsageError, match=f"must be 0 or a positive number, got {weight}"):
        advantages.hybrid([], weight=weight)
