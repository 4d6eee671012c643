"""Checks that a call has the effect of its arguments: each parameter against the fields that follow it.

Which field follows which parameter is learned. A field that takes a parameter's value in most calls, or moves by it,
must do so in all calls that report success: where it does not, a value was cut, replaced by a default, or left out. A
field that moves by a fixed multiple of it counts in another unit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.cuts import Answer, misread
from quintain.audit.facts.data import is_dict, is_list, is_number, parsed
from quintain.audit.facts.variations import Variation, changed
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, call, same, text_of
from quintain.audit.kernel.registry import relation

from ._drift_production import UNITS, at_odds, may_be, rate_of
from ._drift_words import SAYS, rows_of, show

TEACHES = "to ignore tool descriptions"
_DEFAULT = re.compile(r"\b(?:default(?:s to| is|:)?|by default) [`'\"]?(-?\w+)", re.IGNORECASE)


@relation
def defaults_differ(records: Sequence[Record], evidence: Evidence) -> bool:
    """Without a parameter the call does something else than with its declared default, and twice the same."""
    without, given, again = records
    if any(record.at("call").is_error for record in records):
        return False
    marks = ("call", "look") if evidence.data["looks"] else ("call",)
    steady = all(same(without.at(mark), again.at(mark), evidence.volatile) for mark in marks)
    return steady and any(not same(without.at(mark), given.at(mark), evidence.volatile) for mark in marks)


@check("x.defaults_hold", "action_drift", needs=("tools", "call", "tasks"), value=10)
def defaults(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an omitted parameter has the effect of its declared default."""
    cases = [(tool, name, value) for tool in ctx.about.tools for name, value in _defaults(tool)]
    if not cases:
        raise NotChecked("no default is declared")
    for tool, name, value in cases:
        tried = [one for one in ctx.variations.of(tool.name) if one.works and one.kind in ("good", "legal")]
        tried.sort(key=lambda variation: -len(str(variation.seen.value)))
        for variation in [*tried[:2], *(one for one in tried[2:] if one.kind == "good")][:3]:
            look = (Op("changes", mark="look"),) if variation.changes is not None else ()
            without = {key: argument for key, argument in variation.arguments.items() if key != name}
            calls = [call(tool.name, given, mark="call") for given in (without, {**without, name: value}, without)]
            probes, data = [Probe((*variation.base_state.head, op, *look)) for op in calls], {"looks": bool(look)}
            ctx.count_comparisons()
            if defaults_differ(ctx.play_all(probes), Evidence("", data=data, volatile=ctx.volatile)):
                yield show(
                    ctx, f"{tool.name} without {name} does not do what its declared default {value!r} does",
                    defaults_differ, *probes, data=data, part="H", expected=f"the same as with {name}={value!r}",
                    observed="something else", teaches=TEACHES,
                )  # fmt: skip
                break


def _defaults(tool: ToolSpec) -> Iterator[tuple[str, Any]]:
    for name, schema in tool.properties.items():
        if name in tool.required or not is_dict(schema):
            continue
        if schema.get("default") is not None:
            yield name, schema["default"]
            continue
        match = _DEFAULT.search(str(schema.get("description") or ""))
        if match and schema.get("type") == "integer" and match[1].lstrip("-").isdigit():
            yield name, int(match[1])
        elif match and match[1] in (schema.get("enum") or ()):
            yield name, match[1]
        elif match and schema.get("type") == "boolean" and match[1].lower() in ("true", "false"):
            yield name, match[1].lower() == "true"


_LIMITED = re.compile(
    r"at most|up to|capped|clamp|no more than|round|limited|maximum|truncat|shorten|partial", re.IGNORECASE
)
Slots = dict[str, tuple[Any, Any]]


def slots_of(made: dict[str, list[Any]] | None, answer: Any) -> Slots:
    """Places and what became of them: paths of changed fields, "table/+/field" of new rows, "answer/field"."""
    found: Slots = {}
    for path, (before, after) in (made or {}).items():
        if before is None and is_dict(after):
            table = path.partition("/")[0]
            found |= {f"{table}/+/{name}": (None, value) for name, value in after.items()}
        elif is_dict(row := _added(before, after)):
            found |= {f"{path}/+/{name}": (None, value) for name, value in row.items()}
        else:
            found[path] = (before, after)
    answer = parsed(answer)
    for name, value in answer.items() if is_dict(answer) else ():
        found[f"answer/{name}"] = (None, value)
    return found


def _added(before: Any, after: Any) -> Any:
    """The one entry that a list has more than before, wherever it stands; None when that is not all that differs."""
    if not is_list(before) or not is_list(after) or len(after) != len(before) + 1:
        return None
    place = next(
        (at for at, (first, second) in enumerate(zip(before, after, strict=False)) if first != second), len(before)
    )
    return after[place] if before[place:] == after[place + 1 :] else None


def slots_in(record: Record) -> Slots:
    """Returns the places that the call of a record changed."""
    return slots_of(made_by(record), record.at("call").value)


def made_by(record: Record) -> dict[str, list[Any]] | None:
    """Returns the changes between the looks of a record; None without looks."""
    has_looks = any(op.mark == "was" for op in record.ops)
    return None if not has_looks else changed(record.at("was").value, record.at("look").value)


def called(record: Record) -> Op:
    """Returns the marked call of a record."""
    return next(op for op in record.ops if op.mark == "call")


def takes(value: Any, asked: Any) -> bool:
    """True if a field has the value, in any spelling, or contains it."""
    if isinstance(asked, str) and isinstance(value, str):
        first, second = " ".join(value.split()).casefold(), " ".join(asked.split()).casefold()
        second = second.lstrip("0") or "0" if second.isdigit() else second  # 07 may be taken as 7.
        return first == second or (bool(second) and second in first)
    if is_list(value) and not is_list(asked):
        return any(takes(item, asked) for item in value)
    if is_number(value) and isinstance(asked, str) and re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", asked.strip()):
        asked = float(asked)
    if is_number(value) and is_number(asked):
        return abs(value - asked) <= 1e-9 * max(1, abs(asked))
    return bool(value == asked) or (not is_dict(value) and str(value) == str(asked))


def moves(before: Any, after: Any, asked: Any, *, sign: int) -> bool:
    """True if a number moved by the value."""
    if not (is_number(before) and is_number(after) and is_number(asked)):
        return False
    return abs(after - before - sign * asked) <= 1e-9 * max(1, abs(asked))


def holds(there: tuple[Any, Any], asked: Any, how: str) -> bool:
    """True if a place follows a parameter: "takes" its value, or moves "up" or "down" by it."""
    if how == "takes":
        return takes(there[1], asked)
    return moves(*there, asked, sign=1 if how == "up" else -1)


@relation
def left_out(records: Sequence[Record], evidence: Evidence) -> bool:
    """One call's place follows its parameter; the other call says that it is done, and its place does not."""
    data, (bad, good) = evidence.data, records[:2]
    asked, right = (called(record).value[data["name"]] for record in (bad, good))
    here, there = slots_in(bad), slots_in(good)
    has_failed = bad.at("call").is_error or good.at("call").is_error
    if has_failed or data["slot"] not in there or not holds(there[data["slot"]], right, data["how"]):
        return False
    before = there[data["slot"]][0]
    place = here.get(data["slot"], None if _is_new(data["slot"]) else (before, before))
    is_lost = place is not None and not holds(place, asked, data["how"])
    return is_lost and not _is_told(bad.at("call").value, place or (None, None), asked)


def _is_new(slot: str) -> bool:
    """True for a place that is absent where nothing came of it: of an answer, or of a new row."""
    return slot.startswith("answer/") or "/+/" in slot


def _is_told(answer: Any, place: tuple[Any, Any], asked: Any) -> bool:
    """True if the answer states the resulting number, and the request contained digits."""
    if isinstance(asked, str) and not any(map(str.isdigit, asked)):
        return False
    numbers = [str(abs(item)) for item in (place[1], _difference(place)) if is_number(item) and item != asked]
    text = json.dumps(answer, default=str)
    return any(re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.])", text) for number in numbers)


def _difference(place: tuple[Any, Any]) -> Any:
    return place[1] - place[0] if is_number(place[0]) and is_number(place[1]) else None


@relation
def ignores(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if two calls differ in a parameter and the field of its name gets the same other value."""
    first, second = (called(record).value[evidence.data["name"]] for record in records[:2])
    here, there = (slots_in(record).get(evidence.data["slot"]) for record in records[:2])
    if any(record.at("call").is_error for record in records[:2]) or here is None or there is None:
        return False
    return bool(first != second and here[1] == there[1]) and not takes(here[1], first)


@relation
def scaled(records: Sequence[Record], evidence: Evidence) -> bool:
    """In every call the place moves by, or becomes, the same multiple of the parameter, and that is not one."""
    factor = evidence.data["factor"]
    return abs(abs(factor) - 1) > 1e-6 and all(factor in _multiples(record, evidence.data) for record in records)


def _multiples(record: Record, data: dict[str, Any]) -> list[float]:
    """Returns by what the parameter of a call that worked is multiplied at a place."""
    place = None if record.at("call").is_error else slots_in(record).get(data["slot"])
    return [] if place is None else _factors(place, called(record).value[data["name"]])


@relation
def counts_as(records: Sequence[Record], evidence: Evidence) -> bool:
    """A field takes or moves by the parameter's own number in every call, though they are declared in unlike units."""
    data, tools = evidence.data, records[0].at("tools").value or ()
    field = data["slot"].rpartition("/")[2]
    is_odd = at_odds(tools, (data["tool"], data["name"]), field, declared=data.get("units", {})) is not None
    return is_odd and all({1, -1} & {*_multiples(record, data)} for record in records[1:])


def _factors(place: tuple[Any, Any], asked: Any) -> list[float]:
    """By what a parameter is multiplied to give what a place became, or by how much it moved."""
    if not is_number(asked) or not asked or not is_number(place[1]):
        return []
    found, moved = [round(place[1] / asked, 6)], _difference(place)
    return [*found, round(moved / asked, 6)] if is_number(moved) else found


class Series(msgspec.Struct, frozen=True):
    """Calls that differ in one parameter alone, and what became of each place."""

    name: str
    variations: list[Variation]
    slots: list[Slots]

    @property
    def asked(self) -> list[Any]:
        return [variation.arguments[self.name] for variation in self.variations]

    @property
    def text(self) -> str:
        """Returns the descriptions of the parameter and its tool."""
        tool = self.variations[0].tool
        return f"{tool.properties[self.name].get('description') or ''} {tool.description}"

    def at(self, slot: str) -> list[tuple[Variation, tuple[Any, Any], Any]]:
        """Returns each call, the place before and after it, and its argument; an unchanged field keeps its value."""
        known = [slots[slot] for slots in self.slots if slot in slots]
        still = None if _is_new(slot) or not known else (known[0][0], known[0][0])
        calls = zip(self.variations, [slots.get(slot, still) for slots in self.slots], self.asked, strict=True)
        return [(variation, place, asked) for variation, place, asked in calls if place is not None]


def series_of(ctx: AuditContext) -> Iterator[Series]:
    """For each good call and each of its parameters the calls around it that work."""
    skipped = {*ctx.discovery.background, *ctx.volatile}
    for tool in ctx.about.tools:
        tried = [one for one in ctx.variations.of(tool.name) if one.works and one.kind not in ("illegal", "taken")]
        for base in [one for one in tried if one.kind == "good"]:
            own = [one for one in tried if one.base_state is base.base_state and one.good == base.good]
            for name in tool.properties:
                same = [one for one in own if one.name in ("", name)]
                calls = [one for one in same if str(one.arguments.get(name)).strip() not in ("", "None", "[]")]
                found = [slots_of(one.changes, one.seen.value) for one in calls]
                slots = [{slot: slots[slot] for slot in slots if not {*slot.split("/")} & skipped} for slots in found]
                if len(calls) > 1:
                    yield Series(name, calls, slots)


@check("x.done_as_told", "action_drift", needs=("tools", "call", "tasks"), value=78)
def done_as_told(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no argument is cut, replaced, dropped, or taken for something else, such as another unit."""
    reported, looked = set[tuple[str, str]](), False
    for series in series_of(ctx):
        what = (series.variations[0].tool.name, series.name)
        if what not in reported and (found := _misread(ctx, series)):
            looked = True
            reported.add(what)
            yield found
        slots = dict.fromkeys(slot for slots in series.slots for slot in slots)
        for slot in slots if what not in reported else ():
            looked = True
            ctx.count_comparisons()
            found = _partly(ctx, series, slot) or _never(ctx, series, slot) or _multiple(ctx, series, slot)
            if found is not None:
                reported.add(what)
                yield found
                break
    if not looked:
        raise NotChecked("no call has an effect that can be seen")


@relation
def misreads(records: Sequence[Record], evidence: Evidence) -> bool:
    """Answers to values of a parameter show for what it is taken, though it is said to be something else."""
    name, text, how = evidence.data
    answers = [_answer(called(one).value[name], one.at("call"), made_by(one)) for one in records]
    return misread(answers, text) == how and not any(one.at("call").is_error for one in records)


def _answer(asked: Any, seen: OpResult, changes: dict[str, list[Any]] | None) -> Answer:
    return asked, seen.value, rows_of(seen.value) or [], changes or {}


def _misread(ctx: AuditContext, series: Series) -> Finding | None:
    tool, name = series.variations[0].tool, series.name
    text = str(tool.properties[name].get("description"))
    how = misread([_answer(one.arguments[name], one.seen, one.changes) for one in series.variations], text)
    probes = [one.probe(looks=one.changes is not None) for one in series.variations]
    return show(
        ctx, f"{tool.name} takes {name} for {how}", misreads, *probes,
        data=[name, text, how], expected=text, observed=how, teaches=TEACHES,
        at_most="likely" if ", where it says" in how else "proven",
    ) if how else None  # fmt: skip


def _partly(ctx: AuditContext, series: Series, slot: str) -> Finding | None:
    """A place that follows the parameter in most calls and not in all."""
    name, pairs = series.name, series.at(slot)
    can_move = not slot.startswith("answer/") and any(map(is_number, series.asked)) and not _LIMITED.search(series.text)
    for how in ("takes", "up", "down") if can_move else ("takes",):
        right = [each for each in pairs if holds(*each[1:], how)]
        wrong = [each for each in pairs if not holds(*each[1:], how)]
        least = 2 if _named(slot, name) and how == "takes" else 3
        is_clear = len(right) >= len(wrong) or _one_number(wrong)
        if not wrong or not is_clear or len({str(asked) for *_, asked in right}) < least:
            continue
        for variation, place, asked in [each for each in wrong if not _excused(slot, each, how=how)][:3]:
            finding = show(
                ctx, f"{variation.tool.name} says that it is done, but does not use the given {name}", left_out,
                *(one.probe(looks=one.changes is not None) for one in (variation, right[0][0])),
                data={"name": name, "slot": slot, "how": how}, class_="silent_default", expected={name: asked},
                observed={slot: place}, teaches="that the call did what its arguments say",
            )  # fmt: skip
            if finding is not None:
                return finding
    return None


def _one_number(wrong: Sequence[tuple[Variation, tuple[Any, Any], Any]]) -> bool:
    """True if texts that are not numbers all became the same number."""
    are_words = all(isinstance(item, str) and not item.strip().isdigit() for _, _, item in wrong)
    return are_words and is_number(wrong[0][1][1]) and all(place[1] == wrong[0][1][1] for _, place, _ in wrong)


def _excused(slot: str, wrong: tuple[Variation, tuple[Any, Any], Any], *, how: str) -> bool:
    """True if a difference is announced or not a fault: a no, an empty answer, a composed id, a shortened long text."""
    place, asked = wrong[1:]
    if _is_told(wrong[0].seen.value, place, asked) or SAYS.search(text_of(wrong[0].seen)):
        return True
    if slot.startswith("answer/"):
        # Where a field took it, the answer shows what follows, such as the value of a formula.
        is_taken = any(takes(pair[1], asked) for pair in slots_of(wrong[0].changes, None).values())
        return is_taken or not isinstance(place[1], str | int) or (isinstance(place[1], str) and len(str(asked)) > 60)
    return how == "takes" and isinstance(asked, str) and len(asked) > 60 and place[1] is None


def _named(slot: str, name: str) -> bool:
    """True if a place has the name of a parameter."""
    field = slot.rpartition("/")[2]
    return field in (name, re.sub(r"^new_|_(cents|minutes|seconds|id|name)$", "", name))


def _never(ctx: AuditContext, series: Series, slot: str) -> Finding | None:
    """Returns a finding for a field named like the parameter that never changes with it."""
    if slot.startswith(("answer/", "shared/")) or slot.rpartition("/")[2] != series.name:
        return None  # A timer of the framework has fields of its own.
    found: dict[str, list[Variation]] = {}
    for variation, slots in zip(series.variations, series.slots, strict=True):
        new = str(slots.get(slot, (None, None))[1])
        if slot in slots and new not in variation.made:  # An id of what is new, by a name like the old one's.
            found.setdefault(new, []).append(variation)
    for calls in found.values():
        values = {str(one.arguments[series.name]) for one in calls}
        if (len(values) < 3 and values != {"True", "False"}) or len(calls) < 0.8 * len(series.variations):
            continue
        for first, second in ((calls[0], calls[-1]), (calls[-1], calls[0])):
            probes, data = (first.probe(looks=True), second.probe(looks=True)), {"name": series.name, "slot": slot}
            if ignores(ctx.play_all(probes), Evidence("", data=data)):
                return show(
                    ctx, f"{first.tool.name} leaves out its {series.name}: the field of that name is always the same",
                    ignores, *probes, data=data, class_="silent_default",
                    expected={series.name: first.arguments[series.name]}, observed=list(found)[:4],
                    teaches="that arguments do not matter",
                )  # fmt: skip
    return None


def _multiple(ctx: AuditContext, series: Series, slot: str) -> Finding | None:
    """A place that moves by a fixed multiple of the parameter."""
    if slot.startswith("answer/") or not all(map(is_number, series.asked)):
        return None
    pairs = [(variation, _factors(place, asked)) for variation, place, asked in series.at(slot) if asked]
    counts: dict[float, list[Variation]] = {}
    for variation, factors in pairs:
        for factor in dict.fromkeys(factors):
            counts.setdefault(factor, []).append(variation)
    itself = [calls for factor, calls in counts.items() if abs(abs(factor) - 1) < 1e-6 and len(calls) > 1]
    if not counts or itself:
        return _another_unit(ctx, series, slot, variations=itself[0]) if itself else None
    factor = max(counts, key=lambda number: len(counts[number]))
    calls, rate = counts[factor], rate_of(series.text, series.name)
    if len({one.arguments[series.name] for one in calls}) < 3 or len(calls) < 0.8 * len(pairs) or not factor:
        return None
    if rate is None and may_be(factor, series.name, series.text, slot=slot):
        return None
    if rate is not None and (_follows(series, rate) or abs(factor) / rate in UNITS):
        return None
    said = "" if rate is None else f", where it says {rate:g}"
    return show(
        ctx, f"{calls[0].tool.name} counts its {series.name} {abs(factor):g} times{said}", scaled,
        *(one.probe(looks=True) for one in calls[:3]), data={"name": series.name, "slot": slot, "factor": factor},
        expected={series.name: calls[0].arguments[series.name]},
        observed={slot: slots_of(calls[0].changes, None)[slot]},
        teaches="amounts in a unit that production does not have",
    )  # fmt: skip


def _follows(series: Series, rate: float) -> bool:
    """True if some place changes by the rate in the description."""
    every = {slot for slots in series.slots for slot in slots}
    return any({rate, -rate} & {*_factors(*pair[1:])} for slot in every for pair in series.at(slot))


def _another_unit(ctx: AuditContext, series: Series, slot: str, *, variations: list[Variation]) -> Finding | None:
    """A parameter that is described in one unit, and counted as it is in a field of another."""
    tool, field = variations[0].tool, slot.rpartition("/")[2]
    tools: list[dict[str, Any]] = [msgspec.to_builtins(spec) for spec in ctx.about.tools]
    declared = {name: contract.unit for name, contract in ctx.about.contracts.items() if contract.unit}
    units = at_odds(tools, (tool.name, series.name), field, declared=declared)
    if units is None or len({variation.arguments[series.name] for variation in variations}) < 2:
        return None
    return show(
        ctx, f"{tool.name} takes {series.name} in {units[0]}, and counts it as {units[1]} in {field}", counts_as,
        Probe((Op("tools", mark="tools"),)), *(variation.probe(looks=True) for variation in variations[:3]),
        marks=("tools", "call"), data={"name": series.name, "slot": slot, "tool": tool.name, "units": declared},
        expected={series.name: units[0]}, observed={slot: units[1]},
        teaches="amounts in a unit that the tool does not take",
    )  # fmt: skip
