"""Validation of arguments against a tool's JSON schema: the part of JSON Schema that tools use.

It checks type, enum, const, required, properties, additionalProperties, items, the limits of numbers, texts and lists,
pattern, anyOf, oneOf, allOf and references within the schema. An unknown keyword allows everything, so each reported
violation is one under any reading.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from .plain import mapping, sequence

_DEPTH = 32
"""Most nested references, which may be circular."""

_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _TYPES["number"](value) and value % 1 == 0,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def violation(schema: dict[str, Any], value: Any) -> str:
    """Returns the first violation as "path: what"; empty if the value fits."""
    return next(_walk(schema, value, path="$", root=schema, depth=0), "")


def _walk(schema: Any, value: Any, *, path: str, root: dict[str, Any], depth: int) -> Iterator[str]:
    rules = mapping(schema)
    if rules is None or depth > _DEPTH:
        if schema is False:
            yield f"{path}: nothing is allowed here"
        return
    deeper: dict[str, Any] = {"root": root, "depth": depth + 1}
    if isinstance(rules.get("$ref"), str):
        yield from _walk(_target(root, rules["$ref"]), value, path=path, **deeper)
    yield from _type(rules, value, path)
    yield from _choices(rules, value, path=path, **deeper)
    yield from _members(rules, mapping(value) or {}, path=path, missing=isinstance(value, dict), **deeper)
    for n, item in enumerate(sequence(value) or ()):
        yield from _walk(rules.get("items", True), item, path=f"{path}[{n}]", **deeper)
    yield from _limits(rules, value, path)


def _target(root: dict[str, Any], reference: str) -> Any:
    place: Any = root
    for name in filter(None, reference.removeprefix("#").split("/")):
        place = (mapping(place) or {}).get(name)
    return place


def _type(rules: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    declared = rules.get("type")
    names = [declared] if isinstance(declared, str) else _list(declared)
    finite = not isinstance(value, float) or math.isfinite(value)
    if names and not (finite and any(_TYPES.get(name, lambda _: True)(value) for name in names)):
        yield f"{path}: {_short(value)} is not {' or '.join(names)}"
    allowed = sequence(rules.get("enum", [rules["const"]] if "const" in rules else None))
    if allowed is not None and value not in allowed:
        yield f"{path}: {_short(value)} is none of {_short(allowed)}"


def _choices(rules: dict[str, Any], value: Any, **place: Any) -> Iterator[str]:
    for part in _list(rules.get("allOf")):
        yield from _walk(part, value, **place)
    for keyword in ("anyOf", "oneOf"):
        options = _list(rules.get(keyword))
        if options and all(next(_walk(option, value, **place), "") for option in options):
            yield f"{place['path']}: {_short(value)} fits none of the {len(options)} forms of {keyword}"


def _members(rules: dict[str, Any], value: dict[str, Any], *, path: str, missing: bool, **place: Any) -> Iterator[str]:
    declared = mapping(rules.get("properties")) or {}
    for name in _list(rules.get("required")) if missing else ():
        if name not in value:
            yield f"{path}: {name!r} is missing"
    for name, item in value.items():
        if name in declared:
            yield from _walk(declared[name], item, path=f"{path}.{name}", **place)
        elif rules.get("additionalProperties") is False:
            yield f"{path}: unknown parameter {name!r}"
        else:
            yield from _walk(rules.get("additionalProperties", True), item, path=f"{path}.{name}", **place)


def _limits(rules: dict[str, Any], value: object, path: str) -> Iterator[str]:
    items = sequence(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _ordered(rules, value, path, names=("minimum", "maximum"))
        yield from _beyond(rules, value, path)
    elif isinstance(value, str):
        yield from _ordered(rules, len(value), path, names=("minLength", "maxLength"))
        pattern = rules.get("pattern")
        if isinstance(pattern, str) and not _found(pattern, value):
            yield f"{path}: {_short(value)} does not match {pattern!r}"
    elif items is not None:
        yield from _ordered(rules, len(items), path, names=("minItems", "maxItems"))


def _ordered(rules: dict[str, Any], size: float, path: str, *, names: tuple[str, str]) -> Iterator[str]:
    low, high = names
    if size < _number(rules.get(low), -math.inf) or size > _number(rules.get(high), math.inf):
        yield f"{path}: {size} is not between {rules.get(low)} and {rules.get(high)}, as {low} and {high} say"


def _beyond(rules: dict[str, Any], size: float, path: str) -> Iterator[str]:
    low, high = _number(rules.get("exclusiveMinimum"), -math.inf), _number(rules.get("exclusiveMaximum"), math.inf)
    if math.isfinite(size) and not low < size < high:
        yield f"{path}: {size} is not above {low} and below {high}"


def _number(limit: object, other: float) -> float:
    return float(limit) if isinstance(limit, int | float) and not isinstance(limit, bool) else other


def _found(pattern: str, text: str) -> bool:
    """True if a pattern matches; patterns that Python cannot compile allow everything."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def _list(value: Any) -> list[Any]:
    return sequence(value) or []


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
