"""Episodes in ATIF, Harbor's Agent Trajectory Interchange Format: one document an episode.

The steps of the agent's thread are those of the document; other threads, such as a simulated user's, are subagents.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain import __version__
from quintain.trace import Content, Message, Reward, Text, ToolCall, Trace, Turn

VERSION = "ATIF-v1.7"
_PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def trajectory(trace: Trace) -> dict[str, Any]:
    """Returns the document of an episode, as JSON types."""
    others = sorted({turn.thread for turn in trace.turns} - {0})
    found = _document(trace, 0, f"{trace.task}/{trace.member}.{trace.attempt}")
    if others:
        found["subagent_trajectories"] = [_document(trace, one, f"thread-{one}") for one in others]
    facts: dict[str, Any] = {
        name: getattr(trace, name) for name in ("environment", "fingerprint", "task", "tags", "seed")
    }
    facts |= {"member": trace.member, "attempt": trace.attempt, "reason": trace.reason, "reward": trace.score}
    facts |= {"end": trace.end and trace.end.value, "rewards": _rewards(trace.rewards)}
    if trace.failure is not None:
        facts["failure"] = msgspec.to_builtins(trace.failure)
    return found | {"extra": facts}


def _document(trace: Trace, thread: int, name: str) -> dict[str, Any]:
    turns = [turn for turn in trace.turns if turn.thread == thread]
    steps = [step for turn in turns for step in _steps(turn)]
    if not steps:  # A document has at least one step.
        steps = [{"source": "system", "message": f"The episode has no turn: {trace.reason}"}]
    return {
        "schema_version": VERSION,
        "session_id": f"{trace.task}/{trace.member}.{trace.attempt}",
        "trajectory_id": name,
        "agent": {"name": "quintain", "version": __version__, "model_name": trace.agent or "unknown"},
        "steps": [{"step_id": n} | step for n, step in enumerate(steps, 1)],
        "final_metrics": {
            "total_prompt_tokens": sum(turn.reply.usage.prompt for turn in turns),
            "total_completion_tokens": sum(turn.reply.usage.completion for turn in turns),
            "total_steps": len(steps),
        },
    }


def _steps(turn: Turn) -> Iterator[dict[str, Any]]:
    """Yields what the context had beyond the turn before, and the reply with the results of its calls."""
    for message in turn.added:
        if message.role == "tool":
            result = {"content": _content(message.content)}
            yield {"source": "system", "message": "", "observation": {"results": [result]}}
        elif message.role == "assistant":
            yield {"source": "agent", "is_copied_context": True} | _reply(message)
        else:
            yield {"source": message.role, "message": _content(message.content)}
    step: dict[str, Any] = {"source": "agent"} | _reply(turn.reply.message)
    if turn.steps:
        step["observation"] = {
            "results": [
                {"source_call_id": one.call.id, "content": _content(one.observation)}
                | ({"extra": {"is_error": True}} if one.is_error else {})
                for one in turn.steps
            ]
        }
    usage, tokens = turn.reply.usage, turn.reply.tokens
    metrics: dict[str, Any] = {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion}
    if tokens is not None:
        metrics |= {"completion_token_ids": tokens.completion} | (
            {"logprobs": tokens.logprobs} if tokens.logprobs else {}
        )
    step["metrics"] = metrics
    step["extra"] = {"turn": turn.index, "state_digest": turn.state_digest, "rewards": _rewards(turn.rewards)}
    yield step


def _reply(message: Message) -> dict[str, Any]:
    said: dict[str, Any] = {"message": _content(message.content)}
    if message.reasoning:
        said["reasoning_content"] = message.reasoning
    if message.calls:
        said["tool_calls"] = list(map(_call, message.calls))
    return said


def _call(call: ToolCall) -> dict[str, Any]:
    found: dict[str, Any] = {"tool_call_id": call.id, "function_name": call.name}
    try:
        return found | {"arguments": msgspec.json.decode(call.arguments or "{}", type=dict[str, Any])}
    except (msgspec.DecodeError, RecursionError):
        return found | {"arguments": {}, "extra": {"not_an_object": call.arguments}}


def _content(content: Content) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    parts = list[dict[str, Any]]()
    for one in content:
        if isinstance(one, Text):
            parts.append({"type": "text", "text": one.text})
        elif one.media_type in _PICTURES:
            url = f"data:{one.media_type};base64,{base64.b64encode(one.data).decode()}"
            parts.append({"type": "image", "source": {"media_type": one.media_type, "path": url}})
        else:
            parts.append({"type": "text", "text": f"[{one.media_type}]"})
    return parts


def _rewards(rewards: Sequence[Reward]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.to_builtins(rewards)
    return found
