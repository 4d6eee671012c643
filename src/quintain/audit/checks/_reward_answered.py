"""Checks calls whose answer shows the request as done while the world has not changed.

A good call has shown which field of the world follows which argument. The same call with another value, such as the
place that another row has, or a text that cannot be read, is refused or does likewise; it does not answer with the row
as it would be, and leave it as it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_number, parsed
from quintain.audit.facts.variations import Variation, changed
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Record
from quintain.audit.kernel.registry import relation

from ._drift_told import takes
from ._drift_words import SAYS
from ._reward_acts import is_status

_MAX_FINDINGS = 3
"""Largest number of findings."""
_OTHERWISE = re.compile(
    r"\b(pending|queue\w*|schedul\w*|approv\w*|draft\w*|preview\w*|propos\w*|later|simulat\w*|conflict\w*|taken"
    r"|refus\w*|reject\w*|unchanged|skipp\w*|ignor\w*|already)\b",
    re.IGNORECASE,
)
"""Words of an answer that says that it is not done, or not yet."""


@check("x.answered_and_not_done", "false_resolution", needs=("tools", "call", "state", "tasks"), value=88)
def answered_and_not_done(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a call whose answer reports its request as done has done it."""
    tried = [candidate for candidate in ctx.variations.all if candidate.works and candidate.changes == {}]
    good = {
        _key(candidate): candidate
        for candidate in ctx.variations.all
        if candidate.kind == "good" and candidate.works and candidate.changes
    }
    if not good:
        raise NotChecked("no call is seen to change anything")
    reported: set[str] = set()
    for variation in tried:
        base = good.get(_key(variation))
        if (
            base is None
            or variation.kind == "illegal"
            or variation.tool.name in reported
            or len(reported) >= _MAX_FINDINGS
        ):
            continue
        ctx.count_comparisons()
        name = _only_said(variation, base)
        if not name:
            continue
        found = ctx.finding(
            f"{variation.tool.name} answers with the given {name}, and the world is unchanged",
            variation.probe(looks=True),
            base.probe(looks=True),
            relation=f"{__name__}:only_said",
            marks=("call",),
            data=name,
            minimise=0,
            expected=f"an error, or {name} = {variation.arguments[name]!r} in the world as in the answer",
            observed={"answer": variation.seen.value, "changes": []},
            teaches="to trust a tool's report of success",
        )
        if found is not None:
            reported.add(variation.tool.name)
            yield found


def _key(variation: Variation) -> str:
    return f"{variation.tool.name} {variation.base_state.task} {variation.base_state.before} {variation.good}"


def _only_said(variation: Variation, base: Variation) -> str:
    """The argument that the answer alone has taken; empty for none."""
    asked = (variation.arguments, base.arguments)
    answers = (variation.seen.value, base.seen.value)
    names = [text for text in variation.arguments if variation.arguments[text] != base.arguments.get(text)]
    return next((name for name in names if _is_said(name, asked, answers, moved=base.changes or {})), "")


@relation
def only_said(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first call works, changes nothing, and shows its argument as the second does, which sets a field to it."""
    calls = [record.at("call") for record in records[:2]]
    moved = [changed(record.at("was").value, record.at("look").value) for record in records[:2]]
    asked = [next(op.value for op in record.ops if op.mark == "call") for record in records[:2]]
    if any(result.is_error for result in calls) or moved[0] != {} or not moved[1]:
        return False
    return _is_said(evidence.data, (asked[0], asked[1]), (calls[0].value, calls[1].value), moved=moved[1])


def _is_said(name: str, asked: tuple[Any, Any], answers: tuple[Any, Any], *, moved: dict[str, list[Any]]) -> bool:
    """True if both answers show the argument in one field and only the second world has it."""
    own_value, other_value = asked[0].get(name), asked[1].get(name)
    if not _is_telling(own_value) or not _is_telling(other_value):
        return False
    set_to = [(was, new) for was, new in moved.values() if takes(new, other_value) and not takes(was, other_value)]
    if not set_to or any(takes(was, own_value) for was, _ in set_to):
        return False
    first, second = parsed(answers[0]), parsed(answers[1])
    if not (is_dict(first) and is_dict(second)) or first.keys() != second.keys():
        return False
    if _says_otherwise(first, second) or _words(first, own_value) - _words(second, other_value):
        return False
    return any(
        takes(first[key], own_value) and takes(second[key], other_value)
        for key in first
        if not takes(first[key], other_value)
    )


def _is_telling(value: Any) -> bool:
    return is_number(value) or (isinstance(value, str) and len(value.strip()) > 1)


def _says_otherwise(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """True if an answer has another status or flag than that of the call that worked."""
    return any(first[key] != second[key] for key in first if isinstance(first[key], bool) or is_status(key))


def _words(answer: dict[str, Any], asked: Any) -> set[str]:
    """Returns the words of doubt in an answer, outside of the repeated argument."""
    text = json.dumps(answer, ensure_ascii=False, default=str).replace(str(asked), "")
    return {word.group().lower() for doubt in (SAYS, _OTHERWISE) for word in doubt.finditer(text)}
