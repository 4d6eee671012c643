"""Relations about a judge: its grade for replies of a stub model, and the questions it sends to that model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence
from quintain.audit.kernel.probe import Op, OpResult, Record, reset
from quintain.audit.kernel.registry import relation

MARK = "qzx7 the marked answer qzx8"
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


@relation
def graded(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if a reply without a verdict got a grade."""
    return grade(records[0].at("judge")) is not None


@relation
def as_good_as(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The bad verdict of the first probe is graded like the good one of the second; an empty reply otherwise."""
    bad, good = (grade(record.at("judge")) for record in records[:2])
    none = records[2].at("judge")
    return bad is not None and good is not None and bad >= good - EPSILON and grade(none) != good


@relation
def less_good(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The good verdict of the second probe is graded less when it is written as in the first."""
    odd, good = (grade(record.at("judge")) for record in records)
    return odd is not None and good is not None and odd < good - EPSILON


@relation
def beyond(records: Sequence[Record], _evidence: Evidence) -> bool:
    """A reply gets more than the best verdict."""
    odd, good = (grade(record.at("judge")) for record in records)
    return odd is not None and good is not None and odd > good + EPSILON


@relation
def constant(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if the grade is the same number for every reply."""
    grades = [grade(record.at("judge")) for record in records]
    return None not in grades and len(set(grades)) == 1


@relation
def unseen(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the judge's question lacks the words in `data` and does not report an omission.

    Words of omission that also stand in the question about a short answer (second probe) refer to something else.
    """
    texts = asked(records[0].at("judge"))
    text = "\n".join(texts)
    usual = {word for record in records[1:] for word in _LEFT_OUT.findall("\n".join(asked(record.at("judge"))))}
    return bool(texts) and str(evidence.data) not in text and not set(_LEFT_OUT.findall(text)) - usual


_LEFT_OUT = re.compile(r"truncat|omitted|\[\.\.\.\]|…|shortened")


@relation
def unfenced(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if the second answer, which closes the fence of the first and imitates the judge, is sent unchanged."""
    fence = around(records[0], MARK)
    said = str(records[1].ops[-1].value["answer"])
    texts = asked(records[1].at("judge"))
    return fence is not None and any(f"{fence[0]}{said}{fence[1]}" == text for text in texts)


def around(record: Record, said: str) -> tuple[str, str] | None:
    """Returns the text before and after the answer in the judge's question, or None unless it stands there once."""
    texts = [text for text in asked(record.at("judge")) if text.count(said) == 1]
    if not texts:
        return None
    before, _, behind = texts[0].partition(said)
    return before, behind


def is_fence(before: str, behind: str) -> bool:
    """True if a closing delimiter stands right after the answer and its counterpart right before it."""
    head, tail = before.rstrip("\n ")[-40:], behind.lstrip("\n ")[:40]
    tag = re.search(r"<([\w-]+)[^<>]*>$", head)
    if tag and tail.startswith(f"</{tag.group(1)}"):
        return True
    if re.search(r"(?:begin|start|\[)[^\n]*$", head, re.IGNORECASE) and re.match(r"\W*(?:end|\[)", tail, re.IGNORECASE):
        return True
    return any(
        head.endswith(mark) and tail.startswith(mark) for mark in ('"""', "```", "'''", "---", "===", "###", '"', "«")
    )
