"""Fields of answers, of JSON or a line each, and what can be wrong: another value, a missing entry of a list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from quintain.audit.kernel.probe import Op

from .data import is_dict, is_list, is_number

_LINE = re.compile(r"\s*(?P<key>[^\W\d_][\w /-]{0,40}?)\s*[:=]\s+(?P<value>\S.*?)\s*")
LEAST = 4
"""Number of wrong values listed besides a right one."""
_HOLE = "qzx hole"
_DIGITS = "0123456789"
SPARE = re.compile(
    r"\b(at least|at most|up to(?! \d[\d.,]* ?(?:[kcm]?[gm]|m?l|k?wh)\b)|any(?! order)|enough|optional|bonus"
    r"|extra|capped|suffic\w+|(one|two|three|four|\d+) of|leave|omit|skip|unsure|know|mistakes?|errors?|forgiv\w+"
    r"|pass(es|ed)?|majority|threshold)\b",
    re.IGNORECASE,
)
"""Words by which a task may ask for less than all fields or entries."""
Part = tuple[str, int]
"""A field, and the place of an entry of its list; -1 stands for the whole field."""


class Fields(NamedTuple):
    """The only JSON object of a text, and the words around it; or its lines of the form "key: value"."""

    before: str
    value: dict[str, Any]
    after: str
    lines: str = ""

    def saying(self, value: dict[str, Any]) -> str:
        """Returns the text with another object, or with other lines."""
        if self.lines:
            return saying(self.lines, "\n", {key: [value[key]] if key in value else [] for key in self.value})
        return f"{self.before}{json.dumps(value, ensure_ascii=False)}{self.after}"

    def without(self, *parts: Part) -> str:
        """Returns the text with wrong values in these fields, and without these entries of lists."""
        value = {key: other_value(item) if (key, -1) in parts else item for key, item in self.value.items()}
        for key in {key for key, place in parts if place >= 0}:
            item = self.value[key]
            kept = [entry for place, entry in enumerate(item) if (key, place) not in parts]
            value[key] = {entry: item[entry] for entry in kept} if is_dict(item) else kept
        return self.saying(value)

    def inner(self) -> Iterator[Fields]:
        """Yields the fields of each object in a field, with all of the text around it."""
        for key, item in self.value.items():
            if is_dict(item) and len(item) > 2:
                before, after = self.saying(self.value | {key: _HOLE}).split(json.dumps(_HOLE))
                yield Fields(before, item, after)

    @property
    def keys(self) -> list[Part]:
        """Returns the fields that have another value: null and empty ones have none."""
        return [(key, -1) for key, item in self.value.items() if other_value(item) != item]


def fields_of(ops: Sequence[Op]) -> Fields | None:
    """Returns two or more fields in the answer that ends a solution, or None."""
    text = str(ops[-1].value) if ops and ops[-1].do == "answer" else ""
    try:
        value, stop = json.JSONDecoder().raw_decode(text, start := text.index("{"))
    except ValueError:
        facts = facts_in(text)  # A long text is no fact: it may be compared by its likeness.
        return Fields("", facts, "", text) if facts and max(map(len, facts.values())) <= 40 else None
    return Fields(text[:start], value, text[stop:]) if len(value) >= 2 and "{" not in text[stop:] else None


def other_value(value: Any) -> Any:
    """Returns a wrong value of the same type; the value itself if it is null or empty."""
    if isinstance(value, bool):
        return not value
    if is_number(value):
        return value * 37 + 1009
    if is_list(value):
        return [other_value(item) for item in value]
    if is_dict(value):
        return {key: other_value(item) for key, item in value.items()}
    return next(iter(wrong(value, ())), "?") if isinstance(value, str) and value else value


def saying(text: str, between: str, given: Mapping[str, Sequence[str]]) -> str:
    """Returns a text with other lines in place of those with these keys."""
    lines: list[str] = []
    for line in text.split(between):
        found = _LINE.fullmatch(line)
        own = given.get(found["key"]) if found else None
        start = line[: found.start("value")] if found else ""
        lines += [line] if own is None else [f"{start}{said}" if said else start.rstrip() for said in own]
    return between.join(lines)


def facts_in(text: str, between: str = "\n") -> dict[str, str]:
    """Returns the values of a text's lines by their keys; nothing for fewer than two, or if two have one key."""
    lines = [found for line in text.split(between) if (found := _LINE.fullmatch(line))]
    facts = {line["key"]: line["value"] for line in lines}
    return facts if len(facts) >= 2 and len(facts) == len(lines) else {}


def wrong(value: str, other_values: Sequence[str]) -> list[str]:
    """Other things that might be said in place of one, those first that are said elsewhere; none holds it."""
    turned = ["".join(str((int(sign) + by) % 10) if sign in _DIGITS else sign for sign in value) for by in (1, 2, 3, 7)]
    made = [value[::-1], *(f"{word}{value[: -len(word)]}" for word in (value[-1:], value[-2:], value[-3:]))]
    known, low = dict.fromkeys([*other_values, *turned, *made]), value.casefold()
    return [text for text in known if text.casefold() not in low and low not in text.casefold()][:LEAST]
