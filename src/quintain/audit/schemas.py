"""Tool parameters as one JSON schema of an object, from several shorter forms."""

from __future__ import annotations

from typing import Any

from .data import is_dict, is_list

_TYPES = {
    "str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object",
    "NoneType": "null",
} | {name: name for name in ("string", "integer", "number", "boolean", "array", "object", "null")}  # fmt: skip


def schema_of(parameters: Any) -> dict[str, Any]:
    """Returns a JSON schema of an object; accepts a schema, properties by name, or a list of named properties.

    A property without a default is required unless it says otherwise, because short forms have no place for `required`.
    """
    if is_list(parameters):
        named = [one for one in parameters if is_dict(one) and isinstance(one.get("name"), str)]
        parameters = {one["name"]: {key: one[key] for key in one if key != "name"} for one in named}
    if not is_dict(parameters):
        return {}
    if not parameters or "properties" in parameters or _is_type(parameters.get("type")) or "$ref" in parameters:
        return parameters
    specs = {str(name): _property(one) for name, one in parameters.items()}
    properties = {name: {key: one[key] for key in one if key not in _NEED} for name, one in specs.items()}
    needed = [name for name, one in specs.items() if _is_needed(one)]
    return {"type": "object", "properties": properties} | ({"required": needed} if needed else {})


_NEED = ("required", "optional")


def _is_type(value: Any) -> bool:
    return is_list(value) or value in ("object", *_TYPES)


def _property(value: Any) -> dict[str, Any]:
    if is_dict(value):
        kind = value.get("type")
        name = kind.__name__ if isinstance(kind, type) else kind
        return {**value, "type": _TYPES[name]} if isinstance(name, str) and name in _TYPES else value
    name = value.__name__ if isinstance(value, type) else str(value)
    return {"type": _TYPES[name]} if name in _TYPES else {"description": name}


def _is_needed(spec: dict[str, Any]) -> bool:
    required = spec.get("required")
    if isinstance(required, bool):
        return required
    return spec.get("optional") is not True and "default" not in spec
