"""Units in names and descriptions, and the ratios between two units."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record
from quintain.audit.kernel.registry import relation

HERE = f"{__name__}:"
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


def _named(name: str) -> set[tuple[str, str]]:
    return {
        (kind, unit)
        for kind, units in KINDS.items()
        for unit, pattern in units.items()
        if re.search(rf"(?:^|_)(?:{pattern})$", name, re.IGNORECASE)
    }


def units_in(text: str) -> set[tuple[str, str]]:
    """Kinds and units that a description says something is counted in; those that it denies are none."""
    said = _DENIED.sub(" ", text)
    return {
        (kind, unit)
        for kind, units in KINDS.items()
        for unit, pattern in units.items()
        if re.search(
            rf"\b(?:in|number of|as|how many|how long,? in) (?:whole |full )?(?:{pattern})\b", said, re.IGNORECASE
        )
        or any(
            len(hit[1]) > 3 for hit in re.finditer(rf"[(\[,;:] ?(?:whole |full )?({pattern})\b", said, re.IGNORECASE)
        )
    }


def may_be(factor: float, name: str, description: str, *, slot: str) -> bool:
    """True if a place may move by that multiple of a parameter: it counts in a smaller unit, or something else."""
    unit = unit_of(name) or unit_of(description, words=True)
    field = slot.rpartition("/")[2]
    if unit is None:
        return True
    if unit[0] == "count":
        other_unit = re.search(r"dozen|pallet|box|pack|case|per piece|each", description, re.IGNORECASE)
        return other_unit is not None or _AMOUNTS.search(field) is not None or factor != int(factor)
    if unit[1] not in _FACTORS or (unit_of(field) or unit) != unit:
        return True
    known: set[float] = {10, 12, 24, 60, 100, 144, 1000, 1440, 3600, 10_000, 60_000, 86_400, 3_600_000}
    known |= {round(1 / number, 6) for number in known}
    if round(abs(factor), 6) not in known:
        return True  # No unit lies there: a price, a rate.
    return abs(factor) in _FACTORS[unit[1]] and field != name


def rate_of(text: str, name: str) -> float | None:
    """Returns the single rate that a description gives for a parameter, as in "charges 50 for each of `bags`"."""
    found = [(float(hit[1]), text[hit.end() :][:40]) for hit in _RATE.finditer(text)]
    stem = re.escape(name.lower().removesuffix("s").replace("_", " "))
    if len(found) != 1 or not found[0][0] or _MODIFIED.search(text):
        return None
    return found[0][0] if re.search(rf"\b{stem}", found[0][1].lower().replace("_", " ")) else None


@relation
def contradicts(records: Sequence[Record], evidence: Evidence) -> bool:
    """A parameter's name says one unit, and its description another of the same kind."""
    tools: Any = records[0].at("tools").value
    return any(list(item) == evidence.data for item in contradictions(tools or ()))


def contradictions(tools: Sequence[Any]) -> Iterator[tuple[str, str, str, str]]:
    """Tool, parameter, unit of its name, unit of its description."""
    for tool in tools:
        parameters: dict[str, Any] = tool["parameters"] or {}
        properties: dict[str, Any] = parameters.get("properties") or {}
        for name, schema in properties.items():
            text = str(schema.get("description") or "") if is_dict(schema) else ""
            pair = unit_of(name)
            other_values = {unit for kind, unit in units_in(text) if pair and kind == pair[0]}
            if pair is None or len(other_values) != 1 or pair[1] in other_values:
                continue
            if not re.search(rf"\b(?:{KINDS[pair[0]][pair[1]]})\b", _DENIED.sub(" ", text), re.IGNORECASE):
                yield tool["name"], name, pair[1], other_values.pop()


def at_odds(
    tools: Sequence[Any],
    parameter: tuple[str, str],
    field: str,
    *,
    declared: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> tuple[str, str] | None:
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


@check("x.units_agree", "action_drift", needs=("tools",), value=88, reads_prose=True)
def units(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a parameter's name and its description state the same unit."""
    probe = Probe((Op("tools", mark="tools"),))
    tools: Any = ctx.play_probe(probe).at("tools").value
    if not tools:
        raise NotChecked("no tools")
    ctx.count_comparisons(len(tools))
    for tool, name, first, second in contradictions(tools):
        yield ctx.finding(
            f"{name} of {tool} is described in {second}",
            probe,
            relation=f"{HERE}contradicts",
            marks=("tools",),
            data=[tool, name, first, second],
            minimise=0,
            part="H",
            expected=first,
            observed=second,
            teaches="amounts in a unit that the tool does not take",
        )
