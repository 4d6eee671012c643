"""Server side of OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from quintain.trace import Message, Reply, ToolCall

from . import api
from .api import ApiRequest, Part, Refusal


class _ChatPart(Part):
    types = ("text", "refusal", "image_url")


class _ChatFunctionCall(msgspec.Struct):
    name: str
    arguments: str = ""


class _ChatCall(msgspec.Struct):
    id: str
    function: _ChatFunctionCall
    type: Literal["function"] = "function"


class _ChatMessage(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    function_call: Any = None
    content: str | list[_ChatPart] | None = None
    tool_calls: list[_ChatCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _ChatTool(msgspec.Struct):
    type: str
    function: api.Offered | None = None


class _ChatChoice(msgspec.Struct):
    type: Literal["function"]
    function: _ChatFunctionCall


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _ChatBody(msgspec.Struct):
    messages: api.Some[_ChatMessage]
    model: str = ""
    tools: list[_ChatTool] | None = None
    tool_choice: Literal["auto", "none", "required"] | _ChatChoice | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_tokens: api.Longest | None = None
    max_completion_tokens: api.Longest | None = None
    n: int | None = None
    stop: str | list[str] | None = None
    response_format: dict[str, Any] | None = None
    functions: list[Any] | None = None
    function_call: Any = None
    logprobs: bool | None = None
    audio: Any = None
    modalities: list[str] | None = None
    web_search_options: Any = None


def read(data: bytes) -> ApiRequest:
    """Returns a request of `/v1/chat/completions`."""
    request = api.decoded(data, _ChatBody)
    form, old = request.response_format, (request.functions, request.function_call)
    api.refuse(
        (request.n not in {None, 1}, "n", "one reply is drawn, and recorded"),
        (form and form.get("type") != "text", "response_format", api.CONFIGURED),
        (any(old) or any(one.function_call for one in request.messages), "functions and function_call", "use tools"),
        (request.logprobs, "logprobs", "those of a reply are in the record"),
        (request.audio is not None or "audio" in (request.modalities or ()), "audio", "there are words and pictures"),
        (request.web_search_options is not None, "web_search_options", "no tool is run here but the episode's"),
    )
    choice, stop = request.tool_choice, request.stop or []
    tools = [] if choice == "none" else request.tools or []
    return ApiRequest(
        model=request.model,
        messages=tuple(map(_message, request.messages)),
        tools=tuple(msgspec.structs.replace(tool.function, space="") for tool in tools if tool.function is not None),
        stream=bool(request.stream),
        max_tokens=request.max_completion_tokens or request.max_tokens,
        counted=bool(request.stream_options and request.stream_options.include_usage),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        tool_choice=choice.function.name if isinstance(choice, _ChatChoice) else "*" if choice == "required" else "",
    )


def _message(one: _ChatMessage) -> Message:
    calls = tuple(ToolCall(call.id, call.function.name, call.function.arguments) for call in one.tool_calls or ())
    if calls and one.role != "assistant":
        raise Refusal(f"a message of role {one.role!r} makes no tool_calls")
    if one.role == "tool" and not one.tool_call_id:
        raise Refusal("a message of role 'tool' needs the tool_call_id that it answers")
    role = "system" if one.role == "developer" else one.role
    call_id = one.tool_call_id if role == "tool" else None
    thoughts = one.reasoning_content or one.reasoning or "" if role == "assistant" else ""
    return Message(role, api.content(one.content), calls, call_id, thoughts)


def whole(asked: ApiRequest, reply: Reply, name: str) -> dict[str, Any]:
    """Returns a reply as a `chat.completion`."""
    said = reply.message
    content = said.text or (None if said.calls else "")
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
    if said.reasoning:
        message["reasoning_content"] = said.reasoning
    if said.calls:
        message["tool_calls"] = [_wired(call) for call in said.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    return _head(asked, name, "chat.completion") | {"choices": [choice], "usage": _usage(reply)}


def events(asked: ApiRequest, reply: Reply, name: str) -> Iterator[bytes]:
    """Yields a reply as `chat.completion.chunk`s."""
    head = _head(asked, name, "chat.completion.chunk")
    for delta, finish in [*((delta, None) for delta in _deltas(reply.message)), ({}, _finish(reply))]:
        yield api.frame(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    if asked.counted:
        ended: dict[str, Any] = {"choices": [], "usage": _usage(reply)}
        yield api.frame(head | ended)
    yield b"data: [DONE]\n\n"


def _deltas(said: Message) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for text in api.pieces(said.reasoning):
        yield {"reasoning_content": text}
    for text in api.pieces(said.text):
        yield {"content": text}
    for number, call in enumerate(said.calls):
        yield {"tool_calls": [{"index": number} | _wired(msgspec.structs.replace(call, arguments=""))]}
        for text in api.pieces(call.arguments):
            yield {"tool_calls": [{"index": number, "function": {"arguments": text}}]}


def _head(asked: ApiRequest, name: str, kind: str) -> dict[str, Any]:
    # Clients require `created`, and do not read it.
    return {"id": f"chatcmpl-{name}", "object": kind, "created": 0, "model": asked.model}


def _wired(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _finish(reply: Reply) -> str:
    said = reply.finish_reason if reply.finish_reason in {"length", "content_filter"} else "stop"
    return "tool_calls" if reply.message.calls else said


def _usage(reply: Reply) -> dict[str, int]:
    prompt, completion = reply.usage.prompt, reply.usage.completion
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


error = api.openai_error


def broken(refusal: Refusal) -> bytes:
    """Returns the error as a frame; clients raise what they find in it."""
    return api.frame(error(refusal))
