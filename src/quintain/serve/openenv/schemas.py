"""Descriptions of an environment: /metadata, /schema and /openapi.json."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from quintain import codec
from quintain.environment import Environment

from . import wire

Json = dict[str, Any]

API_VERSION = "1.0.0"
"""Version of the protocol, not of this package: clients check that it begins with 1."""

_TEXT: Json = {"type": "string"}
_TRUTH: Json = {"type": "boolean"}
_WHOLE: Json = {"type": "integer"}
_NULL: Json = {"type": "null"}
_ANY: Json = {"type": "object"}


def _closed(properties: Json, required: list[str], **more: Any) -> Json:
    """Returns the schema of an object without other properties."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **more}


_METADATA: Json = {
    "type": "object",
    "description": "Episode, validity, reward and more, by keys with the prefix dev.quintain/.",
    "additionalProperties": True,
}
_RESULT: Json = {
    "description": "What the agent reads: text, or blocks of text and images.",
    "anyOf": [_TEXT, {"type": "array", "items": _ANY}],
}
_ABOUT: Json = {
    "done": _TRUTH,
    "reward": {
        "anyOf": [{"type": "number"}, _NULL],
        "description": "0 until the end, then the episode's score; null where there is none.",
    },
    "metadata": _METADATA,
}
_MISTAKE = _closed({"error_type": {"enum": [*wire.FAULTS.values()]}, "message": _TEXT}, ["error_type", "message"])

OBSERVATION = _closed(
    {
        **_ABOUT,
        "tool_name": {"type": "string", "description": "The tool that was called; empty after reset."},
        "result": _RESULT,
        "error": {"anyOf": [_MISTAKE, _NULL]},
        "tools": {"type": "array", "items": _ANY, "description": "After list_tools, and only then."},
    },
    [*_ABOUT],
    title="Observation",
    anyOf=[{"required": ["tool_name", "result", "error"]}, {"required": ["tools"]}],
)

RESET_OBSERVATION = _closed(
    {
        **_ABOUT,
        "tool_name": {"const": ""},
        "result": {**_RESULT, "description": "All that the agent reads first."},
        "error": _NULL,
    },
    [*_ABOUT, "tool_name", "result", "error"],
    title="ResetObservation",
)

STATE = _closed(
    {
        "episode_id": {"anyOf": [_TEXT, _NULL], "description": "null while there is no episode."},
        "step_count": {"type": "integer", "minimum": 0},
        "done": _TRUTH,
        "split": _TEXT,
        "task": _TEXT,
        "seed": _WHOLE,
        "metadata": _METADATA,
    },
    ["episode_id", "step_count"],
    title="State",
)


def metadata(env: Environment[Any]) -> Json:
    """Returns the answer to /metadata; the version names the author's code."""
    return {
        "name": env.name,
        "description": inspect.getdoc(env.state) or f"The environment {env.name}.",
        "readme_content": None,
        "version": env.fingerprint,
        "author": None,
        "documentation_url": None,
    }


def schema(env: Environment[Any]) -> Json:
    """Returns the answer to /schema."""
    observations = {"observation": OBSERVATION, "reset_observation": RESET_OBSERVATION}
    return {"action": action(env), **observations, "state": STATE}


def action(env: Environment[Any]) -> Json:
    """Returns the schema of actions: each tool with the types of its arguments, the list of tools, and words.

    The properties stand on top, too, for those who look there for the fields of a form.
    """
    more: Json = {"metadata": _ANY}
    calls: list[Json] = []
    shared: Json = {}
    for tool in wire.tools(env):
        name, arguments = tool["name"], _moved(tool)
        shared |= {f"{name}.{own}": one for own, one in arguments.pop("$defs", {}).items()}
        fields = {"type": {"const": "call_tool"}, "tool_name": {"const": name}, "arguments": arguments, **more}
        required = ["tool_name", "arguments"] if arguments.get("required") else ["tool_name"]
        calls.append(_closed(fields, required, title=name, description=tool["description"]))
    found: Json = {
        "title": "Action",
        "type": "object",
        "properties": {
            "type": {"enum": ["call_tool", "list_tools", "answer"], "default": "call_tool"},
            "tool_name": {"type": "string", "description": "For call_tool.", "enum": [call["title"] for call in calls]},
            "arguments": {"type": "object", "description": "For call_tool.", "default": {}},
            "text": {"type": "string", "description": "For answer: words without a call."},
            **more,
        },
        "oneOf": [
            *calls,
            _closed({"type": {"const": "answer"}, "text": _TEXT, **more}, ["type", "text"]),
            _closed({"type": {"const": "list_tools"}, **more}, ["type"]),
        ],
    }
    return {**found, "$defs": shared} if shared else found


def _moved(tool: Json) -> Json:
    """Returns a tool's schema with references to definitions under names that no other tool's definitions have."""
    reference = b'"$ref":"#/$defs/'
    moved: Json = msgspec.json.decode(
        codec.json(tool["input_schema"]).replace(reference, reference + tool["name"].encode() + b".")
    )
    return moved


def openapi(env: Environment[Any]) -> Json:
    """Returns the answer to /openapi.json."""
    # JSON schemas with references of their own would point elsewhere from within this document.
    names = {"Action": {"type": "object", "description": "As /schema says."}, "Observation": OBSERVATION}
    names |= {"State": STATE, "ResetObservation": RESET_OBSERVATION}
    paths = {path.format(env.name.lower()): _operation(*row) for path, *row in _OPERATIONS}
    paths["/state"]["get"]["parameters"] = [
        {"name": name, "in": "query", "required": False, "schema": _TEXT} for name in _NAMES
    ]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"{env.name} over OpenEnv",
            "version": API_VERSION,
            "description": metadata(env)["description"],
        },
        "paths": paths,
        "components": {"schemas": names},
    }


_NAMES: Json = {"session_id": _TEXT, "episode_id": {"type": "string", "maxLength": 255}}
_CHOICE: Json = {"split": _TEXT, "index": _WHOLE, "task": _TEXT, "seed": {"type": "integer", "minimum": 0}}
_RESET = _NAMES | _CHOICE
_STEP: Json = {
    **_NAMES,
    "action": {"$ref": "#/components/schemas/Action"},
    "timeout_s": {"type": "number", "exclusiveMinimum": 0, "description": "Then 504, and the step goes on."},
    "request_id": {"type": "string", "maxLength": 255, "description": "A step is done once under it."},
}
_RPC: Json = {
    "jsonrpc": {"const": "2.0"},
    "method": {"enum": ["openenv/session/create", "openenv/session/close", "tools/list", "tools/call"]},
    "params": {"type": "object"},
    "id": {"type": ["string", "integer", "null"]},
}
_BOUND: Json = {"anyOf": [_WHOLE, _NULL]}
_SPLIT: Json = {"split": _TEXT}

_OPERATIONS: list[tuple[Any, ...]] = [
    ("/health", "Whether the server is up"),
    ("/metadata", "What the environment is"),
    ("/schema", "Schemas of actions, observations and states"),
    ("/list_environments", "The environment's name"),
    ("/reset", "Begin an episode", _RESET),
    ("/step", "Take an action", _STEP, ["action"]),
    ("/state", "Where an episode stands"),
    ("/mcp", "JSON-RPC: sessions and tools", _RPC, ["jsonrpc", "method"]),
    ("/{}/splits", "The splits"),
    ("/{}/tasks", "All tasks of a split", _SPLIT, ["split"]),
    ("/{}/num_tasks", "How many they are", _SPLIT, ["split"]),
    ("/{}/task", "One of them", {**_SPLIT, "index": _WHOLE}, ["split", "index"]),
    ("/{}/task_range", "Some of them", {**_SPLIT, "start": _BOUND, "stop": _BOUND}, ["split"]),
]
"""Paths with their summaries; those with a body are POST, and have its properties and the required ones of them."""


def _operation(summary: str, body: Json | None = None, required: tuple[str, ...] = ()) -> Json:
    found: Json = {"summary": summary, "responses": {"200": {"description": "OK"}}}
    if body is None:
        return {"get": found}
    form: Json = {"type": "object", "properties": body, "required": [*required]}
    form["additionalProperties"] = body is _RESET  # Others' fields are left alone there, and named.
    return {"post": {**found, "requestBody": {"content": {"application/json": {"schema": form}}}}}
