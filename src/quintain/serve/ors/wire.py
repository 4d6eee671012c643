"""What the Open Reward Standard says, as types; unknown fields are refused, as its own server does."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from quintain.tools import Tool
from quintain.trace import Content, Message, Text


class Split(msgspec.Struct, forbid_unknown_fields=True):
    """Whose tasks."""

    split: str


class Place(msgspec.Struct, forbid_unknown_fields=True):
    """One task; from the end where the index is negative."""

    split: str
    index: int


class Range(msgspec.Struct, forbid_unknown_fields=True):
    """A slice, by Python's rules."""

    split: str
    start: int | None = None
    stop: int | None = None


class Create(msgspec.Struct, forbid_unknown_fields=True):
    """Exactly one of task_spec, or split and index. Secrets may come here or in a header."""

    env_name: str | None = None
    task_spec: dict[str, Any] | None = None
    split: str | None = None
    index: int | None = None
    secrets: dict[str, str] | None = None
    toolset_name: str | None = None


class Call(msgspec.Struct, forbid_unknown_fields=True):
    """A tool call; with a task_id, the answer to one that was made before."""

    name: str
    input: msgspec.Raw
    task_id: str | None = None


def blocks(content: Content) -> list[dict[str, Any]]:
    """What an actor reads, as the standard's blocks."""
    if isinstance(content, str):
        return [{"text": content, "detail": None, "type": "text"}]
    return [
        {"text": block.text, "detail": None, "type": "text"}
        if isinstance(block, Text)
        else {
            "data": base64.b64encode(block.data).decode(),
            "mimeType": block.media_type,
            "detail": None,
            "type": "image",
        }
        for block in content
    ]


def message(one: Message) -> dict[str, Any]:
    """A message of the agent's context before its first reply."""
    return {"role": one.role, "blocks": blocks(one.content), "detail": None}


def spec(tool: Tool) -> dict[str, Any]:
    """A tool as the standard lists it: no schema at all where it takes nothing."""
    schema = tool.parameters if tool.parameters.get("properties") else None
    return {"name": tool.name, "description": tool.description, "input_schema": schema}
