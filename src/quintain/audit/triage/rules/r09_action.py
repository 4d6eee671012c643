"""Rule 9: calls against the advertised schema, and who is to blame for a refusal."""

from __future__ import annotations

import re
from typing import Any

from quintain.audit.triage.case import Case, RuleResult
from quintain.audit.triage.episode_log import Call
from quintain.audit.triage.labels import Label
from quintain.audit.triage.schema import violation

_NO_TOOL = re.compile(r"\b(no (such )?tool|unknown (tool|function)|tool .{0,40}not (found|available))\b", re.IGNORECASE)
_NO_FIT = re.compile(
    r"unexpected keyword|unexpected argument|missing \d+ required|missing required|validation error"
    r"|invalid (type|schema)|unknown (field|parameter|argument)|expected `|does not match (the )?schema|is not of type"
    r"|extra inputs? (are|is) not permitted|field required",
    re.IGNORECASE,
)


def action(case: Case) -> RuleResult:
    """Labels calls to unknown tools or against the schema as the policy's, and the reverse as the environment's."""
    tools = case.known_tools
    if tools is None:
        return "no record of the tools that were advertised"
    cut = {said.turn for said in case.played.said if said.finish == "length"}
    labels: dict[tuple[str, str], Label] = {}
    for call in case.played.calls:
        if call.fault is None and call.turn not in cut:
            for label in _judged(case, call, tools):
                labels.setdefault((label.owner, label.classes[0] if label.classes else ""), label)
    return list(labels.values())


def _judged(case: Case, call: Call, tools: dict[str, dict[str, Any]]) -> list[Label]:
    label = _of_tool(case, call, tools[call.name]) if call.name in tools else _of_none(call)
    return [] if label is None else [label]


def _label(call: Call, why: str, **fields: Any) -> Label:
    given: dict[str, Any] = {"owner": "env", "classes": ("action_drift",), **fields}
    return Label(rule=9, why=why, turn=call.turn, step=call.step, **given)


def _of_none(call: Call) -> Label:
    if call.is_error:
        return _label(
            call,
            f"the environment has no tool {call.name!r}",
            owner="policy",
            classes=(),
            visibility="loud",
            confidence="likely",
        )
    return _label(call, f"{call.name!r} was carried out, and is not among the advertised tools", confidence="hint")


def _of_tool(case: Case, call: Call, schema: dict[str, Any]) -> Label | None:
    broken = violation(schema, call.arguments) if call.arguments is not None else "the arguments are no JSON object"
    if call.is_error and _NO_TOOL.search(call.observation):
        why = f"{call.name!r} is advertised, and the environment answers that the tool does not exist"
        return _label(call, why, visibility="loud")
    if broken and call.is_error:
        return _label(
            call, f"{call.name} refused: {broken}", owner="policy", classes=(), visibility="loud", confidence="likely"
        )
    if broken and call.answered and not case.lenient:
        return _label(call, f"{call.name} accepted what its schema forbids: {broken}", confidence="hint")
    if not broken and call.is_error and _NO_FIT.search(call.observation):
        why = f"{call.name} refused arguments that fit its schema: {call.observation[:120]}"
        return _label(call, why, visibility="loud")
    return None
