"""Server side of OpenAI's responses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from quintain.trace import Message, Reply, ToolCall

from . import api
from .api import ApiRequest, Part, Refusal


class _ItemPart(Part):
    types = ("text", "input_text", "output_text", "refusal", "input_image")


class _Item(msgspec.Struct):
    type: str = "message"
    role: str = ""
    content: str | list[_ItemPart] | None = None
    call_id: str = ""
    namespace: str | None = None
    name: str = ""
    arguments: str = ""
    output: str | list[_ItemPart] = ""
    summary: list[_ItemPart] = []


class _ResponsesTool(msgspec.Struct):
    type: str
    name: str = ""
    description: str | None = None
    parameters: dict[str, Any] | None = None
    tools: list[_ResponsesTool] = []


class _ResponsesChoice(msgspec.Struct):
    type: Literal["function"]
    name: str


class _ResponsesBody(msgspec.Struct):
    input: str | list[_Item]
    model: str = ""
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[_ResponsesTool] | None = None
    tool_choice: Literal["auto", "none", "required"] | _ResponsesChoice | None = None
    stream: bool | None = None
    max_output_tokens: api.Longest | None = None
    text: dict[str, Any] | None = None
    include: list[str] | None = None
    top_logprobs: int | None = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None


def read(data: bytes) -> ApiRequest:
    """Returns a request of `/v1/responses`."""
    request = api.decoded(data, _ResponsesBody)
    form = (request.text or {}).get("format")
    probs = request.top_logprobs or "message.output_text.logprobs" in (request.include or ())
    stored = request.conversation is not None or request.prompt is not None
    api.refuse(
        (form not in (None, {}, {"type": "text"}), "text.format", api.CONFIGURED),
        (probs, "logprobs", "those of a reply are in the record"),
        (request.background, "background", "a reply is waited for"),
        (stored, "conversation and prompt", "nothing is stored but the responses of this episode"),
    )
    if not request.input and request.previous_response_id is None:
        raise Refusal("the input is empty")
    choice, given = request.tool_choice, request.input
    tools = [] if choice == "none" else request.tools or []
    return ApiRequest(
        model=request.model,
        messages=tuple([Message("user", given)] if isinstance(given, str) else _messages(given)),
        instructions=request.instructions or "",
        tools=tuple(offered for tool in tools for offered in _offered(tool)),
        stream=bool(request.stream),
        max_tokens=request.max_output_tokens,
        after=request.previous_response_id,
        tool_choice=choice.name if isinstance(choice, _ResponsesChoice) else "*" if choice == "required" else "",
    )


def _offered(tool: _ResponsesTool, space: str = "") -> Iterator[api.Offered]:
    if tool.type in {"function", "namespace"} and not tool.name:
        raise Refusal(f"a {tool.type} needs a name")
    if tool.type == "function":
        yield api.Offered(_spaced(space, tool.name), tool.description, tool.parameters, space)
    elif tool.type == "namespace" and not space:
        for one in tool.tools:
            yield from _offered(one, tool.name)


def _spaced(space: str | None, name: str) -> str:
    """Returns a name in its namespace as a name that any model can call."""
    return f"{space.rstrip('_')}__{name}" if space else name


def _messages(items: Sequence[_Item]) -> Iterator[Message]:
    """Yields messages; thoughts, text and calls of one reply are several items."""
    own = {("reasoning", ""), ("function_call", ""), ("message", "assistant")}
    for said, group in itertools.groupby(
        items, lambda one: (one.type, one.role if one.type == "message" else "") in own
    ):
        run = list(group)
        yield from _assistants(run) if said else map(_message, run)


def _assistants(items: Sequence[_Item]) -> Iterator[Message]:
    """Yields the replies in a run of items; text begins another reply where one has text or calls already."""
    said, thoughts, calls = Message("assistant"), "", list[ToolCall]()
    for item in items:
        if item.type == "reasoning":
            thoughts += "\n".join(part.text for part in item.summary)
        elif item.type == "function_call":
            if not item.call_id or not item.name:
                raise Refusal("a function_call needs a call_id and a name")
            calls.append(ToolCall(item.call_id, _spaced(item.namespace, item.name), item.arguments))
        else:
            if said.content or calls:
                yield msgspec.structs.replace(said, calls=tuple(calls))
                calls = []
            said = Message("assistant", api.content(item.content), reasoning=thoughts)
            thoughts = ""
    yield msgspec.structs.replace(said, calls=tuple(calls), reasoning=said.reasoning or thoughts)


def _message(item: _Item) -> Message:
    if item.type == "function_call_output":
        if not item.call_id:
            raise Refusal("a function_call_output needs the call_id that it answers")
        return Message("tool", api.content(item.output), call_id=item.call_id)
    if item.type != "message":
        raise api.unsupported(f"an item of type {item.type!r}", "there are messages, reasoning, and calls of functions")
    if item.role not in {"system", "developer", "user"}:
        raise Refusal(f"a message has the role system, developer, user or assistant, not {item.role!r}")
    return Message("user" if item.role == "user" else "system", api.content(item.content))


def whole(asked: ApiRequest, reply: Reply, name: str) -> dict[str, Any]:
    """Returns a reply as a `response`."""
    cut, prompt, completion = reply.finish_reason == "length", reply.usage.prompt, reply.usage.completion
    usage = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}
    usage_details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    unset = dict.fromkeys(("error", "instructions", "temperature", "top_p"))
    return unset | {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": 0,  # Clients require it, and do not read it.
        "metadata": {},
        "model": asked.model,
        "parallel_tool_calls": True,
        "previous_response_id": asked.after,
        "tool_choice": "auto",
        "tools": [],
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": list(_items(asked, reply.message, name)),
        "usage": usage | usage_details,
    }


def events(asked: ApiRequest, reply: Reply, name: str) -> Iterator[bytes]:
    """Yields the events from `response.created` to `response.completed`."""
    ended = whole(asked, reply, name)
    empty: dict[str, Any] = {"status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    for number, (kind, fields) in enumerate(_sequence(ended | empty, ended)):
        yield api.frame({"type": kind, "sequence_number": number} | fields, kind)


def _sequence(opened: dict[str, Any], ended: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "response.created", {"response": opened}
    yield "response.in_progress", {"response": opened}
    for number, item in enumerate(ended["output"]):
        status = {"status": "in_progress"} if "status" in item else {}
        field, *_ = _FIELDS[item["type"]]
        begun = item | status | {field: "" if field == "arguments" else []}
        yield "response.output_item.added", {"output_index": number, "item": begun}
        for kind, fields in _grown(item):
            yield f"response.{kind}", {"output_index": number, "item_id": item["id"]} | fields
        yield "response.output_item.done", {"output_index": number, "item": item}
    yield f"response.{ended['status']}", {"response": ended}


_FIELDS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "function_call": ("arguments", "", "function_call_arguments", {}),
    "message": ("content", "content_part", "output_text", {"logprobs": []}),
    "reasoning": ("summary", "reasoning_summary_part", "reasoning_summary_text", {}),
}
"""By an item's type: the field that events fill, the events of its part and of its text, and a constant of these."""


def _grown(item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the events that fill one item, piece by piece."""
    field, part_event, text_event, more = _FIELDS[item["type"]]
    if field == "arguments":
        for text in api.pieces(item[field]):
            yield f"{text_event}.delta", {"delta": text}
        yield f"{text_event}.done", {"arguments": item[field], "name": item["name"]}
        return
    (part,) = item[field]
    place = {f"{field}_index": 0}
    yield f"{part_event}.added", place | {"part": part | {"text": ""}}
    for text in api.pieces(part["text"]):
        yield f"{text_event}.delta", place | {"delta": text} | more
    yield f"{text_event}.done", place | {"text": part["text"]} | more
    yield f"{part_event}.done", place | {"part": part}


def _items(asked: ApiRequest, said: Message, name: str) -> Iterator[dict[str, Any]]:
    spaces = {one.name: one.space for one in asked.tools}
    if said.reasoning:
        summary = [{"type": "summary_text", "text": said.reasoning}]
        yield {"type": "reasoning", "id": f"rs_{name}", "summary": summary}
    if said.text or not said.calls:
        part: dict[str, Any] = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
        yield {"type": "message", "id": f"msg_{name}", "status": "completed", "role": "assistant", "content": [part]}
    for number, call in enumerate(said.calls):
        called = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        if space := spaces.get(call.name):
            called |= {"namespace": space, "name": call.name.removeprefix(_spaced(space, ""))}
        yield {"type": "function_call", "id": f"fc_{name}_{number}", "status": "completed"} | called


error = api.openai_error


def broken(refusal: Refusal) -> bytes:
    """Returns the error as a frame."""
    document = {"type": "error", "code": refusal.code, "message": str(refusal), "param": None, "sequence_number": 0}
    return api.frame(document, "error")
