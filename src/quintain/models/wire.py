"""The chat-completions format: what is sent, and what comes back."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from quintain import codec
from quintain.harness import Request
from quintain.tools import Tool
from quintain.trace import Content, Image, Message, Reply, Text, Tokens, ToolCall, Usage, plain


class Aborted(Exception):
    """The server did not let the model finish: new weights came, or memory ran out."""


def body(name: str, request: Request) -> dict[str, Any]:
    """Returns the fields that every server knows. The seed is cut to 31 bits, the most that all of them take."""
    fields: dict[str, Any] = {
        "model": name,
        "messages": list(messages(request.messages)),
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed % 2**31,
    }
    if request.max_tokens is not None:
        fields["max_tokens"] = request.max_tokens
    if request.tools:
        fields["tools"] = functions(request.tools)
    if stop := getattr(request, "stop", ()):  # Of an agent program, see serve.model.api.ProgramRequest.
        fields["stop"] = list(stop)
    if choice := getattr(request, "tool_choice", ""):
        forced = {"type": "function", "function": {"name": choice}}
        fields["tool_choice"] = "required" if choice == "*" else forced
    return fields


def functions(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Returns the schemas of tools as the field `tools` holds them."""
    described = ({"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools)
    return [{"type": "function", "function": function} for function in described]


def messages(context: Sequence[Message]) -> Iterator[dict[str, Any]]:
    """Yields messages as the field `messages` holds them.

    Tool messages may hold only text, so the pictures of a turn's observations follow as the words of a user.
    """
    pictures: list[Image] = []
    for message in context:
        if message.role != "tool" and pictures:
            yield {"role": "user", "content": [_block(one) for one in pictures]}
            pictures = []
        yield _message(message)
        if message.role == "tool" and not isinstance(message.content, str):
            pictures += [block for block in message.content if isinstance(block, Image)]
    if pictures:
        yield {"role": "user", "content": [_block(one) for one in pictures]}


def reply(data: bytes, request: Request, *, insist: bool = False) -> Reply:
    """Parses the response of a server.

    Token ids are read where vLLM (`prompt_token_ids` next to the choices) and SGLang (within the choice) put them. The
    policy version is an integer, or text that is one, under `policy_version` or, as SGLang has it, under
    `metadata.weight_version` or `sglext.weight_version`. The versions of single tokens are a list, `token_versions`
    within the choice, or spans, `weight_versions` within the choice (vLLM) or in `metadata` (SGLang).

    Args:
        data: The body of the response.
        request: The request; it numbers the calls of a server that gives them no ids.
        insist: True to reject a reply without token ids and logprobs.

    Raises:
        Aborted: The reply is not complete.
        ValueError: Not JSON, not a completion, a logprob that is missing or not finite, versions of some tokens only,
            or `insist` and no token ids.
        RecursionError: Nested deeper than any completion.
    """
    completion = msgspec.json.decode(data, type=_Completion)
    if completion.choices[0].finish_reason in {"abort", "error"}:
        raise Aborted("the server broke off its reply")
    said = completion.choices[0].message
    calls = tuple(
        ToolCall(call.id or f"call_{len(request.messages)}_{number}", call.function.name, call.function.text())
        for number, call in enumerate(said.tool_calls or ())
    )
    usage = completion.usage or _WireUsage()
    return Reply(
        Message("assistant", said.content or "", calls, reasoning=said.reasoning or said.reasoning_content or ""),
        _tokens(completion, insist=insist),
        Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0),
        _version(completion),
        completion.choices[0].finish_reason or "",
    )


class _Function(msgspec.Struct):
    name: str
    arguments: str | dict[str, Any] | None = None

    def text(self) -> str:
        """As the model wrote it, right or wrong; some servers have parsed it already."""
        return codec.text({} if self.arguments is None else self.arguments)


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None


class _WireMessage(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class _Logprob(msgspec.Struct):
    logprob: float


class _Logprobs(msgspec.Struct):
    content: list[_Logprob] | None = None


class _Span(msgspec.Struct):
    start: int
    end: int
    version: Any = None


class _Choice(msgspec.Struct):
    message: _WireMessage
    logprobs: _Logprobs | None = None
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None
    token_versions: list[Any] | None = None
    weight_versions: list[_Span] | None = None


class _WireUsage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Weights(msgspec.Struct):
    weight_version: Any = None
    weight_versions: list[_Span] | None = None


class _Completion(msgspec.Struct):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    usage: _WireUsage | None = None
    prompt_token_ids: list[int] | None = None
    policy_version: Any = None
    metadata: _Weights | None = None
    sglext: _Weights | None = None


def _tokens(completion: _Completion, *, insist: bool) -> Tokens | None:
    choice = completion.choices[0]
    prompt = completion.prompt_token_ids or choice.prompt_token_ids
    logprobs = [one.logprob for one in (choice.logprobs and choice.logprobs.content) or ()]
    if insist and (prompt is None or choice.token_ids is None or len(logprobs) != len(choice.token_ids)):
        raise ValueError("the server gives no token ids, or not one logprob for each")
    if prompt is None or choice.token_ids is None:
        return None
    return Tokens(prompt, choice.token_ids, logprobs, _token_versions(completion, len(choice.token_ids)))


def _token_versions(completion: _Completion, count: int) -> list[tuple[int, int]] | msgspec.UnsetType:
    """Returns (first token, version) of each run of equal versions; unset if no token has a version.

    Raises:
        ValueError: The versions are not those of `count` tokens, or only some of them are integers.
    """
    choice = completion.choices[0]
    if choice.token_versions is not None:
        if len(choice.token_versions) != count:
            raise ValueError(f"{count} completion tokens, but {len(choice.token_versions)} token_versions")
        runs = list(enumerate(choice.token_versions))
    else:
        listed = (where.weight_versions for where in (choice, completion.metadata, completion.sglext) if where)
        spans = next((one for one in listed if one is not None), list[_Span]())
        edges = [0, *(edge for span in spans for edge in (span.start, span.end)), count]
        if spans and (edges != sorted(edges) or edges[::2] != edges[1::2]):
            raise ValueError(f"weight_versions must cover {count} completion tokens without a gap, got {spans}")
        runs = [(span.start, span.version) for span in spans if span.start < span.end]
    versions = [_integer(version) for _, version in runs]
    if None in versions and any(version is not None for version in versions):
        raise ValueError("some tokens have no version, or one that is not an integer, and others have one")
    known = [(first, version) for (first, _), version in zip(runs, versions, strict=True) if version is not None]
    merged = [run for n, run in enumerate(known) if not n or run[1] != known[n - 1][1]]
    return merged or msgspec.UNSET


def _version(completion: _Completion) -> int | None:
    weights = [where.weight_version for where in (completion.metadata, completion.sglext) if where]
    found = (_integer(version) for version in (completion.policy_version, *weights))
    return next((version for version in found if version is not None), None)


def _integer(version: object) -> int | None:
    whole = isinstance(version, int) or (isinstance(version, str) and re.fullmatch(r"[0-9]{1,18}", version))
    return int(version) if whole else None  # type: ignore[call-overload]


def _message(message: Message) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": _content(message.content)}
    if message.role == "tool":
        wire |= {"content": plain(message.content), "tool_call_id": message.call_id}
    if message.calls:
        wire["content"] = wire["content"] or None  # some servers refuse an empty text beside calls
        wire["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    return wire


def _content(content: Content) -> str | list[dict[str, Any]]:
    return content if isinstance(content, str) else [_block(block) for block in content]


def _block(block: Text | Image) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    data = base64.b64encode(block.data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{block.media_type};base64,{data}"}}
