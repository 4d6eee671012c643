"""Advantages: functions from the rows of whole groups to one number per token of each row.

A token has the advantage of its turn, or of its episode, and 0.0 if the model did not draw it. Rows are of valid
episodes only (`quintain.trajectories`), so a failed one is in no baseline. In the formulas s is the score of an
episode and n the number of its group's valid episodes; mean and std are taken over the group unless said otherwise. The
std is that of a sample (divisor n - 1), and 0 for one value.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quintain import Trajectory
from quintain.errors import UsageError

Rows = Sequence[Trajectory]
PerToken = list[list[float]]
"""One list per row, with one number per token."""

EPSILON = 1e-6
"""Added to a std, so that equal values give 0 and not a division by 0."""


def group_mean(rows: Rows) -> PerToken:
    """Returns s - mean(s), and s in a group of one: `Trajectory.advantage` of each row.

    Dr. GRPO: Liu et al. 2025, arXiv 2503.20783.
    """
    return [_spread(row, row.score - _moments(row.group_scores)[0] * (len(row.group_scores) > 1)) for row in rows]


def leave_one_out(rows: Rows) -> PerToken:
    """Returns s minus the mean score of the other episodes: n / (n - 1) times the group mean's advantage.

    RLOO: Kool et al. 2019; Ahmadian et al. 2024, arXiv 2402.14740.

    Raises:
        UsageError: A group has one valid episode.
    """
    return [_spread(row, row.score - (math.fsum(row.group_scores) - row.score) / (_size(row) - 1)) for row in rows]


def group_standardised(rows: Rows, *, epsilon: float = EPSILON) -> PerToken:
    """Returns (s - mean(s)) / (std(s) + epsilon).

    GRPO: Shao et al. 2024, arXiv 2402.03300.

    Raises:
        UsageError: A group has one valid episode.
    """
    found: PerToken = []
    for row in rows:
        _size(row)
        mean, std = _moments(row.group_scores)
        found.append(_spread(row, (row.score - mean) / (std + epsilon)))
    return found


def turn_return(rows: Rows, *, gamma: float = 1.0, epsilon: float = EPSILON) -> PerToken:
    """Returns (G_k - mean(G_k)) / (std(G_k) + epsilon), over the group's episodes that have a turn k.

    G_k is the return of turn k, the sum over l >= k of gamma^(l - k) r_l. r_l is the sum of the turn's rewards, and at
    the last turn the score as well. GTPO: Ding et al. 2025, arXiv 2511.14846.

    Args:
        rows: All rows of each episode.
        gamma: Discount per turn, from 0 to 1.
        epsilon: Added to the std.

    Raises:
        UsageError: Rows of an episode are missing or repeated, or gamma is out of its range.
    """
    return _standardised(rows, _returns(rows, gamma), key=lambda row, one: (*_group(row), one.place), epsilon=epsilon)


def batch_return(rows: Rows, *, gamma: float = 1.0, epsilon: float = EPSILON) -> PerToken:
    """Returns (G_k - mean(G)) / (std(G) + epsilon), over all turns of all rows; groups may be of one.

    G_k is that of `turn_return`. ReBN: Liu et al. 2025 (GEM), arXiv 2510.01051.

    Args:
        rows: All rows of each episode.
        gamma: Discount per turn, from 0 to 1.
        epsilon: Added to the std.

    Raises:
        UsageError: Rows of an episode are missing or repeated, or gamma is out of its range.
    """
    return _standardised(rows, _returns(rows, gamma), key=lambda row, one: (), epsilon=epsilon)


def hybrid(
    rows: Rows, *, weight: float, outcome: Callable[[Rows], PerToken] = group_mean, epsilon: float = EPSILON
) -> PerToken:
    """Returns A + weight (c_k - mean(c)) / (std(c) + epsilon), where A is the advantage of the outcome.

    c_k is the sum of turn k's rewards, mean and std are over all turns of the group that have a reward, and turns
    without one get A alone. A weight of 0 gives A to the bit. The weighted sum of both advantages is the idea of
    CriticSearch, arXiv 2511.12159; this form of it is Quintain's own.

    Args:
        rows: All rows of each episode.
        weight: Of the turn's advantage, 0 and up.
        outcome: Function that gives A.
        epsilon: Added to the std.

    Raises:
        UsageError: Rows of an episode are missing or repeated, or the weight is out of its range.
    """
    if not 0 <= weight < math.inf:
        raise UsageError(f"the weight of the turn's advantage must be 0 or a positive number, got {weight}")
    found = outcome(rows)
    if weight == 0:
        return found
    own = [one for one in _returns(rows, 0.0, outcome=False) if one.rewarded]
    turns = _standardised(rows, own, key=lambda row, one: _group(row), epsilon=epsilon)
    pairs = zip(found, turns, strict=True)
    return [[a + weight * t for a, t in zip(ours, theirs, strict=True)] for ours, theirs in pairs]


class _Return(NamedTuple):
    """Discounted return of one turn.

    Attributes:
        row: Index of its row.
        span: Its place in the row's `turns`.
        place: Its place among the turns of its role in the episode.
        value: The return.
        rewarded: True if the turn has a reward of its own.
    """

    row: int
    span: int
    place: int
    value: float
    rewarded: bool


def _returns(rows: Rows, gamma: float, *, outcome: bool = True) -> list[_Return]:
    if not 0 <= gamma <= 1:
        raise UsageError(f"gamma must be from 0 to 1, got {gamma}")
    episodes: dict[tuple[object, ...], list[tuple[int, int, int]]] = defaultdict(list)
    earned: dict[tuple[int, int], list[float]] = defaultdict(list)
    for number, row in enumerate(rows):
        for reward in row.rewards:
            earned[number, reward.turn].append(reward.value)
        episodes[*_group(row), row.member] += [(index, number, span) for span, (index, _, _) in enumerate(row.turns)]
    found: list[_Return] = []
    for turns in episodes.values():
        turns.sort()
        _check_whole(rows, turns)
        value = 0.0
        for place, (index, number, span) in reversed(list(enumerate(turns))):
            final = rows[number].score if outcome and place == len(turns) - 1 else 0.0
            own = earned[number, index]
            value = math.fsum(own) + final + gamma * value
            found.append(_Return(number, span, place, value, bool(own)))
    return found


def _check_whole(rows: Rows, turns: list[tuple[int, int, int]]) -> None:
    """Raises a UsageError if rows of an episode are missing or repeated."""
    numbers = {number for _, number, _ in turns}
    lasts = sum(rows[number].last for number in numbers)
    if lasts != 1 or len({index for index, _, _ in turns}) != len(turns):
        row = rows[turns[0][1]]
        raise UsageError(
            "returns need all rows of an episode, each once, with that of its last turn; of member "
            f"{row.member} of group {row.group!r} there are {len(numbers)}, of which {lasts} with the last turn"
        )


def _standardised(
    rows: Rows, values: Sequence[_Return], *, key: Callable[[Trajectory, _Return], tuple[object, ...]], epsilon: float
) -> PerToken:
    """Returns the values less their mean, over their std, at the tokens of their turns; values of one key together."""
    sets: dict[tuple[object, ...], list[_Return]] = defaultdict(list)
    for one in values:
        sets[key(rows[one.row], one)].append(one)
    found = [[0.0] * len(row.token_ids) for row in rows]
    for members in sets.values():
        mean, std = _moments([one.value for one in members])
        for one in members:
            _, first, end = rows[one.row].turns[one.span]
            found[one.row][first:end] = [(one.value - mean) / (std + epsilon)] * (end - first)
    return found


def _spread(row: Trajectory, value: float) -> list[float]:
    return [value if drawn else 0.0 for drawn in row.mask]


def _group(row: Trajectory) -> tuple[str, str, str]:
    return row.environment, row.group, row.role


def _size(row: Trajectory) -> int:
    if (size := len(row.group_scores)) < 2:
        raise UsageError(f"group {row.group!r} has one valid episode, so it has no baseline; play with group=2 or more")
    return size


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Returns mean and std; the sums are exactly rounded, so the order of the values makes no difference."""
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0
