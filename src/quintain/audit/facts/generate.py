"""Arguments for tools, drawn from their JSON schema and from values that the subject has shown."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from quintain.audit.kernel.adapter import ToolSpec

from .data import is_alike, is_dict, is_list, is_number

ODD: tuple[Any, ...] = (
    None, "", " ", 0, -1, 1, 1.5, -0.0, 2**31, 2**63, -(2**63), 1e308, float("nan"), float("inf"), True, False, [], {},
    [None], {"": None}, "null", "None", "nan", "undefined", "a" * 10_000, "ünïcødé ✓",
    "\u202eright to left", "nul\x00byte",
    "line\nbreak", "../../etc/passwd", "/", "~", "'; DROP TABLE users; --", '" OR 1=1 --', "%s%n", "{0}", "${HOME}",
    "<script>", "1e999", "٣", "2026-02-30", "9999-99-99T99:99:99Z",
)  # fmt: skip
"""Unusual values that break careless code."""


class Values:
    """Values seen so far, by field name."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[Any, None]] = defaultdict(dict)

    def take(self, value: Any, name: str = "", *, depth: int = 0) -> None:
        """Adds every scalar in a value; keys of a dict whose values are of one kind count as ids."""
        if depth > 6:
            return
        if is_dict(value):
            is_named = bool(name) and is_alike(value)
            for key, one in list(value.items())[:200]:
                if name and (is_named or isinstance(one, dict)):
                    self._keep(_singular(name) + "_id", key)
                    self._keep("id", key)
                self.take(one, str(key), depth=depth + 1)
                if key == "id" and name:
                    self._keep(_singular(name) + "_id", one)
        elif is_list(value):
            for one in value[:200]:
                self.take(one, name, depth=depth + 1)
        elif value is not None:
            self._keep(name, value)

    def _keep(self, name: str, value: Any) -> None:
        if not isinstance(value, str | int | float) or len(str(value)) > 200:
            return
        found = self._by_name[name.lower()]
        if len(found) < 60:
            found.setdefault(value, None)

    def of(self, name: str) -> list[Any]:
        """Returns values of fields with this name, else with its ending, else of its ids or its plural."""
        exact = self.exactly(name)
        if exact:
            return exact
        tail = name.lower().rpartition("_")[2]
        near = [one for key, values in self._by_name.items() if key.endswith(tail) and tail for one in values]
        return near[:60] or self.exactly(f"{name}_id") or self.exactly(f"{name}s")

    def exactly(self, name: str) -> list[Any]:
        return list(self._by_name.get(name.lower(), ()))

    def names(self) -> set[str]:
        return set(self._by_name)

    def strings(self) -> list[str]:
        return [one for values in self._by_name.values() for one in values if isinstance(one, str)]


def _singular(name: str) -> str:
    lowered = name.lower()
    if lowered.endswith("ies"):
        return lowered[:-3] + "y"
    return lowered.removesuffix("s")


def valid(
    tool: ToolSpec, values: Values, rng: random.Random, *, optional: float = 0.3, root: Any = None
) -> dict[str, Any]:
    """Returns arguments that fit the schema; an optional one is given with probability `optional`."""
    arguments: dict[str, Any] = {}
    for name, schema in tool.properties.items():
        if name in tool.required or rng.random() < optional:
            arguments[name] = one(schema, values, rng, name=name, root=root or tool.parameters)
    return arguments


def one(schema: Any, values: Values, rng: random.Random, *, name: str = "", root: Any = None) -> Any:
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return one(rng.choice(schema[key]), values, rng, name=name, root=root)
    kind = schema.get("type", "string")
    kind = rng.choice(kind) if is_list(kind) else kind
    if kind == "object":
        inner = {**schema, "type": "object"}
        return valid(ToolSpec(name, parameters=inner), values, rng, root=root)
    if kind == "array":
        return [
            one(schema.get("items") or {}, values, rng, name=_singular(name), root=root)
            for _ in range(rng.randint(schema.get("minItems", 0), schema.get("minItems", 0) + 2))
        ]
    return _scalar(kind, schema, values, rng=rng, name=name)


def _scalar(kind: str, schema: Any, values: Values, *, rng: random.Random, name: str) -> Any:
    if kind in ("boolean", "null"):
        return rng.random() < 0.5 if kind == "boolean" else None
    keys = values.exactly("id") if kind == "string" else []  # The best guess if no field has the name.
    likely = values.of(name) or keys
    seen = [value for value in likely if fits(value, {**schema, "type": kind})]
    if seen and rng.random() < 0.8:
        return rng.choice(seen)
    if kind == "integer":
        low, high = _whole(schema)
        return rng.randint(low, max(low, high))
    if kind == "number":
        return _number(schema, rng)
    if schema.get("format") in ("date", "date-time"):
        return "2026-03-05" if schema["format"] == "date" else "2026-03-05T10:00:00Z"
    text = rng.choice(["blue", "Ann Lee", "a short note", "x17"])
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 100_000)]


def _whole(schema: Any) -> tuple[int, int]:
    """Returns the lowest and the highest integer that a schema allows, ten apart by default."""
    lows = _limits(schema, minimum=math.ceil, exclusiveMinimum=lambda one: math.floor(one) + 1)
    highs = _limits(schema, maximum=math.floor, exclusiveMaximum=lambda one: math.ceil(one) - 1)
    low = max(lows, default=min(0, *(high - 10 for high in highs)) if highs else 0)
    return low, min(highs, default=low + 10)


def _limits(schema: Any, **rounded: Callable[[float], Any]) -> list[Any]:
    return [make(schema[name]) for name, make in rounded.items() if is_number(schema.get(name))]


def _number(schema: Any, rng: random.Random) -> float:
    """Returns a number within a schema's bounds, with two digits if one fits."""
    lows = _limits(schema, minimum=float, exclusiveMinimum=float)
    highs = _limits(schema, maximum=float, exclusiveMaximum=float)
    low = max(lows, default=min(0.0, *(high - 10 for high in highs)) if highs else 0.0)
    high = min(highs, default=low + 10)
    drawn = rng.uniform(low, high)
    tried = (round(drawn, 2), drawn, (low + high) / 2)
    return float(next((value for value in tried if fits(value, {**schema, "type": "number"})), low))


def _resolved(schema: Any, root: Any) -> dict[str, Any]:
    for _ in range(5):
        if not is_dict(schema) or "$ref" not in schema:
            break
        found: Any = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            found = found.get(step) if is_dict(found) else None
        schema = found
    return schema if is_dict(schema) else {}


_NUMBERS = ("integer", "number")
_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def fits(value: Any, schema: Any, root: Any = None) -> bool:
    """True if a value fits a schema: type, enum, const, bounds, required and additional properties."""
    schema = _resolved(schema, root)
    if ("const" in schema and value != schema["const"]) or (schema.get("enum") and value not in schema["enum"]):
        return False
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return any(fits(value, choice, root) for choice in schema[key])
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type")
    types = [_TYPES.get(kind, object) for kind in kinds or () if not (isinstance(value, bool) and kind in _NUMBERS)]
    return (not kinds or isinstance(value, tuple(types))) and _within(value, schema, root)


def _within(value: Any, schema: dict[str, Any], root: Any) -> bool:
    if is_number(value):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        over, under = schema.get("exclusiveMinimum", value - 1), schema.get("exclusiveMaximum", value + 1)
        return bool(low <= value <= high and over < value < under)
    if isinstance(value, str):
        return bool(schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)))
    if is_list(value):
        return all(fits(item, schema.get("items") or {}, root) for item in value)
    if not is_dict(value):
        return True
    known: dict[str, Any] = schema.get("properties") or {}
    is_closed = schema.get("additionalProperties") is False
    is_whole = all(name in value for name in schema.get("required") or ()) and not (is_closed and value.keys() - known)
    return is_whole and all(fits(item, known[name], root) for name, item in value.items() if name in known)


def odd(tool: ToolSpec, base: dict[str, Any], values: Values, *, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yields calls that differ from a good one in one place: an odd value, a missing or an extra parameter."""
    for name in tool.properties:
        for value in ODD:
            yield {**base, name: value}
        yield {key: one for key, one in base.items() if key != name}
        known = values.of(name)
        if known:
            yield {**base, name: rng.choice(known)}
        text = base.get(name)
        if isinstance(text, str) and text:
            yield from ({**base, name: variant} for variant in (text.upper(), f" {text} ", text[:-1], text + "0"))
    yield {**base, "no_such_parameter": 1}
    yield {}
