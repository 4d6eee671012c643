"""Our words in the protocol's: tools, contents, prompts, answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mcp_types as types

from quintain.environment import Environment
from quintain.serve import sdk
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.views import (
    ANSWER_DESCRIPTION,
    ANSWER_SCHEMA,
    FAILURE,
    PREFIX,
    REWARDS,
    STATE_DIGEST,
    WITHHELD,
    Answer,
    answer_tool,
)
from quintain.trace import Message, plain

PROMPT = types.Prompt(name="task", description="What is to be done in this episode.")
"""The one prompt that an episode has."""


def spoken_tool(env: Environment[Any]) -> types.Tool:
    """The tool by which an agent says something without calling another."""
    return types.Tool(name=answer_tool(env), description=ANSWER_DESCRIPTION, input_schema=ANSWER_SCHEMA)


def result(answer: Answer) -> types.CallToolResult:
    """What a call led to; the score stands in the metadata, which no agent shows to its model."""
    meta = {**_bare(answer.meta), f"{PREFIX}finished": answer.finished, f"{PREFIX}reward": answer.reward}
    return types.CallToolResult(content=sdk.blocks(answer.content), is_error=answer.is_error, _meta=meta)


def refusal(words: str, live: Live) -> types.CallToolResult:
    """Why nothing was done."""
    return types.CallToolResult(content=sdk.blocks(words), is_error=True, _meta=unpaid(live))


def unpaid(live: Live) -> dict[str, Any]:
    """What is told about an episode, without the score: that was told by the call that ended it."""
    return {**_bare(live.meta), f"{PREFIX}reward": None}


def _bare(meta: dict[str, Any]) -> dict[str, Any]:
    """The metadata as for an agent's key, whosever the episode is: its address is given to agents' programs."""
    bare = dict(meta)
    bare.pop(STATE_DIGEST, None)
    if FAILURE in meta:
        bare[FAILURE] = {**meta[FAILURE], "message": WITHHELD}
    if (rewards := bare.pop(REWARDS, None)) and meta.get(f"{PREFIX}finished"):
        bare[REWARDS] = [{name: value for name, value in one.items() if name != "reason"} for one in rewards]
    return bare


def prompt(messages: Iterable[Message]) -> types.GetPromptResult:
    """What was said so far, to the agent and by it; the protocol has no system messages."""
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
    """What was said to the agent, in one text."""
    return "\n\n".join(plain(one.content) for one in messages if one.role in ("system", "user") and one.content)
