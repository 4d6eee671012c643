"""Checks tools that compute against Python."""

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

from ._drift_words import show

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


@check("x.sums_are_right", "action_drift", needs=("tools", "call", "tasks"), value=62)
def sums(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a tool that computes gives Python's result."""
    found = [(tool, calls) for tool in ctx.about.tools if (calls := list(calls_of(tool)))]
    if not found:
        raise NotChecked("no tool computes")
    for tool, calls in found:
        match = _DIGITS.search(tool.description)
        digits = int(match[1]) if match else None
        ctx.count_comparisons(len(calls))
        record = ctx.play(reset(ctx.tasks[0]), *(op.marked(f"call {place}") for place, (op, _) in enumerate(calls)))
        answers = [record.at(f"call {place}") for place in range(len(calls))]
        numbers = [None if seen.is_error else number_of(seen.value) for seen in answers]
        wrong = [
            (*pair, got)
            for pair, got in zip(calls, numbers, strict=True)
            if got is not None and _far(got, pair[1], digits)
        ]
        for op, result, got in wrong:
            said, probe = " ".join(map(str, op.value.values())), Probe((reset(ctx.tasks[0]), op.marked("call")))
            finding = show(
                ctx, f"{tool.name} does not compute what it says: {said}", miscomputes, probe,
                data={"result": result, "digits": digits}, expected=result, observed=got, teaches="wrong arithmetic",
            )  # fmt: skip
            if finding is not None:
                yield finding
                break


def calls_of(tool: ToolSpec) -> Iterator[tuple[Op, float]]:
    """Calls whose result is known."""
    kinds: dict[str, Any] = {
        name: schema.get("type") if is_dict(schema) else None for name, schema in tool.properties.items()
    }
    numbers = [name for name, kind in kinds.items() if kind in ("number", "integer")]
    words = [name for name, kind in kinds.items() if kind == "string"]
    if len(numbers) == 2 and len(words) <= 1 and len(kinds) == len(numbers) + len(words):
        order = next((pair for pair in _ORDERED if {*pair} == {name.lower() for name in numbers}), ())
        ordered = sorted(numbers, key=lambda name: order.index(name.lower())) if order else numbers
        yield from _binary(tool, ordered, words, is_whole="integer" in kinds.values())
    is_about = _ABOUT.search(f"{tool.name} {tool.description}")
    if [*kinds] == words[:1] and is_about and re.search(r"expr|formula|calc|equation|sum", f"{words[0]} {tool.name}"):
        yield from ((call(tool.name, {words[0]: text}), float(eval(text))) for text in _SUMS)  # noqa: S307 (ours)


def _binary(tool: ToolSpec, numbers: list[str], words: list[str], *, is_whole: bool) -> Iterator[tuple[Op, float]]:
    schema: Any = tool.properties[words[0]] if words else {}
    names: list[Any] = (schema.get("enum") or []) if words else []
    head = tool.name.lower().rpartition("_")[2]
    if not words and head in _DOES and tool.name.lower() in (head, f"calc_{head}"):
        names = [head]
    # "Divide by the first, from the second": the operands may stand in either order.
    turned = re.search(r"\b(from|into|by which)\b", tool.description) is not None
    for name in names if is_list(names) else ():
        does = _DOES.get(str(name).lower())
        if does is None or (turned and str(name).lower() not in ("+", "*", "add", "multiply")):
            continue
        for first, second in _PAIRS:
            has_parts = is_whole and not (isinstance(first, int) and isinstance(second, int))
            if has_parts or (does is pow and not 0 < first < 50) or (is_whole and does(first, second) % 1):
                continue
            known: dict[str, Any] = {numbers[0]: first, numbers[1]: second, **({words[0]: name} if words else {})}
            yield call(tool.name, {key: known[key] for key in tool.properties}), float(does(first, second))
