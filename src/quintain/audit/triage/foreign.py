"""Episodes of other tools: lists of OpenAI messages, rows of verifiers, samples of Inspect.

Only fields that an episode needs are read. A field of an unexpected type makes the record unreadable, with the field's
name, because half an episode would be judged as if it were whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from quintain.errors import TraceError

from .episode_log import Call, EpisodeLog, Form, RecordedFailure, Utterance, parsed, refuses
from .plain import loaded, mapping, sequence

Row = dict[str, Any]

_REWARDS = ("reward", "score")
_TASKS = ("task_id", "example_id", "sample_id", "id", "task")
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "correct": 1.0, "incorrect": 0.0}
"""Inspect's grades: correct, incorrect, partial, no answer."""
_LETTERS = {"S": "tool", "V": "reward rubric judge scor verif grad", "T": "dataset task"}
"""Words in the name of a foreign error, by the component that they mean."""


def form_of(row: Row) -> Form | None:
    """Returns the form of a JSON object's record, or None if it is not an episode."""
    if isinstance(row.get("messages"), list):
        return "inspect" if "scores" in row or isinstance(row.get("output"), dict) else "messages"
    return "rollout" if "prompt" in row and "completion" in row else None


def of_row(row: Row, *, place: str, index: int) -> EpisodeLog:
    """Returns an episode from a foreign row.

    Raises:
        TraceError: The row's form is unknown, or a field has another type than its form says.
    """
    form = form_of(row)
    if form is None:
        raise TraceError(f"no form that is known; its keys are {', '.join(sorted(row)[:8]) or 'none'}")
    if form == "rollout":
        asked, answered = _messages(row["prompt"], "user"), _messages(row["completion"], "assistant")
        messages = asked + answered
    else:
        messages = _messages(row["messages"], "user")
    said, calls, prompt = _conversation(messages)
    found = next((_text(row[name]) for name in _TASKS if row.get(name) is not None), "")
    reward, components = _inspect_scores(row) if form == "inspect" else _reward(row)
    truncated = bool(row.get("is_truncated")) or row.get("limit") is not None
    task = found or prompt[:80]
    return EpisodeLog(
        place=place,
        index=index,
        form=form,
        task=task,
        group=f"{task} {prompt}",
        member=_count(row.get("epoch", row.get("member", row.get("rollout", 0)))),
        prompt=prompt,
        said=said,
        calls=calls,
        reward=reward,
        has_reward=form == "inspect" or any(name in row for name in _REWARDS),
        components=components,
        end="failed" if row.get("error") else "truncated" if truncated else "",
        reason=_text(row.get("stop_condition") or row.get("limit") or ""),
        broken=_broken(row.get("error"), len(said)),
        tools=_tools(row),
        limit=_count(row["max_turns"]) if isinstance(row.get("max_turns"), int) else None,
        gold=row.get("target", row.get("answer")),
    )


def _messages(value: Any, role: str) -> list[Row]:
    """Returns a conversation; a bare text becomes one message of `role`."""
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    items = sequence(value)
    if items is None:
        raise TraceError(f"a conversation is a list of messages or a text, got {type(value).__name__}")
    messages = [mapping(item) or {} for item in items]
    for n, message in enumerate(messages):
        if not isinstance(message.get("role"), str):
            raise TraceError(f"message {n} has no role: {_text(items[n])[:80]}")
    return messages


def _conversation(messages: list[Row]) -> tuple[tuple[Utterance, ...], tuple[Call, ...], str]:
    """Returns replies, calls with their answers, and the prompt, which is everything before the first reply."""
    said: list[Utterance] = []
    calls: list[Call] = []
    heard: list[str] = []
    prompt: list[str] = []
    waiting: dict[str, int] = {}
    for message in messages:
        role, text = message["role"], _content(message.get("content"))
        if role in ("tool", "function"):
            _answer(calls, waiting, message, text=text)
        elif role == "assistant" or (role == "user" and said):
            asked = list(_calls(message, len(said)))
            waiting |= {identity: len(calls) + n for n, (identity, _) in enumerate(asked)}
            calls += [call for _, call in asked]
            said.append(_said(message, text, turn=len(said), heard=tuple(heard), calls=len(asked)))
            heard = []
        else:
            heard.append(text)
            prompt += [] if said else [text]
    return tuple(said), tuple(calls), "\n".join(prompt)


def _said(message: Row, text: str, **fields: Any) -> Utterance:
    reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
    finish = message.get("finish_reason") or message.get("stop_reason") or ""
    role = "agent" if message["role"] == "assistant" else "user"
    return Utterance(role=role, text=text, reasoning=_text(reasoning), finish=_text(finish), **fields)


def _calls(message: Row, turn: int) -> Iterator[tuple[str, Call]]:
    asked = sequence(message.get("tool_calls") or [])
    if asked is None:
        raise TraceError(f"tool_calls is a list, got {_text(message['tool_calls'])[:80]}")
    for n, each in enumerate(asked):
        call = mapping(loaded(each) if isinstance(each, str) else each)
        if call is None:
            raise TraceError(f"a tool call is an object, got {_text(each)[:80]}")
        function = call.get("function", call)
        named = mapping(function) or {"name": function, **call}
        given = named.get("arguments", {})
        raw = given if isinstance(given, str) else json.dumps(given)
        arguments = parsed(given) if isinstance(given, str) else mapping(given)
        name, identity = _text(named.get("name") or ""), _text(call.get("id") or f"{turn}/{n}")
        yield identity, Call(turn=turn, step=n, name=name, arguments=arguments, raw=raw, answered=False)


def _answer(calls: list[Call], waiting: dict[str, int], message: Row, *, text: str) -> None:
    """Assigns an answer to the call that it names, or to the first unanswered call."""
    identity = message.get("tool_call_id")
    fallback = next((n for n, call in enumerate(calls) if not call.answered), None)
    place = waiting.get(_text(identity)) if identity is not None else fallback
    if place is None:
        raise TraceError(f"an answer to an unknown call: {_text(identity)}")
    error = message.get("error")
    marked = message.get("is_error", error)
    said = text or _text((mapping(error) or {}).get("message") or error or "")
    calls[place] = msgspec.structs.replace(
        calls[place], answered=True, observation=said, is_error=refuses(said) if marked is None else bool(marked)
    )


def _content(value: Any) -> str:
    blocks = sequence(value)
    if blocks is not None:
        return "\n".join(_text((mapping(one) or {"text": one}).get("text", "")) for one in blocks)
    return "" if value is None else _text(value)


def _reward(row: Row) -> tuple[float | None, dict[str, float | None]]:
    value = next((row[name] for name in _REWARDS if name in row), None)
    return number(value), {name: number(one) for name, one in (mapping(row.get("metrics")) or {}).items()}


def _inspect_scores(row: Row) -> tuple[float | None, dict[str, float | None]]:
    """Returns the mean of the scorers' values, and each value."""
    scores = mapping(row.get("scores") or {})
    if scores is None:
        raise TraceError(f"scores is an object, got {_text(row['scores'])[:80]}")
    values = {name: number((mapping(one) or {"value": one}).get("value")) for name, one in scores.items()}
    spoken = [value for value in values.values() if value is not None]
    return (sum(spoken) / len(spoken) if spoken else None), values


def number(value: Any) -> float | None:
    """Returns a score as a number, NaN included, or None."""
    if isinstance(value, str):
        return _GRADES[value] if value in _GRADES else _float(value)
    return float(value) if isinstance(value, int | float) else None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _broken(error: Any, turn: int) -> RecordedFailure | None:
    if not error:
        return None
    fields = mapping(error) or {"message": error}
    name = _text(fields.get("error") or fields.get("type") or "")
    message = _text(fields.get("message") or fields.get("error_chain_str") or error)
    said = (name or message).lower()
    part = next((letter for letter, words in _LETTERS.items() if any(word in said for word in words.split())), "")
    return RecordedFailure(part=part, type=name, message=message[:2000], turn=turn)


def _tools(row: Row) -> dict[str, dict[str, Any]] | None:
    """Returns the schemas of the advertised tools by name; None if the row has none."""
    inside = mapping(row.get("info")) or {}
    places = [one[name] for one in (row, inside) for name in ("tools", "tool_defs", "oai_tools") if one.get(name)]
    found = places[0] if places else None
    listed = sequence(loaded(found) if isinstance(found, str) else found)
    if listed is None:
        return None
    tools: dict[str, dict[str, Any]] = {}
    for each in listed:
        outer = mapping(loaded(each) if isinstance(each, str) else each) or {}
        tool = mapping(outer.get("function")) or outer
        schemas = [mapping(tool.get(name)) for name in ("parameters", "inputSchema", "input_schema")]
        known = [schema for schema in schemas if schema is not None]
        tools[_text(tool.get("name") or "")] = known[0] if known else {}
    return tools


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=repr)
