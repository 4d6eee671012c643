"""Plain data of other people: what kind it is, for readers and for type checkers alike."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_number(value: object) -> TypeGuard[int | float]:
    """A number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
