"""Checks tools that compute against Python: each operation that they offer, on numbers that tell the operands apart."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, is_number, parsed
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

HERE = f"{__name__}:"
_DOES: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": lambda a, b: a / b, "%": operator.mod,
    "//": lambda a, b: a // b, "**": pow, "add": operator.add, "plus": operator.add, "sum": operator.add,
    "subtract": operator.sub, "sub": operator.sub, "minus": operator.sub, "difference": operator.sub,
    "multiply": operator.mul, "mul": operator.mul, "times": operator.mul, "product": operator.mul,
    "divide": lambda a, b: a / b, "div": lambda a, b: a / b, "mod": operator.mod,
    "modulo": operator.mod, "power": pow, "pow": pow, "max": max, "min": min,
}  # fmt: skip
_ORDERED = (("left", "right"), ("a", "b"), ("x", "y"), ("first", "second"), ("lhs", "rhs"), ("num1", "num2"))
_PAIRS = ((7, 2), (2, 7), (-9, 4), (12.5, 0.5), (1, 3), (1000, 999), (0, 5), (40.25, 8), (2, 3))
_SUMS = (
    "7 - 2", "2 + 3 * 4", "(2 + 3) * 4", "8 / 4 / 2", "10 - 4 - 3", "1 / 3", "7 * 6", "-3 + 5", "2.5 * 4", "100 - 1",
)  # fmt: skip
_ABOUT = re.compile(r"calculat|comput|arithmetic|evaluat|\bmath", re.IGNORECASE)
_DIGITS = re.compile(r"round\w* (?:off )?to (\d+) (?:decimal|digit|place)", re.IGNORECASE)


@relation
def miscomputes(records: Sequence[Record], evidence: Evidence) -> bool:
    """The tool answers with one number, and it is not the result."""
    seen = records[0].at("call")
    got = None if seen.is_error else number_of(seen.value)
    return got is not None and _far(got, float(evidence.data["result"]), evidence.data["digits"])


def _far(got: float, result: float, digits: int | None) -> bool:
    slack = 1e-6 * max(1.0, abs(result)) if digits is None else 0.5 * 10.0**-digits + 1e-9 * max(1.0, abs(result))
    return not math.isfinite(got) or abs(got - result) > slack


def number_of(value: Any) -> float | None:
    """The one number of an answer; None when there is none, or several."""
    value = parsed(value)
    if is_dict(value):
        named = [value[name] for name in ("result", "value", "answer", "output") if name in value]
        value = named[0] if named else next(iter(value.values())) if len(value) == 1 else None
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return float(value) if is_number(value) else None


@check("x.sums_are_right", "action_drift", needs=("tools", "call", "tasks"), value=85)
def sums(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a tool that computes gives Python's result."""
    found = [(tool, list(calls_of(tool))) for tool in ctx.about.tools]
    found = [(tool, calls) for tool, calls in found if calls]
    if not found:
        raise NotChecked("no tool computes")
    for tool, calls in found:
        match = _DIGITS.search(tool.description)
        digits = int(match[1]) if match else None
        record = ctx.play(reset(ctx.tasks[0]), *(op.marked(f"call {place}") for place, (op, _) in enumerate(calls)))
        for place, (op, result) in enumerate(calls):
            seen = record.at(f"call {place}")
            got = None if seen.is_error else number_of(seen.value)
            ctx.count_comparisons()
            if got is None or not _far(got, result, digits):
                continue
            finding = ctx.finding(
                f"{tool.name} does not compute what it says: {_shown(op)}",
                Probe((reset(ctx.tasks[0]), op.marked("call"))),
                relation=f"{HERE}miscomputes",
                marks=("call",),
                data={"result": result, "digits": digits},
                minimise=0,
                expected=result,
                observed=got,
                teaches="wrong arithmetic",
            )
            if finding is not None:
                yield finding
                break


def _shown(op: Op) -> str:
    return " ".join(map(str, op.value.values()))


def calls_of(tool: ToolSpec) -> Iterator[tuple[Op, float]]:
    """Calls whose result is known."""
    names = list(tool.properties)
    kinds: dict[str, Any] = {
        name: schema.get("type") if is_dict(schema) else None for name, schema in tool.properties.items()
    }
    numbers = [name for name in names if kinds[name] in ("number", "integer")]
    words = [name for name in names if kinds[name] == "string"]
    if len(numbers) == 2 and len(words) <= 1 and len(names) == len(numbers) + len(words):
        yield from _binary(tool, _in_order(numbers), words, is_whole="integer" in (kinds[number] for number in numbers))
    is_about = _ABOUT.search(f"{tool.name} {tool.description}") is not None
    if (
        len(names) == 1
        and words
        and is_about
        and re.search(r"expr|formula|calc|equation|sum", f"{words[0]} {tool.name}")
    ):
        yield from ((call(tool.name, {words[0]: text}), float(eval(text))) for text in _SUMS)  # noqa: S307 (ours)


def _in_order(names: list[str]) -> list[str]:
    known = [list(pair) for pair in _ORDERED if {*pair} == {name.lower() for name in names}]
    return sorted(names, key=lambda name: known[0].index(name.lower())) if known else names


def _binary(tool: ToolSpec, numbers: list[str], words: list[str], *, is_whole: bool) -> Iterator[tuple[Op, float]]:
    schema: Any = tool.properties[words[0]] if words else {}
    offered: list[Any] = schema.get("enum") or [] if is_dict(schema) else []
    if words and not (is_list(offered) and offered):
        return
    head = tool.name.lower().rpartition("_")[2] if not words else ""
    turned = re.search(r"\b(from|into|by which)\b", tool.description) is not None
    for name in offered or ([head] if head in _DOES and tool.name.lower() in (head, f"calc_{head}") else []):
        does = _DOES.get(str(name).lower())
        if does is None or (turned and str(name).lower() not in ("+", "*", "add", "multiply")):
            continue
        for first, second in _PAIRS:
            if is_whole and not (isinstance(first, int) and isinstance(second, int)):
                continue
            if does is pow and not 0 < first < 50:
                continue
            known: dict[str, Any] = {numbers[0]: first, numbers[1]: second, **({words[0]: name} if words else {})}
            given = {key: known[key] for key in tool.properties}
            if is_whole and does(first, second) != int(does(first, second)):
                continue
            yield call(tool.name, given), float(does(first, second))
