"""Checks tools that compute on inputs without a result: a division by 0, the mean of an empty list, a malformed sum.

A tool that is known to compute, since it was right where a result exists, must not give a number where none exists.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_settings import calls_of, number_of
from ._drift_words import show

_DIVIDES: dict[str, Callable[[float, float], float]] = {
    **dict.fromkeys(("", "/", "divide", "ratio", "quotient"), lambda left, right: left / right),
    **dict.fromkeys(("//", "div"), lambda left, right: left // right),
    **dict.fromkeys(("%", "mod", "modulo"), lambda left, right: left % right),
}
_RATIOS = ((8, 4), (42, 6), (9, 3)), ((8.0, 4.0), (9.0, 2.0), (5.0, 20.0))
"""Operands of a division that has a whole result, and of others."""
_LISTS = [2, 4, 9, 1], [7, 3, 8]
_DOES: dict[str, tuple[Callable[[Any], float], tuple[Any, ...], Any]] = {
    **dict.fromkeys(("mean", "average", "avg"), (statistics.mean, _LISTS, [])),
    "median": (statistics.median, _LISTS, []),
    **dict.fromkeys(("max", "maximum"), (max, _LISTS, [])), **dict.fromkeys(("min", "minimum"), (min, _LISTS, [])),
    **dict.fromkeys(("sqrt", "square_root"), (math.sqrt, (9,), -4)),
    **dict.fromkeys(("log", "ln"), (math.log, (5,), 0)),
    "log10": (math.log10, (1000,), 0), "log2": (math.log2, (8,), 0),
    **dict.fromkeys(("inverse", "reciprocal"), (lambda number: 1 / number, (4,), 0)),
    "factorial": (math.factorial, (4,), -3), "asin": (math.asin, (0.5,), 2), "acos": (math.acos, (0.5,), 2),
}  # fmt: skip
"""By word of an operation: the function, arguments with a result, and one without."""
_NO_SUMS = ("1 / 0", "5 / (3 - 3)", "2 +", "abc", "")

Sums = tuple[list[tuple[Op, float]], list[Op]]
"""Calls with a result, which show what the tool computes, and calls of the same that have none."""


@relation
def invents(records: Sequence[Record], evidence: Evidence) -> bool:
    """The tool is right where there is a result, and gives a number all the same where there is none."""
    known = [(_number(records[0].at(f"known {place}")), result) for place, result in enumerate(evidence.data)]
    is_right = all(got is not None and abs(got - want) <= 0.006 * max(1.0, abs(want)) for got, want in known)
    invented = _number(records[0].at("call"))
    return is_right and invented is not None and math.isfinite(invented)


def _number(seen: OpResult) -> float | None:
    return None if seen.is_error else number_of(seen.value)


@check("x.no_result_is_no_number", "silent_default", needs=("tools", "call", "tasks"), value=47)
def nothing(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a tool that computes gives no number where no result exists."""
    found = [(tool.name, *sums) for tool in ctx.about.tools[:200] for sums in _sums(tool)]
    if not found:
        raise NotChecked("no tool computes")
    reported: set[str] = set()
    for name, known, op in ((name, known, op) for name, known, ops in found for op in ops):
        if name in reported:
            continue
        marked = [step.marked(f"known {place}") for place, (step, _) in enumerate(known)]
        probe = Probe((reset(ctx.tasks[0]), *marked, op.marked("call")))
        results = [result for _, result in known]
        record = ctx.play_probe(probe)
        ctx.count_comparisons()
        if invents([record], Evidence("", data=results)):
            reported.add(name)
            yield show(
                ctx, f"{name} gives a number for what has no result: {' '.join(map(str, op.value.values()))}", invents,
                probe, data=results, expected="an error", observed=record.at("call").value,
                teaches="that an undefined result is a number",
            )  # fmt: skip


def _sums(tool: ToolSpec) -> Iterator[Sums]:
    kinds = {name: schema.get("type") if is_dict(schema) else None for name, schema in tool.properties.items()}
    numbers = [name for name, kind in kinds.items() if kind in ("number", "integer")]
    words = [name for name, kind in kinds.items() if kind == "string"]
    lists = [name for name, kind in kinds.items() if kind == "array"]
    if len(numbers) + len(words) + len(lists) != len(kinds) or len(words) > 1:
        return
    schema: Any = tool.properties[words[0]] if words else {}
    name = tool.name.lower()
    offered = [str(option) for option in schema.get("enum") or ()] if words else [name, *name.split("_")]
    if len(numbers) == 2 and not lists:
        yield from _divisions(tool, numbers, words, offered=offered)
    elif (len(numbers), len(lists)) in ((1, 0), (0, 1)):
        for word in offered:
            does, good, bad = _DOES.get(word.lower(), (float, (), None))
            extra, name = {words[0]: word} if words else {}, (numbers or lists)[0]
            if isinstance(bad, list) is bool(lists) and good:
                known = [(call(tool.name, {**extra, name: item}), float(does(item))) for item in good]
                yield known, [call(tool.name, {**extra, name: bad})]
    elif words and not numbers and (sums := list(calls_of(tool))):
        yield sums[:3], [call(tool.name, {words[0]: text}) for text in _NO_SUMS]


def _divisions(tool: ToolSpec, numbers: list[str], words: list[str], *, offered: list[str]) -> Iterator[Sums]:
    """By 0; which of two numbers it divides by, and whether it divides at all, is seen."""
    whole = {name for name in numbers if tool.properties[name].get("type") == "integer"}
    for word in [word for word in offered if word.lower() in _DIVIDES] if words else [""]:
        does = _DIVIDES[word.lower()]
        pairs = _RATIOS[0 if whole and word not in ("//", "%") else 1]
        for first, second in (numbers, numbers[::-1]):
            ops: list[Op] = []
            for left, right in (*pairs, (6.0, 0.0)):
                given = {first: left, second: right} | ({words[0]: word} if words else {})
                values = {name: int(given[name]) if name in whole else given[name] for name in tool.properties}
                ops.append(call(tool.name, values))
            for factor in (1.0, 100.0):
                known = [(op, factor * does(*pair)) for op, pair in zip(ops, pairs, strict=False)]
                yield known, ops[-1:]
