"""Checks that equivalent work, done or written in another way, is paid the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from quintain.audit.facts.data import is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op

from . import _reward_runs as claims
from ._flaky_spelling import turned_lists
from ._reward_acts import names, reads_by_name, scalars, words
from ._reward_runs import Solution, runs, runs_of, solve
from ._reward_tasks import Question, asked, numeric
from ._unsolv_runs import solution_runs

Severity = Literal["error", "warning", "note"]
_MORE = (1, 3, 12)
"""So many looks more than the solution takes."""
_LOOKS = names(
    "get list search find read show view look lookup fetch describe browse see details info history cat ls grep preview"
)
"""First words of tools whose calls are free by common expectation."""
_UNIT = (
    r"(calls?|steps?|moves?|turns?|actions?|tries|attempts?|guess(es)?|quer(y|ies)|looks?|lookups?|requests?|reads?)"
)
_PRICE = re.compile(
    rf"\b(at most|no more than|within|fewer than|less than|maximum( of)?|max|up to|only|exactly|budget|limit(ed)?)\b"
    rf"[^.]{{0,24}}\b{_UNIT}\b"
    rf"|\b{_UNIT}\b[^.]{{0,40}}\b(costs?|limits?|limited|budget|penal\w*|counts?|counted|reduces?|minus|deducted)\b"
    rf"|\b{_UNIT}\b (that )?(remaining|left|are left)\b"
    rf"|\b(costs?|penal\w*|deduct\w*)\b[^.]{{0,40}}\b{_UNIT}\b"
    rf"|\b(as few|fewest|minimal number|shortest|efficien\w+|do not look|without looking)\b",
    re.IGNORECASE,
)
"""Words stating that looking has a price."""


class Variant(msgspec.Struct, frozen=True):
    """Another way to do the same.

    Attributes:
        said: What is other.
        ops: The way.
        severity, at_most: What it weighs when it is not paid: some of it may be meant.
        least: A pay up to which it weighs so much; where more is paid, it is a warning.
    """

    said: str
    ops: tuple[Op, ...]
    severity: Severity = "warning"
    at_most: str = "likely"
    least: float = float("inf")


def looks(ctx: AuditContext, solution: Solution) -> Iterator[Variant]:
    """The solution with looks that it does not take, before it begins and between its steps."""
    own = [op for place, op in enumerate(solution.ops) if _only_looks(ctx, op) and place not in solution.errors]
    known = [call.op for call in ctx.discovery.calls if call.task == solution.task and _only_looks(ctx, call.op)]
    bare = {(op.name, repr(op.value)): msgspec.structs.replace(op, mark="", on="a") for op in (*own, *known)}
    there = list(bare.values())[:8]
    budget: Any = ctx.attribute("budget")
    calls = sum(op.do == "call" for op in solution.ops)
    has_price = bool(_PRICE.search(" ".join([solution.prompt, *(tool.description for tool in ctx.about.tools)])))
    grave = not has_price and not ctx.attribute("graded")
    for count in _MORE if there else ():
        if isinstance(budget, int) and calls + count > budget:
            break
        more = [there[place % len(there)] for place in range(count)]
        half = (len(solution.ops) + 1) // 2
        yield Variant(
            "more looks than it needs",
            (*more[: count - count // 2], *solution.ops[:half], *more[count - count // 2 :], *solution.ops[half:]),
            "error" if grave else "warning",
            "proven" if grave else "likely",
            solution.floor or 0.0,
        )


def _only_looks(ctx: AuditContext, op: Op) -> bool:
    """True if a call only looks; a table that only such calls write to is a log."""
    if op.name in ctx.declared:
        return op.do == "call" and not ctx.declared[op.name]
    return _is_look(op) and (op.name not in ctx.discovery.writers or _logs(ctx, op.name))


def _logs(ctx: AuditContext, tool: str) -> bool:
    """True if a tool only changes tables that no other kind of tool writes to."""
    acts = {_top(path) for call in ctx.discovery.writes() if not _is_look(call.op) for path in call.changed or ()}
    return all(_top(path) not in acts for call in ctx.discovery.of(tool) for path in call.changed or ())


def _is_look(op: Op) -> bool:
    said: Sequence[str] = words(op.name)
    return reads_by_name(op) and any(word in _LOOKS for word in said)


def _top(path: str) -> str:
    return path.partition("/")[0]


@check("x.strictness", "unsolvable", needs=("oracle|hidden", "tasks"), value=59, severity="warning")
def strictness(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the same work in another order or spelling, or with more reads, is paid the same."""
    reported: set[str] = set()
    for solution in [solved for solved in solve(ctx, ctx.sample_tasks(4)) if solved.full and solved.full > 0]:
        yield from _judged(
            ctx,
            (solution.task, solution.ops, solution.full or 0.0),
            list(_done_otherwise(ctx, solution)),
            reported=reported,
        )
    answers = asked(ctx, 8)[:8]
    read = (
        {solution_run.task: solution_run.before(len(solution_run.said)) for solution_run in solution_runs(ctx)}
        if answers
        else {}
    )
    for said in answers:
        ways = [*_said_otherwise(said), *_as_it_is_written(said, read.get(said.task, ""))]
        yield from _judged(ctx, (said.task, (said.say,), said.full), ways, reported=reported)


def _judged(
    ctx: AuditContext, plain: tuple[str, tuple[Op, ...], float], variants: Sequence[Variant], *, reported: set[str]
) -> Iterator[Finding | None]:
    """Variants of a plain way: its task, its ops, and what they are paid."""
    task, ops, full = plain  # fmt: skip
    fresh = [variant for variant in variants if variant.said not in reported]
    for variant, run in zip(fresh, runs_of(ctx, task, [list(item.ops) for item in fresh]), strict=True):
        ctx.count_comparisons()
        if run.errors or run.score is None or run.score >= full - 1e-9 or variant.said in reported:
            continue
        reported.add(variant.said)
        yield ctx.finding(
            f"a right solution with {variant.said} is paid less",
            solves(task, variant.ops),
            solves(task, ops),
            relation=claims.LOSES,
            marks=("score",),
            data=full,
            minimise=0,
            part="V",
            severity=variant.severity if run.score <= variant.least + 1e-9 else "warning",
            at_most=variant.at_most if run.score <= variant.least + 1e-9 else "likely",
            expected=f"{full:g}, as without",
            observed=run.score,
            teaches="one spelling in place of the work",
        )


def _done_otherwise(ctx: AuditContext, solution: Solution) -> Iterator[Variant]:
    yield from looks(ctx, solution)
    for place, following in zip(solution.writes, solution.writes[1:], strict=False):
        if following == place + 1 and _commute(solution, place):
            ops = [*solution.ops[:place], solution.ops[following], solution.ops[place], *solution.ops[following + 1 :]]
            if solution.sees and not _ends_alike(ctx, solution, ops):
                continue
            yield Variant("two independent writes in the other order", tuple(ops), "error", "proven")
    turn = turned_lists(ctx, solution.task)
    turned = tuple(turn(op, None) for op in solution.ops)
    if repr(turned) != repr(solution.ops):
        yield Variant("lists that are sets in another order", turned, "error", "proven")
    yield from _as_float(ctx, solution)


def _commute(solution: Solution, place: int) -> bool:
    """True if two successive writes use one tool on different things."""
    first, second = solution.ops[place], solution.ops[place + 1]
    shared = set(map(str, scalars(first.value))) & set(map(str, scalars(second.value)))
    ids = {str(value) for value in scalars(second.value) if any(sign.isdigit() for sign in str(value))}
    text = str(solution.said[place].value)
    apart = not any(any(sign.isdigit() for sign in value) for value in shared)
    return (
        first.name == second.name and first.value != second.value and apart and not any(value in text for value in ids)
    )


def _ends_alike(ctx: AuditContext, solution: Solution, ops: Sequence[Op]) -> bool:
    [run] = runs(ctx, solution, [ops], look=True)
    return not run.lacks


def _as_float(ctx: AuditContext, solution: Solution) -> Iterator[Variant]:
    for place in solution.writes:
        op = solution.ops[place]
        spec = next((tool for tool in ctx.about.tools if tool.name == op.name), None)
        for key, value in op.value.items() if spec else ():
            schema: Any = spec.properties.get(key, {}) if spec else {}
            if schema.get("type") != "number" or not is_number(value) or value != int(value) or abs(value) > 1e15:
                continue
            other_value = float(value) if isinstance(value, int) else int(value)
            changed = msgspec.structs.replace(op, value=op.value | {key: other_value})
            ops = (*solution.ops[:place], changed, *solution.ops[place + 1 :])
            # To JSON Schema both are the same number, and what a client writes is its library's choice.
            yield Variant("a number as 5.0 in place of 5", ops, "error", "proven")
            return


def _as_it_is_written(question: Question, read: str) -> Iterator[Variant]:
    """The right number with those marks between thousands that the world itself writes."""
    value = numeric(question.own)
    marks = dict.fromkeys(found[1] for found in _MARKED.finditer(read))
    if (
        value is None
        or value != int(value)
        or abs(value) < 1000
        or not question.own.isdigit()
        or _BARE.search(question.prompt)
    ):
        return
    for mark in list(marks)[:1]:
        text = f"{int(value):,}".replace(",", mark)
        yield Variant(
            "marks between thousands, as the world writes numbers,", (question.saying(text),), "error", "proven"
        )


_MARKED = re.compile(r"(?<![\w.,'])\d{1,3}([,'\u2019])\d{3}(?:\1\d{3})*(?![\w.,'])")
_BARE = re.compile(
    r"digits? (only|alone)|only digits|plain (number|integer)"
    r"|(no|without( any)?) (commas?|separators?|marks?|punctuation)"
    r"|\d\{|regex|\bas an? (int|integer)\b|format",
    re.IGNORECASE,
)
"""Words that say how a number is to be written."""


def _said_otherwise(question: Question) -> Iterator[Variant]:
    own = question.own
    if not question.key or isinstance(question.say.value.get(question.key), str):
        yield Variant("space around the answer", (question.saying(f" {own}\n"),))
        if numeric(own) is None and own.isalpha():
            yield Variant("the answer in capitals", (question.saying(own.upper()),), "note", "hint")
        if own[-1:].isalnum():
            yield Variant("a full stop behind the answer", (question.saying(f"{own}."),), "note", "hint")
    value = numeric(own)
    if value is not None and value == int(value) and abs(value) < 1e15 and not question.key:
        other_text = str(int(value)) if "." in own else f"{int(value)}.0"
        yield Variant("a number as 5.0 in place of 5", (question.saying(other_text),))
