"""Gymnasium's spaces as JSON schemas, JSON as their values, and arrays as plain data.

Spaces are recognised by class name, so neither Gymnasium nor NumPy needs to be imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec


def schema(space: Any) -> dict[str, Any]:
    """Returns the JSON schema of a space's values; `{}` (anything) for an unknown space."""
    found: dict[str, Any] = {}
    match _kind(space):
        case "Discrete":
            found = _whole(space.start, space.n)
        case "MultiDiscrete" if len(space.shape) == 1:
            found = _fixed([_whole(start, n) for start, n in zip(space.start, space.nvec, strict=True)])
        case "MultiDiscrete":
            found = _nested({"type": "integer"}, space.shape)
        case "MultiBinary":
            found = _nested(_whole(0, 2), space.shape)
        case "Box":  # the narrowest number schema that holds for all its numbers
            limits = {"minimum": space.low.min().item(), "maximum": space.high.max().item()}
            finite = {name: limit for name, limit in limits.items() if abs(limit) != float("inf")}
            found = _nested({"type": "integer" if space.dtype.kind in "iu" else "number"} | finite, space.shape)
        case "Text":
            found = {"type": "string", "minLength": int(space.min_length), "maxLength": int(space.max_length)}
        case "Tuple":
            found = _fixed([schema(one) for one in space.spaces])
        case "Dict":
            properties = {name: schema(one) for name, one in space.spaces.items()}
            closed = {"required": list(properties), "additionalProperties": False}
            found = {"type": "object", "properties": properties} | closed
        case _:
            pass
    return found


def value(space: Any, data: Any) -> Any:
    """Returns JSON data as a value of the space; raises ValueError, which gives the expected form, if it is none."""
    if space is None or not callable(getattr(space, "contains", None)):
        return data
    try:
        action = _value(space, data)
        fits = bool(space.contains(action))
    except (TypeError, ValueError, OverflowError, AttributeError, LookupError) as error:
        raise ValueError(f"{data!r} is not an action of {space}: {error}"[:500]) from error
    if not fits:
        raise ValueError(f"{data!r} is not an action of {space}"[:500])
    return action


def plain(value: Any) -> Any:
    """Returns plain data of any object; one without a plain form becomes its type's name."""
    whole: Any = value
    if isinstance(value, bool | int | float | str):
        # A subclass, such as an enum or one of NumPy's numbers, becomes the plain type.
        return next(kind(whole) for kind in (bool, int, float, str) if isinstance(whole, kind))
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in whole.items()}
    if isinstance(value, AbstractSet):
        return sorted(map(plain, whole), key=repr)
    return [plain(one) for one in whole] if isinstance(value, list | tuple) else _odd(value)


def _odd(value: Any) -> Any:
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy, and of others who follow it
        return plain(value.tolist())
    if hasattr(value, "bit_generator"):  # a random generator becomes its state
        return plain(value.bit_generator.state)
    if hasattr(value, "getstate") and hasattr(value, "getrandbits"):
        return plain(value.getstate())
    try:
        return msgspec.to_builtins(value, str_keys=True, order="deterministic")
    except (TypeError, ValueError):
        return f"<{type(value).__module__}.{type(value).__qualname__}>"


def _kind(space: Any) -> str:
    """Returns the name of the first class among a space's bases that is Gymnasium's (or Gym's) own."""
    for one in type(space).__mro__:
        if one.__module__.partition(".")[0] in {"gymnasium", "gym"}:
            return one.__name__
    return ""


def _value(space: Any, data: Any) -> Any:
    given: Any = data
    match _kind(space):
        case "Discrete":
            if not isinstance(data, int) or isinstance(data, bool):
                raise TypeError("an integer is needed")
            return space.dtype.type(data)
        case "Tuple":
            if not isinstance(data, list) or len(given) != len(space.spaces):
                raise TypeError(f"a list of {len(space.spaces)} is needed")
            return tuple(_value(one, item) for one, item in zip(space.spaces, given, strict=True))
        case "Dict":
            if not isinstance(data, dict) or set(given) != set(space.spaces):
                raise TypeError(f"an object with {', '.join(space.spaces)} is needed")
            return {name: _value(one, given[name]) for name, one in space.spaces.items()}
        case "Box" | "MultiDiscrete" | "MultiBinary":
            return _array(space, data)
        case _:
            return data


def _array(space: Any, data: Any) -> Any:
    import numpy as np

    given: Any = np.asarray(data)
    if given.dtype.kind not in "iuf" or (space.dtype.kind in "iu" and given.dtype.kind == "f"):
        raise TypeError(f"numbers of type {space.dtype} are needed")
    with np.errstate(over="ignore"):
        made = given.astype(space.dtype)
    exact = made == given if space.dtype.kind in "iu" else np.isfinite(made) == np.isfinite(given)
    if not exact.all():
        raise TypeError(f"a number does not fit into {space.dtype}")
    return made


def _whole(low: Any, count: Any) -> dict[str, Any]:
    return {"type": "integer", "minimum": int(low), "maximum": int(low) + int(count) - 1}


def _nested(item: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    for size in reversed(shape):
        item = {"type": "array", "items": item, "minItems": int(size), "maxItems": int(size)}
    return item


def _fixed(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the schema of an array of fixed length with a schema for each item."""
    whole: dict[str, Any] = {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if items and all(item == items[0] for item in items):
        whole["items"] = items[0]
    return whole
