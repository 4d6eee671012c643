"""Other values for an argument of a solution that the prompt decides: a number, a name, a text, a list.

An argument is decided when its value stands in the prompt. A value that a prompt leaves open ("at least 20", "any
room") is not, and free words count only where the prompt fixes their wording.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import msgspec

from quintain.audit.facts.data import is_list, is_number
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.probe import Op

from ._reward_acts import is_id, names, words

_LOOSE = re.compile(
    r"\b(at least|at most|up to|no more than|not more than|no less than|minimum|maximum|about|around|approximately"
    r"|roughly|or more|or less|within|not exceed|between|any|either|some|whichever|before|after|until|or later"
    r"|or earlier|under|over|below|above)\b",
    re.IGNORECASE,
)
"""Words that leave a value open."""
_EXACT = re.compile(r"exactly|verbatim|word for word|literally|saying|that says|reads?:|[\"'`“«]\s*$", re.IGNORECASE)
"""Words before a text that has to be that very text."""
_WRITTEN = names("note notes log comment remember memo remark activity")
"""Words of tools that only write something down."""
_NEAR = 60
"""Characters before a value in which words speak of it."""
_TIME, _DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)"), re.compile(r"\d{4}-\d\d-\d\d")
_NAMES = re.compile(r"\S*(\d|@)\S*")
"""One word with a digit or an "at" in it, which has one spelling only."""


class OtherValue(msgspec.Struct, frozen=True):
    """Another value for an argument.

    Attributes:
        kind: In what way it is other.
    """

    key: str
    kind: str
    value: Any


def changes(ctx: AuditContext, op: Op, prompt: str) -> Iterator[OtherValue]:
    """Yields other values for each argument whose value stands in the prompt."""
    spec = next((tool for tool in ctx.about.tools if tool.name == op.name), None)
    if spec is None:
        return
    for key, value in op.value.items():
        schema: Any = spec.properties.get(key, {})
        sure = stated(key, value, prompt, schema=schema)
        if not sure or (schema.get("enum") and _WRITTEN & set(words(op.name))):
            continue  # What a remark is filed under: its word may stand in the prompt by chance.
        for kind, other_value in _other_values(ctx, op, key, schema=schema):
            held = kind == "longer" and not is_list(value) and not _is_exact(value, prompt)
            if other_value != value and not held and fits(other_value, schema, spec.parameters):
                yield OtherValue(key, kind, other_value)
        if isinstance(value, bool) and key not in spec.required:
            yield OtherValue(key, "left out", msgspec.UNSET)
    yield from _turned(op, spec, prompt)


def stated(key: str, value: Any, prompt: str, *, schema: Any) -> bool | None:
    """Returns True if a prompt decides a value, False if it may mean less, None if unmentioned."""
    if isinstance(value, bool):
        return True if value and any(len(word) >= 4 and _place(word, prompt) for word in words(key)) else None
    if is_list(value):
        inner = [stated(key, item, prompt, schema={}) for item in value]
        return None if not inner or None in inner else True
    if is_number(value):
        spelt = [f"{value:g}", str(value), f"{value:,}", f"{value / 100:.2f}"]
        places = [found for text in spelt if (found := _place(text, prompt)) is not None]
        return None if not places else not any(_is_loose(prompt, *place) for place in places)
    place = _place(value, prompt) if isinstance(value, str) and len(value) >= 2 else None
    return None if place is None else _is_meant(key, value, prompt, place=place, schema=schema)


def _is_meant(key: str, value: str, prompt: str, *, place: tuple[int, int], schema: Any) -> bool:
    """True if a text in the prompt stands there as the argument's value."""
    if schema.get("enum"):
        return True
    if _NAMES.fullmatch(value) or is_id(key):
        return not (_DAY.fullmatch(value) or _TIME.fullmatch(value)) or not _is_loose(prompt, *place)
    before = prompt[max(0, place[0] - _NEAR) : place[0]].lower()
    return bool(_EXACT.search(before)) or any(len(word) >= 3 and word in before for word in words(key))


def _place(said: str, prompt: str) -> tuple[int, int] | None:
    """Returns the span of a value that stands in a prompt as a word of its own."""
    left = r"(?<![\w.])" if said[:1].isalnum() else ""
    right = r"(?!\w|\.\d)" if said[-1:].isalnum() else ""
    found = re.search(f"{left}{re.escape(said)}{right}", prompt, re.IGNORECASE)
    return found.span() if found else None


def _is_loose(prompt: str, start: int, end: int) -> bool:
    before, after = prompt[max(0, start - 30) : start], prompt[end : end + 15]
    return bool(_LOOSE.search(before.rpartition(". ")[2]) or re.match(r"\s*(\w+ )?or (more|less|so|later)", after))


def _is_exact(value: Any, prompt: str) -> bool:
    place = _place(str(value), prompt)
    return place is not None and bool(_EXACT.search(prompt[max(0, place[0] - _NEAR) : place[0]]))


def _other_values(ctx: AuditContext, op: Op, key: str, *, schema: Any) -> Iterator[tuple[str, Any]]:
    value = op.value[key]
    if isinstance(value, bool):
        yield "other", not value
    elif schema.get("enum"):
        yield from (("other", item) for item in schema["enum"] if item != value)
    elif is_list(value):
        yield "shorter", value[:-1]
        yield "other", [*value[:-1], _like(value[-1])]
        yield "longer", [*value, _like(value[-1])]
    elif is_number(value) and not is_id(key):
        yield "more", value + 1
        yield "more", value * 2 + 1
        yield "less", value - 1
        yield "less", type(value)(value // 2)
    elif isinstance(value, str) and (_TIME.fullmatch(value) or _DAY.fullmatch(value)):
        yield from (("other", text) for text in _shifted(value))
    else:
        known = [
            candidate
            for candidate in ctx.discovery.values.of(key)
            if type(candidate) is type(value) and candidate != value
        ]
        if is_id(key) or is_number(value) or _NAMES.fullmatch(str(value)):
            yield from (("other", item) for item in known[:: max(1, len(known) // 4)][:5])
        if isinstance(value, str):
            yield from _texts(value)


def _texts(value: str) -> Iterator[tuple[str, str]]:
    yield "other", f"x{value}"
    if len(value) >= 8 and not _NAMES.fullmatch(value):
        yield "shorter", value[: len(value) // 2]
        yield "other", "Something else."
        yield "longer", f"{value} And something else."


def _shifted(value: str) -> Iterator[str]:
    """A time or a day, a little later and earlier."""
    if _DAY.fullmatch(value):
        try:
            day = date.fromisoformat(value)
        except ValueError:
            return
        yield from ((day + timedelta(days=days)).isoformat() for days in (1, -1, 7))
        return
    minutes = int(value[:2]) * 60 + int(value[3:])
    for later in (60, -60, 15, -15, 1):
        if 0 <= minutes + later < 24 * 60:
            yield f"{(minutes + later) // 60:02d}:{(minutes + later) % 60:02d}"


def _like(value: Any) -> Any:
    return f"x{value}" if isinstance(value, str) else value + 1 if is_number(value) else value


def _turned(op: Op, spec: ToolSpec, prompt: str) -> Iterator[OtherValue]:
    """Two names of one kind, each in the other's place: from there to here."""
    keys = [
        key
        for key, value in op.value.items()
        if isinstance(value, str) and _NAMES.fullmatch(value) and stated(key, value, prompt, schema={})
    ]
    for place, key in enumerate(keys):
        for other_value in keys[place + 1 :]:
            alike = spec.properties.get(key, {}).get("type") == spec.properties.get(other_value, {}).get("type")
            if (
                alike
                and _shape(op.value[key]) == _shape(op.value[other_value])
                and op.value[key] != op.value[other_value]
            ):
                yield OtherValue(f"{key}|{other_value}", "turned round", None)


def _shape(value: str) -> str:
    return re.sub(r"[A-Za-z]", "a", re.sub(r"\d", "0", value))


def changed_op(op: Op, change: OtherValue) -> Op:
    """The op with the change made."""
    if change.kind == "turned round":
        first, second = change.key.split("|")
        return msgspec.structs.replace(op, value=op.value | {first: op.value[second], second: op.value[first]})
    left = {key: value for key, value in op.value.items() if key != change.key or change.value is not msgspec.UNSET}
    given: dict[str, Any] = {} if change.value is msgspec.UNSET else {change.key: change.value}
    return msgspec.structs.replace(op, value=left | given)
