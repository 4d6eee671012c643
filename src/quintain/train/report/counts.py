"""Sums over the episodes of an update, which add up over groups, updates and runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from quintain.errors import UsageError
from quintain.rollouts import Group
from quintain.trace import SOLVED, Timing, Trace, Turn

T = TypeVar("T")

ROLE = "agent"
"""Role whose tokens and branches a trainer reads."""


class EpisodeSums(msgspec.Struct):
    """Sums over some episodes; those without a score are invalid.

    Attributes:
        groups, episodes, scored: Numbers; an earlier attempt of a group is a group of its own.
        total, squares: Sums of the scores and of their squares.
        solved: Episodes that count as a success.
        turns, tokens: Turns, and tokens that the agent drew.
        breaks: Rows beyond the first of each thread, as `quintain.trajectories` makes them.
    """

    groups: int = 0
    episodes: int = 0
    scored: int = 0
    total: float = 0.0
    squares: float = 0.0
    solved: int = 0
    turns: int = 0
    tokens: int = 0
    breaks: int = 0

    @property
    def mean(self) -> float | None:
        """Mean score of the valid episodes; None without any."""
        return self.total / self.scored if self.scored else None

    def bounds(self, scores: tuple[float, float]) -> tuple[float, float] | None:
        """Returns the identification interval: the mean with each invalid episode at the lowest and highest score."""
        if not self.episodes:
            return None
        low, high = ((self.total + (self.episodes - self.scored) * score) / self.episodes for score in scores)
        return low, high


class RewardSums(msgspec.Struct):
    """Number and sum of the values of one criterion."""

    count: int = 0
    total: float = 0.0


class Counts(msgspec.Struct):
    """Everything that is counted of the groups of an update.

    Attributes:
        parts: Sums by use of the group: "trained", "dropped" (too few valid episodes), "stale" (too old).
        levels: Sums over all groups, by the level of their task.
        failures: Invalid episodes by component and kind; "unscored" for those that have no failure.
        lengths, failed_lengths: Episodes, and invalid ones, by number of turns.
        lags: Tokens of trained groups by lag, the policy versions between their drawing and the update.
        unversioned: Tokens of trained groups whose version is unknown.
        rewards: Values by level and name of the criterion; of valid episodes.
        mixed: Trained groups whose scores differ, so that they have a gradient.
        success: Trained groups by tenths of their solved episodes, 0 to 10.
        seconds: Seconds that the episodes spent, by activity.
    """

    parts: dict[str, EpisodeSums] = {}
    levels: dict[str, EpisodeSums] = {}
    failures: dict[str, dict[str, int]] = {}
    lengths: dict[int, int] = {}
    failed_lengths: dict[int, int] = {}
    lags: dict[int, int] = {}
    unversioned: int = 0
    rewards: dict[str, dict[str, RewardSums]] = {}
    mixed: int = 0
    success: dict[int, int] = {}
    seconds: dict[str, float] = {}

    @property
    def whole(self) -> EpisodeSums:
        """Sums over all parts."""
        return added(EpisodeSums(), *self.parts.values())

    def add(self, group: Group, *, stale: bool, version: int, tag: str) -> None:
        """Counts a group.

        Raises:
            UsageError: A trained token is of a later version than `version`.
        """
        size = len(group.rollouts)
        part = "stale" if stale and group.kept else "trained" if group.kept else "dropped"
        attempts = [group.earlier[start : start + size] for start in range(0, len(group.earlier), max(1, size))]
        for name, members in [(part, group.rollouts), *(("dropped", attempt) for attempt in attempts)]:
            traces = [member.trace for member in members]
            _count(self.parts.setdefault(name, EpisodeSums()), traces)
            if traces and (level := traces[0].tags.get(tag)):
                _count(self.levels.setdefault(level, EpisodeSums()), traces)
            for member in members:
                self._count_episode(member.trace)
                for field in Timing.__struct_fields__:
                    activity = field.removesuffix("_s")
                    self.seconds[activity] = self.seconds.get(activity, 0.0) + getattr(member.timing, field)
        if part == "trained":
            self._count_trained(group.traces, version)

    def _count_episode(self, trace: Trace) -> None:
        length = len(trace.turns)
        self.lengths[length] = self.lengths.get(length, 0) + 1
        if trace.score is None:
            component, kind = (trace.failure.component, trace.failure.kind) if trace.failure else ("unscored", "")
            kinds = self.failures.setdefault(component, {})
            kinds[kind] = kinds.get(kind, 0) + 1
            self.failed_lengths[length] = self.failed_lengths.get(length, 0) + 1
            return
        for reward in trace.every_reward():
            if reward.value is not None:
                sums = self.rewards.setdefault(reward.level.value, {}).setdefault(reward.name, RewardSums())
                sums.count += 1
                sums.total += reward.value

    def _count_trained(self, traces: Sequence[Trace], version: int) -> None:
        scores = [trace.score for trace in traces if trace.score is not None]
        self.mixed += len(set(scores)) > 1
        tenth = 10 * sum(score >= SOLVED for score in scores) // max(1, len(scores))
        self.success[tenth] = self.success.get(tenth, 0) + 1
        for drawn, tokens in (run for trace in traces if trace.score is not None for run in _runs(_turns(trace))):
            if drawn is None:
                self.unversioned += tokens
            elif drawn > version:
                raise UsageError(
                    f"a trained token was drawn by policy version {drawn}, but the update starts from version "
                    f"{version}; pass the trainer's version as `version=`"
                )
            else:
                self.lags[version - drawn] = self.lags.get(version - drawn, 0) + tokens


def added(first: T, *others: T) -> T:
    """Returns the sum of structs of one type: numbers are added, dicts by key."""
    total = msgspec.to_builtins(first)
    for other in others:
        total = _sum(total, msgspec.to_builtins(other))
    return msgspec.convert(total, type=type(first))


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, int | float):
        return one + other
    return one | {key: _sum(one[key], value) if key in one else value for key, value in other.items()}


def _count(sums: EpisodeSums, traces: Sequence[Trace]) -> None:
    scores = [trace.score for trace in traces if trace.score is not None]
    rows = [{(turn.thread, turn.branch) for turn in _turns(trace)} for trace in traces]
    sums.groups += 1
    sums.episodes += len(traces)
    sums.scored += len(scores)
    sums.total += sum(scores)
    sums.squares += sum(score * score for score in scores)
    sums.solved += sum(score >= SOLVED for score in scores)
    sums.turns += sum(len(trace.turns) for trace in traces)
    sums.tokens += sum(tokens for trace in traces for _, tokens in _runs(_turns(trace)))
    sums.breaks += sum(len(branches) - len({thread for thread, _ in branches}) for branches in rows)


def _turns(trace: Trace) -> list[Turn]:
    return [turn for turn in trace.turns if turn.role == ROLE]


def _runs(turns: Iterable[Turn]) -> Iterator[tuple[int | None, int]]:
    """Yields policy version and number of tokens of each run that the turns drew; a version of None is unknown."""
    for turn in turns:
        if (tokens := turn.reply.tokens) is None:
            continue
        runs: list[tuple[int, int | None]] = list(tokens.versions or ()) or [(0, turn.reply.policy_version)]
        ends = [*(first for first, _ in runs[1:]), len(tokens.completion)]
        yield from ((version, end - first) for (first, version), end in zip(runs, ends, strict=True))
