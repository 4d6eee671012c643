"""Checks the whole solution on another thing: its name is replaced throughout, with all that follows.

A solution names a row (an order), things that stand in the row (its customer), and goes through its parts (its lines).
The same work on a sibling of that row names the sibling, what stands there, and goes through the sibling's parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, reset, score, state

from . import _reward_claims as claims
from ._reward_acts import scalars
from ._reward_changed import stated
from ._reward_related import Family, RelatedRow, families
from ._reward_runs import Run, Solution, lacking, paid, runs, survives

SOLVED = 5
"""Tasks whose solutions are redirected."""
_TRIED = 12
"""Siblings that are tried for one name."""
_NAMES = 3
"""Names that are replaced in one task."""


@check("x.another_record", "reward_hack", needs=("oracle", "state", "tasks"), value=23)
def another_record(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the same work on another record than the named one is paid less."""
    reported: set[str] = set()
    for solution in paid(ctx, SOLVED):
        known = families(ctx, solution)
        for name, family in [pair for pair in known.items() if stated("id", pair[0], solution.prompt, schema={})][
            :_NAMES
        ]:
            own_places = [place for place in solution.writes if name in map(str, scalars(solution.ops[place].value))]
            if not own_places or family.table in reported:
                continue
            ways = list(_elsewhere(solution, name, family))
            found = zip(ways, runs(ctx, solution, ways), strict=True)
            worked = [(way, run) for way, run in found if not set(run.errors) - set(solution.errors)]
            ctx.count_comparisons(len(worked))
            bad = next(((way, run) for way, run in worked if survives(solution, run)), None)
            if bad is not None:
                reported.add(family.table)
                yield _paid_elsewhere(ctx, solution, (name, family.table, own_places), shown=bad)


def _paid_elsewhere(
    ctx: AuditContext, solution: Solution, where: tuple[str, str, list[int]], *, shown: tuple[tuple[Op, ...], Run]
) -> Finding | None:
    name, table, own_places = where
    way, run = shown
    lacks = lacking(solution, run, [path for place in own_places for path in solution.effects.get(place, ())])
    if not lacks:
        return None
    writes = {solution.ops[place].name for place in own_places}
    marked = [op.marked(f"other {place}") if op.name in writes else op for place, op in enumerate(way)]
    marks = tuple(op.mark for op in marked if op.mark)
    return ctx.finding(
        f"the same work on another row of {table} is paid in full",
        Probe((reset(solution.task), *marked, state(), score())),
        relation=claims.PAID,
        marks=("score", "state", *marks),
        data={"full": solution.full, "lacks": lacks, "done": list(marks)},
        minimise=20,
        part="V",
        expected=f"less than {solution.full:g}: the task is about {name}",
        observed=run.score,
        teaches="the right action on any record",
    )


def _elsewhere(solution: Solution, name: str, family: Family) -> Iterator[tuple[Op, ...]]:
    """Ways that do the same to siblings: those first that are most alike, and have the fewest parts."""

    def rank(related_row: RelatedRow) -> tuple[int, int]:
        alike = sum(1 for key, value in related_row.row.items() if not _is_many(value) and value == family.own.get(key))
        return -alike, sum(len(value) for value in related_row.row.values() if _is_many(value))

    for related_row in sorted(family.related, key=rank)[:_TRIED]:
        way = tuple(translated(solution, name, family.own, related_row=related_row))
        if way and way != solution.ops:
            yield way


def _is_many(value: Any) -> bool:
    return is_dict(value) or is_list(value)


def translated(solution: Solution, name: str, own: Any, *, related_row: RelatedRow) -> Iterator[Op]:
    """The solution, as it reads when it is about another row."""
    words: dict[str, Any] = {
        str(value): related_row.row.get(key)
        for key, value in own.items()
        if not _is_many(value) and len(str(value)) >= 3 and not stated(key, value, solution.prompt, schema={"enum": 1})
    }
    words = {key: value for key, value in words.items() if value is not None} | {name: related_row.name}
    for _, group in itertools.groupby(
        solution.ops, key=lambda op: (op.do, op.name, tuple(op.value) if op.value else ())
    ):
        ops = list(group)
        through = _gone_through(ops, own)
        if through is None:
            yield from (_said_of(op, words) for op in ops)
            continue
        field, columns = through
        for part in _parts(related_row.row.get(field)):
            given = {key: part[column] for key, column in columns.items() if column in part}
            first = _said_of(ops[0], words)
            yield msgspec.structs.replace(first, value=first.value | given)


def _said_of(op: Op, words: dict[str, Any]) -> Op:
    """An op that says other words in the place of old ones."""

    def replaced(value: Any) -> Any:
        if is_dict(value):
            return {key: replaced(item) for key, item in value.items()}
        if is_list(value):
            return [replaced(item) for item in value]
        return value if isinstance(value, bool) else words.get(str(value), value)

    return msgspec.structs.replace(op, value=replaced(op.value)) if op.do == "call" else op


def _parts(many: Any) -> list[dict[str, Any]]:
    """The parts of a field: rows as they are, pairs of a dict and plain things under "key" and "value"."""
    if is_dict(many):
        return [{"key": key, "value": value} for key, value in many.items()]
    if is_list(many):
        return [item if is_dict(item) else {"value": item} for item in many]
    return []


def _gone_through(ops: Sequence[Op], own: Any) -> tuple[str, dict[str, str]] | None:
    """The field whose parts a run of calls goes through, and which argument is which of a part's columns."""
    if not ops or ops[0].do != "call":
        return None
    for field, many in own.items():
        parts = _parts(many)
        if len(parts) != len(ops) or not parts:
            continue
        columns: dict[str, str] = {}
        for key in ops[0].value:
            for column in parts[0]:
                pairs = zip(ops, parts, strict=True)
                if key not in columns and all(op.value.get(key) == part.get(column) for op, part in pairs):
                    columns[key] = column
        if columns:
            return field, columns
    return None
