"""Rule 5: reads of overwritten values, and answers that do not depend on the question."""

from __future__ import annotations

import re
from typing import Any

from quintain.audit.triage.case import Case, RuleResult
from quintain.audit.triage.labels import Confidence, Label
from quintain.audit.triage.siblings import repeated

_CRASH = re.compile(r"Traceback \(most recent call last\)|^\s+File \"[^\"]+\", line \d+", re.MULTILINE)
_CODE = {"code", "command", "cmd", "script", "source", "program", "python", "bash"}
"""Arguments whose program may crash by itself; a traceback is then a valid answer."""
_LIMIT = 0.95


def shadow(case: Case) -> RuleResult:
    """Labels stale reads, answers repeated for unrelated arguments, crashes, and calls as long as their limit."""
    return [*_cold(case), *_stale(case), *_repeats(case), *_crashes(case), *_long(case)]


def _cold(case: Case) -> list[Label]:
    """Labels an answer that a copy of the same world does not give."""
    left = case.evidence.cold
    if left is None:
        return []
    why = f"a copy of the same world answers {left.found[:80]!r}, where the world answered {left.recorded[:80]!r}"
    return [Label(rule=5, owner="env", classes=("stale_cache",), why=why, turn=left.turn, step=left.step)]


def _stale(case: Case) -> list[Label]:
    labels: list[Label] = []
    for n, one in enumerate(case.run.shadows[case.played.index].suspects):
        sure: Confidence = "likely" if case.run.confirmed[one.mapping] else "hint"
        if n in case.evidence.stale:
            sure = "proven"
        elif sure == "likely" and not case.evidence.missing and case.evidence.left is None:
            sure = "hint"  # the world answers like this again, and does not contradict itself
        why = f"{one.tool} set {one.field} of {one.key} to {one.new!r}, and a later read still shows {one.old!r}"
        fields: dict[str, Any] = {"turn": one.turn, "step": one.step}
        labels.append(Label(rule=5, owner="env", classes=("stale_cache",), confidence=sure, why=why, **fields))
    return labels


def _repeats(case: Case) -> list[Label]:
    return [
        Label(
            rule=5,
            owner="env",
            classes=("silent_default",),
            confidence="hint",
            why=f"{call.name} gave one answer to {count} calls with unrelated arguments",
            turn=call.turn,
            step=call.step,
        )
        for call, count in repeated(case.played)
    ]


def _crashes(case: Case) -> list[Label]:
    for call in case.played.calls:
        if call.fault is None and _CRASH.search(call.observation):
            sure: Confidence = "hint" if _CODE & (call.arguments or {}).keys() else "likely"
            why = f"{call.name} answered with a traceback"
            fields: dict[str, Any] = {"turn": call.turn, "step": call.step}
            return [
                Label(rule=5, owner="env", classes=("races",), visibility="loud", confidence=sure, why=why, **fields)
            ]
    return []


def _long(case: Case) -> list[Label]:
    one, trace = case.played, case.played.trace
    limit = trace.config.tool_timeout_s if trace is not None else None
    if one.broken is not None or limit is None or one.seconds.get("tool_s", 0.0) < _LIMIT * limit:
        return []
    why = f"the tools took {one.seconds['tool_s']:.0f} s, as long as one call may take, and none of them timed out"
    return [Label(rule=5, owner="env", classes=("silent_default",), confidence="hint", why=why)]
