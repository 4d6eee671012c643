"""Rule 2: missing or impossible rewards."""

from __future__ import annotations

import math
from typing import Any

from quintain.audit.triage.case import Case, RuleResult
from quintain.audit.triage.episode_log import EpisodeLog
from quintain.audit.triage.labels import Label
from quintain.trace import Level, Trace

_CLOSE = 1e-9
_MAX_SHARE = 0.5


def reward(case: Case) -> RuleResult:
    """Labels a reward that is missing, not a number, without its verdicts, or recorded next to a failure."""
    return [*_value(case.played), *_record(case), *_limit(case.played)]


def _said(why: str, **fields: Any) -> Label:
    given: dict[str, Any] = {"owner": "verifier", "classes": ("silent_default",)} | fields
    return Label(rule=2, why=why, **given)


def _value(one: EpisodeLog) -> list[Label]:
    if one.reward is None and one.broken is None:
        what = "ended without a score" if one.has_reward else "has no field for a reward"
        return [_said(f"the episode {what}", visibility="loud", confidence="proven" if one.end else "likely")]
    if one.reward is not None and not math.isfinite(one.reward):
        return [_said(f"the reward is {one.reward}", visibility="loud", classes=("reward_clipping",))]
    if one.reward is not None and one.broken is not None:
        return [_said(f"the episode failed, and was given the reward {one.reward:g} all the same")]
    return []


def _record(case: Case) -> list[Label]:
    one, trace = case.played, case.played.trace
    if one.reward is None or one.broken is not None:
        return []
    if trace is None:
        if not one.components and case.run.has_components > _MAX_SHARE:
            return [_said("no criterion has a verdict here, though most episodes record them", confidence="likely")]
        return []
    missing = sorted(set(trace.criteria) - {reward.name for reward in trace.every_reward()})
    if missing:
        return [_said(f"the score is there, but criteria without a verdict are {', '.join(missing)}")]
    if trace.rewards and not _adds_up(trace):
        return [_said(f"the score {trace.score} is neither the sum nor the product of the verdicts recorded with it")]
    return []


def _adds_up(trace: Trace) -> bool:
    counted = [r for r in trace.rewards if r.level is Level.TRAJECTORY and r.value is not None]
    values = [(r.value or 0.0, r.weight) for r in counted]
    totals = (math.fsum(v * w for v, w in values), math.prod(v for v, _ in values))
    return any(math.isclose(total, trace.score or 0.0, rel_tol=_CLOSE, abs_tol=_CLOSE) for total in totals)


def _limit(one: EpisodeLog) -> list[Label]:
    """Labels an episode that used all replies in the middle of its work without being marked as truncated."""
    last = one.said[-1] if one.said else None
    cut = last is not None and one.limit is not None and len(one.said) >= one.limit and last.calls > 0
    if one.form == "quintain" or not cut or one.end in ("truncated", "failed"):
        return []
    why = f"all {one.limit} replies were used up in the middle of work, and the record does not say it was cut short"
    return [_said(why, owner="trainer", confidence="likely", turn=len(one.said) - 1)]
