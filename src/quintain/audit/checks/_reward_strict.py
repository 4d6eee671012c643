"""Checks that equivalent work, done or written in another way, is paid the same."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from quintain.audit.facts.data import is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op

from ._flaky_spelling import turned_lists
from ._reward_acts import giving, known_as, names, reads_by_name, replaced, scalars, spec_of, words
from ._reward_runs import PAID_AS, Solution, runs, runs_of, solve
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
    own = [op for place, op in enumerate(solution.ops) if place not in solution.errors]
    known = [call.op for call in ctx.discovery.calls if call.task == solution.task]
    bare = {known_as(op): msgspec.structs.replace(op, mark="", on="a") for op in (*own, *known) if _only_looks(ctx, op)}
    there = list(bare.values())[:8]
    budget: Any = ctx.attribute("budget")
    calls = sum(op.do == "call" for op in solution.ops)
    has_price = bool(_PRICE.search(" ".join([solution.prompt, *(tool.description for tool in ctx.about.tools)])))
    grave = not has_price and not ctx.attribute("graded")
    for count in _MORE if there else ():
        if isinstance(budget, int) and calls + count > budget:
            break
        more = [there[place % len(there)] for place in range(count)]
        half, first = (len(solution.ops) + 1) // 2, count - count // 2
        ops = (*more[:first], *solution.ops[:half], *more[first:], *solution.ops[half:])
        sure: tuple[Severity, str] = ("error", "proven") if grave else ("warning", "likely")
        yield Variant("more looks than it needs", ops, *sure, solution.floor or 0.0)


def _only_looks(ctx: AuditContext, op: Op) -> bool:
    """True if a call only looks; a table that only such calls write to is a log."""
    if op.name in ctx.declared:
        return op.do == "call" and not ctx.declared[op.name]
    acts = [call for call in ctx.discovery.writes() if not _is_look(call.op)]
    tops, own = (
        {path.partition("/")[0] for call in calls for path in call.changed or ()}
        for calls in (acts, ctx.discovery.of(op.name))
    )
    return _is_look(op) and (op.name not in ctx.discovery.writers or not own & tops)


def _is_look(op: Op) -> bool:
    return reads_by_name(op) and bool(_LOOKS & set(words(op.name)))


@check("x.strictness", "unsolvable", needs=("oracle|hidden", "tasks"), value=59, severity="warning")
def strictness(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the same work in another order or spelling, or with more reads, is paid the same."""
    reported: set[str] = set()
    for solution in [solved for solved in solve(ctx, ctx.sample_tasks(4)) if solved.full > 0]:
        plain = (solution.task, solution.ops, solution.full)
        yield from _judged(ctx, plain, _done_otherwise(ctx, solution), reported=reported)
    answers = asked(ctx, 8)[:8]
    read = {walked.task: walked.before(len(walked.said)) for walked in solution_runs(ctx)} if answers else {}
    for said in answers:
        ways = [*_said_otherwise(said), *_as_it_is_written(said, read.get(said.task, ""))]
        yield from _judged(ctx, (said.task, (said.say,), said.full), ways, reported=reported)


def _judged(
    ctx: AuditContext, plain: tuple[str, tuple[Op, ...], float], variants: Iterable[Variant], *, reported: set[str]
) -> Iterator[Finding | None]:
    """Variants of a plain way: its task, its ops, and what they are paid."""
    task, ops, full = plain
    fresh = [variant for variant in variants if variant.said not in reported]
    ctx.count_comparisons(len(fresh))
    for variant, run in zip(fresh, runs_of(ctx, task, [list(item.ops) for item in fresh]), strict=True):
        if run.errors or run.score is None or run.score >= full - 1e-9 or variant.said in reported:
            continue
        reported.add(variant.said)
        is_grave = run.score <= variant.least + 1e-9
        yield ctx.finding(
            f"a right solution with {variant.said} is paid less", solves(task, variant.ops), solves(task, ops),
            relation=PAID_AS, marks=("score",), data={"full": full, "paid": ["less", "full"], "works": True},
            minimise=0, part="V", severity=variant.severity if is_grave else "warning",
            at_most=variant.at_most if is_grave else "likely", expected=f"{full:g}, as without", observed=run.score,
            teaches="one spelling in place of the work",
        )  # fmt: skip


def _done_otherwise(ctx: AuditContext, solution: Solution) -> Iterator[Variant]:
    yield from looks(ctx, solution)
    for place, following in itertools.pairwise(solution.writes):
        if following == place + 1 and _commute(solution, place):
            turned = (
                *solution.ops[:place],
                solution.ops[following],
                solution.ops[place],
                *solution.ops[following + 1 :],
            )
            if not solution.sees or not runs(ctx, solution, [turned], look=True)[0].lacks:
                yield Variant("two independent writes in the other order", turned, "error", "proven")
    turn = turned_lists(ctx, solution.task)
    turned = tuple(turn(op, None) for op in solution.ops)
    if repr(turned) != repr(solution.ops):
        yield Variant("lists that are sets in another order", turned, "error", "proven")
    yield from itertools.islice(_as_float(ctx, solution), 1)


def _commute(solution: Solution, place: int) -> bool:
    """True if two successive writes use one tool on different things."""
    first, second = solution.ops[place], solution.ops[place + 1]
    ids, own_ids = (
        {str(value) for value in scalars(op.value) if any(map(str.isdigit, str(value)))} for op in (second, first)
    )
    text = str(solution.said[place].value)
    is_apart = not ids & own_ids and not any(value in text for value in ids)
    return is_apart and first.name == second.name and first.value != second.value


def _as_float(ctx: AuditContext, solution: Solution) -> Iterator[Variant]:
    for place in solution.writes:
        op = solution.ops[place]
        spec = spec_of(ctx, op)
        for key, value in op.value.items() if spec else ():
            schema: Any = spec.properties.get(key, {}) if spec else {}
            if schema.get("type") == "number" and is_number(value) and value == int(value) and abs(value) <= 1e15:
                changed = giving(op, **{key: float(value) if isinstance(value, int) else int(value)})
                # To JSON Schema both are the same number, and what a client writes is its library's choice.
                yield Variant(
                    "a number as 5.0 in place of 5", replaced(solution.ops, place, changed), "error", "proven"
                )


def _as_it_is_written(question: Question, read: str) -> Iterator[Variant]:
    """The right number with those marks between thousands that the world itself writes."""
    mark = next((found[1] for found in _MARKED.finditer(read)), None)
    is_long = question.own.isdigit() and (numeric(question.own) or 0) >= 1000
    if mark is not None and is_long and not _BARE.search(question.prompt):
        said = question.saying(f"{int(question.own):,}".replace(",", mark))
        yield Variant("marks between thousands, as the world writes numbers,", (said,), "error", "proven")


_MARKED = re.compile(r"(?<![\w.,'])\d{1,3}([,'\u2019])\d{3}(?:\1\d{3})*(?![\w.,'])")
_BARE = re.compile(
    r"digits? (only|alone)|only digits|plain (number|integer)"
    r"|(no|without( any)?) (commas?|separators?|marks?|punctuation)"
    r"|\d\{|regex|\bas an? (int|integer)\b|format",
    re.IGNORECASE,
)
"""Words that say how a number is to be written."""


def _said_otherwise(question: Question) -> Iterator[Variant]:
    own, value = question.own, numeric(question.own)
    if not question.key or isinstance(question.say.value.get(question.key), str):
        yield Variant("space around the answer", (question.saying(f" {own}\n"),))
        if value is None and own.isalpha():
            yield Variant("the answer in capitals", (question.saying(own.upper()),), "note", "hint")
        if own[-1:].isalnum():
            yield Variant("a full stop behind the answer", (question.saying(f"{own}."),), "note", "hint")
    if value is not None and value == int(value) and abs(value) < 1e15 and not question.key:
        other_text = str(int(value)) if "." in own else f"{int(value)}.0"
        yield Variant("a number as 5.0 in place of 5", (question.saying(other_text),))
