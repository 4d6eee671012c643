"""Relations about a judge: its grade for replies of a stub model, and the questions it sends to that model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, reset
from quintain.audit.kernel.registry import Relation, relation

from ._drift_words import show

MARK = "qzxg the marked answer qzxh"
NEEDS = ("judge", "tasks")
EPSILON = 1e-9


def judged(task: str, says: str | list[str], said: str = MARK, *, mark: str = "judge") -> tuple[Op, ...]:
    """A task, begun, and its judge asked about an answer, with a model that replies `says`."""
    return (reset(task), Op("judge", name=task, value={"answer": said, "says": says}, mark=mark))


def is_part(ctx: AuditContext) -> bool:
    """True if the judge is a part of an environment, which may ask more of an answer."""
    return ctx.about.kind == "environment"


def grade(seen: OpResult) -> float | None:
    """The number that a judge gave; None for no verdict."""
    found: Any = seen.value.get("grade") if seen.fine and is_dict(seen.value) else None
    if is_dict(found):
        found = found.get("score")
    return float(found) if isinstance(found, bool) or is_number(found) else None


def asked(seen: OpResult) -> list[str]:
    """Returns the texts sent to the judge's model."""
    texts: Any = seen.value.get("asked") if seen.fine and is_dict(seen.value) else None
    return [str(text) for text in texts] if is_list(texts) else []


# --- relations: each states the bug ---

Grades = Sequence[float | None]


def _more(odd: float | None, good: float | None) -> bool:
    return odd is not None and good is not None and odd > good + EPSILON


RULES: dict[str, Callable[[Grades], bool]] = {
    # A reply without a verdict got a grade.
    "graded": lambda grades: grades[0] is not None,
    # The bad verdict is graded like the good one; an empty reply otherwise.
    "as_good_as": lambda grades: None not in grades[:2] and not _more(grades[1], grades[0]) and grades[2] != grades[1],
    # The good verdict, the second one, is graded less when it is written as in the first.
    "less_good": lambda grades: _more(grades[1], grades[0]),
    # A reply gets more than the best verdict.
    "beyond": lambda grades: _more(grades[0], grades[1]),
    "constant": lambda grades: None not in grades and len(set(grades)) == 1,
}


@relation
def grades_by(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the rule that `data` names holds for the grades of the probes."""
    return RULES[evidence.data]([grade(record.at("judge")) for record in records])


def graded_by(ctx: AuditContext, rule: str, title: str, *probes: Sequence[Op], **fields: Any) -> Finding | None:
    """Returns the finding that a rule holds for the grades of probes."""
    return claimed(ctx, title, grades_by, *probes, data=rule, **fields)


def claimed(ctx: AuditContext, title: str, law: Relation, /, *probes: Sequence[Op], **fields: Any) -> Finding | None:
    """Returns the finding that a relation holds for questions to the judge."""
    return show(ctx, title, law, *(Probe(tuple(ops)) for ops in probes), **{"marks": ("judge",), "part": "V"} | fields)


@relation
def unseen(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the judge's question lacks the words in `data` and does not report an omission.

    Words of omission that also stand in the question about a short answer (second probe) refer to something else.
    """
    text, *usual = ("\n".join(asked(record.at("judge"))) for record in records)
    known = {word for other in usual for word in _LEFT_OUT.findall(other)}
    return bool(text) and str(evidence.data) not in text and not set(_LEFT_OUT.findall(text)) - known


_LEFT_OUT = re.compile(r"truncat|omitted|\[\.\.\.\]|…|shortened")


@relation
def unfenced(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the second answer, which closes the fence of the first and imitates the judge, is sent unchanged.

    Where line breaks in it are lost, a line may be the fence: another line must hold the agent's words in `data`.
    """
    fence, said = around(records[0], MARK), str(records[1].ops[-1].value["answer"])
    texts = asked(records[1].at("judge"))
    if fence is None or f"{fence[0]}{said}{fence[1]}" in texts:
        return fence is not None
    before, behind = fence
    is_bare = before.endswith("\n") and behind.startswith("\n") and not re.search(r"\blines?\b", before + behind)
    is_elsewhere = bool(evidence.data) and (evidence.data in before or evidence.data in behind)
    is_sent = " ".join(f"{before}{said}{behind}".split()) in (" ".join(text.split()) for text in texts)
    tags = set(re.findall(r"<([\w-]+)[^<>]*>", before)) & set(re.findall(r"</([\w-]+)", behind))
    return is_bare and is_elsewhere and is_sent and not (tags or {m for m in _MARKS if m in before and m in behind})


def around(record: Record, said: str) -> tuple[str, str] | None:
    """Returns the text before and after the answer in the judge's question, or None unless it stands there once."""
    parts = [text.split(said) for text in asked(record.at("judge")) if text.count(said) == 1]
    return (parts[0][0], parts[0][1]) if parts else None


def is_fence(before: str, behind: str) -> bool:
    """True if a closing delimiter stands right after the answer and its counterpart right before it."""
    head, tail = before.rstrip("\n ")[-40:], behind.lstrip("\n ")[:40]
    tag = re.search(r"<([\w-]+)[^<>]*>$", head)
    is_named = re.search(r"(?i)(?:begin|start|\[)[^\n]*$", head) and re.match(r"(?i)\W*(?:end|\[)", tail)
    is_fenced = is_named or (tag is not None and tail.startswith(f"</{tag.group(1)}"))
    return bool(is_fenced) or any(head.endswith(mark) and tail.startswith(mark) for mark in (*_MARKS, "###", '"'))


_MARKS = ('"""', "```", "'''", "---", "===", "«")
