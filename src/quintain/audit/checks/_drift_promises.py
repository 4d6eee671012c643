"""Checks answers against a tool's description: their order and their maximum length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import valid
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_words import order_fields, order_of, promised_order, promises_at_most, rows_of

TEACHES = "to take the first row for the wanted one when it is the last, or a whole list for its beginning"


@relation
def out_of_order(records: Sequence[Record], evidence: Evidence) -> bool:
    """The rows of an answer are sorted the other way round."""
    return bool(order_of(records[0].at("call").value, evidence.data["field"]) == evidence.data["found"])


@relation
def longer_than(records: Sequence[Record], evidence: Evidence) -> bool:
    """The answer is a list of more than `data` entries."""
    rows = rows_of(records[0].at("call").value)
    return rows is not None and len(rows) > int(evidence.data)


def _answers(ctx: AuditContext) -> Iterator[tuple[ToolSpec, KnownCall]]:
    """Calls of tools whose description promises an order or a length: those that are known, then drawn ones."""
    for tool in ctx.about.tools:
        if promised_order(tool.description) is None and promises_at_most(tool.description) is None:
            continue
        for known in ctx.discovery.of(tool.name)[:4]:
            yield tool, known
        for task in ctx.sample_tasks(3):
            drawn = {str(item): item for item in (_drawn(ctx, tool) for _ in range(60))}
            ops = [call(tool.name, item, mark=f"call {place}") for place, item in enumerate(drawn.values())]
            record = ctx.play(reset(task), *ops)
            for place, op in enumerate(ops):
                seen = record.at(f"call {place}")
                if len(rows_of(seen.value) or ()) > 1:
                    yield tool, KnownCall(task, (), op, seen, ())


def _drawn(ctx: AuditContext, tool: ToolSpec) -> dict[str, Any]:
    """Arguments for a tool, where every id that was seen may stand for any other."""
    arguments = valid(tool, ctx.discovery.values, ctx.rng, optional=0.1)
    ids = ctx.discovery.values.of("id")
    for name, value in arguments.items():
        if name.endswith("id") and ids and ctx.rng.random() < 0.7:
            arguments[name] = ctx.rng.choice(
                [identifier for identifier in ids if type(identifier) is type(value)] or [value]
            )
    return arguments


@check("x.descriptions_hold", "action_drift", needs=("tools", "call"), value=65)
def descriptions(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that answers have the order and length that the tool's description promises.

    An order is proven only if the rows are sorted the other way by each time, or amount, that they show. Excuse: a
    further field by which they are in order. A length is at most likely, because it may be about a part of the answer.
    """
    for tool, known in _answers(ctx):
        ctx.count_comparisons()
        probe = Probe((reset(known.task), *known.before, known.op.marked("call")))
        most = promises_at_most(tool.description)
        rows = rows_of(known.seen.value)
        if most is not None and rows is not None and len(rows) > most and "limit" not in known.op.value:
            yield ctx.finding(
                f"{tool.name} promises at most {most} results and gives {len(rows)}",
                probe,
                relation=f"{__name__}:longer_than",
                marks=("call",),
                data=most,
                part="H",
                at_most="likely",
                expected=most,
                observed=len(rows),
                teaches=TEACHES,
            )
        wanted = None if ctx.contract(tool.name).order else promised_order(tool.description)
        if wanted is None or rows is None:
            continue
        orders = {field: order_of(rows, field) for field in order_fields(rows, tool.description)}
        field = next((name for name, order in orders.items() if order), None)
        if field is not None and {order for order in orders.values() if order} == {"ascending", "descending"} - {
            wanted
        }:
            yield ctx.finding(
                f"{tool.name} promises {wanted} order, but its answer goes the other way by {field or 'date'}",
                probe,
                relation=f"{__name__}:out_of_order",
                marks=("call",),
                data={"field": field, "found": orders[field]},
                part="H",
                expected=wanted,
                observed=rows[:6],
                teaches="to take the first row for the wanted one when it is the last",
            )
