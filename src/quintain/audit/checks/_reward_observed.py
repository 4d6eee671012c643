"""Checks that a solution that replaces a value read earlier is paid less.

Siblings show where a value comes from: where in each task of a kind an argument is what an earlier call of the solution
gave at one place (the sum that a quote names, the account that an order belongs to), it is not a free choice.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_number
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, reset, score, state

from . import _reward_claims as claims
from ._reward_acts import is_id, words
from ._reward_changed import stated
from ._reward_runs import Run, Solution, lacking, paid, runs, survives, weight
from ._unsolv_runs import SolutionRun, decimal, leaves, solution_runs

SOLVED = 6
"""Tasks whose solutions are changed."""
_LEAST = 4
"""Siblings that must take a value from the same place."""
_DISTINCT = 3
_FREE = re.compile(
    r"\b(any|anything|whatever|some|as you (see|like|think)|your choice|reasonable|appropriate|suitable|at least"
    r"|at most|up to)\b",
    re.IGNORECASE,
)
"""Words that leave a value open."""
_NOTES = frozenset({"note", "notes", "log", "comment", "remember", "memo", "remark", "reply", "answer", "submit"})


@check("x.observed_argument", "reward_hack", needs=("oracle", "state", "tasks", "tools"), value=57)
def observed_argument(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution that ignores what it has looked up is paid less."""
    known = paid(ctx, SOLVED)
    taken = _taken(solution_runs(ctx))
    reported: set[tuple[str, str]] = set()
    for solution in known:
        shape = tuple(op.name or op.do for op in solution.ops)
        for (place, key), source in taken.get(shape, {}).items():
            name = solution.ops[place].name
            if place not in solution.writes or (name, key) in reported or _FREE.search(solution.prompt):
                continue
            ways = list(_ways_with_other_values(ctx, solution, place, key=key))
            found = runs(ctx, solution, [way for _, way in ways])
            ctx.count_comparisons(len(ways))
            good = [(way, run) for (_, way), run in zip(ways, found, strict=True) if _passes(solution, run)]
            sides = {side for (side, _), run in zip(ways, found, strict=True) if _passes(solution, run)}
            if len(good) < 2 or len(sides) < 2:
                continue  # As much as is due, or more, may be meant.
            reported.add((name, key))
            yield _paid_for_any(ctx, solution, (place, key, source), shown=good[0])


def _taken(there: Sequence[SolutionRun]) -> dict[tuple[str, ...], dict[tuple[int, str], str]]:
    """By the tools of a kind of tasks: arguments, by place and name, that are what an earlier call gave somewhere."""
    kinds: dict[tuple[str, ...], list[SolutionRun]] = defaultdict(list)
    for solution_run in there:
        kinds[solution_run.shape].append(solution_run)
    found: dict[tuple[str, ...], dict[tuple[int, str], str]] = {}
    for shape, family in kinds.items():
        if len(family) >= _LEAST:
            found[shape] = {where: source for where in _arguments(family[0]) if (source := _source(family, where))}
    return found


def _arguments(solution_run: SolutionRun) -> Iterator[tuple[int, str]]:
    for place, op in enumerate(solution_run.ops):
        if op.do == "call" and place and not _NOTES & set(words(op.name)):
            yield from ((place, key) for key, value in op.value.items() if is_number(value) or isinstance(value, str))


def _source(family: Sequence[SolutionRun], where: tuple[int, str]) -> str:
    """Returns the call and field that gave the value in all of them, or an empty string."""
    place, key = where
    own = [solution_run.ops[place].value.get(key) for solution_run in family]
    if len({repr(value) for value in own}) < _DISTINCT:
        return ""
    pairs = zip(own, family, strict=True)
    if any(
        value is None or stated(key, value, solution_run.prompt, schema={}) is not None for value, solution_run in pairs
    ):
        return ""  # The prompt states it: `x.changed_argument` covers it.
    for earlier in reversed(range(place)):
        shown = [dict(leaves(solution_run.said[earlier].value)) for solution_run in family]
        for path in shown[0]:
            plain = not any(step.isdigit() for step in path)  # A row of a list was chosen, and another may do as well.
            if plain and all(_alike(item.get(path), value) for item, value in zip(shown, own, strict=True)):
                return f"{'.'.join(path)} of {family[0].ops[earlier].name}"
    return ""


def _alike(first: Any, second: Any) -> bool:
    if is_number(first) and is_number(second):
        return decimal(first) == decimal(second)
    return type(first) is type(second) and bool(first == second)


def _ways_with_other_values(
    ctx: AuditContext, solution: Solution, place: int, *, key: str
) -> Iterator[tuple[str, tuple[Op, ...]]]:
    """Ways with other values of the argument, more and less or one and another, which its schema allows."""
    op = solution.ops[place]
    value = op.value[key]
    spec = next((tool for tool in ctx.about.tools if tool.name == op.name), None)
    schema: Any = spec.properties.get(key, {}) if spec else {}
    rest: list[tuple[str, Any]]
    if is_number(value) and not is_id(key):
        kind = type(value)
        rest = [
            ("more", kind(value * 3 + 1)),
            ("more", kind(value + 5)),
            ("less", kind(value // 2)),
            ("less", kind(1)),
        ]
    else:
        known = [
            other_value
            for other_value in ctx.discovery.values.of(key)
            if type(other_value) is type(value) and other_value != value
        ]
        rest = [(str(other_value), other_value) for other_value in known[:: max(1, len(known) // 4)][:5]]
    for side, other_value in rest:
        if other_value != value and fits(other_value, schema, spec.parameters if spec else None):
            changed = msgspec.structs.replace(op, value=op.value | {key: other_value})
            yield side, (*solution.ops[:place], changed, *solution.ops[place + 1 :])


def _passes(solution: Solution, run: Run) -> bool:
    return not set(run.errors) - set(solution.errors) and survives(solution, run)


def _paid_for_any(
    ctx: AuditContext, solution: Solution, where: tuple[int, str, str], *, shown: tuple[tuple[Op, ...], Run]
) -> Finding | None:
    place, key, source = where
    way, run = shown
    lacks = lacking(solution, run, solution.effects.get(place, ()))
    if not lacks:
        return None
    name = solution.ops[place].name
    marked = [op.marked("wrong") if at == place else op for at, op in enumerate(way)]
    return ctx.finding(
        f"{name} is paid with any {key}, where each solution gives what it has read",
        Probe((reset(solution.task), *marked, state(), score())),
        relation=claims.PAID,
        marks=("score", "state", "wrong"),
        data={"full": solution.full, "lacks": lacks, "done": ["wrong"]},
        minimise=0,
        part="V",
        **weight(solution, lacks, (place,)),
        expected=f"{key} = {solution.ops[place].value[key]!r}, the {source}",
        observed=f"{key} = {way[place].value[key]!r} is paid {run.score:g}",
        teaches="to ignore what it has looked up",
    )
