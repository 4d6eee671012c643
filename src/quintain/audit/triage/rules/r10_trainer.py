"""Rule 10: the trainer's own machinery lost a part of a reply."""

from __future__ import annotations

import re
from typing import Any

from quintain.audit.triage.case import Case, RuleResult
from quintain.audit.triage.episode_log import Utterance
from quintain.audit.triage.labels import Label
from quintain.audit.triage.plain import loaded, mapping, sequence

_MARKUP = re.compile(
    r"<tool_call>\s*(?P<a>\{.*?\})\s*</tool_call>|<\|tool_call\|>\s*(?P<b>\{.*?\})\s*(?:<\||$)"
    r"|\[TOOL_CALLS\]\s*(?P<c>\[.*?\])\s*$|```(?:json|tool_call)\s*(?P<d>\{.*?\})\s*```",
    re.DOTALL,
)
_OPEN = re.compile(r"<tool_call>(?!.*</tool_call>)|<\|tool_call\|>[^}]*$|\[TOOL_CALLS\][^\]]*$", re.DOTALL)
_SHARE = 0.9


def trainer(case: Case) -> RuleResult:
    """Labels calls that were not parsed or not answered, and replies or tokens that were cut."""
    tools = case.known_tools
    labels: list[Label] = []
    for said in case.played.said:
        if said.role == "agent":
            labels += _parsed(said, tools) + _cut(case, said)
    return [*labels, *_dropped(case), *_overflow(case), *_empty(case)]


def _label(why: str, **fields: Any) -> Label:
    return Label(rule=10, owner="trainer", why=why, **fields)


def _parsed(said: Utterance, tools: dict[str, dict[str, Any]] | None) -> list[Label]:
    """Labels a whole, valid call in the text of a reply without calls."""
    match = _MARKUP.search(said.text) if not said.calls else None
    if match is None:
        return []
    value = loaded(next(text for text in match.groups() if text))
    name = (mapping((sequence(value) or [value])[0]) or {}).get("name")
    if not isinstance(name, str) or (tools is not None and name not in tools):
        return []  # the model wrote no call that could have been made
    sure = "proven" if tools is not None else "likely"
    return [_label(f"the reply holds a call of {name!r} that was not made", confidence=sure, turn=said.turn)]


def _cut(case: Case, said: Utterance) -> list[Label]:
    if said.drawn is not None and said.counted is not None and said.drawn < _SHARE * said.counted - 1:
        why = f"the record holds {said.drawn} of the {said.counted} tokens that were drawn"
        return [_label(why, turn=said.turn)]
    if said.finish != "length":
        return []
    broken = any(call.arguments is None for call in case.played.calls_of(said.turn))
    if broken or _OPEN.search(said.text):
        return [_label("the reply was cut off in the middle of a call", confidence="likely", turn=said.turn)]
    return [_label("the reply was cut off at its limit of tokens", confidence="hint", turn=said.turn)]


def _dropped(case: Case) -> list[Label]:
    """Labels an unanswered call in the middle of the episode."""
    one = case.played
    last = one.said[-1].turn if one.said else 0
    lost = next((call for call in one.calls if not call.answered and call.turn < last), None)
    if lost is None:
        return []
    return [_label(f"the call of {lost.name!r} got no answer", turn=lost.turn, step=lost.step)]


def _empty(case: Case) -> list[Label]:
    """Labels an empty last reply of a working agent: the agent gave up, or its endpoint lost the text."""
    one = case.played
    last = one.said[-1] if one.said else None
    if last is None or last.role != "agent" or last.calls or not one.calls or one.solved:
        return []
    if last.text.strip() or last.reasoning.strip():
        return []
    why = "the last reply is empty: the agent gave up, or its endpoint did"
    return [Label(rule=10, owner="infra", confidence="hint", why=why, turn=last.turn)]


def _overflow(case: Case) -> list[Label]:
    """Labels a full context as a hint, because the agent's own limit is an outcome."""
    one = case.played
    if one.end != "truncated" or "context" not in one.reason:
        return []
    why = f"the episode was cut short by its context ({one.reason})"
    return [_label(why, confidence="hint", turn=max(0, len(one.said) - 1))]
