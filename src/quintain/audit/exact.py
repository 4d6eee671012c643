"""Lossless JSON form of plain data with NaN, bytes or keys that are not text.

A finding is replayed from its file, and a call with NaN must stay one. Values without a JSON form become an object
with one key: "$float", "$bytes", or "$map" for a dict whose keys are not all text. A dict that looks like one of
these is written as "$map", too.
"""

from __future__ import annotations

import base64
import math
from typing import Any, TypeGuard

from .data import is_dict, is_list


def exact(value: Any) -> Any:
    """Returns the value with everything encoded that JSON would change."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if _is_row(value):
        return [exact(one) for one in value]
    if is_dict(value):
        keys: list[Any] = list(value)
        is_plain = all(isinstance(key, str) for key in keys) and not (len(keys) == 1 and keys[0].startswith("$"))
        if is_plain:
            return {key: exact(one) for key, one in value.items()}
        return {"$map": [[exact(key), exact(one)] for key, one in value.items()]}
    return value


def restored(value: Any) -> Any:
    """Returns the value that `exact` encoded; tuples come back as lists."""
    if is_list(value):
        return [restored(one) for one in value]
    if not is_dict(value):
        return value
    if set(value) == {"$float"}:
        return float(value["$float"])
    if set(value) == {"$bytes"}:
        return base64.b64decode(value["$bytes"])
    if set(value) == {"$map"}:
        return {_key(restored(key)): restored(one) for key, one in value["$map"]}
    return {key: restored(one) for key, one in value.items()}


def _is_row(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, list | tuple)


def _key(key: Any) -> Any:
    return tuple(key) if is_list(key) else key
