"""Options of adapters: the texts that a command line gives, as values of an original library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from quintain.errors import UsageError


def values(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options with each text that is JSON decoded: "false" is False, "4x4" stays text."""
    return {name: _value(value) for name, value in options.items()}


def whole(name: str, value: object, *, least: int) -> int:
    """Returns the whole number of an option.

    Raises:
        UsageError: The value is not a whole number, or is below `least`.
    """
    number = _value(value)
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise UsageError(f"{name} must be a whole number from {least}, got {value!r}")
    return number


def _value(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value
