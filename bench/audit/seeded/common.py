"""Base of the clean worlds: checked schemas, reported errors, facts to compare, messy people."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

Data = Any
FAULTS = ("timeout", "refused", "500", "429", "empty", "truncated", "cancelled", "out_of_memory", "disk_full")


class ToolError(Exception):
    """The agent's own mistake; it reads the message."""


class BackendError(Exception):
    """Error of a backend of a tool or of the verifier that does not answer."""


def rng(*parts: object) -> random.Random:
    """Random numbers that depend on these parts alone."""
    return random.Random(repr(parts))  # noqa: S311


# --- schemas ---


def text(description: str, limit: int = 400) -> dict[str, Data]:
    return {"type": "string", "description": description, "maxLength": limit}


def integer(description: str, low: int, high: int) -> dict[str, Data]:
    return {"type": "integer", "description": description, "minimum": low, "maximum": high}


def choice(description: str, *values: str) -> dict[str, Data]:
    return {"type": "string", "description": description, "enum": list(values)}


def flag(description: str) -> dict[str, Data]:
    return {"type": "boolean", "description": description}


def texts(description: str, limit: int = 20) -> dict[str, Data]:
    items = {"type": "string", "maxLength": 100}
    return {"type": "array", "description": description, "items": items, "maxItems": limit}


def optional(schema: dict[str, Data], default: Data) -> dict[str, Data]:
    return {**schema, "default": default}


def tool(name: str, description: str, **properties: dict[str, Data]) -> dict[str, Data]:
    required = [name for name, schema in properties.items() if "default" not in schema]
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": description, "parameters": parameters}


def checked(schema: dict[str, Data], arguments: Data) -> dict[str, Data]:
    """The arguments with defaults filled in.

    Raises:
        ToolError: They do not fit the schema.
    """
    if not isinstance(arguments, dict):
        raise ToolError("arguments must be an object")
    properties = schema["properties"]
    for name in arguments:
        if name not in properties:
            raise ToolError(f"unknown argument {ascii(name)[:60]}; known: {', '.join(properties) or 'none'}")
    for name in schema["required"]:
        if name not in arguments:
            raise ToolError(f"argument {name} is missing")
    for name, value in arguments.items():
        _fits(name, properties[name], value)
    defaults = {name: one["default"] for name, one in properties.items() if "default" in one}
    return {**copy.deepcopy(defaults), **arguments}


def _fits(name: str, schema: dict[str, Data], value: Data) -> None:
    check: Callable[[str, dict[str, Data], Data], None] = {
        "string": _fits_string,
        "integer": _fits_number,
        "number": _fits_number,
        "boolean": _fits_boolean,
        "array": _fits_array,
    }[schema["type"]]
    check(name, schema, value)


def _fits_string(name: str, schema: dict[str, Data], value: Data) -> None:
    if not isinstance(value, str):
        raise ToolError(f"{name} must be a string")
    if len(value) > schema.get("maxLength", 400):
        raise ToolError(f"{name} is longer than {schema.get('maxLength', 400)} characters")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ToolError(f"{name} is not valid Unicode")
    if "enum" in schema and value not in schema["enum"]:
        raise ToolError(f"{name} must be one of {', '.join(schema['enum'])}")


def _fits_number(name: str, schema: dict[str, Data], value: Data) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolError(f"{name} must be a number")
    if isinstance(value, float) and (not math.isfinite(value) or schema["type"] == "integer"):
        raise ToolError(f"{name} must be {'a whole' if schema['type'] == 'integer' else 'a finite'} number")
    if not schema["minimum"] <= value <= schema["maximum"]:
        raise ToolError(f"{name} must lie between {schema['minimum']} and {schema['maximum']}")


def _fits_boolean(name: str, schema: dict[str, Data], value: Data) -> None:
    if not isinstance(value, bool):
        raise ToolError(f"{name} must be {' or '.join(schema.get('enum', ('true', 'false')))}")


def _fits_array(name: str, schema: dict[str, Data], value: Data) -> None:
    if not isinstance(value, list):
        raise ToolError(f"{name} must be a list")
    if len(value) > schema["maxItems"]:
        raise ToolError(f"{name} has more than {schema['maxItems']} items")
    for item in value:
        _fits(f"an item of {name}", schema["items"], item)


# --- worlds ---


class World:
    """Calls go to the method `_NAME` of a tool called NAME."""

    TOOLS: tuple[dict[str, Data], ...] = ()

    def __init__(self) -> None:
        self.task: str | None = None
        self.fault: str | None = None

    def tools(self) -> list[dict[str, Data]]:
        return copy.deepcopy(list(self.TOOLS))

    def call(self, name: str, arguments: Data) -> Data:
        if self.task is None:
            return {"error": "no episode has begun; reset first"}
        schema = next((tool["parameters"] for tool in self.TOOLS if tool["name"] == name), None)
        if schema is None:
            return {"error": f"no such tool: {ascii(name)[:60]}"}
        try:
            return getattr(self, f"_{name}")(**checked(schema, arguments))
        except ToolError as error:
            return {"error": str(error)}
        except BackendError as error:
            return {"error": f"the service failed: {error}; nothing was changed"}

    def backend(self) -> None:
        """Every use of what may fail passes here first."""
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise BackendError(fault)


def facts_scored(initial: dict[str, Data], final: dict[str, Data], goals: dict[str, Data]) -> tuple[list[str], int]:
    """Goals that hold, and how many facts became something that no goal asks for."""
    done = [name for name, wanted in goals.items() if final.get(name) == wanted]
    changed = [name for name in {**initial, **final} if initial.get(name) != final.get(name)]
    damage = [name for name in changed if name not in goals or final.get(name) != goals[name]]
    return done, len(damage)


# --- people, as production has them ---

FIRST = (
    "Anna", "Björn", "Chloé", "Dmitri", "Elif", "Fatima", "Giorgos", "Hannah", "Ивана", "João", "Kenji", "Łukasz",
    "María", "Nguyễn", "Oluwaseun", "Priya", "Quentin", "Rósa", "Seán", "Tomáš", "Ulrike", "Vikram", "Wei", "Zoë",
)  # fmt: skip
LAST = (
    "Smith", "Müller", "O'Brien", "García López", "Nakamura", "van den Berg", "Øvergård", "Kowalczyk", "Đặng", "Ntuli",
    "Haddad", "Ferreira da Silva", "Iyer", "McAllister", "Papadopoulos", "Szabó", "Yildiz Şen", "Zhang", "d'Angelo",
)  # fmt: skip


def name_of(dice: random.Random) -> str:
    """A name, typed by its owner."""
    name = f"{dice.choice(FIRST)} {dice.choice(LAST)}"
    slip = dice.random()
    if slip < 0.08:
        return name.lower()
    if slip < 0.13:
        return name.upper()
    return f"{name} " if slip < 0.16 else name


def fresh(dice: random.Random, prefix: str, taken: set[str]) -> str:
    """Returns an unused id of six digits."""
    while (found := f"{prefix}{dice.randrange(10**5, 10**6)}") in taken:
        pass
    taken.add(found)
    return found


def weighted(dice: random.Random, table: Sequence[tuple[str, int]]) -> str:
    return dice.choices([value for value, _ in table], [weight for _, weight in table])[0]
