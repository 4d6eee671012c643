"""Checks that a spelling accepted in most sibling tasks is accepted in all of them.

How strict a verifier is, is its author's choice, as long as it is the same for all: 1.50 for 1.5, 1,000 for 1000, a
space at the end. A spelling that is taken for the answer in most tasks of a kind and refused in a few is judged by
accident.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from quintain.audit.facts.acts import names, submits, words
from quintain.audit.facts.data import is_list
from quintain.audit.facts.siblings import SolutionRun, decimal, kinds, skeleton, solution_runs
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Record, number
from quintain.audit.kernel.registry import relation

from ._reward_runs import runs_of

_TASKS, _KINDS, _LEAST = 24, 3, 3
"""Tasks of a kind and kinds that are tried; tasks that must take a spelling."""
_SETS = names(
    "attendees participants members guests invitees recipients tags labels watchers cc bcc "
    "helpers users people emails assignees reviewers approvers"
)
"""Names of lists whose order has no meaning."""
_IN_ORDER = re.compile(
    r"\b(in (this|that|the (given|same|following)) order|sorted|ranked?|ranking|ordered)\b", re.IGNORECASE
)


@check("x.spelling_by_task", "flaky_verifier", needs=("oracle", "tasks"), value=41)
def spelling_by_task(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a spelling accepted in some tasks is accepted in all tasks of their kind."""
    large = sorted((kind for kind in kinds(ctx, _alike) if len(kind) > _LEAST), key=len, reverse=True)
    for family in large[:_KINDS]:
        yield from _uneven(ctx, family[:_TASKS])


def _uneven(ctx: AuditContext, family: Sequence[SolutionRun]) -> Iterator[Finding | None]:
    taken: dict[str, list[tuple[SolutionRun, tuple[Op, ...]]]] = defaultdict(list)
    refused: dict[str, list[tuple[SolutionRun, tuple[Op, ...]]]] = defaultdict(list)
    for one in family:
        ways = [(said, _saying(one, text)) for said, text in spellings(str(_own(one)))]
        for (said, ops), run in zip(ways, runs_of(ctx, one.task, [ops for _, ops in ways]), strict=True):
            ctx.count_comparisons()
            if run.score is not None and not run.errors:
                (taken if run.score >= one.full - 1e-9 else refused)[said].append((one, ops))
    for said, odd in refused.items():
        even, (one, ops) = taken[said], odd[0]
        if len(even) >= max(_LEAST, 2 * len(odd)):
            yield ctx.finding(
                f"{said} is the right answer in most tasks of a kind, and not in some", solves(one.task, ops),
                solves(one.task, one.ops), *(solves(other.task, way) for other, way in even[:3]),
                relation=f"{__name__}:unevenly", marks=("score",),
                data=[one.full, *(other.full for other, _ in even[:3])], minimise=0, part="V",
                tasks=[other.task for other, _ in odd],
                expected=f"{one.full:g}, as in {len(even)} other tasks of this kind",
                observed=f"less: {_own(one)!r} is right and {ops[-1].value!r} is not",
                teaches="that spelling sometimes decides the reward",
            )  # fmt: skip
            return


@relation
def unevenly(records: Sequence[Record], evidence: Evidence) -> bool:
    """A spelling is not paid in the first probe, where the answer's own is, and it is in the others."""
    scores = [number(record.at("score")) for record in records]
    worked = not any(seen.is_error for record in records for seen in record.seen[1:-1])
    fulls = [evidence.data[0], *evidence.data]
    paid = [score is not None and score >= full - 1e-9 for score, full in zip(scores, fulls, strict=True)]
    return worked and scores[0] is not None and not paid[0] and all(paid[1:])


def spellings(own: str) -> Iterator[tuple[str, str]]:
    """Other ways to write exactly the same, each with what it is called."""
    value, text = decimal(own), own.strip()
    if value is not None and re.fullmatch(r"[-+]?\d+(\.\d+)?", text) and abs(value) < Decimal(10) ** 15:
        if "." in text:
            yield "a number with one more zero at its end", f"{text}0"
            if text.endswith("0"):
                yield "a number without the zeros at its end", text.rstrip("0").rstrip(".")
        else:
            yield "a number as 5.0 in place of 5", f"{text}.0"
            if abs(value) >= 1000:
                yield "a number with commas between its thousands", f"{int(value):,}"
        yield "a number as a power of ten", f"{value.normalize():e}"
    elif value is None and len(text.split()) <= 8:
        for said, other_text in (
            ("an answer in capitals", text.upper()),
            ("an answer in small letters", text.lower()),
            ("an answer without spaces behind its commas", re.sub(r",\s+", ",", text)),
        ):
            if other_text != text:
                yield said, other_text
    yield "an answer with a space at its end", f"{own} "
    yield "an answer with a line break at its end", f"{own}\n"


# --- answers ---


def _own(solution_run: SolutionRun) -> str | None:
    """The answer as text; None where none is given, or one of many words."""
    last = solution_run.ops[-1]
    found: Any = last.value if last.do == "answer" else None
    if last.do == "call" and submits(last) and len(last.value) == 1:
        found = next(iter(last.value.values()))
    return found if isinstance(found, str) and found.strip() and len(found) <= 80 else None


def _saying(solution_run: SolutionRun, text: str) -> tuple[Op, ...]:
    last = solution_run.ops[-1]
    value: Any = text if last.do == "answer" else dict.fromkeys(last.value, text)
    return (*solution_run.ops[:-1], msgspec.structs.replace(last, value=value))


def _alike(solution_run: SolutionRun) -> tuple[tuple[str, ...], str] | None:
    """Returns the prompt's skeleton, and the type of the answer: text, or a kind of number."""
    own = _own(solution_run)
    if own is None:
        return None
    number_form = "fraction" if "." in own else "power" if "e" in own.lower() else "whole"
    return skeleton(solution_run.prompt), "text" if decimal(own) is None else number_form


def turned_lists(ctx: AuditContext, task: str) -> Callable[[Op, ToolSpec | None], Op]:
    """Reverses the set-like lists of a call, unless the prompt asks for an order."""
    prompt = next((solution_run.prompt for solution_run in solution_runs(ctx) if solution_run.task == task), "")

    def turned(op: Op, _tool: ToolSpec | None) -> Op:
        if op.do != "call" or not prompt or _IN_ORDER.search(prompt):
            return op
        sets = {name for name, item in op.value.items() if is_list(item) and {*words(name)} & _SETS}
        value = {name: item[::-1] if name in sets else item for name, item in op.value.items()}
        return msgspec.structs.replace(op, value=value)

    return turned
