"""Checks right answers against what the solution has read: siblings show the rule behind an answer.

Tasks of the same wording that are solved by the same calls follow one rule ("the answer is what the last computation
gave"). Where nearly all do, one that does not holds the answer of another task, or of an older world; and where a
tool's result is the answer less some digits, the tool loses what the answer needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op

from ._reward_acts import submits
from ._unsolv_runs import SolutionRun, decimal, kinds, leaves, plain

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
