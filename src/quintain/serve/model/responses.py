"""OpenAI's responses, as a server speaks them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from quintain import codec
from quintain.trace import Block, Content, Message, Reply, Text, ToolCall

from .api import (
    ApiRequest,
    Longest,
    Offered,
    Refusal,
    content,
    converted,
    decoded,
    frame,
    openai_error,
    picture,
    pieces,
    unsupported,
)

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


class _ItemPart(msgspec.Struct):
    type: str
    text: str = ""
    refusal: str = ""
    image_url: str | None = None


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


class _TextFormat(msgspec.Struct):
    type: str = "text"


class _Text(msgspec.Struct):
    format: _TextFormat | None = None


class _ResponsesBody(msgspec.Struct):
    input: str | list[dict[str, Any]]
    model: str = ""
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[_ResponsesTool] | None = None
    tool_choice: Literal["auto", "none", "required"] | _ResponsesChoice | None = None
    stream: bool | None = None
    max_output_tokens: Longest | None = None
    text: _Text | None = None
    include: list[str] | None = None
    top_logprobs: int | None = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None


def read(data: bytes) -> ApiRequest:
    """A request of `/v1/responses`."""
    request = decoded(data, _ResponsesBody)
    _check(request)
    choice = request.tool_choice
    tools = [] if choice == "none" else request.tools or []
    given = request.input
    rest = [Message("user", given)] if isinstance(given, str) else _messages([converted(one, _Item) for one in given])
    return ApiRequest(
        model=request.model,
        messages=tuple(rest),
        instructions=request.instructions or "",
        tools=tuple(offered for tool in tools for offered in _offered(tool)),
        stream=bool(request.stream),
        max_tokens=request.max_output_tokens,
        after=request.previous_response_id,
        tool_choice=choice.name if isinstance(choice, _ResponsesChoice) else "*" if choice == "required" else "",
    )


def _check(request: _ResponsesBody) -> None:
    if request.text is not None and request.text.format is not None and request.text.format.type != "text":
        raise unsupported("text.format", "the model is asked as the environment's configuration says")
    if not request.input and request.previous_response_id is None:
        raise Refusal("the input is empty")
    if request.top_logprobs or "message.output_text.logprobs" in (request.include or ()):
        raise unsupported("logprobs", "those of a reply are in the record")
    if request.background:
        raise unsupported("background", "a reply is waited for")
    if request.conversation is not None or request.prompt is not None:
        raise unsupported("conversation and prompt", "nothing is stored but the responses of this episode")


def _offered(tool: _ResponsesTool, space: str = "") -> Iterator[Offered]:
    if tool.type in {"function", "namespace"} and not tool.name:
        raise Refusal(f"a {tool.type} needs a name")
    if tool.type == "function":
        name = _spaced(space, tool.name)
        yield Offered(name, tool.description or "", tool.parameters or {"type": "object"}, space)
    elif tool.type == "namespace" and not space:
        for one in tool.tools:
            yield from _offered(one, tool.name)


def _spaced(space: str | None, name: str) -> str:
    """A name within its namespace as one that any model can call."""
    return f"{space.rstrip('_')}__{name}" if space else name


def _messages(items: Sequence[_Item]) -> Iterator[Message]:
    """Yields messages; thoughts, text and calls of one reply are several items."""
    for said, group in itertools.groupby(items, _is_said):
        run = list(group)
        yield from _assistants(run) if said else map(_message, run)


def _is_said(item: _Item) -> bool:
    return item.type in {"reasoning", "function_call"} or (item.type == "message" and item.role == "assistant")


def _assistants(items: Sequence[_Item]) -> Iterator[Message]:
    """The replies in a run of items: words begin another one where the one before has words or calls already."""
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
            said = Message("assistant", _content(item.content), reasoning=thoughts)
            thoughts = ""
    yield msgspec.structs.replace(said, calls=tuple(calls), reasoning=said.reasoning or thoughts)


def _message(item: _Item) -> Message:
    if item.type == "function_call_output":
        if not item.call_id:
            raise Refusal("a function_call_output needs the call_id that it answers")
        return Message("tool", _content(item.output), call_id=item.call_id)
    if item.type != "message":
        raise unsupported(f"an item of type {item.type!r}", "there are messages, reasoning, and calls of functions")
    role = _ROLES.get(item.role)
    if role not in {"system", "user"}:
        raise Refusal(f"a message has the role system, developer, user or assistant, not {item.role!r}")
    return Message("system" if role == "system" else "user", _content(item.content))


def _content(parts: str | Sequence[_ItemPart] | None) -> Content:
    return parts or "" if isinstance(parts, str | None) else content([_block(part) for part in parts])


def _block(part: _ItemPart) -> Block:
    if part.type in {"input_text", "output_text", "text", "refusal"}:
        return Text(part.text or part.refusal)
    if part.type == "input_image" and part.image_url is not None:
        return picture(part.image_url)
    raise unsupported(f"content of type {part.type!r}", "there are words and pictures")


def whole(asked: ApiRequest, reply: Reply, name: str) -> dict[str, Any]:
    """Returns a reply as a `response`."""
    cut = reply.finish_reason == "length"
    return _head(asked, name) | {
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": list(_items(reply.message, name, {one.name: one.space for one in asked.tools if one.space})),
        "usage": _usage(reply),
    }


def events(asked: ApiRequest, reply: Reply, name: str) -> Iterator[bytes]:
    """From `response.created` to `response.completed`."""
    ended = whole(asked, reply, name)
    empty: dict[str, Any] = {"status": "in_progress", "output": [], "usage": None}
    opened = _head(asked, name) | empty
    counter = itertools.count()
    for kind, fields in _sequence(opened, ended):
        yield frame(codec.json({"type": kind, "sequence_number": next(counter)} | fields), kind)


_Event = tuple[str, dict[str, Any]]


def _sequence(opened: dict[str, Any], ended: dict[str, Any]) -> Iterator[_Event]:
    yield "response.created", {"response": opened}
    yield "response.in_progress", {"response": opened}
    for number, item in enumerate(ended["output"]):
        yield "response.output_item.added", {"output_index": number, "item": _begun(item)}
        yield from _grown(item, {"output_index": number, "item_id": item["id"]})
        yield "response.output_item.done", {"output_index": number, "item": item}
    yield f"response.{ended['status']}", {"response": ended}


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, dict[str, Any]] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "reasoning": {"summary": []},
    }
    status = {"status": "in_progress"} if "status" in item else {}
    return {**item, **empty[str(item["type"])], **status}


def _grown(item: dict[str, Any], place: dict[str, Any]) -> Iterator[_Event]:
    """Yields the events that fill one item, piece by piece."""
    if item["type"] == "function_call":
        for text in pieces(item["arguments"]):
            yield "response.function_call_arguments.delta", place | {"delta": text}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield "response.function_call_arguments.done", place | done
        return
    thought = item["type"] == "reasoning"
    (part,) = item["summary" if thought else "content"]
    whole_of = "reasoning_summary_part" if thought else "content_part"
    words = "reasoning_summary_text" if thought else "output_text"
    place = place | {"summary_index" if thought else "content_index": 0}
    more: dict[str, Any] = {} if thought else {"logprobs": []}
    yield f"response.{whole_of}.added", place | {"part": part | {"text": ""}}
    for text in pieces(part["text"]):
        yield f"response.{words}.delta", place | {"delta": text} | more
    yield f"response.{words}.done", place | {"text": part["text"]} | more
    yield f"response.{whole_of}.done", place | {"part": part}


def _items(said: Message, name: str, spaces: Mapping[str, str]) -> Iterator[dict[str, Any]]:
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


def _head(asked: ApiRequest, name: str) -> dict[str, Any]:
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": 0,  # a field that every client wants, and none reads
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": asked.model,
        "parallel_tool_calls": True,
        "previous_response_id": asked.after,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
    }


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "input_tokens": reply.usage.prompt,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": reply.usage.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.usage.prompt + reply.usage.completion,
    }


def error(refusal: Refusal) -> dict[str, Any]:
    """OpenAI's error document."""
    return openai_error(refusal)


def broken(refusal: Refusal) -> bytes:
    """The error as a frame."""
    document = {"type": "error", "code": refusal.code, "message": str(refusal), "param": None, "sequence_number": 0}
    return frame(codec.json(document), "error")
