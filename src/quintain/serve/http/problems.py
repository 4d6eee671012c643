"""Lists of problems in the format of FastAPI: message and place."""

from __future__ import annotations

import re
from typing import Any

import msgspec

_MISSING = re.compile(r"Object missing required field `(.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")


def problems(error: Exception, *where: str) -> list[dict[str, Any]]:
    """Returns an error as problems, with the place that it names.

    Args:
        error: Of a decoder, or any other.
        where: Place of the whole value, such as the body.
    """
    message, _, path = str(error).partition(" - at `$")
    place = [part for part in path.rstrip("`").replace("[", ".").replace("]", "").split(".") if part]
    kind = "value_error"
    if isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError):
        kind = "json_invalid"
    elif found := _MISSING.fullmatch(message):
        kind, place = "missing", [*place, found[1]]
    elif found := _UNKNOWN.fullmatch(message):
        kind, place = "extra_forbidden", [*place, found[1]]
    return [{"type": kind, "loc": [*where, *place], "msg": message}]
