"""Base of the rebuilt subjects: tools in a table, arguments that are checked before use."""

from __future__ import annotations

import math
from typing import Any, ClassVar

Answer = dict[str, Any]
Solution = list[list[Any]]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


def text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


class Plain:
    """Subject with tools in `TOOLS`: name -> (description, properties). Tool `x` is the method `do_x`."""

    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {}

    def tools(self) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "description": description,
                "parameters": {
                    "type": "object",
                    "properties": properties,
                    "required": list(properties),
                    "additionalProperties": False,
                },
            }
            for name, (description, properties) in self.TOOLS.items()
        ]

    def call(self, name: str, arguments: dict[str, Any]) -> Answer:
        if name not in self.TOOLS:
            return {"error": f"no such tool: {name!r}"}
        wrong = self.wrong(name, arguments)
        if wrong:
            return {"error": wrong}
        answer: Answer = getattr(self, f"do_{name}")(**arguments)
        return answer

    def wrong(self, name: str, arguments: dict[str, Any]) -> str:
        """Returns the schema violation of the arguments; empty for none."""
        properties = self.TOOLS[name][1]
        if set(arguments) != set(properties):
            return f"{name} takes exactly: {', '.join(properties) or 'nothing'}"
        for key, schema in properties.items():
            value: Any = arguments[key]
            kind = schema["type"]
            if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
                return f"{key} must be of type {kind}"
            if isinstance(value, float) and not math.isfinite(value):
                return f"{key} must be finite"
            if "enum" in schema and value not in schema["enum"]:
                return f"{key} must be one of {schema['enum']}"
            if "items" in schema and not all(item in schema["items"]["enum"] for item in arguments[key]):
                return f"{key} must hold only {schema['items']['enum']}"
        return ""
