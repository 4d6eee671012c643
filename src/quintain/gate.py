"""Failure gate: stops a run above a failure rate, because the valid episodes are then a biased sample."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence

from .config import Config
from .errors import Failure, RunStopped
from .record import EpisodeRecord
from .trace import Trace

PATIENCE = 3
"""Groups of one that may fail before any succeeds; a larger group is evidence by itself."""

Z = 1.96
"""Normal quantile of a two-sided 95 % interval."""


def wilson(failures: int, episodes: int) -> tuple[float, float]:
    """Bounds of a rate at 95 % (Wilson 1927, without continuity correction); (0, 1) when nothing was seen."""
    if not episodes:
        return 0.0, 1.0
    rate, n, square = failures / episodes, episodes, Z * Z
    centre = (rate + square / (2 * n)) / (1 + square / n)
    half = Z / (1 + square / n) * math.sqrt(rate * (1 - rate) / n + square / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def enough(valid: int, size: int) -> bool:
    """The group rule: whether so many valid episodes of a group of `size` still make a baseline."""
    return valid >= (1 if size == 1 else max(2, math.ceil(size / 2)))


class Gate:
    """Watches the episodes of a run.

    Stops it when the Wilson lower bound of the failure rate over the last `gate_window` episodes is above `gate_rate`,
    or when nothing but failures came out of its first group, of its first three groups of one, or of all of it.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._window: deque[tuple[str, Failure | None, str]] = deque(maxlen=config.gate_window)
        self._minimum = min(config.gate_minimum, config.gate_window)
        self._barren = 0
        self._fruitful = False

    def observe(self, done: EpisodeRecord) -> None:
        """Count one finished episode.

        Raises:
            RunStopped: Too many failed.
        """
        trace = done.trace
        self._window.append((trace.task, trace.failure, done.failure_text))
        limit = self._config.gate_rate
        if limit is None or len(self._window) < self._minimum:
            return
        if trace.failure is None and len(self._window) > self._minimum:
            return  # A success raises no rate; only the first judgement of all may come with one.
        failed, seen = sum(failure is not None for _, failure, _ in self._window), len(self._window)
        low, high = wilson(failed, seen)
        if low > limit:
            raise RunStopped(
                f"{failed} of the last {seen} episodes failed: a failure rate of {low:.1%} to {high:.1%} (95 %), "
                f"above the limit of {limit:.1%} (gate_rate)",
                self.report(),
            )

    def observe_group(self, traces: Sequence[Trace]) -> None:
        """Look at a whole group.

        Raises:
            RunStopped: Every episode failed, and so did all before it; a group of one alone may be bad luck.
        """
        self._fruitful = self._fruitful or not all(trace.failure for trace in traces)
        self._barren += len(traces)
        if len(traces) > 1 or self._barren >= PATIENCE:
            self.close()

    def close(self) -> None:
        """The run is at its end.

        Raises:
            RunStopped: Every episode of it failed.
        """
        if self._barren and not self._fruitful and self._config.gate_rate is not None:
            plural = "s" if self._barren > 1 else ""
            raise RunStopped(f"{self._barren} episode{plural} played so far, and every one failed", self.report())

    def report(self) -> str:
        """Failures by component, kind and task, most frequent first; one line each, with an example."""
        kinds: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for task, failure, text in self._window:
            if failure is not None:
                kinds.setdefault((failure.component, failure.kind), []).append((task, text))
        lines: list[str] = []
        for (component, kind), failed in sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0])):
            often = ", ".join(f"{task} ({n})" for task, n in Counter(task for task, _ in failed).most_common(3))
            lines.append(f"  {component}  {kind}: {len(failed)}, in {often}; e.g. {failed[0][1]}")
        return "\n".join(lines)
