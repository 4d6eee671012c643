"""Checks right answers against what the solution has read: siblings show the rule behind an answer.

Tasks of the same wording that are solved by the same calls follow one rule ("the answer is what the last computation
gave"). Where nearly all do, one that does not holds the answer of another task, or of an older world; and where a
tool's result is the answer less some digits, the tool loses what the answer needs.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, number, reset, score
from quintain.audit.kernel.registry import relation

from ._reward_acts import only_reads, submits
from ._unsolv_runs import SolutionRun, decimal, kinds, leaves, plain

_HERE = "quintain.audit.checks._unsolv_gold"


# --- looks that are refused ---


@check("x.refused_look", "unsolvable", needs=("oracle", "tasks", "tools"), value=80)
def refused_look(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each read of the solution works, as in sibling tasks."""
    for family in kinds(ctx):
        if len(family) <= _LEAST:
            continue
        ctx.count_comparisons(len(family))
        for place, op in enumerate(family[0].ops):
            refused = [solution_run for solution_run in family if solution_run.said[place].is_error]
            works = [
                solution_run for solution_run in family if not any(result.is_error for result in solution_run.said)
            ]
            if only_reads(ctx, op) and refused and len(works) >= max(_LEAST, 3 * len(refused)):
                solution_run = refused[0]
                if _says_alike(solution_run, works) and _matters(solution_run, place):
                    yield _missing(ctx, solution_run, place, refused=refused, works=works)
                    return


def _says_alike(solution_run: SolutionRun, siblings: Sequence[SolutionRun]) -> bool:
    """True if the answer has the form of its siblings' answers, so that it does not report an absence."""
    forms = Counter(_form(other_solution_run) for other_solution_run in siblings)
    return len(forms) == 1 and _form(solution_run) in forms and _form(solution_run) != ""


def _form(solution_run: SolutionRun) -> str:
    """Returns the form of the solution's final answer; empty where it might as well be "none"."""
    last = solution_run.ops[-1]
    if last.do != "answer" and not submits(last):
        return "acts"
    values = [last.value] if last.do == "answer" else list(last.value.values())
    if len(values) != 1 or not isinstance(values[0], str | int | float):
        return ""
    as_number = decimal(values[0])
    if as_number is not None:
        return "number" if as_number else ""
    parts = re.split(r"[,;>]", str(values[0]))
    return f"{len(parts)} parts" if len(parts) > 1 else ""


def _matters(solution_run: SolutionRun, place: int) -> bool:
    """True if no other action of the solution on the same thing works; else the read was redundant."""
    asked = {str(value) for value in solution_run.ops[place].value.values()}
    return not any(
        op.do == "call"
        and at != place
        and asked & set(map(str, op.value.values()))
        and not solution_run.said[at].is_error
        for at, op in enumerate(solution_run.ops)
    )


def _missing(
    ctx: AuditContext,
    solution_run: SolutionRun,
    place: int,
    *,
    refused: Sequence[SolutionRun],
    works: Sequence[SolutionRun],
) -> Finding | None:
    op = solution_run.ops[place]
    acts = _form(solution_run) == "acts"
    return ctx.finding(
        f"what the solution reads by {op.name} is not there, and its answer is paid all the same",
        *(_looking(walked_run, place) for walked_run in (solution_run, *works[:3])),
        relation=f"{_HERE}:is_missing",
        marks=("look", "score"),
        data=solution_run.full,
        minimise=0,
        part="T",
        severity="warning" if acts else "error",
        at_most="likely" if acts else "proven",
        tasks=[walked_run.task for walked_run in refused],
        expected=f"{op.name}({op.value}) works, as in {len(works)} other tasks of this kind",
        observed=solution_run.said[place].raised or solution_run.said[place].value,
        teaches="to guess",
    )


def _looking(solution_run: SolutionRun, place: int) -> Probe:
    ops = [op.marked("look") if at == place else op for at, op in enumerate(solution_run.ops)]
    return Probe((reset(solution_run.task), *ops, score()))


@relation
def is_missing(records: Sequence[Record], evidence: Evidence) -> bool:
    """The look is refused in the first task, and works in the others; the solutions of all are paid."""
    first, *other_records = records
    paid = [number(record.at("score")) for record in records]
    full = paid[0] is not None and paid[0] >= float(evidence.data) - 1e-9
    there = not any(record.at("look").is_error for record in other_records)
    return full and first.at("look").is_error and there and all(amount is not None and amount > 0 for amount in paid)


# --- calls that no schema allows ---


_LEAST = 4
"""Siblings that must follow a rule."""
_BROKEN = "quintain.audit.checks._unsolv_runs:works_and_loses"
_TEACHES = "answers without support in the world"


@check("x.gold_rule", "unsolvable", needs=("oracle", "tasks", "tools"), value=81)
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
        shown = [(solution_run, _at(solution_run, place, path)) for solution_run in family]
        follow = [
            solution_run for solution_run, item in shown if item is not None and _alike(item, _answer(solution_run))
        ]
        against = [
            (solution_run, item)
            for solution_run, item in shown
            if item is not None and not _alike(item, _answer(solution_run))
        ]
        distinct = len({plain(str(_answer(solution_run))) for solution_run in follow})
        if not against or len(follow) < max(_LEAST, 3 * len(against)) or distinct < 3:
            continue
        solution_run, item = against[0]
        is_last = place == _look(solution_run) and _computes(ctx, solution_run.ops[place])
        prompt = ".".join(path) or "result"
        yield ctx.finding(
            f"the {prompt} of {solution_run.ops[place].name} is the answer of all tasks of a kind but for some",
            solves(solution_run.task, _saying(solution_run, item)),
            solves(solution_run.task, solution_run.ops),
            *(solves(sibling.task, sibling.ops) for sibling in follow[:3]),
            relation=_BROKEN,
            marks=("score",),
            data=solution_run.full,
            minimise=0,
            part="T",
            severity="error" if is_last else "warning",
            at_most="proven" if is_last else "likely",
            tasks=[other_solution_run.task for other_solution_run, _ in against],
            expected=f"{item!r}, which the solution's own call gave, as in {len(follow)} other tasks of this kind",
            observed=f"{_answer(solution_run)!r} is paid in its place",
            teaches=_TEACHES,
        )
        return


def _lost_digits(ctx: AuditContext, family: Sequence[SolutionRun]) -> Iterator[Finding | None]:
    """Results that are the answer rounded to fewer digits, in all tasks of a kind, and are not paid."""
    place = _look(family[0])
    paths = [path for at, path in _sources(family[0]) if at == place]
    for path in paths:
        pairs = [
            (solution_run, decimal(_at(solution_run, place, path)), decimal(_answer(solution_run)))
            for solution_run in family
        ]
        known = [
            (solution_run, number, own) for solution_run, number, own in pairs if number is not None and own is not None
        ]
        digits = max((_places(number) for _, number, _ in known), default=0)
        finer = [(solution_run, number, own) for solution_run, number, own in known if number != own]
        if len(known) < len(family) or len(finer) < 3 or len(finer) < 0.75 * len(known):
            continue
        step = Decimal(1).scaleb(-digits)
        if any(abs(number - own) > step / 2 or _places(own) <= digits for _, number, own in finer):
            continue
        solution_run, _, own = finer[0]
        shown = _at(solution_run, place, path)
        yield ctx.finding(
            f"{solution_run.ops[place].name} rounds off digits that the answer needs",
            solves(solution_run.task, _saying(solution_run, shown)),
            solves(solution_run.task, solution_run.ops),
            relation=_BROKEN,
            marks=("score",),
            data=solution_run.full,
            minimise=0,
            part="S",
            tasks=[walked_run.task for walked_run, _, _ in finer],
            expected=f"an answer that the tools can show, or {shown!r} to be right",
            observed=f"{own} is wanted, and {solution_run.ops[place].name} gives {shown!r}",
            teaches="to make up values that the tools do not give",
        )
        return


# --- answers and their sources ---


def _said(solution_run: SolutionRun) -> tuple[int, str] | None:
    """Returns the op that submits the answer and its argument, or None unless there is exactly one."""
    place = len(solution_run.ops) - 1
    op = solution_run.ops[place]
    if op.do == "answer":
        return place, ""
    texts = (
        [name for name, argument in op.value.items() if isinstance(argument, str) or is_number(argument)]
        if submits(op)
        else []
    )
    return (place, texts[0]) if len(texts) == 1 else None


def _answer(solution_run: SolutionRun) -> Any:
    found = _said(solution_run)
    assert found is not None, "families are of tasks that are solved by saying something"
    place, name = found
    return solution_run.ops[place].value[name] if name else solution_run.ops[place].value


def _saying(solution_run: SolutionRun, value: Any) -> tuple[Op, ...]:
    """The solution with another answer, in the type of its own."""
    found = _said(solution_run)
    assert found is not None
    place, name = found
    op = solution_run.ops[place]
    said = _words(value) if isinstance(_answer(solution_run), str) else value
    return (*solution_run.ops[:place], msgspec.structs.replace(op, value=op.value | {name: said} if name else said))


def _words(value: Any) -> str:
    number_ = decimal(value)
    if is_number(value) and number_ is not None:
        return format(number_.normalize(), "f") if number_ == number_.to_integral() else format(number_, "f")
    return str(value)


def _look(solution_run: SolutionRun) -> int:
    """The last call before the answer."""
    found = _said(solution_run)
    return found[0] - 1 if found else -1


def _sources(solution_run: SolutionRun) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Every value that was read before the answer, the last call's first."""
    for place in reversed(range(max(0, _look(solution_run) + 1))):
        for path, _ in list(leaves(_data(solution_run, place)))[:40]:
            yield place, path


def _data(solution_run: SolutionRun, place: int) -> Any:
    value = solution_run.said[place].value
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _at(solution_run: SolutionRun, place: int, path: tuple[str, ...]) -> Any:
    return dict(leaves(_data(solution_run, place))).get(path)


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
    spec = next((tool for tool in ctx.about.tools if tool.name == op.name), None)
    types = [schema.get("type") for schema in spec.properties.values() if is_dict(schema)] if spec else []
    return "number" in types or types.count("integer") >= 2
