"""Failure rate of a subject's episodes, with exact bounds; oracle solutions are played if there are any."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Sequence

import msgspec

from quintain.audit.kernel.child import SubjectBroken
from quintain.audit.kernel.context import AuditContext, OutOfTime
from quintain.audit.kernel.probe import Probe, Record, number, reset, score

from .bounds import bounds

LINE = 0.05
"""Failure rate above which a run should stop; certified only if the upper bound is below."""
ENOUGH = math.ceil(math.log(0.05) / math.log(1 - LINE))
"""Episodes without a failure that certify a rate below the line with 95 % confidence: 59."""
_FIRST = 8
"""Episodes that are played first: if all fail, the rest are not played, because each hang costs the whole limit."""


class Rate(msgspec.Struct, frozen=True):
    """Failure rate of episodes.

    Attributes:
        low, high: One-sided 95 % Clopper-Pearson bounds of the rate.
        scores: Number of episodes by score, in four digits; "none" for episodes without a verdict.
    """

    failures: int = 0
    episodes: int = 0
    low: float = 0.0
    high: float = 1.0
    scores: dict[str, int] = {}

    @property
    def is_low(self) -> bool:
        """True if the upper bound of the rate is below the line."""
        return self.high < LINE


def measure(ctx: AuditContext) -> Rate:
    """Plays at least `ENOUGH` episodes, each task in turn under new seeds; a few if the first all fail.

    Returns an empty rate without tasks, time or a working subject.
    """
    if not ctx.tasks:
        return Rate()
    rounds = itertools.product(range(ENOUGH), ctx.tasks)
    wanted = max(ENOUGH, len(ctx.tasks))
    try:
        probes = [
            Probe((reset(task, seed=ctx.seed + n), *(ctx.oracle(task) or ()), score()))
            for n, task in itertools.islice(rounds, wanted)
        ]
        records = ctx.play_all(probes[:_FIRST])
        if not all(map(failed, records)):
            records += ctx.play_all(probes[_FIRST:])
    except (OutOfTime, SubjectBroken):
        return Rate()
    failures = sum(map(failed, records))
    return Rate(failures, len(records), *bounds(failures, len(records), one_sided=True), _scores(records))


def _scores(records: Sequence[Record]) -> dict[str, int]:
    paid = [number(record.at("score")) for record in records]
    ordered = sorted(paid, key=lambda score: (score is None, score or 0.0))
    return dict(collections.Counter("none" if score is None else f"{score:.4g}" for score in ordered))


def failed(record: Record) -> bool:
    """True if an episode crashed, hung or had no verdict."""
    verdict = record.at("score")
    return bool(record.died or record.broken) or not verdict.fine or verdict.value is None
