"""Values that fit a JSON schema, drawn at random. Understands what msgspec writes about Python types."""

from __future__ import annotations

import base64
import math
import re
import string
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from quintain.state import Rng

from .patterns import matching

Schema = Mapping[str, Any]

DEEP = 4
"""Values within values, beyond which whatever may be left out is left out."""

_TRIES = 20
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Drawing:
    """Draws values.

    Args:
        rng: Where chance comes from.
        words: Strings that the world has shown; half of what is drawn is taken from them where they fit.
        definitions: What "#/$defs/..." points to.
    """

    def __init__(self, rng: Rng, *, words: Sequence[str] = (), definitions: Mapping[str, Schema] | None = None) -> None:
        self._rng = rng
        self._words = words
        self._definitions = definitions or {}
        self._guesses: dict[int, str] = {}
        self._keys: dict[int, Schema] = {}
        self._makers: dict[str, Callable[[Schema, int], Any]] = {
            "null": lambda schema, depth: None,
            "boolean": lambda schema, depth: bool(rng.below(2)),
            "integer": lambda schema, depth: self._integer(schema),
            "number": lambda schema, depth: self._number(schema),
            "string": lambda schema, depth: self._string(schema),
            "array": self._array,
            "object": self._object,
        }

    def value(self, schema: Schema, depth: int = 0) -> Any:
        """One value. It fits wherever the schema says all; it does not say that a naive datetime is more than a string.

        Raises:
            ValueError: A type that JSON does not have.
        """
        if "$ref" in schema:
            return self.value(self._definitions[schema["$ref"].rpartition("/")[2]], depth + 1)
        if "enum" in schema:
            return self._rng.choice(schema["enum"])
        if "anyOf" in schema:
            options = schema["anyOf"]
            shallow = [one for one in options if one.get("type") not in ("array", "object", None)]
            return self.value(self._rng.choice(shallow if shallow and depth > DEEP else options), depth + 1)
        kind = schema.get("type", "string")
        if kind not in self._makers:
            raise ValueError(f"JSON has no type {kind!r}")
        return self._makers[kind](schema, depth)

    def _integer(self, schema: Schema) -> int:
        step = schema.get("multipleOf", 1)
        seen = [int(word) for word in self._words if re.fullmatch(r"-?[0-9]{1,15}", word)]
        seen = [number for number in seen if number % step == 0 and _within(number, schema)]
        if seen and self._rng.below(2):
            return self._rng.choice(seen)
        low, high = schema.get("minimum"), schema.get("maximum")
        low = schema["exclusiveMinimum"] + 1 if "exclusiveMinimum" in schema else low
        high = schema["exclusiveMaximum"] - 1 if "exclusiveMaximum" in schema else high
        if low is None:
            low = 0 if high is None or high >= step else high - 100 * step
        if high is None:
            high = low + 100 * step
        first, last = -(-low // step), high // step
        return int(step * (first + self._rng.below(min(max(1, last - first + 1), 2**63))))

    def _number(self, schema: Schema) -> float:
        if "multipleOf" in schema:
            # Doubling is exact, any other factor may miss the multiple by a rounding error.
            step: float = schema["multipleOf"]
            exact = [sign * step * 2.0**n for n in range(60) for sign in (1, -1)]
            return self._rng.choice([x for x in (0.0, *exact) if _within(x, schema)] or [step])
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        if low is None:
            low = 0.0 if high is None or high > 0 else high - 100.0
        if high is None:
            high = low + 100.0
        drawn = low + (high - low) * self._rng.random()
        fallback: float = math.nextafter(low, high)
        return next((x for x in (round(drawn, 2), drawn) if _within(x, schema)), fallback)

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        low = schema.get("minItems", 0)
        if "prefixItems" in schema:
            places = schema["prefixItems"]
            return [self.value(one, depth + 1) for one in places[: self._between(low, len(places))]]
        count = self._between(low, schema.get("maxItems"), max(0, DEEP - depth))
        items: list[Any] = []
        for _ in range(count * _TRIES):
            one = self.value(schema.get("items", {}), depth + 1)
            if len(items) < count and not (schema.get("uniqueItems") and one in items):
                items.append(one)
        return items

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        drawn: dict[str, Any] = {}
        for name, one in schema.get("properties", {}).items():
            if name in schema.get("required", ()) or (depth <= DEEP and self._rng.below(2)):
                drawn[name] = self.value(one, depth + 1)
        rest: Schema | bool = schema.get("additionalProperties", "properties" not in schema and {})
        if not isinstance(rest, bool):
            low = schema.get("minProperties", 0)
            count = self._between(low, schema.get("maxProperties"), max(0, DEEP - depth))
            keys = schema.get("propertyNames") or self._keys.setdefault(id(schema), {})
            for _ in range(count * _TRIES):
                if len(drawn) < count:
                    drawn[str(self.value(keys, depth + 1))] = self.value(rest, depth + 1)
        return drawn

    def _string(self, schema: Schema) -> str:
        schema = self._guess(schema)
        seen = [word for word in self._words if _fits(word, schema)]
        if seen and self._rng.below(2):
            return self._rng.choice(seen)
        invented = (self._invent(schema) for _ in range(_TRIES))
        return next((text for text in invented if _fits(text, schema)), "")

    def _guess(self, schema: Schema) -> Schema:
        """To a schema a date without a time zone, or an integer key, is just a string: guess, once for each place."""
        if not _UNSAID.issuperset(schema):
            return schema
        place = id(schema)
        if place not in self._guesses:
            self._guesses[place] = self._rng.choice(("", "", "local date-time", "partial-time", "digits"))
        return {"format": self._guesses[place]} if self._guesses[place] else schema

    def _invent(self, schema: Schema) -> str:
        if "pattern" in schema:
            return matching(schema["pattern"], self._rng)
        low, high = schema.get("minLength", 0), schema.get("maxLength")
        if "contentEncoding" in schema:
            # Four characters stand for three bytes, the last four for one to three.
            quads = self._between(low // 4, None if high is None else high // 4)
            size = max(0, quads * 3 - (self._rng.below(3) if high is not None and quads == high // 4 else 0))
            return base64.b64encode(bytes(self._rng.below(256) for _ in range(size))).decode()
        if schema.get("format") in _FORMS:
            return _FORMS[schema["format"]](self._rng)
        letters = self._rng.choice((string.ascii_lowercase, string.ascii_lowercase, string.digits))
        return "".join(self._rng.choice(letters) for _ in range(self._between(low, high)))

    def _between(self, low: int, high: int | None, most: int = 8) -> int:
        return low + self._rng.below(1 + (most if high is None else max(0, min(most, high - low))))


def _when(rng: Rng) -> datetime:
    return _EPOCH + timedelta(minutes=rng.below(366 * 24 * 60))


_FORMS: dict[str, Callable[[Rng], str]] = {
    "date-time": lambda rng: _when(rng).strftime("%Y-%m-%dT%H:%M:%SZ"),
    "local date-time": lambda rng: _when(rng).strftime("%Y-%m-%dT%H:%M:%S"),
    "date": lambda rng: _when(rng).strftime("%Y-%m-%d"),
    "time": lambda rng: _when(rng).strftime("%H:%M:%SZ"),
    "partial-time": lambda rng: _when(rng).strftime("%H:%M:%S"),
    "duration": lambda rng: f"PT{rng.below(100_000)}S",
    "uuid": lambda rng: "-".join(f"{rng.below(16**n):0{n}x}" for n in (8, 4, 4, 4, 12)),
    "decimal": lambda rng: f"{rng.below(100)}.{rng.below(100):02}",
    "digits": lambda rng: str(rng.below(100)),
}

_LOOKS: dict[str, str] = {
    "date-time": r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)",
    "date": r"\d{4}-\d\d-\d\d",
    "time": r"\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)",
    "partial-time": r"\d\d:\d\d(:\d\d)?",
    "duration": r"P(\d+[DW]|T\d+[HMS])",
    "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "decimal": r"-?\d+(\.\d+)?",
    "local date-time": r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?",
    "digits": r"\d{1,15}",
}

_UNSAID = frozenset({"type", "description", "default", "title", "examples"})
"""A string's schema with no other fields does not say what is expected of it."""


def _fits(text: str, schema: Schema) -> bool:
    if not schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", math.inf):
        return False
    if "format" in schema and not re.fullmatch(_LOOKS.get(schema["format"], ".*"), text):
        return False
    if "contentEncoding" in schema and not re.fullmatch(r"(?:[\w+/]{4})*(?:[\w+/]{2}==|[\w+/]{3}=)?", text, re.ASCII):
        return False
    return "pattern" not in schema or re.search(schema["pattern"], text) is not None


def _within(number: float, schema: Schema) -> bool:
    low, above = schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf)
    high, below = schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf)
    return bool(low <= number <= high and above < number < below)
