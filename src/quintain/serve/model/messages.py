"""Anthropic's messages, as a server speaks them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from quintain import codec
from quintain.trace import Block, Content, Message, Reply, Text, ToolCall

from .api import ApiRequest, Longest, Offered, Refusal, Some, content, decoded, frame, image, pieces, unsupported


class _Source(msgspec.Struct):
    type: str
    media_type: str = ""
    data: str = ""


class _Block(msgspec.Struct):
    type: str
    text: str = ""
    thinking: str = ""
    source: _Source | None = None
    id: str = ""
    name: str = ""
    input: Any = None
    tool_use_id: str = ""
    content: str | list[_Block] | None = None


class _MessagesItem(msgspec.Struct):
    role: Literal["user", "assistant", "system"]
    content: str | list[_Block]


class _MessagesTool(msgspec.Struct):
    name: str = ""
    type: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None


class _MessagesChoice(msgspec.Struct):
    type: Literal["auto", "none", "any", "tool"]
    name: str = ""


class _MessagesBody(msgspec.Struct):
    messages: Some[_MessagesItem]
    max_tokens: Longest
    model: str = ""
    system: str | list[_Block] | None = None
    tools: list[_MessagesTool] | None = None
    tool_choice: _MessagesChoice | None = None
    stream: bool | None = None
    stop_sequences: list[str] | None = None
    output_config: dict[str, Any] | None = None
    output_format: Any = None
    mcp_servers: list[Any] | None = None
    container: Any = None


def read(data: bytes) -> ApiRequest:
    """A request of `/v1/messages`."""
    request = decoded(data, _MessagesBody)
    choice = request.tool_choice or _MessagesChoice("auto")
    _check(request)
    tools = [] if choice.type == "none" else request.tools or []
    first = [Message("system", _content(request.system))] if request.system else []
    return ApiRequest(
        model=request.model,
        messages=(*first, *(message for one in request.messages for message in _messages(one))),
        tools=tuple(_offered(tool) for tool in tools if _is_function(tool)),
        stream=bool(request.stream),
        max_tokens=request.max_tokens,
        stop=tuple(request.stop_sequences or ()),
        tool_choice={"any": "*", "tool": choice.name}.get(choice.type, ""),
    )


def _check(request: _MessagesBody) -> None:
    if request.output_format or (request.output_config or {}).get("format"):
        raise unsupported("output_config.format", "the model is asked as the environment's configuration says")
    if request.mcp_servers or request.container is not None:
        raise unsupported("mcp_servers and container", "no tool is run here but the episode's")


def _is_function(tool: _MessagesTool) -> bool:
    return tool.type in {None, "custom"}


def _offered(tool: _MessagesTool) -> Offered:
    if not tool.name or tool.input_schema is None:
        raise Refusal("a tool needs a name and an input_schema")
    return Offered(tool.name, tool.description or "", tool.input_schema)


def _messages(one: _MessagesItem) -> Iterator[Message]:
    """One message of theirs is several of ours where it answers calls."""
    if isinstance(one.content, str):
        yield Message(one.role, one.content)
    elif one.role == "assistant":
        yield _assistant(one.content)
    else:
        rest: list[Block] = []
        for block in one.content:
            if block.type != "tool_result":
                rest.append(_block(block))
                continue
            if rest:
                yield Message(one.role, content(rest))
                rest = []
            if not block.tool_use_id:
                raise Refusal("a tool_result needs the tool_use_id that it answers")
            yield Message("tool", _content(block.content), call_id=block.tool_use_id)
        if rest or not one.content:
            yield Message(one.role, content(rest))


def _assistant(blocks: Sequence[_Block]) -> Message:
    said: list[Block] = []
    calls: list[ToolCall] = []
    thoughts = ""
    for block in blocks:
        if block.type == "tool_use":
            if not block.id or not block.name:
                raise Refusal("a tool_use needs an id and a name")
            calls.append(ToolCall(block.id, block.name, codec.text({} if block.input is None else block.input)))
        elif block.type in {"thinking", "redacted_thinking"}:
            thoughts += block.thinking
        else:
            said.append(_block(block))
    return Message("assistant", content(said), tuple(calls), reasoning=thoughts)


def _content(blocks: str | Sequence[_Block] | None) -> Content:
    return blocks or "" if isinstance(blocks, str | None) else content([_block(block) for block in blocks])


def _block(block: _Block) -> Block:
    if block.type == "text":
        return Text(block.text)
    if block.type == "image" and block.source is not None and block.source.type == "base64":
        return image(block.source.media_type, block.source.data)
    raise unsupported(f"content of type {block.type!r}", "there are words, and pictures that come in base64")


def whole(asked: ApiRequest, reply: Reply, name: str) -> dict[str, Any]:
    """Returns a reply as a `message`."""
    return _head(asked, reply, name) | {
        "content": [_full(kind, value) for kind, value in _said(reply.message)],
        "stop_reason": _stop(reply),
        "stop_sequence": None,
    }


def events(asked: ApiRequest, reply: Reply, name: str) -> Iterator[bytes]:
    """From `message_start` to `message_stop`."""
    empty: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    opened = _head(asked, reply, name) | empty
    yield _event("message_start", message=opened)
    for number, (kind, value) in enumerate(_said(reply.message)):
        yield _event("content_block_start", index=number, content_block=_empty(kind, value))
        for delta in _deltas(kind, value):
            yield _event("content_block_delta", index=number, delta=delta)
        yield _event("content_block_stop", index=number)
    ended = {"stop_reason": _stop(reply), "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage={"output_tokens": reply.usage.completion})
    yield _event("message_stop")


_Piece = tuple[Literal["thinking", "text", "tool_use"], "str | ToolCall"]


def _said(message: Message) -> Iterator[_Piece]:
    if message.reasoning:
        yield "thinking", message.reasoning
    if message.text or not message.calls:
        yield "text", message.text
    for call in message.calls:
        yield "tool_use", call


def _empty(kind: str, value: str | ToolCall) -> dict[str, Any]:
    if isinstance(value, ToolCall):
        return {"type": kind, "id": value.id, "name": value.name, "input": {}}
    return {"type": kind, kind: ""} | ({"signature": ""} if kind == "thinking" else {})


def _full(kind: str, value: str | ToolCall) -> dict[str, Any]:
    if isinstance(value, ToolCall):
        return _empty(kind, value) | {"input": msgspec.json.decode(value.arguments.strip() or "{}")}
    return _empty(kind, value) | {kind: value}


def _deltas(kind: str, value: str | ToolCall) -> Iterator[dict[str, str]]:
    if isinstance(value, ToolCall):
        for text in pieces(value.arguments):
            yield {"type": "input_json_delta", "partial_json": text}
        return
    for text in pieces(value):
        yield {"type": f"{kind}_delta", kind: text}
    if kind == "thinking":
        yield {"type": "signature_delta", "signature": ""}


def _event(kind: str, **fields: Any) -> bytes:
    return frame(codec.json({"type": kind} | fields), kind)


def _head(asked: ApiRequest, reply: Reply, name: str) -> dict[str, Any]:
    usage = {"input_tokens": reply.usage.prompt, "output_tokens": reply.usage.completion}
    return {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": asked.model, "usage": usage}


def _stop(reply: Reply) -> str:
    if reply.message.calls:
        return "tool_use"
    return {"length": "max_tokens", "content_filter": "refusal"}.get(reply.finish_reason, "end_turn")


def error(refusal: Refusal) -> dict[str, Any]:
    """Anthropic's error document."""
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large"}
    kind = kinds.get(refusal.status, "invalid_request_error" if refusal.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": f"{refusal.code}: {refusal}"}}


def broken(refusal: Refusal) -> bytes:
    """The error as a frame."""
    return frame(codec.json(error(refusal)), "error")
