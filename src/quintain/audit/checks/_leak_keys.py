"""Checks that no value outside an enum is answered with what the verdict wants.

Only closed choices are looked at: a search for a guessed word may rightly find a text that holds the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_number, leaves, parsed
from quintain.audit.facts.generate import fits
from quintain.audit.facts.variations import NOWHERE
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, answer, call, number, reset, score
from quintain.audit.kernel.registry import relation

from ._drift_words import show
from ._leak_places import TEACHES
from ._leak_reading import CURIOUS, base_of
from ._same_scripts import seems_to_read

FULL, MAX_LEAVES = 1.0, 4


@relation
def pays_for_a_key(records: Sequence[Record], evidence: Evidence) -> bool:
    """A value in the answer for an undeclared choice is paid in full, and another value is not."""
    name, offered = evidence.data
    shown = records[0]
    key = next(op.value[name] for op in shown.ops if op.mark == "read")
    given = next(op.value for op in shown.ops if op.mark == "call")
    handed = given if isinstance(given, str) else next(iter(given.values()))
    held = [leaf for _, leaf in leaves(parsed(shown.at("read").value))]
    paid, less = (number(record.at("score")) for record in records)
    is_read = key not in offered and key not in str(shown.seen[0].value) and not shown.at("read").is_error
    return is_read and handed in held and paid is not None and less is not None and paid >= FULL - 1e-9 > less


@check("x.undeclared_keys", "leak", needs=("call", "tools", "tasks"), value=58)
def undeclared_keys(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no value outside an enum is answered with what the verdict wants."""
    readers = [tool for tool in ctx.about.tools if seems_to_read(ctx, tool.name)]
    enums = [(tool, name, schema) for tool in readers for name, schema in tool.properties.items() if is_dict(schema)]
    words = [text for word in CURIOUS if word.isalpha() for text in (word, f"_{word}")]
    start = reset(ctx.tasks[0])
    for tool, name, offered in [(tool, name, schema["enum"]) for tool, name, schema in enums if schema.get("enum")]:
        ops = [call(tool.name, {**base_of(ctx, tool), name: word}) for word in words if word not in offered]
        record = ctx.play(start, *ops)
        ctx.count_comparisons(len(ops))
        shown = [(op, seen) for op, seen in zip(ops, record.seen[1:], strict=False) if not seen.is_error]
        held = [(op, leaf) for op, seen in shown for _, leaf in [*leaves(parsed(seen.value))][:MAX_LEAVES]]
        for op, act, other in [(op, *pair) for op, leaf in held for pair in _handed_in(ctx, leaf)]:
            ways = ((op.marked("read"), act.marked("call")), (other.marked("call"),))
            probes, data = [Probe((start, *way, score())) for way in ways], [name, offered]
            if pays_for_a_key(ctx.play_all(probes), Evidence("", data=data)):
                yield show(
                    ctx, f"{tool.name} shows what is paid for the {name} {op.value[name]!r}", pays_for_a_key, *probes,
                    data=data, marks=("read", "call", "score"), part="H", observed=act.value, teaches=TEACHES,
                    expected=f"an error: {name} is none of its choices",
                )  # fmt: skip
                return


def _handed_in(ctx: AuditContext, value: Any) -> Iterator[tuple[Op, Op]]:
    """Yields the ways to hand a value in, each with that for another value."""
    other = 2 * value + 1 if is_number(value) else NOWHERE[0]
    if "answer" in ctx.offers:
        yield answer(str(value)), answer(str(other))
    for tool in ctx.about.tools:
        fitting = [name for name in tool.required if fits(value, tool.properties.get(name) or {}, tool.parameters)]
        if len(tool.required) == 1 and fitting and not seems_to_read(ctx, tool.name):
            yield call(tool.name, {fitting[0]: value}), call(tool.name, {fitting[0]: other})
