"""Checks setters: what is given twice is still set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, leaves, parsed
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_words import show
from ._same_scripts import bare, reads, seems_to_read

READS, MAX_VALUES = 6, 3
_FLIPS = re.compile(r"toggl|flip|alternat|invert|opposite", re.IGNORECASE)
"""Words of a tool that is meant to change a setting at each call."""


@relation
def flips(records: Sequence[Record], evidence: Evidence) -> bool:
    """A field has the given value after the first and third of three equal calls, and another in between.

    The field has the name of the parameter, or that of the parameter and of the tool.
    """
    record, (name, offered, marks) = records[0], evidence.data
    acts = [(op, record.at(op.mark)) for op in record.ops if op.mark.startswith("set")]
    value = acts[0][0].value[name]
    if len({repr(op.value) for op, _ in acts}) > 1 or any(seen.is_error for _, seen in acts):
        return False
    words = {*name.split("_"), *acts[0][0].name.split("_")}
    for mark in marks:
        shown = [dict(leaves(parsed(record.at(f"{mark} {turn}").value), places=True)) for turn in range(3)]
        for path in shown[0]:
            fields = [repr(one.get(path)) for one in shown]
            is_named = bool(path) and {*name.split("_")} <= {*path[-1].split("_")} <= words
            if (
                is_named
                and fields[0] == fields[2] == repr(value)
                and fields[1] in {*map(repr, offered)} - {repr(value)}
            ):
                return True
    return False


@check("x.set_twice", "action_drift", needs=("tools", "call", "tasks"), value=54)
def set_twice(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a value that is given twice is still set."""
    tools = [tool for tool in ctx.about.tools if not _FLIPS.search(f"{tool.name} {tool.description}")]
    setters = [tool for tool in tools if not seems_to_read(ctx, tool.name) and ctx.discovery.of(tool.name)]
    for tool, name, schema in [(setter, *pair) for setter in setters for pair in setter.properties.items()]:
        known, offered = ctx.discovery.of(tool.name)[0], _offered(schema)
        looks = reads(ctx, known.task, READS)
        data = [name, offered, ["set", *(f"look {place}" for place in range(len(looks)))]]
        acts = [call(tool.name, {**known.op.value, name: value}) for value in offered[:MAX_VALUES]]
        start = (reset(known.task), *map(bare, known.before))
        probes = [Probe((*start, *_thrice(op, looks))) for op in acts]
        ctx.count_comparisons(len(probes))
        for probe, record in zip(probes, ctx.play_all(probes), strict=True):
            if flips([record], Evidence("", data=data)):
                yield show(
                    ctx, f"{tool.name} takes back its {name} when it is given again", flips, probe, data=data,
                    marks=("set 0", "set 1", "set 2"), expected="the given value after each call",
                    observed="another value after the second", teaches="that a setting depends on the number of calls",
                )  # fmt: skip
                break


def _offered(schema: Any) -> list[Any]:
    if not is_dict(schema):
        return []
    return list(schema.get("enum") or ([True, False] if schema.get("type") == "boolean" else []))


def _thrice(op: Op, looks: Sequence[Op]) -> Iterator[Op]:
    for turn in range(3):
        yield op.marked(f"set {turn}")
        yield from (look.marked(f"look {place} {turn}") for place, look in enumerate(looks))
