"""Checks tools that compute on inputs without a result: a division by 0, the mean of an empty list, a malformed sum.

A tool that is known to compute, since it was right where a result exists, must not give a number where none exists.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_settings import calls_of, number_of

HERE = f"{__name__}:"
_DIVIDES = frozenset(("/", "//", "%", "divide", "div", "mod", "modulo", "ratio", "quotient"))
_RATIOS = ((8.0, 4.0), (9.0, 2.0), (5.0, 20.0))
_LISTED: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.mean, "average": statistics.mean, "avg": statistics.mean, "median": statistics.median,
    "max": max, "maximum": max, "min": min, "minimum": min,
}  # fmt: skip
_SINGLE: dict[str, tuple[Callable[[float], float], float, float]] = {
    "sqrt": (math.sqrt, 9, -4), "square_root": (math.sqrt, 9, -4), "log": (math.log, 5, 0), "ln": (math.log, 5, 0),
    "log10": (math.log10, 1000, 0), "log2": (math.log2, 8, 0), "inverse": (lambda number: 1 / number, 4, 0),
    "reciprocal": (lambda number: 1 / number, 4, 0), "factorial": (lambda number: math.factorial(int(number)), 4, -3),
    "asin": (math.asin, 0.5, 2), "acos": (math.acos, 0.5, 2),
}  # fmt: skip
_NO_SUMS = ("1 / 0", "5 / (3 - 3)", "2 +", "abc", "")


class OperandPair(msgspec.Struct, frozen=True):
    """Calls with a result, which show what the tool computes, and calls of the same that have none."""

    known: list[tuple[Op, float]]
    nothing: list[Op]


@relation
def invents(records: Sequence[Record], evidence: Evidence) -> bool:
    """The tool is right where there is a result, and gives a number all the same where there is none."""
    record = records[0]
    for place, result in enumerate(evidence.data):
        seen = record.at(f"known {place}")
        got = None if seen.is_error else number_of(seen.value)
        if got is None or abs(got - result) > 0.006 * max(1.0, abs(result)):
            return False
    seen = record.at("call")
    got = None if seen.is_error else number_of(seen.value)
    return got is not None and math.isfinite(got)


@check("x.no_result_is_no_number", "silent_default", needs=("tools", "call", "tasks"), value=50)
def nothing(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a tool that computes gives no number where no result exists."""
    found = [(tool, pair) for tool in ctx.about.tools[:200] for pair in _pairs(tool)]
    if not found:
        raise NotChecked("no tool computes")
    reported: set[str] = set()
    for tool, pair in found:
        for op in pair.nothing if tool.name not in reported else ():
            marked = [step.marked(f"known {place}") for place, (step, _) in enumerate(pair.known)]
            probe = Probe((reset(ctx.tasks[0]), *marked, op.marked("call")))
            results = [result for _, result in pair.known]
            record = ctx.play_probe(probe)
            ctx.count_comparisons()
            if not invents([record], Evidence("", data=results)):
                continue
            reported.add(tool.name)
            yield ctx.finding(
                f"{tool.name} gives a number for what has no result: {' '.join(map(str, op.value.values()))}",
                probe,
                relation=f"{HERE}invents",
                marks=("call",),
                data=results,
                minimise=0,
                expected="an error",
                observed=record.at("call").value,
                teaches="that an undefined result is a number",
            )
            break


def _pairs(tool: ToolSpec) -> Iterator[OperandPair]:
    kinds = {name: schema.get("type") if is_dict(schema) else None for name, schema in tool.properties.items()}
    numbers = [name for name, kind in kinds.items() if kind in ("number", "integer")]
    words = [name for name, kind in kinds.items() if kind == "string"]
    lists = [name for name, kind in kinds.items() if kind == "array"]
    if len(numbers) + len(words) + len(lists) != len(kinds) or len(words) > 1:
        return
    offered = _offered(tool, words)
    if len(numbers) == 2 and not lists:
        yield from _divisions(tool, numbers, words, offered=offered)
    elif (len(numbers), len(lists)) in ((1, 0), (0, 1)):
        yield from _functions(tool, (numbers or lists)[0], words, offered=offered)
    elif words and not numbers and not lists:
        sums = list(calls_of(tool))
        if sums:
            yield OperandPair(sums[:3], [call(tool.name, {words[0]: text}) for text in _NO_SUMS])


def _offered(tool: ToolSpec, words: list[str]) -> list[str]:
    """Operations that a tool offers, or the one that its name says."""
    if words:
        schema: Any = tool.properties[words[0]]
        return [str(option) for option in schema.get("enum") or ()]
    return [tool.name.lower(), *re.split(r"_", tool.name.lower())]


def _divisions(tool: ToolSpec, numbers: list[str], words: list[str], *, offered: list[str]) -> Iterator[OperandPair]:
    """By 0; which of two numbers it divides by, and whether it divides at all, is seen."""
    divides = [name for name in offered if name.lower() in _DIVIDES] if words else [""]
    for name, (first, second) in ((name, pair) for name in divides for pair in (numbers, numbers[::-1])):
        for factor in (1.0, 100.0):
            given = [
                {first: left, second: right, **({words[0]: name} if words else {})}
                for left, right in (*_whole(tool, numbers, name), (6.0, 0.0))
            ]
            ops = [call(tool.name, _in_order(tool, values)) for values in given]
            results = [factor * _divided(left, right, name) for left, right in _whole(tool, numbers, name)]
            yield OperandPair(list(zip(ops, results, strict=False)), ops[-1:])


def _whole(tool: ToolSpec, numbers: list[str], name: str) -> tuple[tuple[float, float], ...]:
    is_whole = any(is_dict(item) and item.get("type") == "integer" for item in map(tool.properties.get, numbers))
    return ((8, 4), (42, 6), (9, 3)) if is_whole and name not in ("//", "%") else _RATIOS


def _divided(left: float, right: float, name: str) -> float:
    if name.lower() in ("//", "div"):
        return left // right
    return left % right if name.lower() in ("%", "mod", "modulo") else left / right


def _in_order(tool: ToolSpec, values: dict[str, Any]) -> dict[str, Any]:
    whole = {name for name, schema in tool.properties.items() if is_dict(schema) and schema.get("type") == "integer"}
    return {name: int(values[name]) if name in whole else values[name] for name in tool.properties}


def _functions(tool: ToolSpec, name: str, words: list[str], *, offered: list[str]) -> Iterator[OperandPair]:
    schema: Any = tool.properties[name] or {}
    is_list = schema.get("type") == "array"
    for word in offered:
        extra = {words[0]: word} if words else {}
        if is_list and word.lower() in _LISTED:
            does = _LISTED[word.lower()]
            known = [(call(tool.name, {**extra, name: item}), float(does(item))) for item in ([2, 4, 9, 1], [7, 3, 8])]
            yield OperandPair(known, [call(tool.name, {**extra, name: []})])
        elif not is_list and word.lower() in _SINGLE:
            single, fine, none = _SINGLE[word.lower()]
            yield OperandPair(
                [(call(tool.name, {**extra, name: fine}), float(single(fine)))],
                [call(tool.name, {**extra, name: none})],
            )
