"""Statistics of a run: scores with their uncertainty, failures by component, and bounds for what failures hide."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from .record import EpisodeRecord
from .trace import SOLVED, Level, Timing, Trace
from .verifier import Verifier

UNDECLARED = 1e9
"""A criterion whose range reaches this far declares none, as those of other frameworks."""


class Slice(msgspec.Struct):
    """Running sums over some episodes: all of them, one family, one level."""

    episodes: int = 0
    scored: int = 0
    total: float = 0.0

    @property
    def mean(self) -> float | None:
        """Mean score of the scored episodes; None when nothing was scored."""
        return self.total / self.scored if self.scored else None

    @property
    def failed(self) -> int:
        """Number of episodes without a score."""
        return self.episodes - self.scored

    def add(self, trace: Trace) -> None:
        self.episodes += 1
        if trace.score is not None:
            self.scored += 1
            self.total += trace.score


def score_range(verifier: Verifier[Any]) -> tuple[float, float] | None:
    """Returns the lowest and the highest score that a verifier can give; None if a criterion's range says nothing."""
    scored = [*verifier.at(Level.TRAJECTORY), *verifier.at(Level.GROUP)]
    is_product = verifier.combine == "product"
    low = high = float(is_product)
    for one in scored:
        ends = (0.0, 1.0) if one.normalize else (one.low, one.high)
        if one.weight and max(map(abs, ends)) >= UNDECLARED:
            return None
        # A criterion that is skipped counts in neither; a single one cannot be skipped.
        skipped = [float(is_product)] if len(scored) > 1 else []
        if is_product:
            reached = [total * end for total in (low, high) for end in (*ends, *skipped)]
        else:
            parts = [one.weight * end for end in ends] + skipped
            reached = [low + min(parts), high + max(parts)]
        low, high = min(reached), max(reached)
    return low, high


class Summary:
    """A run in numbers, added up group by group, so that its size does not grow with the run.

    Args:
        scores: Lowest and highest score that the verifier can give, as `score_range` returns it; by default 0 and 1. A
            score outside of it widens it.

    Attributes:
        low, high: Scores that a failed episode counts as in the bounds.
        all: Sums over all episodes, those of dropped attempts included.
        by_tag: The same by tag and value: `by_tag["family"]["clean duplicates"]`.
        failures: Episodes by component and kind.
        examples: The first failed episode of each component and kind.
        failed_tasks: The same sums by id, for each task of which an episode failed.
        dropped: Groups of which too few episodes were valid.
        turns, calls, tokens: Totals over all episodes.
        seconds: Totals of the time split: model, tool, verifier, queue, total.
    """

    def __init__(self, scores: tuple[float, float] | None = None) -> None:
        self.low, self.high = scores or (0.0, 1.0)
        self.all = Slice()
        self.by_tag: dict[str, dict[str, Slice]] = {}
        self.failures: dict[str, Counter[str]] = {}
        self.examples: dict[tuple[str, str], EpisodeRecord] = {}
        self.failed_tasks: dict[str, Slice] = {}
        self.dropped = 0
        self.turns = self.calls = self.tokens = 0
        self.seconds: Counter[str] = Counter()
        self._hat: dict[int, list[float]] = {}
        self._means: list[float] = [0.0, 0.0, 0.0]
        self._lengths: Counter[int] = Counter()
        self._failed_lengths: Counter[int] = Counter()

    def add(self, group: Sequence[EpisodeRecord], earlier: Sequence[EpisodeRecord] = (), *, kept: bool = True) -> None:
        """Count the finished episodes of one task, and those of attempts that were dropped."""
        every = (*earlier, *group)
        for one in every:
            self._count(one)
        for one in every if any(one.trace.failure for one in every) else ():
            self.failed_tasks.setdefault(one.trace.task, Slice()).add(one.trace)
        self.dropped += not kept
        scores = [one.trace.score for one in group if one.trace.score is not None]
        solved = sum(score >= SOLVED for score in scores)
        for k in range(1, len(scores) + 1):
            entry = self._hat.setdefault(k, [0.0, 0.0])
            entry[0] += math.comb(solved, k) / math.comb(len(scores), k)
            entry[1] += 1
        if scores:
            mean = sum(scores) / len(scores)
            self._means = [a + b for a, b in zip(self._means, (1.0, mean, mean * mean), strict=True)]

    def _count(self, one: EpisodeRecord) -> None:
        trace = one.trace
        self.all.add(trace)
        if trace.score is not None:
            self.low, self.high = min(self.low, trace.score), max(self.high, trace.score)
        for tag, value in trace.tags.items():
            self.by_tag.setdefault(tag, {}).setdefault(value, Slice()).add(trace)
        if trace.failure is not None:
            self.failures.setdefault(trace.failure.component, Counter())[trace.failure.kind] += 1
            self.examples.setdefault((trace.failure.component, trace.failure.kind), one)
            self._failed_lengths[len(trace.turns)] += 1
        self._lengths[len(trace.turns)] += 1
        self.turns += len(trace.turns)
        self.calls += sum(len(turn.steps) for turn in trace.turns)
        self.tokens += sum(turn.reply.usage.prompt + turn.reply.usage.completion for turn in trace.turns)
        # The timing of a recorder has further fields, which do not add up.
        self.seconds.update({name.removesuffix("_s"): getattr(one.timing, name) for name in Timing.__struct_fields__})

    @property
    def failed(self) -> int:
        """Number of failed episodes."""
        return sum(sum(kinds.values()) for kinds in self.failures.values())

    @property
    def pass_hat_k(self) -> dict[int, float]:
        """k to the chance that k plays of a task all succeed: mean of C(c, k) / C(n, k) over tasks (tau-bench)."""
        return {k: total / tasks for k, (total, tasks) in sorted(self._hat.items())}

    @property
    def standard_error(self) -> float | None:
        """Returns the standard error of the mean reward, with a task as the unit; None below two tasks."""
        n, total, squares = self._means
        if n < 2:
            return None
        return math.sqrt(max(0.0, squares / n - (total / n) ** 2) / (n - 1))

    def bounds(self, part: Slice) -> tuple[float, float] | None:
        """Returns the identification interval: mean score with each failure counted as `low`, and as `high`.

        None without episodes.
        """
        if not part.episodes:
            return None
        low, high = ((part.total + part.failed * score) / part.episodes for score in (self.low, self.high))
        return low, high

    @property
    def interval(self) -> tuple[float, float] | None:
        """The identification interval of the whole run."""
        return self.bounds(self.all)

    @property
    def failure_by_length(self) -> tuple[float | None, float | None]:
        """P(failed) of the shorter and of the longer half of the episodes, by turns; None for an empty half."""
        half, seen = self.all.episodes / 2, 0
        halves = [[0, 0], [0, 0]]
        for length in sorted(self._lengths):
            side = halves[seen >= half]
            side[0] += self._failed_lengths[length]
            side[1] += self._lengths[length]
            seen += self._lengths[length]
        short, long = (failed / n if n else None for failed, n in halves)
        return short, long


def indistinguishable(a: Summary, b: Summary) -> str | None:
    """A warning when two runs differ by less than what their failures could hide; None when they don't."""
    if a.all.mean is None or b.all.mean is None or a.interval is None or b.interval is None:
        return "a run without scored episodes cannot be compared"
    claimed = abs(a.all.mean - b.all.mean)
    width = max(high - low for low, high in (a.interval, b.interval))
    if width <= claimed:
        return None
    return f"the difference of {claimed:.3f} is smaller than what the failures leave open ({width:.3f})"
