"""Checks that a number that one tool returns names the same thing for another tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_number, parsed
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import OpResult, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_words import show
from ._same_scripts import bare, seems_to_read


@relation
def counts_apart(records: Sequence[Record], evidence: Evidence) -> bool:
    """The number of a thing is taken only once another was made, whose number is refused.

    A queue takes the first number alone, and a last thing that must stay is refused alone: neither does both.
    """
    _alone, first, second = records
    numbers = [_number(second.at(f"made {turn}"), evidence.data) for turn in range(2)]
    asked = [next(op.value[evidence.data] for op in record.ops if op.mark == "call") for record in records]
    refused = [record.at("call").is_error and record.at("call").how in ("", "refused") for record in records]
    is_next = None not in numbers and numbers[1] - numbers[0] == 1
    return is_next and asked == [numbers[0], *numbers] and refused == [True, False, True] and first.at("call").fine


def _number(seen: OpResult, field: str) -> Any:
    value = parsed(seen.value)
    return value.get(field) if is_dict(value) and not seen.is_error and is_number(value.get(field)) else None


@check("x.counted_alike", "action_drift", needs=("tools", "call", "tasks"), value=45)
def counted_alike(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the number that one tool gives a thing is that by which another tool takes it."""
    pairs = [
        (known, tool.name, tool.required[0])
        for tool in ctx.about.tools
        for known in sorted(ctx.discovery.calls, key=lambda known: -len(known.before))  # The shortest way is kept.
        if len(tool.required) == 1 and tool.name != known.op.name and _number(known.seen, tool.required[0]) is not None
        if not seems_to_read(ctx, tool.name) and not seems_to_read(ctx, known.op.name)
    ]
    for known, name, field in {(known.op.name, name): (known, name, field) for known, name, field in pairs}.values():
        start, make = (reset(known.task), *map(bare, known.before)), known.op.marked
        both = (make("made 0"), make("made 1"))
        record = ctx.play(*start, *both)
        numbers = [_number(record.at(f"made {turn}"), field) for turn in range(2)]
        tries = [(both[:1], numbers[0]), (both, numbers[0]), (both, numbers[1])]
        probes = [Probe((*start, *acts, call(name, {field: one}, mark="call"))) for acts, one in tries]
        ctx.count_comparisons()
        if counts_apart(ctx.play_all(probes), Evidence("", data=field)):
            yield show(
                ctx, f"{name} takes another {field} than {known.op.name} returns", counts_apart, *probes, data=field,
                expected=f"{name} takes {field}={numbers[0]} once it was returned", observed="it takes it one later",
                teaches="to count otherwise than the tools do",
            )  # fmt: skip
