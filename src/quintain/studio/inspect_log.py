"""Episodes as a log of Inspect, in its JSON form: one sample an episode, with the messages of the agent's thread."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from quintain import codec
from quintain.trace import Content, Message, Text, Trace, Turn

VERSION = 2
"""Version of Inspect's format."""


def document(traces: Iterable[Trace], *, name: str, created: float) -> Iterator[str]:
    """Yields the text of a log: its head, a part for each episode, and its end.

    Args:
        traces: The episodes.
        name: Name of the run.
        created: Unix seconds of the run.
    """
    epochs: dict[str, set[int]] = {}
    for n, trace in enumerate(traces):
        if n == 0:
            yield _head(trace, name, created)
        used = epochs.setdefault(trace.task, set())
        epoch = next(one for one in range(trace.member + 1, trace.member + 2 + len(used)) if one not in used)
        used.add(epoch)
        yield ("," if n else "") + codec.json(_sample(trace, epoch)).decode() + "\n"
    yield "]}\n"


def _head(trace: Trace, name: str, created: float) -> str:
    eval_spec = {
        "created": datetime.fromtimestamp(created, UTC).isoformat(timespec="seconds"),
        "task": trace.environment,
        "run_id": name,
        "dataset": {"name": trace.environment},
        "model": trace.agent or "unknown",
        "config": {},
        "metadata": {"fingerprint": trace.fingerprint, "split": trace.split},
    }
    head = codec.json({"version": VERSION, "status": "success", "eval": eval_spec, "plan": {}, "stats": {}})
    return head.decode().removesuffix("}") + ',"samples":[\n'


def _sample(trace: Trace, epoch: int) -> dict[str, Any]:
    turns = [turn for turn in trace.turns if turn.thread == 0]
    messages = [said for turn in turns for said in _messages(turn)]
    prompt = [said["content"] for said in messages[:1]]
    usage = {
        "input_tokens": sum(turn.reply.usage.prompt for turn in turns),
        "output_tokens": sum(turn.reply.usage.completion for turn in turns),
    }
    usage["total_tokens"] = sum(usage.values())
    judged = [one for one in trace.rewards if one.value is not None and one.level.value in {"trajectory", "group"}]
    scores: dict[str, dict[str, Any]] = {one.name: {"value": one.value, "explanation": one.reason} for one in judged}
    if trace.score is not None:
        scores = {"score": {"value": trace.score}} | scores
    facts: dict[str, Any] = {
        name: getattr(trace, name) for name in ("member", "attempt", "seed", "tags", "reason", "score")
    }
    facts |= {"criteria": [one.name for one in judged], "end": trace.end}
    sample: dict[str, Any] = {
        "id": trace.task,
        "epoch": epoch,
        "input": prompt[0] if prompt and isinstance(prompt[0], str) else "",
        "target": "",
        "messages": messages,
        "scores": scores,
        "metadata": {"quintain": facts},
        "model_usage": {trace.agent or "unknown": usage},
    }
    if turns:
        reply = turns[-1].reply
        choice = {
            "message": _said(reply.message),
            "stop_reason": "max_tokens" if reply.finish_reason == "length" else "stop",
        }
        sample["output"] = {"model": trace.agent, "choices": [choice], "usage": usage}
    if trace.failure is not None:
        words = f"{trace.failure.kind}: {trace.failure.message}"
        sample["error"] = {"message": words, "traceback": "", "traceback_ansi": ""}
    return sample


def _messages(turn: Turn) -> Iterator[dict[str, Any]]:
    yield from map(_said, turn.added)
    yield _said(turn.reply.message)
    for step in turn.steps:
        said = _said(Message("tool", step.observation, call_id=step.call.id)) | {"function": step.call.name}
        if step.is_error:
            said["error"] = {"type": "unknown", "message": Message("tool", step.observation).text}
        yield said


def _said(message: Message) -> dict[str, Any]:
    """Returns a message in Inspect's form."""
    said: dict[str, Any] = {"role": message.role, "content": _content(message.content)}
    if message.reasoning:
        reasoning = {"type": "reasoning", "reasoning": message.reasoning}
        said["content"] = [reasoning, {"type": "text", "text": message.text}]
    if message.calls:
        said["tool_calls"] = [_call(one.id, one.name, one.arguments) for one in message.calls]
    if message.call_id is not None:
        said["tool_call_id"] = message.call_id
    return said


def _content(content: Content) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    return [
        {"type": "text", "text": one.text}
        if isinstance(one, Text)
        else {"type": "image", "image": f"data:{one.media_type};base64,{base64.b64encode(one.data).decode()}"}
        for one in content
    ]


def _call(name: str, function: str, arguments: str) -> dict[str, Any]:
    try:
        given, wrong = msgspec.json.decode(arguments or "{}", type=dict[str, Any]), None
    except (msgspec.DecodeError, RecursionError):
        given, wrong = {}, f"not a JSON object: {arguments}"
    return {"id": name, "function": function, "arguments": given, "parse_error": wrong, "type": "function"}
