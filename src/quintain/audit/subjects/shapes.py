"""Checked access to parsed JSON of unknown shape."""

from __future__ import annotations

from typing import Any, TypeGuard

from quintain.errors import UsageError


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def table(value: dict[str, Any], key: str) -> dict[str, Any]:
    """Returns the object at a key; an empty one if it is missing or null.

    Raises:
        UsageError: The value is not an object.
    """
    found = value.get(key)
    if found is None:
        return {}
    if not is_dict(found):
        raise UsageError(f"{key!r} must be an object, it is {str(found)[:200]!r}")
    return found


def series(value: dict[str, Any], key: str) -> list[Any]:
    """Returns the array at a key; an empty one if it is missing or null.

    Raises:
        UsageError: The value is not an array.
    """
    found = value.get(key)
    if found is None:
        return []
    if not is_list(found):
        raise UsageError(f"{key!r} must be an array, it is {str(found)[:200]!r}")
    return found
