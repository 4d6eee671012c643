"""Failure rate of a subject's episodes, with exact bounds.

Solutions are played if there are any, else drawn calls. An episode without a solution may have no verdict before its
end, so without one it is not counted.
"""

from __future__ import annotations

import collections
import itertools
import math

import msgspec

from quintain.audit.kernel.child import SubjectBroken
from quintain.audit.kernel.context import AuditContext, OutOfTime
from quintain.audit.kernel.probe import Op, Probe, Record, answer, call, number, reset, score

from .bounds import bounds
from .generate import Values, valid

LINE = 0.05  # failure rate above which a run should stop; certified only if the upper bound is below
ENOUGH = math.ceil(math.log(0.05) / math.log(1 - LINE))
"""Episodes without a failure that certify a rate below the line with 95 % confidence: 59."""
_FIRST = 8
"""Episodes that are played first: if all fail, the rest are not played, because each hang costs the whole limit."""

_DRAWN_CALLS = 20  # calls of an episode without a known solution
_DRAWN = "drawn"


class Rate(msgspec.Struct, frozen=True):
    """Failure rate of episodes, with one-sided 95 % bounds and counts by score ("none" without a verdict)."""

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
    rounds = itertools.islice(itertools.product(range(ENOUGH), ctx.tasks), max(ENOUGH, len(ctx.tasks)))
    try:
        known = ctx.oracles(ctx.tasks)
        scripts = [(n, task, known[task]) for n, task in rounds]
        probes = [
            Probe((reset(task, seed=ctx.seed + n), *(_drawn(ctx) if ops is None else ops), score()))
            for n, task, ops in scripts
        ]
        records = ctx.play_all(probes[:_FIRST])
        records += [] if all(map(failed, records)) else ctx.play_all(probes[_FIRST:])
    except (OutOfTime, SubjectBroken):
        return Rate()
    records = [record for record in records if failed(record) or record.at("score").value is not None]
    failures = sum(map(failed, records))
    paid = sorted((number(record.at("score")) for record in records), key=lambda score: (score is None, score or 0.0))
    scores = dict(collections.Counter("none" if score is None else f"{score:.4g}" for score in paid))
    return (
        Rate(failures, len(records), *bounds(failures, len(records), one_sided=True), scores) if ctx.tasks else Rate()
    )


def _drawn(ctx: AuditContext) -> tuple[Op, ...]:
    if not ctx.about.tools:
        return (answer("yes", mark=_DRAWN),) if "answer" in ctx.offers else ()
    tools = ctx.rng.choices(ctx.about.tools, k=_DRAWN_CALLS)
    return tuple(call(tool.name, valid(tool, Values(), ctx.rng), mark=_DRAWN) for tool in tools)


def failed(record: Record) -> bool:
    """True if an episode hung or crashed, or if a solution got no verdict; a drawn call may crash."""
    drawn = [op.mark == _DRAWN for op in record.ops]
    pairs = zip(record.seen, drawn, strict=False)
    is_broken = any(seen.how == "hung" or (seen.how == "crashed" and not is_drawn) for seen, is_drawn in pairs)
    return bool(record.died) or is_broken or (not any(drawn) and record.at("score").value is None)
