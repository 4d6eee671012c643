"""Converts tools, contents, prompts and answers to the protocol's types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mcp_types as types

from quintain.environment import Environment
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.views import (
    ANSWER_DESCRIPTION,
    ANSWER_SCHEMA,
    FAILURE,
    PREFIX,
    REWARDS,
    STATE_DIGEST,
    WITHHELD,
    CallAnswer,
    answer_tool,
)
from quintain.serve.http import mcp_sdk as sdk
from quintain.trace import Message, plain

PROMPT = types.Prompt(name="task", description="What is to be done in this episode.")
"""The one prompt that an episode has."""


def spoken_tool(env: Environment[Any]) -> types.Tool:
    """Returns the tool by which an agent answers without calling another."""
    return types.Tool(name=answer_tool(env), description=ANSWER_DESCRIPTION, input_schema=ANSWER_SCHEMA)


def result(answer: CallAnswer) -> types.CallToolResult:
    """Returns the result of a call; the score stands in the metadata, which agents do not show to their models."""
    meta = {**_bare(answer.meta), f"{PREFIX}finished": answer.finished, f"{PREFIX}reward": answer.reward}
    data = answer.data or None
    content = sdk.blocks(answer.content)
    return types.CallToolResult(content=content, structured_content=data, is_error=answer.is_error, _meta=meta)


def refusal(words: str, live: Live) -> types.CallToolResult:
    """Returns the result of a call that was not made."""
    return types.CallToolResult(content=sdk.blocks(words), is_error=True, _meta=unpaid(live))


def unpaid(live: Live) -> dict[str, Any]:
    """Returns the metadata of an episode without the score, which only the call that ended it carries."""
    return {**_bare(live.meta), f"{PREFIX}reward": None}


def _bare(meta: dict[str, Any]) -> dict[str, Any]:
    """Returns the metadata as an agent may read it, because the address is given to agents' programs."""
    bare = dict(meta)
    bare.pop(STATE_DIGEST, None)
    if FAILURE in meta:
        bare[FAILURE] = {**meta[FAILURE], "message": WITHHELD}
    if (rewards := bare.pop(REWARDS, None)) and meta.get(f"{PREFIX}finished"):
        bare[REWARDS] = [{name: value for name, value in one.items() if name != "reason"} for one in rewards]
    return bare


def prompt(messages: Iterable[Message]) -> types.GetPromptResult:
    """Returns the messages to and from the agent so far; the protocol has no system messages."""
    return types.GetPromptResult(
        description=PROMPT.description,
        messages=[
            types.PromptMessage(role="assistant" if message.role == "assistant" else "user", content=block)
            for message in messages
            if message.role != "tool" and message.content
            for block in sdk.blocks(message.content)
        ],
    )


def instructions(messages: Iterable[Message]) -> str:
    """Returns all messages to the agent as one text."""
    return "\n\n".join(plain(one.content) for one in messages if one.role in ("system", "user") and one.content)
