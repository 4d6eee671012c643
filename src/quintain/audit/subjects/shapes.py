"""Parsed JSON, of which nobody knows the shape before it was looked at."""

from __future__ import annotations

from typing import Any, TypeGuard

from quintain.errors import UsageError


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def table(value: dict[str, Any], key: str) -> dict[str, Any]:
    """The object at a key; an empty one where there is none, or null.

    Raises:
        UsageError: Something else stands there.
    """
    found = value.get(key)
    if found is None:
        return {}
    if not is_dict(found):
        raise UsageError(f"{key!r} must be an object, it is {str(found)[:200]!r}")
    return found


def series(value: dict[str, Any], key: str) -> list[Any]:
    """The array at a key; an empty one where there is none, or null.

    Raises:
        UsageError: Something else stands there.
    """
    found = value.get(key)
    if found is None:
        return []
    if not is_list(found):
        raise UsageError(f"{key!r} must be an array, it is {str(found)[:200]!r}")
    return found
