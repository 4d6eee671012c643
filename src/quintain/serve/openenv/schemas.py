"""Descriptions of an environment: /metadata, /schema and /openapi.json."""

from __future__ import annotations

import inspect
from typing import Any, TypeGuard

from quintain.environment import Environment

from . import wire

Json = dict[str, Any]

API_VERSION = "1.0.0"
"""Version of the protocol, not of this package: clients check that it begins with 1."""

_TEXT: Json = {"type": "string"}
_METADATA: Json = {
    "type": "object",
    "description": "Episode, validity, reward and more, by keys with the prefix dev.quintain/.",
    "additionalProperties": True,
}
_REWARD: Json = {
    "anyOf": [{"type": "number"}, {"type": "null"}],
    "description": "0 until the end, then the episode's score; null where there is none.",
}
_FAULT: Json = {
    "type": "object",
    "properties": {
        "error_type": {"enum": ["tool_not_found", "invalid_args", "execution_error"]},
        "message": _TEXT,
    },
    "required": ["error_type", "message"],
    "additionalProperties": False,
}
_RESULT: Json = {
    "description": "What the agent reads: text, or blocks of text and images.",
    "anyOf": [_TEXT, {"type": "array", "items": {"type": "object"}}],
}
_TOLD: Json = {"done": {"type": "boolean"}, "reward": _REWARD, "metadata": _METADATA}

OBSERVATION: Json = {
    "title": "Observation",
    "type": "object",
    "properties": {
        **_TOLD,
        "tool_name": {"type": "string", "description": "The tool that was called; empty after reset."},
        "result": _RESULT,
        "error": {"anyOf": [_FAULT, {"type": "null"}]},
        "tools": {"type": "array", "items": {"type": "object"}, "description": "After list_tools, and only then."},
    },
    "required": ["done", "reward", "metadata"],
    "anyOf": [{"required": ["tool_name", "result", "error"]}, {"required": ["tools"]}],
    "additionalProperties": False,
}

RESET_OBSERVATION: Json = {
    "title": "ResetObservation",
    "type": "object",
    "properties": {
        **_TOLD,
        "tool_name": {"const": ""},
        "result": {**_RESULT, "description": "All that the agent reads first."},
        "error": {"type": "null"},
    },
    "required": ["done", "reward", "metadata", "tool_name", "result", "error"],
    "additionalProperties": False,
}

STATE: Json = {
    "title": "State",
    "type": "object",
    "properties": {
        "episode_id": {"anyOf": [_TEXT, {"type": "null"}], "description": "null while there is no episode."},
        "step_count": {"type": "integer", "minimum": 0},
        "done": {"type": "boolean"},
        "split": _TEXT,
        "task": _TEXT,
        "seed": {"type": "integer"},
        "metadata": _METADATA,
    },
    "required": ["episode_id", "step_count"],
    "additionalProperties": False,
}


def metadata(env: Environment[Any]) -> Json:
    """The answer to /metadata; the version names the author's code."""
    return {
        "name": env.name,
        "description": inspect.getdoc(env.state) or f"The environment {env.name}.",
        "readme_content": None,
        "version": env.fingerprint,
        "author": None,
        "documentation_url": None,
    }


def schema(env: Environment[Any]) -> Json:
    """The answer to /schema."""
    return {
        "action": action(env),
        "observation": OBSERVATION,
        "reset_observation": RESET_OBSERVATION,
        "state": STATE,
    }


def action(env: Environment[Any]) -> Json:
    """The actions: each tool with the types of its arguments, the list of tools, and words.

    The properties stand on top, too, for those who look there for the fields of a form.
    """
    tools = wire.tools(env)
    more: Json = {"metadata": {"type": "object"}}
    calls = [
        {
            "type": "object",
            "title": tool["name"],
            "description": tool["description"],
            "properties": {
                "type": {"const": "call_tool"},
                "tool_name": {"const": tool["name"]},
                "arguments": _moved(tool["input_schema"], tool["name"]),
                **more,
            },
            "required": ["tool_name", *(["arguments"] if tool["input_schema"].get("required") else [])],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    words = {"type": {"const": "answer"}, "text": _TEXT, **more}
    listing = {"type": {"const": "list_tools"}, **more}
    found: Json = {
        "title": "Action",
        "type": "object",
        "properties": {
            "type": {"enum": ["call_tool", "list_tools", "answer"], "default": "call_tool"},
            "tool_name": {"type": "string", "description": "For call_tool.", "enum": [tool["name"] for tool in tools]},
            "arguments": {"type": "object", "description": "For call_tool.", "default": {}},
            "text": {"type": "string", "description": "For answer: words without a call."},
            **more,
        },
        "oneOf": [
            *calls,
            {"type": "object", "properties": words, "required": ["type", "text"], "additionalProperties": False},
            {"type": "object", "properties": listing, "required": ["type"], "additionalProperties": False},
        ],
    }
    shared = {name: one for tool in tools for name, one in _definitions(tool).items()}
    return {**found, "$defs": shared} if shared else found


def _moved(schema: Any, tool: str) -> Any:
    """Returns a tool's schema with its definitions under names that no other tool's definitions have."""
    if _is_list(schema):
        return [_moved(one, tool) for one in schema]
    if not _is_object(schema):
        return schema
    return {
        name: value.replace("#/$defs/", f"#/$defs/{tool}.") if name == "$ref" else _moved(value, tool)
        for name, value in schema.items()
        if name != "$defs"
    }


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_object(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict)


def _definitions(tool: Json) -> Json:
    found: Json = tool["input_schema"].get("$defs", {})
    return {f"{tool['name']}.{name}": _moved(one, tool["name"]) for name, one in found.items()}


def openapi(env: Environment[Any]) -> Json:
    """The answer to /openapi.json."""
    parts = schema(env)
    # JSON schemas with references of their own would point elsewhere from within this document.
    names = {"Action": {"type": "object", "description": "As /schema says."}, "Observation": parts["observation"]}
    names |= {"State": parts["state"], "ResetObservation": parts["reset_observation"]}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"{env.name} over OpenEnv",
            "version": API_VERSION,
            "description": metadata(env)["description"],
        },
        "paths": {path: {method: operation} for path, method, operation in _operations(env)},
        "components": {"schemas": names},
    }


def _operations(env: Environment[Any]) -> list[tuple[str, str, Json]]:
    name = env.name.lower()
    split: Json = {"split": _TEXT}
    index: Json = {"index": {"type": "integer"}}
    bounds: Json = {bound: {"anyOf": [{"type": "integer"}, {"type": "null"}]} for bound in ("start", "stop")}
    return [
        ("/health", "get", _operation("Whether the server is up")),
        ("/metadata", "get", _operation("What the environment is")),
        ("/schema", "get", _operation("Schemas of actions, observations and states")),
        ("/list_environments", "get", _operation("The environment's name")),
        ("/reset", "post", _operation("Begin an episode", body=_RESET)),
        ("/step", "post", _operation("Take an action", body=_STEP, required=["action"])),
        ("/state", "get", _operation("Where an episode stands", query=["session_id", "episode_id"])),
        ("/mcp", "post", _operation("JSON-RPC: sessions and tools", body=_RPC, required=["jsonrpc", "method"])),
        (f"/{name}/splits", "get", _operation("The splits")),
        (f"/{name}/tasks", "post", _operation("All tasks of a split", body=split, required=["split"])),
        (f"/{name}/num_tasks", "post", _operation("How many they are", body=split, required=["split"])),
        (f"/{name}/task", "post", _operation("One of them", body={**split, **index}, required=["split", "index"])),
        (f"/{name}/task_range", "post", _operation("Some of them", body={**split, **bounds}, required=["split"])),
    ]


_NAMES: Json = {"session_id": _TEXT, "episode_id": {"type": "string", "maxLength": 255}}
_RESET: Json = {
    **_NAMES,
    "split": _TEXT,
    "index": {"type": "integer"},
    "task": _TEXT,
    "seed": {"type": "integer", "minimum": 0},
}
_STEP: Json = {
    **_NAMES,
    "action": {"$ref": "#/components/schemas/Action"},
    "timeout_s": {"type": "number", "exclusiveMinimum": 0, "description": "Then 504, and the step goes on."},
    "request_id": {
        "type": "string",
        "maxLength": 255,
        "description": "A step is done once under it.",
    },
}
_RPC: Json = {
    "jsonrpc": {"const": "2.0"},
    "method": {"enum": ["openenv/session/create", "openenv/session/close", "tools/list", "tools/call"]},
    "params": {"type": "object"},
    "id": {"type": ["string", "integer", "null"]},
}


def _operation(
    summary: str, *, body: Json | None = None, required: list[str] | None = None, query: list[str] | None = None
) -> Json:
    found: Json = {"summary": summary, "responses": {"200": {"description": "OK"}}}
    if body is not None:
        form: Json = {"type": "object", "properties": body, "required": required or []}
        form["additionalProperties"] = body is _RESET  # Others' fields are left alone there, and named.
        found["requestBody"] = {"content": {"application/json": {"schema": form}}}
    if query:
        found["parameters"] = [{"name": one, "in": "query", "required": False, "schema": _TEXT} for one in query]
    return found
