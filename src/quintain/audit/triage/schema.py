"""Validation of arguments against a tool's JSON schema: the part of JSON Schema that tools use.

It checks type, enum, const, required, properties, additionalProperties, items, the limits of numbers, texts and lists,
pattern, anyOf, oneOf, allOf and references within the schema. An unknown keyword allows everything, so each reported
violation is one under any reading.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from quintain.audit.facts.data import is_list, is_number

from .episode_log import mapping, sequence

_DEPTH = 32  # most nested references, which may be circular
_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: is_number(value) and value % 1 == 0,
    "number": is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_LIMITS = (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"))


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
        target: Any = root
        for name in filter(None, rules["$ref"].removeprefix("#").split("/")):
            target = (mapping(target) or {}).get(name)
        yield from _walk(target, value, path=path, **deeper)
    yield from _own(rules, value, path)
    for part in _list(rules.get("allOf")):
        yield from _walk(part, value, path=path, **deeper)
    for keyword in ("anyOf", "oneOf"):
        options = _list(rules.get(keyword))
        if options and all(next(_walk(option, value, path=path, **deeper), "") for option in options):
            yield f"{path}: {_short(value)} fits none of the {len(options)} forms of {keyword}"
    yield from _members(rules, value, path=path, **deeper)


def _own(rules: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    """Yields the violations of a value's type, choices and limits."""
    declared = rules.get("type")
    names = [declared] if isinstance(declared, str) else _list(declared)
    finite = not isinstance(value, float) or math.isfinite(value)
    if names and not (finite and any(_TYPES.get(name, lambda _: True)(value) for name in names)):
        yield f"{path}: {_short(value)} is not {' or '.join(names)}"
    allowed = sequence(rules.get("enum", [rules["const"]] if "const" in rules else None))
    if allowed is not None and value not in allowed:
        yield f"{path}: {_short(value)} is none of {_short(allowed)}"
    kinds = (is_number(value), isinstance(value, str), is_list(value))
    if any(kinds):
        low, high = _LIMITS[kinds.index(True)]
        sized: Any = value
        size = sized if kinds[0] else len(sized)
        if size < _limit(rules, low, -math.inf) or size > _limit(rules, high, math.inf):
            yield f"{path}: {size} is not between {rules.get(low)} and {rules.get(high)}, as {low} and {high} say"
    over, under = _limit(rules, "exclusiveMinimum", -math.inf), _limit(rules, "exclusiveMaximum", math.inf)
    if is_number(value) and math.isfinite(value) and not over < value < under:
        yield f"{path}: {value} is not above {over} and below {under}"
    pattern = rules.get("pattern")
    if isinstance(value, str) and isinstance(pattern, str):
        with contextlib.suppress(re.error):  # A pattern that Python cannot compile allows everything.
            if re.search(pattern, value) is None:
                yield f"{path}: {_short(value)} does not match {pattern!r}"


def _members(rules: dict[str, Any], value: Any, *, path: str, **place: Any) -> Iterator[str]:
    declared, items = mapping(rules.get("properties")) or {}, mapping(value) or {}
    missing = [name for name in _list(rules.get("required")) if name not in items] if isinstance(value, dict) else []
    yield from (f"{path}: {name!r} is missing" for name in missing)
    for name, item in items.items():
        if name not in declared and rules.get("additionalProperties") is False:
            yield f"{path}: unknown parameter {name!r}"
        else:
            inner = declared.get(name, rules.get("additionalProperties", True))
            yield from _walk(inner, item, path=f"{path}.{name}", **place)
    for n, item in enumerate(_list(value)):
        yield from _walk(rules.get("items", True), item, path=f"{path}[{n}]", **place)


def _limit(rules: dict[str, Any], name: str, other: float) -> float:
    limit = rules.get(name)
    return float(limit) if is_number(limit) else other


def _list(value: Any) -> list[Any]:
    return sequence(value) or []


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
