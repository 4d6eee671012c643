"""Episodes as OpenTelemetry spans, by the semantic conventions for generative AI, in the JSON form of OTLP.

`invoke_agent` is the root, with one `chat` a reply and one `execute_tool` a call below it. A reward is an event
`gen_ai.evaluation.result` of the span that it judges. What the conventions lack is an attribute `quintain.*`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from quintain.record import Key, read_traces
from quintain.trace import End, Message, Reward, Step, Trace, Turn

_INTERNAL, _CLIENT = 1, 3
"""Kinds of spans."""
_ERROR = 2
_NANO = 1_000_000_000

Span = dict[str, Any]


class Times(msgspec.Struct):
    """Line of `timings.jsonl`.

    Attributes:
        began: Unix seconds; None in the records of older versions.
        turns: Seconds of each turn for the model, its tools and the verifier; empty in those.
    """

    task: str
    member: int
    attempt: int
    model_s: float = 0.0
    tool_s: float = 0.0
    total_s: float = 0.0
    began: float | None = None
    turns: list[tuple[float, float, float]] = []


def requests(run: Path) -> Iterator[dict[str, Any]]:
    """Yields an OTLP request for each episode of a run folder.

    Raises:
        TraceError: A trace is damaged.
    """
    times = dict(_times(run / "timings.jsonl"))
    start = (run / "traces.jsonl").stat().st_mtime  # For records that do not say when they began.
    for trace in read_traces(run):
        key = (trace.task, trace.member, trace.attempt)
        spans = _Spans(trace, times.get(key) or Times(*key), start, run=run.absolute().name).all()
        service = _attributes({"service.name": "quintain", "quintain.environment": trace.environment})
        scope = {"scope": {"name": "quintain"}, "spans": spans}
        yield {"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [scope]}]}


def _times(file: Path) -> Iterator[tuple[Key, Times]]:
    for line in file.read_bytes().splitlines() if file.is_file() else ():
        try:
            one = msgspec.json.decode(line, type=Times)
        except msgspec.DecodeError:  # The last line of a run that was killed.
            continue
        yield (one.task, one.member, one.attempt), one


class _Spans:
    """Spans of one episode, one after the other in time."""

    def __init__(self, trace: Trace, times: Times, start: float, *, run: str) -> None:
        self._trace, self._times = trace, times
        names = json.dumps([run, times.began, trace.task, trace.member, trace.attempt])
        self._id = hashlib.blake2b(names.encode(), digest_size=16).hexdigest()
        self._known = 0
        self._results = dict[int, list[Message]]()  # Of the last turn of each thread, which its next turn begins with.
        self._now = round((start if times.began is None else times.began) * _NANO)
        self._steps = max(1, sum(len(turn.steps) for turn in trace.turns))

    def all(self) -> list[Span]:
        trace, began = self._trace, self._now
        root = self._span(f"invoke_agent {trace.agent or trace.environment}", "", _INTERNAL)
        spans = [root]
        for turn in trace.turns:
            spans += self._turn(turn, root["spanId"])
        whole = began + round(self._times.total_s * _NANO)
        first, last = trace.turns[:1], trace.turns[-1:]
        facts = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": trace.agent or trace.environment,
            "gen_ai.conversation.id": f"{trace.task}/{trace.member}.{trace.attempt}",
            "gen_ai.input.messages": _messages(message for turn in first for message in turn.added),
            "gen_ai.output.messages": _messages((turn.reply.message for turn in last), "stop"),
            "quintain.task": trace.task,
            "quintain.member": trace.member,
            "quintain.attempt": trace.attempt,
            "quintain.split": trace.split,
            "quintain.score": trace.score,
            "quintain.end": trace.end.value if trace.end else None,
            "quintain.reason": trace.reason,
            "quintain.times": "estimated" if self._times.began is None or not self._times.turns else "measured",
        }
        facts |= {f"quintain.tag.{name}": value for name, value in trace.tags.items()}
        self._close(root, facts, max(whole, self._now), rewards=trace.rewards)
        if trace.end is End.FAILED and trace.failure is not None:
            root["status"] = {"code": _ERROR, "message": f"{trace.failure.kind}: {trace.failure.message}"}
        return spans

    def _turn(self, turn: Turn, parent: str) -> Iterator[Span]:
        trace, known = self._trace, self._times.turns
        spent = known[turn.index] if turn.index < len(known) else None
        model = spent[0] if spent else self._times.model_s / len(trace.turns)
        chat = self._span(f"chat {trace.agent or turn.role}", parent, _CLIENT)
        facts = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": trace.agent,
            "gen_ai.input.messages": _messages([*self._results.get(turn.thread, ()), *turn.added]),
            "gen_ai.output.messages": _messages([turn.reply.message], turn.reply.finish_reason or "stop"),
            "gen_ai.usage.input_tokens": turn.reply.usage.prompt,
            "gen_ai.usage.output_tokens": turn.reply.usage.completion,
            "gen_ai.response.finish_reasons": (turn.reply.finish_reason,) if turn.reply.finish_reason else None,
            "quintain.turn": turn.index,
            "quintain.role": turn.role,
            "quintain.policy_version": turn.reply.policy_version,
        }
        self._results[turn.thread] = [Message("tool", step.observation, call_id=step.call.id) for step in turn.steps]
        of_steps = [[one for one in turn.rewards if one.step == n] for n in range(len(turn.steps))]
        own = [one for one in turn.rewards if one.step is None]
        self._close(chat, facts, self._now + round(model * _NANO), rewards=own)
        yield chat
        for step, rewards in zip(turn.steps, of_steps, strict=True):
            tools = spent[1] / len(turn.steps) if spent else self._times.tool_s / self._steps
            yield self._step(step, parent, round(tools * _NANO), rewards=rewards)

    def _step(self, step: Step, parent: str, nanoseconds: int, *, rewards: Sequence[Reward]) -> Span:
        span = self._span(f"execute_tool {step.call.name}", parent, _INTERNAL)
        observation = step.observation
        facts = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": step.call.name,
            "gen_ai.tool.call.id": step.call.id,
            "gen_ai.tool.call.arguments": step.call.arguments,
            "gen_ai.tool.call.result": observation if isinstance(observation, str) else _json(observation),
            "quintain.fault": step.fault,
        }
        self._close(span, facts, self._now + nanoseconds, rewards=rewards)
        if step.is_error:
            span["status"] = {"code": _ERROR}
        return span

    def _span(self, name: str, parent: str, kind: int) -> Span:
        self._known += 1
        made = hashlib.blake2b(f"{self._id}/{self._known}".encode(), digest_size=8).hexdigest()
        ids = {"traceId": self._id, "spanId": made} | ({"parentSpanId": parent} if parent else {})
        return ids | {"name": name, "kind": kind, "startTimeUnixNano": str(self._now)}

    def _close(self, span: Span, facts: Mapping[str, Any], end: int, *, rewards: Iterable[Reward]) -> None:
        span |= {"endTimeUnixNano": str(end), "attributes": _attributes(facts)}
        if events := [_event(one, end) for one in rewards if one.value is not None]:
            span["events"] = events
        self._now = max(self._now, end)


def _event(reward: Reward, now: int) -> dict[str, Any]:
    facts = {
        "gen_ai.evaluation.name": reward.name,
        "gen_ai.evaluation.score.value": reward.value,
        "gen_ai.evaluation.explanation": reward.reason or None,
        "quintain.level": reward.level.value,
        "quintain.weight": reward.weight,
    }
    return {"name": "gen_ai.evaluation.result", "timeUnixNano": str(now), "attributes": _attributes(facts)}


def _messages(messages: Iterable[Message], finish: str = "") -> str | None:
    """Returns messages in the form of the conventions, as JSON; None without any.

    Messages of a model must say the reason for which they finished: readers drop them otherwise.
    """
    found = list[dict[str, Any]]()
    for one in messages:
        parts: list[dict[str, Any]] = [{"type": "reasoning", "content": one.reasoning}] if one.reasoning else []
        if one.role == "tool":
            parts += [{"type": "tool_call_response", "id": one.call_id, "response": one.text}]
        elif one.text:
            parts += [{"type": "text", "content": one.text}]
        calls = ({"id": call.id, "name": call.name, "arguments": call.arguments} for call in one.calls)
        parts += [{"type": "tool_call"} | call for call in calls]
        found.append({"role": one.role, "parts": parts} | ({"finish_reason": finish} if finish else {}))
    return _json(found) if found else None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in facts.items() if value is not None]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, tuple):
        return {"arrayValue": {"values": [{"stringValue": str(one)} for one in cast(tuple[object, ...], value)]}}
    return {"stringValue": str(value)}
