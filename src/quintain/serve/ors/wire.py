"""What the Open Reward Standard says, as types; unknown fields are refused, as its own server does."""

from __future__ import annotations

from typing import Any

import msgspec

from quintain.environment import Environment
from quintain.serve.episodes.views import ANSWER_ARGUMENT, ANSWER_DESCRIPTION, ANSWER_SCHEMA, answer_tool
from quintain.task import Task
from quintain.tools import Tool
from quintain.trace import Content, Message, Text


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


class TextBlock(msgspec.Struct, frozen=True):
    """Words."""

    text: str
    detail: None = None
    type: str = "text"


class ImageBlock(msgspec.Struct, frozen=True, rename="camel"):
    """A picture; its bytes become base64 on the wire."""

    data: bytes
    mime_type: str
    detail: None = None
    type: str = "image"


class Output(msgspec.Struct, frozen=True):
    """What a tool said. All fields are always there, for clients index them."""

    blocks: list[TextBlock | ImageBlock]
    metadata: dict[str, Any]
    reward: float | None
    finished: bool


class Done(msgspec.Struct, frozen=True):
    """A call that came to its tool."""

    output: Output
    ok: bool = True


class Failed(msgspec.Struct, frozen=True):
    """A call that did not."""

    error: str
    reason: str
    ok: bool = False


def blocks(content: Content) -> list[TextBlock | ImageBlock]:
    """What an actor reads, as the standard's blocks."""
    if isinstance(content, str):
        return [TextBlock(content)]
    return [
        TextBlock(block.text) if isinstance(block, Text) else ImageBlock(block.data, block.media_type)
        for block in content
    ]


def message(one: Message) -> dict[str, Any]:
    """A message of the agent's context before its first reply."""
    return {"role": one.role, "blocks": blocks(one.content), "detail": None}


def spec(tool: Tool) -> dict[str, Any]:
    """A tool as the standard lists it: no schema at all where it takes nothing."""
    schema = tool.parameters if tool.parameters.get("properties") else None
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def task(one: Task[Any], split: str, index: int) -> dict[str, Any]:
    """A task as the outside may know it: what names it, never its truth."""
    return {"id": one.id, "split": split, "index": index, "tags": one.tags or None}


def listed(env: Environment[Any]) -> dict[str, Any]:
    """The tools of an environment, and the one by which an agent that can only call tools says something."""
    spoken = {"name": answer_tool(env), "description": ANSWER_DESCRIPTION}
    return {
        "tools": [*map(spec, env.tools_of("agent")), {**spoken, "input_schema": ANSWER_SCHEMA}],
        "terminal_tool": {**spoken, "arg": ANSWER_ARGUMENT},
        "supports_score_group": False,
        "message_block_types": ["text", "image"],
    }
