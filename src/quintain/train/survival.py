"""Inverse-probability weights of valid episodes, against the bias that failures at certain calls leave.

If a tool fails often, episodes that call it are lost, and those that avoid it are not. So the rows have the call less
often than the policy makes it, and training learns it too late, or never. Weights of 1 / probability undo that, as in
Robins and Rotnitzky, "Recovery of information and adjustment for dependent censoring using surrogate markers" (1992).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from quintain.errors import UsageError
from quintain.trace import Trace

from .advantages import PerToken, Rows

_Call = tuple[str, int]
"""Tool, and how often the episode had called it before."""


class Survival:
    """Shares of the n-th calls of each tool at which no episode failed, among those that it was shown.

    The weights are right if failures depend on nothing but the calls: an outage does not know how good the episode
    would have become. They cannot bring back calls of which all failed.
    """

    def __init__(self) -> None:
        self._made: Counter[_Call] = Counter()
        self._failed: Counter[_Call] = Counter()

    def observe(self, traces: Iterable[Trace]) -> None:
        """Counts the calls of episodes: the failed ones, and those of earlier attempts, must be among them."""
        for trace in traces:
            calls = list(_calls(trace))
            self._made.update(calls)
            if trace.failure is not None and trace.failure.turn < len(trace.turns) and calls:
                self._failed[calls[-1]] += 1

    def weight(self, trace: Trace) -> float:
        """Returns 1 / probability that an episode with the calls of this valid one does not fail.

        Raises:
            UsageError: `observe` was not given the episode.
        """
        weight = 1.0
        for call in _calls(trace):
            if not (survived := self._made[call] - self._failed[call]):
                raise UsageError(f"no valid episode with call {call[1]} of {call[0]} was observed: observe all first")
            weight *= self._made[call] / survived
        return weight

    def weigh(self, rows: Rows, advantages: PerToken, traces: Iterable[Trace]) -> PerToken:
        """Returns the advantages of rows, times the weights of their episodes, which `traces` must have."""
        weights = {(one.task, one.seed, one.attempt, one.member): self.weight(one) for one in traces if not one.failure}
        found = [weights[row.task, row.seed, row.attempt, row.member] for row in rows]
        return [[weight * value for value in values] for weight, values in zip(found, advantages, strict=True)]


def _calls(trace: Trace) -> Iterator[_Call]:
    made: Counter[str] = Counter()
    for turn in trace.turns:
        for step in turn.steps:
            yield step.call.name, made[step.call.name]
            made[step.call.name] += 1
