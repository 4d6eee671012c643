"""Server side of Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from quintain import codec
from quintain.trace import Block, Message, Reply, ToolCall

from . import api
from .api import ApiRequest, Part, Refusal


class _Block(Part):
    types = ("text", "image")
    supported = "there are words, and pictures that come in base64"

    thinking: str = ""
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
    messages: api.Some[_MessagesItem]
    max_tokens: api.Longest
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
    """Returns a request of `/v1/messages`."""
    request = api.decoded(data, _MessagesBody)
    form = request.output_format or (request.output_config or {}).get("format")
    foreign = request.mcp_servers or request.container is not None
    api.refuse(
        (form, "output_config.format", api.CONFIGURED),
        (foreign, "mcp_servers and container", "no tool is run here but the episode's"),
    )
    choice = request.tool_choice or _MessagesChoice("auto")
    tools = [one for one in request.tools or [] if choice.type != "none" and one.type in {None, "custom"}]
    if any(not one.name or one.input_schema is None for one in tools):
        raise Refusal("a tool needs a name and an input_schema")
    first = [Message("system", api.content(request.system))] if request.system else []
    return ApiRequest(
        model=request.model,
        messages=(*first, *(message for one in request.messages for message in _messages(one))),
        tools=tuple(api.Offered(tool.name, tool.description, tool.input_schema) for tool in tools),
        stream=bool(request.stream),
        max_tokens=request.max_tokens,
        stop=tuple(request.stop_sequences or ()),
        tool_choice={"any": "*", "tool": choice.name}.get(choice.type, ""),
    )


def _messages(one: _MessagesItem) -> Iterator[Message]:
    """Yields one message as several where it answers calls."""
    if isinstance(one.content, str):
        yield Message(one.role, one.content)
    elif one.role == "assistant":
        yield _assistant(one.content)
    else:
        rest: list[Block] = []
        for part in one.content:
            if part.type != "tool_result":
                rest.append(api.block(part))
                continue
            if rest:
                yield Message(one.role, api.joined(rest))
                rest = []
            if not part.tool_use_id:
                raise Refusal("a tool_result needs the tool_use_id that it answers")
            yield Message("tool", api.content(part.content), call_id=part.tool_use_id)
        if rest or not one.content:
            yield Message(one.role, api.joined(rest))


def _assistant(parts: Sequence[_Block]) -> Message:
    said, calls, thoughts = list[Block](), list[ToolCall](), ""
    for part in parts:
        if part.type == "tool_use":
            if not part.id or not part.name:
                raise Refusal("a tool_use needs an id and a name")
            calls.append(ToolCall(part.id, part.name, codec.text({} if part.input is None else part.input)))
        elif part.type in {"thinking", "redacted_thinking"}:
            thoughts += part.thinking
        else:
            said.append(api.block(part))
    return Message("assistant", api.joined(said), tuple(calls), reasoning=thoughts)


def whole(asked: ApiRequest, reply: Reply, name: str) -> dict[str, Any]:
    """Returns a reply as a `message`."""
    full: list[dict[str, Any]] = []
    for block, text in _blocks(reply.message):
        kind = block["type"]
        filled = {"input": msgspec.json.decode(text.strip() or "{}")} if kind == "tool_use" else {kind: text}
        full.append(block | filled)
    return _head(asked, reply, name) | _ended(reply) | {"content": full}


def events(asked: ApiRequest, reply: Reply, name: str) -> Iterator[bytes]:
    """Yields the events from `message_start` to `message_stop`."""
    empty: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    yield _event("message_start", message=_head(asked, reply, name) | empty)
    for number, (block, text) in enumerate(_blocks(reply.message)):
        yield _event("content_block_start", index=number, content_block=block)
        kind, field = _DELTAS[block["type"]]
        deltas = [{"type": kind, field: piece} for piece in api.pieces(text)]
        if "signature" in block:
            deltas.append({"type": "signature_delta", "signature": ""})
        for delta in deltas:
            yield _event("content_block_delta", index=number, delta=delta)
        yield _event("content_block_stop", index=number)
    yield _event("message_delta", delta=_ended(reply), usage={"output_tokens": reply.usage.completion})
    yield _event("message_stop")


_DELTAS = {
    "thinking": ("thinking_delta", "thinking"),
    "text": ("text_delta", "text"),
    "tool_use": ("input_json_delta", "partial_json"),
}
"""Type and field of the events that fill a block, by the block's type."""


def _blocks(message: Message) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the message's blocks, each empty, and the text that fills it."""
    if message.reasoning:
        yield {"type": "thinking", "thinking": "", "signature": ""}, message.reasoning
    if message.text or not message.calls:
        yield {"type": "text", "text": ""}, message.text
    for call in message.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, call.arguments


def _event(kind: str, **fields: Any) -> bytes:
    return api.frame({"type": kind} | fields, kind)


def _head(asked: ApiRequest, reply: Reply, name: str) -> dict[str, Any]:
    usage = {"input_tokens": reply.usage.prompt, "output_tokens": reply.usage.completion}
    return {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": asked.model, "usage": usage}


def _ended(reply: Reply) -> dict[str, Any]:
    reason = {"length": "max_tokens", "content_filter": "refusal"}.get(reply.finish_reason, "end_turn")
    return {"stop_reason": "tool_use" if reply.message.calls else reason, "stop_sequence": None}


def error(refusal: Refusal) -> dict[str, Any]:
    """Returns Anthropic's error document."""
    type_ = "request_too_large" if refusal.status == 413 else api.error_type(refusal, "api_error")
    return {"type": "error", "error": {"type": type_, "message": f"{refusal.code}: {refusal}"}}


def broken(refusal: Refusal) -> bytes:
    """Returns the error as a frame."""
    return api.frame(error(refusal), "error")
