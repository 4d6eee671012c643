"""Checks the environment against production, and the units that names and descriptions state."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, is_number, leaves, parsed
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, call, reset, same
from quintain.audit.kernel.registry import relation

from ._drift_words import form_of, promised_order, show

KINDS: dict[str, dict[str, str]] = {
    "time": {
        "ms": r"milliseconds?|ms|millis", "seconds": r"seconds?|secs?", "minutes": r"minutes?|mins?",
        "hours": r"hours?|hrs?", "days": r"days?", "weeks": r"weeks?", "months": r"months?", "years": r"years?",
    },
    "money": {
        "cents": r"cents?|pennies|pence|minor[ _]units?|rappen|kopeks?",
        "euros": r"euros?|dollars?|usd|eur|pounds?|francs?|chf|major[ _]units?|units of (?:the|its|a|that) currency",
    },
    "length": {"mm": r"mm|millimet(?:er|re)s?", "cm": r"cm|centimet(?:er|re)s?", "m": r"met(?:er|re)s",
               "km": r"km|kilomet(?:er|re)s?", "miles": r"miles?", "feet": r"feet|foot|ft", "inches": r"inch(?:es)?"},
    "mass": {"grams": r"grams?", "kg": r"kg|kilograms?|kilos?", "tons": r"tons?|tonnes?", "pounds": r"lbs?"},
    "size": {"bytes": r"bytes?", "kb": r"kb|kilobytes?|kib", "mb": r"mb|megabytes?|mib", "gb": r"gb|gigabytes?"},
    "heat": {"celsius": r"celsius|centigrade", "fahrenheit": r"fahrenheit", "kelvin": r"kelvin"},
    "count": {"pieces": r"pieces?|quantity|qty|units|items|count|each", "dozens": r"dozens?",
              "pallets": r"pallets?", "boxes": r"boxes|cases|cartons?|crates?"},
    "share": {"percent": r"percent(?:age)?|pct", "fraction": r"fraction|ratio"},
}  # fmt: skip
_FACTORS: dict[str, tuple[float, ...]] = {
    "ms": (), "seconds": (1000, 10**6, 10**9), "minutes": (60, 60_000), "hours": (60, 3600, 3_600_000),
    "days": (24, 1440, 86_400, 86_400_000), "weeks": (7, 168, 604_800), "euros": (100, 1000, 10_000, 10**6),
    "km": (1000, 10**6), "kg": (1000,), "m": (100, 1000), "mm": (), "grams": (1000,), "bytes": (8,), "cents": (),
    "pieces": (),
}  # fmt: skip
_AMOUNTS = re.compile(
    r"price|cost|total|amount|fee|paid|credit|budget|balance|revenue|weight|volume|point|score|load|area|xp|value|tax"
    r"|second|minute|duration|distance|time|energy|calor|percent|rate",
    re.IGNORECASE,
)


_RATE = re.compile(r"(?<![\w.,-])(\d+(?:\.\d+)?)(?: [a-z]+)?,? (?:for each|for every|per)\b", re.IGNORECASE)
_MODIFIED = re.compile(
    r"%|\b(?:percent|tax\w*|vat|fees?|surcharge\w*|discount\w*|plus|minus|free|first|more than|over|above|up to|beyond"
    r"|at least|at most|from|cheaper|dearer|about|usually|currently|e\.g)\b",
    re.IGNORECASE,
)
"""Words that change a rate given in a description."""
UNITS = (1, 10, 100, 1000, 0.1, 0.01, 0.001, 12, 60, 3600)
"""Multiples by which one and the same rate is counted in another unit."""
_DENIED = re.compile(
    r"\b(?:not|never|no|rather than|instead of|unlike)(?: in| as)? (?:whole |full |the )?[\w-]+(?: units?)?",
    re.IGNORECASE,
)
"""Phrases in which a description rules a unit out."""


def unit_of(text: str, *, words: bool = False) -> tuple[str, str] | None:
    """Kind and unit that a name ends in, or, with `words`, the only ones that a description speaks of."""
    found = units_in(text) if words else _named(text)
    return found.pop() if len(found) == 1 else None


_PAIRS = [(kind, unit, pattern) for kind, units in KINDS.items() for unit, pattern in units.items()]


def _named(name: str) -> set[tuple[str, str]]:
    found = [pair for *pair, pattern in _PAIRS if re.search(rf"(?:^|_)(?:{pattern})$", name, re.IGNORECASE)]
    return {(kind, unit) for kind, unit in found}


def units_in(text: str) -> set[tuple[str, str]]:
    """Kinds and units that a description says something is counted in; those that it denies are none."""
    said = _DENIED.sub(" ", text)
    found: set[tuple[str, str]] = set()
    for kind, unit, pattern in _PAIRS:
        spoken = rf"\b(?:in|number of|as|how many|how long,? in) (?:whole |full )?(?:{pattern})\b"
        listed = rf"[(\[,;:] ?(?:whole |full )?({pattern})\b"
        is_listed = any(len(hit[1]) > 3 for hit in re.finditer(listed, said, re.IGNORECASE))
        found |= {(kind, unit)} if is_listed or re.search(spoken, said, re.IGNORECASE) else set()
    return found


def may_be(factor: float, name: str, description: str, *, slot: str) -> bool:
    """True if a place may move by that multiple of a parameter: it counts in a smaller unit, or something else."""
    kind, unit = unit_of(name) or unit_of(description, words=True) or ("", "")
    field = slot.rpartition("/")[2]
    if kind == "count":
        other_unit = re.search(r"dozen|pallet|box|pack|case|per piece|each", description, re.IGNORECASE)
        return other_unit is not None or _AMOUNTS.search(field) is not None or factor != int(factor)
    if unit not in _FACTORS or (unit_of(field) or (kind, unit)) != (kind, unit):
        return True
    # Elsewhere lies no unit: a price, a rate.
    is_unit = any(round(abs(factor), 6) in (number, round(1 / number, 6)) for number in _RATIOS)
    return not is_unit or (abs(factor) in _FACTORS[unit] and field != name)


_RATIOS = (10, 12, 24, 60, 100, 144, 1000, 1440, 3600, 10_000, 60_000, 86_400, 3_600_000)


def rate_of(text: str, name: str) -> float | None:
    """Returns the single rate that a description gives for a parameter, as in "charges 50 for each of `bags`"."""
    found = [(float(hit[1]), text[hit.end() :][:40]) for hit in _RATE.finditer(text)]
    stem = re.escape(name.lower().removesuffix("s").replace("_", " "))
    if len(found) != 1 or not found[0][0] or _MODIFIED.search(text):
        return None
    return found[0][0] if re.search(rf"\b{stem}", found[0][1].lower().replace("_", " ")) else None


def at_odds(
    tools: Sequence[Any], parameter: tuple[str, str], field: str, *,
    declared: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> tuple[str, str] | None:  # fmt: skip
    """The units of a tool's parameter and of a field, where both are said, are of one kind, and differ.

    Units that tools declare come first. Else a field's unit is that of its name; for money without one, the only one
    that tools speak of in a sentence about the field, or about all money.
    """
    properties = {spec["name"]: _properties(spec) for spec in tools}
    schema = properties.get(parameter[0], {}).get(parameter[1])
    text = str(schema.get("description") or "") if is_dict(schema) else ""
    parameter_units = _named(declared.get(parameter[0], {}).get(parameter[1], "")) or units_in(text)
    parameter_units = parameter_units or _named(parameter[1])
    shown = [units[field] for name, units in declared.items() if field in {*units} - properties.get(name, {}).keys()]
    field_units = {pair for unit in shown for pair in _named(unit)} or _named(field)
    if not field_units and _MONEY.search(field):
        field_units = {pair for tool in tools for pair in _counted(tool, field) if pair[0] == "money"}
    if len(parameter_units) != 1 or len(field_units) != 1:
        return None
    (kind, unit), (field_kind, counted) = *parameter_units, *field_units
    return (unit, counted) if kind == field_kind and unit != counted else None


def _properties(spec: Any) -> dict[str, Any]:
    parameters = spec.get("parameters")
    properties = parameters.get("properties") if is_dict(parameters) else None
    return properties if is_dict(properties) else {}


def _counted(tool: Any, field: str) -> set[tuple[str, str]]:
    """The units in which the description of a tool says that a field is, or all that is money."""
    about = re.compile(rf"\b(?:{re.escape(field.replace('_', ' '))}|money|amounts|prices)\b", re.IGNORECASE)
    parts = re.split(r"(?<=[.;])\s", str(tool.get("description") or ""))
    return {unit for part in parts if about.search(part) for unit in units_in(part)}


_MONEY = re.compile(r"balance|amount|price|paid|cost|credit|budget|total", re.IGNORECASE)


@relation
def shape_differs(records: Sequence[Record], evidence: Evidence) -> bool:
    """The answer has other keys or types than production's, or is an error where production's is none."""
    seen, answer = records[0].at("call"), evidence.data
    return OpResult(answer).is_error != seen.is_error or form_of(seen.value) != form_of(answer)


@relation
def declared_otherwise(records: Sequence[Record], evidence: Evidence) -> bool:
    """The declared tools, and those of production, still differ in the place that `data` names."""
    return evidence.data in dict(_declared(records[0]))


@check("x.production_declares_the_same", "action_drift", needs=("tools", "production"), value=97)
def production(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that names, parameters, types, enums, defaults and required parameters match production."""
    probe = Probe((Op("tools", mark="tools"), Op("production", mark="production")))
    record = ctx.play_probe(probe)
    real = record.at("production").value
    if not is_dict(real) or not real.get("tools"):
        raise NotChecked("production() gives no tools")
    ctx.count_comparisons(len({tool["name"] for tool in (*record.at("tools").value, *real["tools"])}))
    for what, (expected, observed) in _declared(record):
        yield show(
            ctx, f"{what} is not as in production", declared_otherwise, probe, marks=("tools", "production"), data=what,
            part="H", expected=expected, observed=observed,
            teaches="an action that production lacks or handles differently", minimise=40,
        )  # fmt: skip


def _declared(record: Record) -> Iterator[tuple[str, tuple[Any, Any]]]:
    real: Any = record.at("production").value
    own, other = ({tool["name"]: tool for tool in tools} for tools in (record.at("tools").value or (), real["tools"]))
    return _differences(own, other)


def _recorded(ctx: AuditContext) -> list[Any]:
    """Returns calls with their answers in production."""
    real = ctx.play(Op("production", mark="production")).at("production").value
    pairs = real.get("calls") if is_dict(real) else None
    if not pairs:
        raise NotChecked("production() gives no calls with their answers")
    return list(pairs[:40])


def _differences(own_fields: dict[str, Any], other_fields: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name in sorted({*own_fields, *other_fields}):
        if name not in own_fields or name not in other_fields:
            there, missing = ("there is", "there is none") if name in other_fields else ("there is none", "there is")
            yield f"tool {name}", (there, missing)
            continue
        own_values, real = (_schema(item) for item in (own_fields[name], other_fields[name]))
        for parameter in sorted({*own_values["properties"], *real["properties"]}):
            first, second = own_values["properties"].get(parameter), real["properties"].get(parameter)
            for field in ("type", "enum", "default", "minimum", "maximum", "format", "items"):
                left = first.get(field) if is_dict(first) else None
                right = second.get(field) if is_dict(second) else None
                if first is None or second is None:
                    yield f"parameter {parameter} of {name}", (second, first)
                    break
                are_sets = is_list(left) and is_list(right) and sorted(map(str, left)) == sorted(map(str, right))
                if left != right and not (field == "enum" and are_sets):
                    yield f"{field} of {parameter} of {name}", (right, left)
                if _at_odds(first, second):
                    yield f"unit of {parameter} of {name}", (_words(second), _words(first))
        orders = [promised_order(str(tool.get("description") or "")) for tool in (other_fields[name], own_fields[name])]
        if None not in orders and orders[0] != orders[1]:
            yield f"order of {name}", (orders[0], orders[1])
        if set(own_values["required"]) != set(real["required"]):
            yield f"required parameters of {name}", (sorted(real["required"]), sorted(own_values["required"]))


def _at_odds(first: Any, second: Any) -> bool:
    """True if both descriptions name units of one kind and share no unit of it."""
    own_units, other_units = (units_in(_words(schema)) for schema in (first, second))
    kinds = {kind for kind, _ in own_units} & {kind for kind, _ in other_units}
    return any(not {pair for pair in own_units if pair[0] == kind} & other_units for kind in kinds)


def _words(schema: Any) -> str:
    """A parameter's description."""
    return str(schema.get("description") or "") if is_dict(schema) else ""


def _schema(tool: dict[str, Any]) -> dict[str, Any]:
    schema: Any = tool.get("parameters") or tool.get("inputSchema") or {}
    if schema and "properties" not in schema and "type" not in schema:
        schema = {"properties": schema}
    return {"properties": schema.get("properties") or {}, "required": schema.get("required") or []}


@check("x.production_answers_the_same", "action_drift", needs=("call", "production", "tasks"), value=98)
def behaviour(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that production's calls get answers with the same keys and types here, and errors where it had errors."""
    for name, arguments, answer in _recorded(ctx):
        ctx.count_comparisons()
        probe = Probe((reset(ctx.tasks[0]), call(name, arguments, mark="call")))
        record = ctx.play_probe(probe)
        if shape_differs([record], Evidence("", data=answer)):
            yield show(
                ctx, f"{name} answers in another form than production", shape_differs, probe, data=answer,
                expected=answer, observed=record.at("call").value,
                teaches="to read answers that production does not give", minimise=40,
            )  # fmt: skip


@relation
def turned(records: Sequence[Record], evidence: Evidence) -> bool:
    """In every task a number of the answer is production's turned round, with another sign, or in another unit."""
    where, answer = evidence.data
    real = _numbers(answer).get(where)
    own = {_numbers(seen.value).get(where) if seen.fine else None for seen in (each.at("call") for each in records)}
    number = own.pop() if len(own) == 1 else None
    if real is None or number is None:
        return False
    # A number that the world contains is data.
    worlds = [record.at("world") for record in records]
    is_data = any(seen.fine and number in _numbers(seen.value).values() for seen in worlds)
    return not is_data and _is_turned(number, real)


def _numbers(value: Any) -> dict[str, float]:
    return {"/".join(path): float(leaf) for path, leaf in leaves(parsed(value), places=True) if is_number(leaf)}


def _is_turned(own_score: float, other_score: float) -> bool:
    """By a law that no chance keeps: the number has three digits at least that count."""
    if not own_score or not other_score or len(f"{abs(other_score):.9g}".replace(".", "").strip("0")) < 3:
        return False
    ratio = own_score / other_score
    is_inverse = abs(own_score * other_score - 1) < 5e-4 and abs(ratio - 1) > 1e-3
    return is_inverse or any(abs(ratio / item - 1) < 1e-6 for item in (-1, 0.001, 0.01, 60, 100, 1 / 60, 1000, 1024))


@check("x.production_counts_the_same", "action_drift", needs=("call", "production", "tasks"), value=96)
def counted(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that computed results have the sign and unit that production gives them."""
    pairs = _recorded(ctx)
    reckoned = list(_reckoned(ctx, pairs))
    yield from reckoned
    reported = {finding.title.partition(" ")[0] for finding in reckoned}
    for name, arguments, answer in pairs:
        places = [*_numbers(answer)][:20]
        probes = _asked(ctx, name, arguments, Op("state", mark="world"))
        records = ctx.play_all(probes) if places and name not in reported else []
        ctx.count_comparisons()
        odd = [where for where in places if records and turned(records, Evidence("", data=[where, answer]))]
        for where in odd[:1]:
            yield show(
                ctx, f"{name} gives {where} turned round, or in another unit than production", turned,
                *probes, data=[where, answer], expected=answer, observed=records[0].at("call").value, teaches=TEACHES,
            )  # fmt: skip


@relation
def reckoned_otherwise(records: Sequence[Record], evidence: Evidence) -> bool:
    """Calls that differ in numbers alone: two are answered as in production, in each task, and one never is.

    What is answered so does not hang on the world; the last answer is the same everywhere and differs in a number.
    """
    answers, seen = evidence.data, [record.at("call") for record in records]
    size = len(seen) // len(answers)
    *alike, last = [seen[start : start + size] for start in range(0, len(seen), size)]
    if any(result.is_error for result in seen) or not all(same(result, last[0]) for result in last):
        return False
    right = all(
        parsed(result.value) == answer for group, answer in zip(alike, answers, strict=False) for result in group
    )
    real, own = answers[-1], last[0].value
    return right and form_of(own) == form_of(real) and _numbers(own) != _numbers(real)


def _reckoned(ctx: AuditContext, pairs: Sequence[Any]) -> Iterator[Finding]:
    groups: dict[str, list[tuple[str, dict[str, Any], Any]]] = defaultdict(list)
    for name, arguments, answer in pairs:
        words = {key: argument for key, argument in arguments.items() if not is_number(argument)}
        if len(words) < len(arguments) and not OpResult(answer).is_error and _numbers(answer):
            groups[f"{name} {sorted(arguments)} {sorted(words.items())}"].append((name, arguments, answer))
    for calls in [calls for calls in groups.values() if len({str(answer) for *_, answer in calls}) > 2]:
        probes = [_asked(ctx, name, arguments) for name, arguments, _ in calls]
        answers = [record.at("call").value for record in ctx.play_all([each[0] for each in probes])]
        ctx.count_comparisons()
        right = [place for place, answer in enumerate(answers) if parsed(answer) == calls[place][2]]
        wrong = [place for place in range(len(calls)) if place not in right]
        unlike = list({str(calls[place][2]): place for place in right}.values())[:2]
        chosen = [*unlike, *wrong[:1]]
        data = [calls[place][2] for place in chosen]
        played = [probe for place in chosen for probe in probes[place]]
        is_enough = len(unlike) == 2 and bool(wrong)
        if not is_enough or not reckoned_otherwise(ctx.play_all(played), Evidence("", data=data)):
            continue
        name, arguments, answer = calls[wrong[0]]
        finding = show(
            ctx, f"{name} reckons otherwise than production", reckoned_otherwise, *played, data=data,
            expected={"arguments": arguments, "answer": answer}, observed=answers[wrong[0]], teaches=TEACHES,
        )  # fmt: skip
        if finding is not None:
            yield finding


TEACHES = "to compute with numbers that production does not give"


def _asked(ctx: AuditContext, name: str, arguments: dict[str, Any], *before: Op) -> list[Probe]:
    """Returns probes of a call in two tasks, each under two seeds."""
    starts = [reset(task, seed=seed) for task in ctx.sample_tasks(2) for seed in (0, 1)]
    return [Probe((start, *before, call(name, arguments, mark="call"))) for start in starts]
