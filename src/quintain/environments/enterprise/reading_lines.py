"""The two kinds of lines in a description: a column, and an action. See `description`."""

from __future__ import annotations

from typing import Any, Literal, cast

import msgspec

from quintain.errors import DefinitionError

_NUMBERS = {"money", "count", "int", "signed", "date"}
_CHOICES = {"state", "one"}
_MARKS = {"?": "is_optional", "unique": "is_unique", "each": "in_turn"}
_KEYWORDS = {"by", "own", "with", "when", "|", ">"}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """An action's line, taken apart."""

    verb: str
    kind: Literal["find", "get", "create", "change", "remove"]
    columns: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    target: str = ""
    sets: dict[str, str] = {}
    role: str = ""
    own: str = ""


def read_column(line: str, owner: str) -> dict[str, Any]:
    """The fields of a Column.

    Raises:
        DefinitionError: The line has no such form.
    """
    text, _, doc = line.partition(" -- ")
    words = text.split()
    found: dict[str, Any] = {"doc": doc.strip()}
    found |= {field: mark in words for mark, field in _MARKS.items()}
    words = [word for word in words if word not in _MARKS]
    if len(words) < 2:
        raise DefinitionError(f"{owner}: a column is `name kind ...`, got {line!r}")
    name, kind, *rest = words
    found |= {"name": name, "kind": "ref" if kind == ">" else kind}
    if kind == ">":
        found |= {"table": rest[0]}
    elif kind in _CHOICES:
        pairs = [word.partition(":") for word in rest]
        found |= {"options": tuple(p[0] for p in pairs), "shares": tuple(int(p[2] or 1) for p in pairs)}
    elif kind in _NUMBERS:
        found |= {"low": int(rest[0]), "high": int(rest[1])} if rest else {}
    elif kind == "flag":
        found |= {"high": int(rest[0])} if rest else {}
    elif kind in {"text", "note", "time"}:
        found |= {"pool": rest[0] if rest else ""}
    else:
        raise DefinitionError(f"{owner}: no kind {kind!r} of column: {line!r}")
    return found


def read_line(line: str) -> Line:
    """What an action's line says.

    Raises:
        DefinitionError: The line has no such form.
    """
    verb, *words = line.split()
    parts: dict[str, list[str]] = {"": []}
    place = ""
    for word in words:
        if word in _KEYWORDS:
            if word in parts:
                raise DefinitionError(f"{word!r} comes twice: {line!r}")
            place = word
            parts[place] = []
        else:
            parts[place].append(word)
    first = tuple(parts[""])
    sets = dict(_pair(word, line) for word in parts.get("|", ()))
    common: dict[str, Any] = {
        "verb": verb,
        "sets": sets,
        "role": "".join(parts.get("by", ())),
        "own": "".join(parts.get("own", ())),
    }
    given = tuple(parts.get("with", ()))
    when = _states(parts.get("when", []))
    is_new = ">" in parts and not first  # `hire > active`: made in this state
    if verb in {"find", "get"}:
        return Line(kind=cast(Any, verb), columns=first, **common)
    if verb == "remove":
        return Line(kind="remove", source=when, **common)
    if verb == "edit":
        return Line(kind="change", columns=first, source=when, **common)
    target = "".join(parts.get(">", ()))
    if verb == "create" or is_new:
        return Line(kind="create", columns=first or given, target=target, **common)
    return Line(kind="change", columns=given, source=_states(list(first)), target=target, **common)


def _states(words: list[str]) -> tuple[str, ...]:
    return tuple(state for word in words for state in word.split("|"))


def _pair(word: str, line: str) -> tuple[str, str]:
    name, equals, expression = word.partition("=")
    if not equals:
        raise DefinitionError(f"after | come pairs COLUMN=EXPRESSION, got {word!r} in {line!r}")
    return name, expression
