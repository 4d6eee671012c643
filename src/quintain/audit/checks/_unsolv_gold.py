"""Checks right answers against sibling tasks, and equivalent work against its reward.

Tasks of the same wording that are solved by the same calls follow one rule ("the answer is what the last computation
gave"). Where nearly all do, one that does not holds the answer of another task, or of an older world; and where a
tool's result is the answer less some digits, the tool loses what the answer needs. The same work in another order or
spelling is paid the same.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Literal

import msgspec

from quintain.audit.facts.acts import (
    giving,
    known_as,
    names,
    only_reads,
    reads_by_name,
    replaced,
    scalars,
    spec_of,
    submits,
    words,
)
from quintain.audit.facts.data import is_dict, is_number, leaves, parsed
from quintain.audit.facts.siblings import SolutionRun, decimal, kinds, plain, solution_runs
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Record
from quintain.audit.kernel.registry import relation

from ._drift_words import show
from ._flaky_spelling import turned_lists
from ._reward_runs import SURE, UNSURE, Solution, paid_so, paid_unlike, runs, runs_of, solve
from ._reward_tasks import Question, asked, numeric

Severity = Literal["error", "warning", "note"]
_MORE = (1, 3, 12)  # So many looks more than the solution takes.
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
    there, budget = list(bare.values())[:8], ctx.attribute("budget")
    has_price = bool(_PRICE.search(" ".join([solution.prompt, *(tool.description for tool in ctx.about.tools)])))
    sure: tuple[Severity, str] = ("error", "proven")
    sure = ("warning", "likely") if has_price or ctx.attribute("graded") else sure
    for count in _MORE if there else ():
        if isinstance(budget, int) and solution.calls + count > budget:
            break
        more = [there[place % len(there)] for place in range(count)]
        half, first = (len(solution.ops) + 1) // 2, count - count // 2
        ops = (*more[:first], *solution.ops[:half], *more[first:], *solution.ops[half:])
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


@check("x.strictness", "unsolvable", needs=("oracle|hidden", "tasks"), value=25, severity="warning")
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
        yield paid_unlike(
            ctx, f"a right solution with {variant.said} is paid less", solves(task, variant.ops), solves(task, ops),
            paid=("less", "full"), full=full, severity=variant.severity if is_grave else "warning",
            at_most=variant.at_most if is_grave else "likely", expected=f"{full:g}, as without", observed=run.score,
            teaches="one spelling in place of the work",
        )  # fmt: skip


def _done_otherwise(ctx: AuditContext, solution: Solution) -> Iterator[Variant]:
    yield from looks(ctx, solution)
    for place, following in itertools.pairwise(solution.writes):
        if following == place + 1 and _commute(solution, place):
            pair = (solution.ops[following], solution.ops[place])
            turned = (*solution.ops[:place], *pair, *solution.ops[following + 1 :])
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
                ops = replaced(solution.ops, place, changed)
                yield Variant("a number as 5.0 in place of 5", ops, "error", "proven")


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


@check("x.refused_look", "unsolvable", needs=("oracle", "tasks", "tools"), value=83)
def refused_look(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each read of the solution works, as in sibling tasks."""
    for family in kinds(ctx):
        ctx.count_comparisons(len(family) if len(family) > _LEAST else 0)
        works = [walked for walked in family if not any(result.is_error for result in walked.said)]
        for place, op in enumerate(family[0].ops) if len(works) >= _LEAST else ():
            refused = [walked for walked in family if walked.said[place].is_error]
            if only_reads(ctx, op) and refused and len(works) >= 3 * len(refused):
                # An answer in the form of its siblings' answers does not report an absence.
                form = _form(refused[0])
                if form and {form} == set(map(_form, works)) and _matters(refused[0], place):
                    yield _missing(ctx, refused, works, place=place, is_soft=form == "acts")
                    return


def _form(walked: SolutionRun) -> str:
    """Returns the form of the solution's final answer; empty where it might as well be "none"."""
    last = walked.ops[-1]
    if last.do != "answer" and not submits(last):
        return "acts"
    values = [last.value] if last.do == "answer" else list(last.value.values())
    if len(values) != 1 or not isinstance(values[0], str | int | float):
        return ""
    if (as_number := decimal(values[0])) is not None:
        return "number" if as_number else ""
    parts = re.split(r"[,;>]", str(values[0]))
    return f"{len(parts)} parts" if len(parts) > 1 else ""


def _matters(walked: SolutionRun, place: int) -> bool:
    """True if no other action of the solution on the same thing works; else the read was redundant."""
    asked = set(map(str, walked.ops[place].value.values()))
    calls = [op for at, op in enumerate(walked.ops) if op.do == "call" and not walked.said[at].is_error and at != place]
    return not any(asked & set(map(str, op.value.values())) for op in calls)


def _missing(
    ctx: AuditContext, refused: Sequence[SolutionRun], works: Sequence[SolutionRun], *, place: int, is_soft: bool
) -> Finding | None:
    walked, op = refused[0], refused[0].ops[place]
    plays = [(each.task, replaced(each.ops, place, each.ops[place].marked("look"))) for each in (walked, *works[:3])]
    return show(
        ctx, f"what the solution reads by {op.name} is not there, and its answer is paid all the same", is_missing,
        *(solves(task, ops) for task, ops in plays), marks=("look", "score"), data=walked.full, part="T",
        **(UNSURE if is_soft else SURE), tasks=[each.task for each in refused],
        expected=f"{op.name}({op.value}) works, as in {len(works)} other tasks of this kind",
        observed=walked.said[place].raised or walked.said[place].value, teaches="to guess",
    )  # fmt: skip


@relation
def is_missing(records: Sequence[Record], evidence: Evidence) -> bool:
    """The look is refused in the first task, and works in the others; the solutions of all are paid."""
    looks = [record.at("look").is_error for record in records]
    is_paid = all(paid_so(record, "some", 0.0) for record in records[1:])
    return looks[0] and not any(looks[1:]) and is_paid and paid_so(records[0], "full", float(evidence.data))


_LEAST = 4  # Siblings that must follow a rule.
_TEACHES = "answers without support in the world"


@check("x.gold_rule", "unsolvable", needs=("oracle", "tasks", "tools"), value=84)
def gold_rule(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the paid answer is the one that the solution's calls have shown, as in sibling tasks."""
    for family in kinds(ctx):
        if len(family) < 3 or _said(family[0]) is None:
            continue
        ctx.count_comparisons(len(family))
        yield from _against_rule(ctx, family)
        yield from _lost_digits(ctx, family)


def _against_rule(ctx: AuditContext, family: Sequence[SolutionRun]) -> Iterator[Finding | None]:
    for place, path in _sources(family[0]):
        known = [(each, item) for each in family if (item := _at(each, place, path)) is not None]
        against = [(each, item) for each, item in known if not _alike(item, _answer(each))]
        follow = [each for each, item in known if _alike(item, _answer(each))]
        distinct = len({plain(str(_answer(each))) for each in follow})
        if not against or len(follow) < max(_LEAST, 3 * len(against)) or distinct < 3:
            continue
        walked, item = against[0]
        is_last = place == len(walked.ops) - 2 and _computes(ctx, walked.ops[place])
        yield paid_unlike(
            ctx, f"the {'.'.join(path) or 'result'} of {walked.ops[place].name} is the answer of all tasks of a kind "
            "but for some", solves(walked.task, _saying(walked, item)),
            *(solves(each.task, each.ops) for each in (walked, *follow[:3])), full=walked.full,
            paid=("less", "full", *["some"] * 3), part="T", **(SURE if is_last else UNSURE),
            tasks=[each.task for each, _ in against],
            expected=f"{item!r}, which the solution's own call gave, as in {len(follow)} other tasks of this kind",
            observed=f"{_answer(walked)!r} is paid in its place", teaches=_TEACHES,
        )  # fmt: skip
        return


def _lost_digits(ctx: AuditContext, family: Sequence[SolutionRun]) -> Iterator[Finding | None]:
    """Results that are the answer rounded to fewer digits, in all tasks of a kind, and are not paid."""
    place = len(family[0].ops) - 2
    for path in [path for at, path in _sources(family[0]) if at == place]:
        pairs = [(each, decimal(_at(each, place, path)), decimal(_answer(each))) for each in family]
        known = [(each, number, own) for each, number, own in pairs if number is not None and own is not None]
        digits = max((_places(number) for _, number, _ in known), default=0)
        finer = [(each, number, own) for each, number, own in known if number != own]
        if len(known) < len(family) or len(finer) < max(3, 0.75 * len(known)):
            continue
        step = Decimal(1).scaleb(-digits)
        if any(abs(number - own) > step / 2 or _places(own) <= digits for _, number, own in finer):
            continue
        walked, _, own = finer[0]
        shown = _at(walked, place, path)
        yield paid_unlike(
            ctx, f"{walked.ops[place].name} rounds off digits that the answer needs",
            solves(walked.task, _saying(walked, shown)), solves(walked.task, walked.ops), paid=("less", "full"),
            full=walked.full, part="S", tasks=[each.task for each, _, _ in finer],
            expected=f"an answer that the tools can show, or {shown!r} to be right",
            observed=f"{own} is wanted, and {walked.ops[place].name} gives {shown!r}",
            teaches="to make up values that the tools do not give",
        )  # fmt: skip
        return


def _said(walked: SolutionRun) -> str | None:
    """Returns the argument that holds the answer, "" for an answer in words; None unless there is exactly one."""
    op = walked.ops[-1]
    given = op.value.items() if submits(op) else ()
    texts = [name for name, argument in given if isinstance(argument, str) or is_number(argument)]
    return "" if op.do == "answer" else texts[0] if len(texts) == 1 else None


def _answer(walked: SolutionRun) -> Any:
    name = _said(walked)
    return walked.ops[-1].value[name] if name else walked.ops[-1].value


def _saying(walked: SolutionRun, value: Any) -> tuple[Op, ...]:
    """The solution with another answer, in the type of its own."""
    name, op, number = _said(walked), walked.ops[-1], decimal(value)
    if isinstance(_answer(walked), str):
        is_whole = number is not None and number == number.to_integral()
        text = format(number.normalize() if is_whole else number, "f") if number is not None else str(value)
        value = text if is_number(value) else str(value)
    return (*walked.ops[:-1], giving(op, **{name: value}) if name else msgspec.structs.replace(op, value=value))


def _sources(walked: SolutionRun) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Every value that was read before the answer, the last call's first."""
    for place in reversed(range(len(walked.ops) - 1)):
        yield from ((place, path) for path in itertools.islice(_shown(walked, place), 40))


def _at(walked: SolutionRun, place: int, path: tuple[str, ...]) -> Any:
    return _shown(walked, place).get(path)


def _shown(walked: SolutionRun, place: int) -> dict[tuple[str, ...], Any]:
    """Returns the numbers and texts of an answer; truth values and nulls say too little to count."""
    found = leaves(parsed(walked.said[place].value), places=True)
    return {path: leaf for path, leaf in found if is_number(leaf) or isinstance(leaf, str)}


def _alike(first: Any, second: Any) -> bool:
    left, right = decimal(first), decimal(second)
    if left is not None and right is not None:
        return left == right
    return plain(str(first)) == plain(str(second))


def _places(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _computes(ctx: AuditContext, op: Op) -> bool:
    """True if a tool computes a result from its numeric arguments."""
    spec = spec_of(ctx, op)
    types = [schema.get("type") for schema in spec.properties.values() if is_dict(schema)] if spec else []
    return "number" in types or types.count("integer") >= 2
