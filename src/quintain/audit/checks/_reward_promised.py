"""Checks documented status conditions: a tool for "an open account" must refuse a frozen one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, reset, state
from quintain.audit.kernel.registry import relation

from ._reward_acts import MISSING, at, differences, is_bookkeeping
from ._reward_redirect import translated
from ._reward_related import Family, RelatedRow, families
from ._reward_runs import Solution, solve

SOLVED = 5
"""Tasks whose solutions are looked at."""
_TRIED = 10
"""Rows of another status that are tried."""
_KINDS = 8
"""Other values of a field that still is a status."""
WORKED = "quintain.audit.checks._reward_promised:worked"


@check("x.status_stops", "false_resolution", needs=("oracle", "state", "tasks", "tools"), value=36, reads_prose=True)
def status_stops(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a tool documented for things of one status refuses those of another."""
    reported: set[tuple[str, str]] = set()
    for solution in solve(ctx, ctx.sample_tasks(SOLVED)):
        known = families(ctx, solution)
        for place in solution.writes:
            for key, family, field in _promises(ctx, solution, solution.ops[place], known=known):
                if (solution.ops[place].name, field) in reported:
                    continue
                reported.add((solution.ops[place].name, field))
                yield _broken_promise(ctx, solution, place, about=(key, family, field))


def _moves(solution: Solution, name: str, field: str) -> bool:
    """True if the solution itself changes a field of the row of this name."""
    return any(path[-1] == field and name in path[:2] for path in solution.changed)


def _said(spec: ToolSpec, key: str) -> str:
    """Returns the description of the tool and of one of its arguments."""
    return f"{spec.description} {spec.properties.get(key, {}).get('description', '')}".lower()


def _promises(
    ctx: AuditContext, solution: Solution, op: Op, *, known: dict[str, Family]
) -> Iterator[tuple[str, Family, str]]:
    """Arguments that name a row, and its field whose value the description demands."""
    spec = next((tool for tool in ctx.about.tools if tool.name == op.name), None)
    for key, value in op.value.items() if spec else ():
        family = known.get(str(value))
        if spec is None or family is None:
            continue
        said = _said(spec, key)
        for field, own in family.own.items():
            if not (isinstance(own, str) and own.isalpha() and len(own) >= 3):
                continue
            other_values = {
                other_text
                for related_row in family.related
                if isinstance(other_text := related_row.row.get(field), str)
            } - {own}
            if len(other_values) <= _KINDS and (other_values or _moves(solution, str(value), field)):
                noun = re.escape(family.table.lower().rstrip("s")[:-1])
                if re.search(rf"\b{re.escape(own.lower())} (\w+ )?{noun}\w*", said):
                    yield key, family, field


def _broken_promise(
    ctx: AuditContext, solution: Solution, place: int, *, about: tuple[str, Family, str]
) -> Finding | None:
    key, family, field = about
    op, right = solution.ops[place], family.own[field]
    said = next((_said(tool, key) for tool in ctx.about.tools if tool.name == op.name), "")
    strange = [
        related_row for related_row in family.related if related_row.row.get(field) not in (right, None, MISSING)
    ]
    # "a labelled shipment, or one in transit": what is named, too, is meant, too.
    strange = [
        related_row for related_row in strange if str(related_row.row[field]).lower().replace("_", " ") not in said
    ]
    strange = sorted(strange, key=lambda related_row: -_alike(related_row, family))[:_TRIED]
    tried: list[tuple[RelatedRow, tuple[Op, ...]]] = [(related_row, ()) for related_row in strange]
    own = op.value[key]
    if _moves(solution, str(own), field):
        after = next(new for path, (_, new) in solution.changed.items() if path[-1] == field and str(own) in path[:2])
        tried.insert(0, (RelatedRow(own, family.own | {field: after}), solution.ops))
    calls = (
        (related_row, before, wrong)
        for related_row, before in tried
        for wrong in _calls(solution, place, (key, family, related_row))
    )
    for related_row, before, wrong in calls:
        probe = Probe((reset(solution.task), *before, state(mark="before"), wrong.marked("wrong"), state(mark="after")))
        ctx.count_comparisons()
        row = _row(ctx.play_probe(probe), related_row)
        evidence = {"row": row, "field": field, "right": right}
        if not row or not worked([ctx.play_probe(probe)], Evidence(WORKED, data=evidence)):
            continue
        return ctx.finding(
            f"{op.name} works on what is not {right}, though it is for what is {right} as its description says",
            probe,
            relation=WORKED,
            marks=("before", "wrong", "after"),
            data=evidence,
            minimise=0,
            part="S",
            expected=f"{op.name} of {related_row.name}, whose {field} is {related_row.row.get(field)!r}, is refused",
            observed=f"it works, and {'/'.join(row)} is another one afterwards",
            teaches=f"that {field} means nothing: to set it resolves nothing",
        )
    return None


def _calls(solution: Solution, place: int, about: tuple[str, Family, RelatedRow]) -> list[Op]:
    """The call on another row: all else as it was, and all else as it is with that row."""
    key, family, related_row = about
    op = solution.ops[place]
    named = msgspec.structs.replace(op, value=op.value | {key: related_row.name})
    there = [
        other_op
        for other_op in translated(solution, str(op.value[key]), family.own, related_row=related_row)
        if other_op.name == op.name
    ]
    return [named, *(other_op for other_op in there[:1] if other_op != named)]


def _alike(related_row: RelatedRow, family: Family) -> int:
    return sum(1 for key, value in related_row.row.items() if value == family.own.get(key))


def _row(record: Record, related_row: RelatedRow) -> list[str]:
    """The path of the row that the call changed."""
    before, after = record.at("before"), record.at("after")
    if record.at("wrong").is_error or not (before.fine and after.fine):
        return []
    changed = [path for path in differences(before.value, after.value) if not is_bookkeeping(path)]
    rows: list[list[str]] = [list(path[:2]) for path in changed if str(related_row.name) in path[:2]]
    return rows[0] if rows else []


@relation
def worked(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the call succeeded and changed more than the status of a row without the needed status."""
    data: Any = evidence.data
    record = records[0]
    if record.at("wrong").is_error:
        return False
    before, after = (at(record.at(mark).value, data["row"]) for mark in ("before", "after"))
    if before in (after, MISSING) or MISSING in (after, at(before, [data["field"]])):
        return False
    kept = at(after, [data["field"]]) == at(before, [data["field"]])
    return bool(kept and at(before, [data["field"]]) != data["right"])
