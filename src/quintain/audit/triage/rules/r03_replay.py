"""Rule 3: a replay of the same replies in a fresh world gives other answers."""

from __future__ import annotations

import re
from typing import Any

from quintain.audit.triage.case import Case, RuleResult
from quintain.audit.triage.episode_log import Call, EpisodeLog
from quintain.audit.triage.evidence import FirstDifference
from quintain.audit.triage.labels import Confidence, Label, Owner
from quintain.audit.triage.plain import loaded, mapping

_OUTAGE = re.compile(
    r"\b(time[d]?[ -]?out|50[0234]|429|unavailable|rate[ -]limit|connection|refused|reset by peer)\b", re.IGNORECASE
)
_NOTHING = ("", "[]", "{}", "null", "none", "ok", "0", "false")
_SHORT = 0.5


def replay(case: Case) -> RuleResult:
    """Labels the first difference between record and replay; without an environment, of equal calls in equal worlds."""
    evidence, one = case.evidence, case.played
    if evidence.missing:
        return _compared(case) or evidence.missing
    left = evidence.left
    if left is None or (one.broken is not None and left.field in ("turns", "end")):
        return []
    if left.field == "end" and evidence.broke and one.broken is None:
        return []  # the verifier broke this time; rule 4 speaks of it
    owner, kind, what = _kind(one, left)
    where: dict[str, Any] = {"turn": left.turn, "step": left.step, "classes": (kind,)}
    if not evidence.same_version:
        why = f"another version of the environment answers otherwise ({what}); this one cannot say which is right"
        return [Label(rule=3, owner="env", confidence="hint", why=why, **where)]
    if not evidence.steady:
        where["classes"] = ("reset_leak",)
        what += ", and one replay differs from the next"
    return [Label(rule=3, owner=owner, why=f"a replay in a fresh world differs in {left.field}: {what}", **where)]


def _kind(one: EpisodeLog, left: FirstDifference) -> tuple[Owner, str, str]:
    """Returns owner, class and description of a difference, by its recorded side."""
    sides = f"recorded {_short(left.recorded)}, replayed {_short(left.found)}"
    call = next((c for c in one.calls_of(left.turn) if c.step == left.step), None)
    if call is not None and left.field in ("observation", "is_error"):
        owner, kind, what = _of_answer(one, call, left)
        return owner, kind, f"{what}; {sides}"
    if left.field == "state_digest" and left.idle:
        return "env", "silent_default", "a call was acknowledged and changed nothing"
    if left.field == "state_digest":
        return "env", "reset_leak", "the worlds differ after equal answers"
    return ("infra" if left.field in ("turns", "end") else "env"), "reset_leak", sides


def _of_answer(one: EpisodeLog, call: Call, left: FirstDifference) -> tuple[Owner, str, str]:
    earlier = [c for c in one.calls if (c.turn, c.step) < (call.turn, call.step) and c.key == call.key]
    if call.is_error and _OUTAGE.search(call.observation):
        return "infra", "silent_default", "an outage that nothing recorded as one"
    if any(c.observation == call.observation for c in earlier):
        return "env", "stale_cache", "the answer is the one from before"
    if _is_default(call.observation, left.found):
        return "env", "silent_default", "the answer is an empty or a cut one"
    if _outdated(one, call.turn, left):
        return "env", "stale_cache", "the answer shows values from before a write"
    return "env", "reset_leak", "another answer"


def _is_default(recorded: str, found: str) -> bool:
    text = recorded.strip().lower()
    if text in _NOTHING and found.strip().lower() != text:
        return True
    return len(recorded) < _SHORT * len(found) and (found.startswith(recorded) or _hollow(recorded))


def _hollow(text: str) -> bool:
    """True if an answer is a JSON object with only zeros, empty lists and nulls."""
    found = mapping(loaded(text))
    return found is not None and not any(found.values())


def _outdated(one: EpisodeLog, turn: int, left: FirstDifference) -> bool:
    """True if the recorded answer was true before an earlier call of this episode changed the world."""
    writes = [n for n in range(1, min(turn, len(one.digests))) if one.digests[n] != one.digests[n - 1]]
    seen = [call.observation for call in one.calls if writes and call.turn < turn]
    return any(len(text) > 2 and text[:300] == left.recorded for text in seen)


def _compared(case: Case) -> list[Label]:
    """Labels calls whose answer differs from that of equal calls in equal worlds."""
    labels: list[Label] = []
    for call, same, other in case.run.odd_answers(case.played):
        why = f"the same call in the same world was answered otherwise {other} times, and like this {same} times"
        sure: Confidence = "proven" if other > same else "hint"
        labels.append(
            Label(
                rule=3, owner="env", classes=("reset_leak",), confidence=sure, why=why, turn=call.turn, step=call.step
            )
        )
    return labels[:1]


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= 60 else f"{flat[:60]}…")
