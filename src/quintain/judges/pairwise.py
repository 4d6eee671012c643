"""Pairwise comparison of the episodes of a group, in both orders, and their strengths by Bradley and Terry's model.

Source of the algorithm: D. R. Hunter, MM algorithms for generalized Bradley-Terry models, Annals of Statistics 32
(2004).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from quintain.errors import JudgeError, UsageError
from quintain.verifier import Criterion, GroupView, Score, reward

from .chat import Judge, all_of, answer, filled, merged, question
from .llm import Show

CONSISTENT = 0.8
"""Share of the pairs in which both orders must name the same winner."""
CLOSE = 1e-9
"""Relative difference of strengths that counts as none."""
_TOLERANCE = 1e-12
_STEPS = 10_000

PAIR = """Task that both agents were given:
{task}

What agent A did:
{a}

What agent B did:
{b}

Say which one is better by this criterion only: {criterion} Answer "tie" if neither is."""


class _Compared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: str
    winner: Literal["A", "B", "tie"]


class Standing(NamedTuple):
    """Result of the games of a group.

    Attributes:
        strengths: Of each player; 1 is the strength of an average player.
        order_consistency: Share of the pairs whose two orders have the same winner.
        position_bias: Mean of |P(i, j) + P(j, i) - 1| over the pairs, with P(i, j) the points of i when it comes first.
        cycles: Number of triples in which each beats the next.
    """

    strengths: list[float]
    order_consistency: float
    position_bias: float
    cycles: int


def pairwise(
    judge: Judge,
    criterion: str,
    *,
    pairs: Literal["all", "circular"] = "all",
    value: Literal["rank", "strength"] = "rank",
    show: Show = answer,
    template: str = PAIR,
) -> Criterion[Any]:
    """Returns a group-level criterion that compares the episodes of a group with one another, from 0 to 1.

    "rank" is (number of weaker members + half the number of equal ones) / (size - 1). "strength" is s / (s + 1) with s
    the member's strength: the probability to beat an average member.

    Args:
        judge: The judge; it sees each pair in both orders.
        criterion: What is compared, in words.
        pairs: "all" compares G (G - 1) / 2 pairs of a group of G, "circular" each member with the next.
        value: Quantity that is rewarded.
        show: What the judge sees of an episode.
        template: Prompt, with {task}, {a}, {b} and {criterion}.

    Raises:
        DefinitionError: The template lacks a name.
        UsageError: `pairs` or `value` is unknown.
    """
    if pairs not in ("all", "circular") or value not in ("rank", "strength"):
        raise UsageError(f"pairs is 'all' or 'circular', value 'rank' or 'strength', got {pairs!r} and {value!r}")
    filled(template, {"task": "", "a": "", "b": ""}, criterion="")

    @reward(level="group", external=True)
    async def pairwise(group: GroupView[Any]) -> Sequence[Score]:
        texts, task = [show(view) for view in group.episodes], question(group.episodes[0])
        orders = [order for i, j in _pairs(len(texts), pairs) for order in ((i, j), (j, i))]

        async def compare(first: int, second: int) -> tuple[float, dict[str, Any]]:
            prompt = filled(template, {"task": task, "a": texts[first], "b": texts[second]}, criterion=criterion)
            said = await judge.ask(prompt, _Compared, trace=group.episodes[first].trace)
            points = math.fsum({"A": 1.0, "tie": 0.5, "B": 0.0}[vote.winner] for vote in said.votes)
            return points / len(said.votes), said.details

        found = await all_of(compare(*order) for order in orders)
        games = {order: points for order, (points, _) in zip(orders, found, strict=True)}
        asked = [(order, details) for order, (_, details) in zip(orders, found, strict=True)]
        own = [merged(details for order, details in asked if n in order) for n in range(len(texts))]
        return _scores(standings(len(texts), games), value, about=[one | {"pairs": len(games) // 2} for one in own])

    return pairwise


def standings(size: int, games: Mapping[tuple[int, int], float]) -> Standing:
    """Returns strengths and the quality of games in which each pair met in both orders.

    Args:
        size: Number of players.
        games: (first, second) -> points of the first: 1, 0.5 for a tie, 0, or the mean of several votes.

    Raises:
        UsageError: A pair met in one order only, or the games do not connect all players.
    """
    wins: dict[tuple[int, int], float] = {}
    agree, bias = 0, 0.0
    for (i, j), points in games.items():
        if (j, i) not in games:
            raise UsageError(f"players {i} and {j} met in one order only")
        wins[i, j] = (points + 1 - games[j, i]) / 2
        bias += abs(points + games[j, i] - 1)
        agree += _sign(points - 0.5) == -_sign(games[j, i] - 0.5)
    edges = [(i, j) for (i, j), points in wins.items() if points > 0.5]
    beats = set(edges)
    cycles = sum((j, k) in beats and (k, i) in beats for i, j in edges for k in range(size)) // 3
    return Standing(bradley_terry(size, wins), agree / len(games), bias / len(games), cycles)


def bradley_terry(size: int, wins: Mapping[tuple[int, int], float]) -> list[float]:
    """Returns the strengths of players: i beats j with the probability s_i / (s_i + s_j).

    Each player also has one drawn game against a player of strength 1, so a player that wins or loses everything has a
    finite strength. The maximum of the likelihood is found by Hunter's MM iteration,
    s_i <- w_i / sum_j n_ij / (s_i + s_j).

    Args:
        size: Number of players.
        wins: (i, j) -> points of i against j, 0 and up; ties give half a point to each.

    Raises:
        UsageError: The games do not connect all players.
    """
    games = {(i, j): wins.get((i, j), 0.0) + wins.get((j, i), 0.0) for i, j in [*wins, *((j, i) for i, j in wins)]}
    opponents = [{j: n for (one, j), n in games.items() if one == i and n > 0} for i in range(size)]
    reached, todo = {0}, [0]
    while todo:
        new = opponents[todo.pop()].keys() - reached
        reached |= new
        todo += new
    if len(reached) < size:
        raise UsageError(
            f"the games do not connect all players: {sorted(set(range(size)) - reached)} met nobody of them"
        )
    points = [0.5 + math.fsum(wins.get((i, j), 0.0) for j in opponents[i]) for i in range(size)]
    strengths = [1.0] * size
    for _ in range(_STEPS):
        before = strengths
        strengths = [
            points[i] / (1 / (s + 1) + math.fsum(n / (s + before[j]) for j, n in opponents[i].items()))
            for i, s in enumerate(before)
        ]
        if all(abs(s - old) <= _TOLERANCE * old for s, old in zip(strengths, before, strict=True)):
            break
    return strengths


def _pairs(size: int, pairs: str) -> list[tuple[int, int]]:
    """Returns each pair once."""
    if pairs == "all" or size == 2:
        return list(itertools.combinations(range(size), 2))
    return [(i, (i + 1) % size) for i in range(size)]


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


def _scores(standing: Standing, value: str, *, about: Sequence[dict[str, Any]]) -> list[Score]:
    """Returns the score of each member.

    Raises:
        JudgeError: `judge_failed`: the order of the two decided too often.
    """
    if standing.order_consistency < CONSISTENT:
        raise JudgeError(
            f"the judge named the same winner in both orders in {standing.order_consistency:.0%} of the pairs, "
            f"less than {CONSISTENT:.0%}; the group has no score"
        )
    strengths = standing.strengths
    scores: list[Score] = []
    for i, own in enumerate(strengths):
        others = strengths[:i] + strengths[i + 1 :]
        equal = sum(math.isclose(own, other, rel_tol=CLOSE) for other in others)
        weaker = sum(other < own for other in others if not math.isclose(own, other, rel_tol=CLOSE))
        rank = (weaker + equal / 2) / len(others)
        reason = f"better than {weaker} of {len(others)}, equal to {equal}"
        facts = {**standing._asdict(), **about[i]}
        scores.append(Score(rank if value == "rank" else own / (own + 1), reason, facts))
    return scores
