"""JSON objects in answers, and what can be wrong in them: another value of a field, a missing entry of a list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.probe import Op

from ._judge_lines import wrong

Part = tuple[str, int]
"""A field, and the place of an entry of its list; -1 stands for the whole field."""


class Fields(NamedTuple):
    """The only JSON object of a text, and the words around it."""

    before: str
    value: dict[str, Any]
    after: str

    def saying(self, value: dict[str, Any]) -> str:
        """Returns the text with another object."""
        return f"{self.before}{json.dumps(value, ensure_ascii=False)}{self.after}"

    def without(self, *parts: Part) -> str:
        """Returns the text with wrong values in these fields, and without these entries of lists."""
        value = {key: other_value(item) if (key, -1) in parts else item for key, item in self.value.items()}
        lists = {key: value[key] for key, place in parts if place >= 0}
        kept = {key: [one for at, one in enumerate(some) if (key, at) not in parts] for key, some in lists.items()}
        return self.saying(value | kept)

    @property
    def keys(self) -> list[Part]:
        """Returns the fields that have another value."""
        return [(key, -1) for key, item in self.value.items() if other_value(item) != item]

    @property
    def groups(self) -> list[list[Part]]:
        """Returns parts of one kind: the fields, and the entries of each list."""
        lists = {key: item for key, item in self.value.items() if is_list(item)}
        return [self.keys, *([(key, at) for at in range(len(item))] for key, item in lists.items())]


def fields_of(ops: Sequence[Op]) -> Fields | None:
    """Returns the object with two or more fields in the answer that ends a solution, or None."""
    text = ops[-1].value if ops and ops[-1].do == "answer" else None
    start = text.find("{") if isinstance(text, str) else -1
    if not isinstance(text, str) or start < 0:
        return None
    try:
        value, stop = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return None
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
