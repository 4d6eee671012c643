"""A board of four fields, as text: tests of rewards that are sums of parts put their own `score` under it."""

from __future__ import annotations

BOARD = """
import math

WANT = {"a": {"w": 11, "x": 12, "y": 13, "z": 14}, "b": {"w": 14, "x": 13, "y": 12, "z": 11}}


class Board:
    mode, graded = "sound", True

    def tasks(self):
        return list(WANT)

    def tools(self):
        field = {"type": "string", "enum": ["w", "x", "y", "z"]}
        properties = {"field": field, "value": {"type": "integer"}}
        schema = {"type": "object", "properties": properties, "required": ["field", "value"]}
        return [{"name": "set", "description": "Set a field.", "parameters": schema}]

    def reset(self, task, seed):
        self.want, self.fields = WANT[task], dict.fromkeys("wxyz", 0)
        return f"Set {self.want}"

    def call(self, name, arguments):
        if name != "set" or arguments.get("field") not in self.fields:
            return {"error": "no such field"}
        self.fields[arguments["field"]] = arguments.get("value")
        return {"ok": True}

    def state(self):
        return {"fields": dict(self.fields)}

    def oracle(self, task):
        return [["set", {"field": name, "value": value}] for name, value in WANT[task].items()]
"""
