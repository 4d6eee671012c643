"""Messages of the Open Reward Standard as types; unknown fields are refused, as its own server does."""

from __future__ import annotations

from typing import Any

import msgspec

from quintain.environment import Environment
from quintain.serve.episodes.views import ANSWER_ARGUMENT, ANSWER_DESCRIPTION, ANSWER_SCHEMA, agent_tools, answer_tool
from quintain.task import Task
from quintain.tools import Tool
from quintain.trace import Content, Text, plain


class Create(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /create: exactly one of task_spec, or split and index. Secrets may also come in a header."""

    env_name: str | None = None
    task_spec: dict[str, Any] | None = None
    split: str | None = None
    index: int | None = None
    secrets: dict[str, str] | None = None
    toolset_name: str | None = None


class Call(msgspec.Struct, forbid_unknown_fields=True):
    """Tool call; with a task_id, a request for the answer to an earlier call."""

    name: str
    input: msgspec.Raw
    task_id: str | None = None


class TextBlock(msgspec.Struct, frozen=True):
    """Block of text."""

    text: str
    detail: None = None
    type: str = "text"


class ImageBlock(msgspec.Struct, frozen=True, rename="camel"):
    """Block with a picture; its bytes become base64 on the wire."""

    data: bytes
    mime_type: str
    detail: None = None
    type: str = "image"


class Output(msgspec.Struct, frozen=True):
    """Output of a tool. All fields are always there, because clients index them."""

    blocks: list[TextBlock | ImageBlock]
    metadata: dict[str, Any]
    reward: float | None
    finished: bool


class Done(msgspec.Struct, frozen=True):
    """Result of a call that reached its tool."""

    output: Output
    ok: bool = True


class Failed(msgspec.Struct, frozen=True):
    """Result of a call that did not reach a tool."""

    error: str
    reason: str
    ok: bool = False


def blocks(content: Content) -> list[TextBlock | ImageBlock]:
    """Returns content as the standard's blocks."""
    if isinstance(content, str):
        return [TextBlock(content)]
    return [
        TextBlock(block.text) if isinstance(block, Text) else ImageBlock(block.data, block.media_type)
        for block in content
    ]


def spec(tool: Tool) -> dict[str, Any]:
    """Returns a tool as the standard lists it, without a schema if it has no parameters."""
    schema = tool.parameters if tool.parameters.get("properties") else None
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def task(one: Task[Any], split: str, index: int) -> dict[str, Any]:
    """Returns a task as agents may read it: its names and its prompt, never its truth."""
    return {"id": one.id, "split": split, "index": index, "prompt": plain(one.prompt), "tags": one.tags or None}


def listed(env: Environment[Any]) -> dict[str, Any]:
    """Returns the tools of an environment, and last the tool `answer`."""
    spoken = {"name": answer_tool(env), "description": ANSWER_DESCRIPTION}
    return {
        "tools": [*map(spec, agent_tools(env)), {**spoken, "input_schema": ANSWER_SCHEMA}],
        "terminal_tool": {**spoken, "arg": ANSWER_ARGUMENT},
        "supports_score_group": False,
        "message_block_types": ["text", "image"],
    }
