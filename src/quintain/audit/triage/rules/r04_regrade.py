"""Rule 4: regrading the same end gives another score."""

from __future__ import annotations

import math

from quintain.audit.triage.case import Case, RuleResult
from quintain.audit.triage.labels import Confidence, Label


def regrade(case: Case) -> RuleResult:
    """Compares the recorded reward with several new gradings of the same end."""
    evidence, one = case.evidence, case.played
    if evidence.missing:
        return _compared(case) or evidence.missing
    moved = evidence.left is not None and evidence.left.field != "end"
    if moved or one.broken is not None:
        return []  # not the same end
    if not evidence.same_version:
        return "the environment is another version, whose verifier may rightly say otherwise"
    scores = evidence.scores
    names = [name for name, value in evidence.criteria.items() if not _same(one.components.get(name), value)]
    if not names and all(_same(one.reward, score) for score in scores):
        return []
    said = ", ".join("no verdict" if score is None else f"{score:g}" for score in scores)
    which = f"; other verdicts of {', '.join(names)}" if names else ""
    recorded = "none" if one.reward is None else f"{one.reward:g}"
    why = f"the recorded reward is {recorded}, graded again the same end gets {said}{which}"
    return [Label(rule=4, owner="verifier", classes=("flaky_verifier",), why=why)]


def _compared(case: Case) -> list[Label]:
    same, other = case.run.other_rewards(case.played)
    if not other:
        return []
    why = f"episodes that are equal word for word earned otherwise {other} times, and like this {same} times"
    sure: Confidence = "proven" if other > same else "hint"
    return [Label(rule=4, owner="verifier", classes=("flaky_verifier",), confidence=sure, why=why)]


def _same(a: float | None, b: float | None) -> bool:
    return a == b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
