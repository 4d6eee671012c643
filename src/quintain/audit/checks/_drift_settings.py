"""Checks setters against what other tools show, and tools that compute against Python.

Where the answer of a reading tool has a field of a parameter's name, the calls of the writing tool are made one by one
and two by two. A field that takes the set value after some of them, and has another value after other calls with the
same success message, follows the number of calls or the first one, not their arguments.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list, is_number, parsed
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset, same
from quintain.audit.kernel.registry import relation

from ._drift_told import called
from ._drift_words import show
from ._reward_acts import only_reads, words

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


HERE = f"{__name__}:"
TOOLS, VALUES, READS, FIELDS = 16, 3, 4, 4
_SETS = ("set", "put", "assign", "change", "update")
"""Words of tools whose numbers become what they say; another one may add them."""


class Setting(msgspec.Struct, frozen=True):
    """A setter tool, its parameter and values, and a call that shows the result."""

    tool: ToolSpec
    known: KnownCall
    name: str
    values: tuple[Any, ...]
    read: Op

    def setting_call(self, value: Any) -> Op:
        return call(self.tool.name, {**self.known.op.value, self.name: value})

    def probe(self, history: Sequence[Any]) -> Probe:
        """The world as it was, one call for each value, and the world as it is then."""
        ops = [self.setting_call(value) for value in history]
        ops[-1] = ops[-1].marked("call")
        head = (reset(self.known.task), *self.known.before, self.read.marked("was"))
        return Probe((*head, *ops, self.read.marked("look")))


def _settings(ctx: AuditContext) -> Iterator[Setting]:
    for tool in [spec for spec in ctx.about.tools if not only_reads(ctx, call(spec.name))][:TOOLS]:
        for known in [known for known in ctx.discovery.of(tool.name) if known.writes is not False][:1]:
            for name, schema in tool.properties.items():
                values = _values(tool, schema, known.op.value.get(name)) if is_dict(schema) else ()
                for read in _reads(ctx, known) if len(values) > 1 else ():
                    yield Setting(tool, known, name, values, read)


def _values(tool: ToolSpec, schema: dict[str, Any], known: Any) -> tuple[Any, ...]:
    """Unlike values that mean themselves: of a flag, of an enum, of a number that is set."""
    if schema.get("type") == "boolean":
        return (True, False)
    if schema.get("enum"):
        return tuple(schema["enum"][:VALUES])
    if schema.get("type") in ("integer", "number") and words(tool.name)[:1] and words(tool.name)[0] in _SETS[:1]:
        low, high = schema.get("minimum", 0), schema.get("maximum", 100)
        if is_number(low) and is_number(high) and high - low >= 2:
            middle = known if is_number(known) and low < known < high else low + (high - low) // 2
            return tuple(dict.fromkeys((middle, low, high)))[:VALUES]
    return ()


def _reads(ctx: AuditContext, known: KnownCall) -> list[Op]:
    """Calls that show: those without arguments, and those that ask for what the writing call is about."""
    tools = [tool for tool in ctx.about.tools if tool.name != known.op.name and only_reads(ctx, call(tool.name))]
    fit = [tool for tool in tools if known.op.value.keys() >= set(tool.required)]
    return [call(tool.name, {name: known.op.value[name] for name in tool.required}) for tool in fit][:READS]


def fields(value: Any, name: str) -> dict[str, Any]:
    """By path the fields of an answer whose name has all words of a parameter's name."""
    found: dict[str, Any] = {}
    wanted = set(words(name))

    def walk(value: Any, path: str) -> None:
        if is_dict(value):
            for key, item in value.items():
                if is_dict(item) or is_list(item):
                    walk(item, f"{path}/{key}")
                elif wanted <= set(words(str(key))):
                    found[f"{path}/{key}"] = item
        elif is_list(value):
            for item in value[:50]:  # A list may be in the order of what is set: a row is known by its own name.
                named = next((text for text in item.values() if isinstance(text, str)), "") if is_dict(item) else ""
                if named:
                    walk(item, f"{path}/{named}")

    walk(parsed(value), "")
    return found


@relation
def follows_not(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a field takes two different set values, and a third time keeps another value after a reported success."""
    name, field = evidence.data["name"], evidence.data["field"]
    stated = [called(record).value[name] for record in records]
    shown = [fields(record.at("look").value, name) for record in records]
    if len(records) != 3 or stated[0] == stated[1] or any(seen.is_error for record in records for seen in record.seen):
        return False
    if any(field not in item for item in shown) or not same(records[0].at("call"), records[2].at("call")):
        return False
    right = [_is(item[field], value) for item, value in zip(shown, stated, strict=True)]
    return right == [True, True, False] and stated[2] == stated[0]


def _is(first: Any, second: Any) -> bool:
    return bool(first == second) and isinstance(first, bool) == isinstance(second, bool)


@check("x.set_is_shown", "action_drift", needs=("tools", "call", "tasks"), value=86)
def set_is_shown(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the value set by a tool is shown, whatever was set before."""
    looked, reported = False, set[tuple[str, str]]()
    known = [(setting, _histories(setting.values)) for setting in _settings(ctx)]
    firsts = ctx.play_all([setting.probe(histories[0]) for setting, histories in known])
    for (setting, histories), first in zip(known, firsts, strict=True):
        look, what = first.at("look"), (setting.tool.name, setting.name)
        shown = [] if look.is_error or what in reported else list(fields(look.value, setting.name))[:FIELDS]
        rest = ctx.play_all([setting.probe(history) for history in histories[1:]]) if shown else []
        seen = dict(zip(histories, [first, *rest], strict=False))
        ctx.count_comparisons(len(shown))
        looked = looked or bool(shown)
        finding = next(filter(None, (_finding(ctx, setting, seen, field=field) for field in shown)), None)
        if finding is not None:
            reported.add(what)
            yield finding
    if not looked:
        raise NotChecked("no reading tool shows a value that another tool sets")


def _histories(values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Each value alone, twice, and after the one before it."""
    pairs = zip(values, (*values[1:], values[0]), strict=True)
    return [*((value,) for value in values), *((value, value) for value in values), *pairs]


def _finding(ctx: AuditContext, setting: Setting, seen: dict[tuple[Any, ...], Record], *, field: str) -> Finding | None:
    data = {"name": setting.name, "field": field}
    fine = {
        history: fields(record.at("look").value, setting.name).get(field)
        for history, record in seen.items()
        if not any(result.is_error for result in record.seen)
    }
    right = [history for history, value in fine.items() if _is(value, history[-1])]
    for wrong in [history for history in fine if history not in right]:
        own = [history for history in right if history[-1] == wrong[-1]][:1]
        other = [history for history in right if history[-1] != wrong[-1]][:1]
        three = [*own, *other, wrong]
        if len(three) == 3 and follows_not([seen[history] for history in three], Evidence("", data=data)):
            return show(
                ctx,
                f"{setting.tool.name} says that it is done, and {field.strip('/')} is not the given {setting.name}",
                follows_not, *map(setting.probe, three), marks=("was", "call", "look"), data=data,
                expected={setting.name: wrong[-1]}, observed={"set": list(wrong), field: fine[wrong]},
                teaches="that the call did what its arguments say",
            )  # fmt: skip
    return None
