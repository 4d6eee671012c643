"""Parsed JSON, looked at without trust: None stands for what is of another type than was hoped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec


def mapping(value: object) -> dict[str, Any] | None:
    """The value as an object of JSON."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def sequence(value: object) -> list[Any] | None:
    """The value as a list of JSON; a tuple counts as one."""
    return list(cast(Iterable[Any], value)) if isinstance(value, list | tuple) else None


def loaded(text: str) -> object:
    """What a text is in JSON; None where it is none, or too deep for a parser."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def fields(row: object) -> dict[str, Any]:
    """The fields of a row, be it a Struct or a dict; none for anything else."""
    if isinstance(row, msgspec.Struct):
        return {name: getattr(row, name) for name in row.__struct_fields__}
    return mapping(row) or {}


def strings(value: object) -> Iterator[str]:
    """Every text inside plain data, but for keys of dicts, and sets, which have no order."""
    if isinstance(value, str):
        yield value
        return
    listed = sequence(value)
    for item in fields(value).values() if listed is None else listed:
        yield from strings(item)
