"""Guarded access to parsed JSON: None for a value of an unexpected type."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec


def mapping(value: object) -> dict[str, Any] | None:
    """Returns the value if it is a JSON object, else None."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def sequence(value: object) -> list[Any] | None:
    """Returns the value as a list if it is a list or a tuple, else None."""
    return list(cast(Iterable[Any], value)) if isinstance(value, list | tuple) else None


def loaded(text: str) -> object:
    """Parses JSON text; None if it is invalid or too deep."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def fields(row: object) -> dict[str, Any]:
    """Returns the fields of a Struct or dict; empty for anything else."""
    if isinstance(row, msgspec.Struct):
        return {name: getattr(row, name) for name in row.__struct_fields__}
    return mapping(row) or {}


def strings(value: object) -> Iterator[str]:
    """Yields every text inside plain data, without keys of dicts and without sets, which have no order."""
    if isinstance(value, str):
        yield value
        return
    listed = sequence(value)
    for item in fields(value).values() if listed is None else listed:
        yield from strings(item)
