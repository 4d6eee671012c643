"""Rule 1: recorded failures at a boundary."""

from __future__ import annotations

from typing import Any

from quintain.audit.triage.case import Case, RuleResult
from quintain.audit.triage.episode_log import RecordedFailure
from quintain.audit.triage.labels import Confidence, Label, Owner
from quintain.errors import WALL_CLOCK_KINDS

_INFRA = (
    "transport_", "provider_", "session_", "cancelled", "kill_shaped", "shutdown", "persistence_failed",
    "cohort_incomplete", "agent_request_failed", "quintain:model_reply_invalid",
)  # fmt: skip
_BY_PART: dict[str, Owner] = {
    "T": "task", "H": "infra", "V": "verifier", "S": "env", "C": "infra", "model": "infra",
}  # fmt: skip
_BY_KIND: dict[str, tuple[str, ...]] = {
    "quintain:tool_bug": ("races",),
    "quintain:state_bug": ("races",),
    "quintain:tool_timeout": ("races",),
    "quintain:reset_failed": ("unsolvable",),
    "quintain:replay_diverged": ("reset_leak",),
    "quintain:invariant_violated": ("races",),
    "quintain:reward_out_of_range": ("reward_clipping",),
    "quintain:judge_missing": ("judge",),
    "quintain:verifier_timeout": ("races",),
    "judge_failed": ("judge",),
    "judge_unparseable": ("judge",),
    "verifier_error": ("races",),
}
_WORDS: tuple[tuple[Owner, tuple[str, ...]], ...] = (
    ("trainer", ("overlong", "context_length", "context length", "truncat")),
    ("infra", ("sandbox", "infra", "docker", "tunnel", "connect", "network", "timeout", "timed out", "unavailable")),
    ("infra", ("ratelimit", "rate limit", "429", "502", "503", "modelerror", "apierror", "emptymodelresponse")),
    ("simulator", ("simulat", "usererror")),
)
"""Words in a foreign error, by owner."""


def boundary(case: Case) -> RuleResult:
    """Labels the recorded failure by the boundary at which it happened.

    A call that hung is replayed before it is blamed: if the same call answers now, the tool was not at fault.
    """
    one = case.played
    if one.broken is None:
        return []
    owner, why, confidence = _filed(one.broken)
    if one.broken.kind in WALL_CLOCK_KINDS and one.broken.part == "S" and not case.evidence.missing:
        hangs = case.evidence.broke == one.broken.kind
        owner = "env" if hangs else "infra"
        why += (
            "; it hangs again when it is played again" if hangs else "; the same call answers when it is played again"
        )
    fields: dict[str, Any] = {"classes": _BY_KIND.get(one.broken.kind, ()), "turn": one.broken.turn}
    return [Label(rule=1, owner=owner, visibility="loud", confidence=confidence, why=why, **fields)]


def _filed(broken: RecordedFailure) -> tuple[Owner, str, Confidence]:
    said = f"{broken.type}: {broken.message}".strip(": ")[:200]
    if broken.kind:
        owner = _BY_PART.get(broken.part, "unknown")
        if broken.kind.startswith(_INFRA):
            owner = "infra"
        return owner, f"the episode broke ({broken.kind}, part {broken.part}): {said}", "proven"
    text = said.lower()
    guesses: list[Owner] = [owner for owner, words in _WORDS if any(word in text for word in words)]
    owner = guesses[0] if guesses else _BY_PART.get(broken.part, "unknown")
    return owner, f"the log records an error: {said}", "likely" if owner == "unknown" else "proven"
