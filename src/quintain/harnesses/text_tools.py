"""Text-format tool calls, for models whose endpoint has no native ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from quintain import codec
from quintain.harness import Request
from quintain.tools import Tool
from quintain.trace import Block, Message, Reply, Text, ToolCall

FORM = '{"name": "TOOL", "arguments": {...}}'
INSTRUCTIONS = """You can call tools. Write each call as one JSON object between the marks, as in

<tool_call>
{form}
</tool_call>

Several calls may stand in one reply. Their results come as <tool_response>. A reply without a call is your answer.
The tools:

{tools}"""
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_MARKED = re.compile(rf"{_OPEN}(.*?)(?:{_CLOSE}|(?={_OPEN})|\Z)", re.DOTALL)
_FENCED = re.compile(r"^```json[^\S\n]*\n(.*?)^```[^\S\n]*$", re.DOTALL | re.MULTILINE)


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] = {}


class _Unparsed(msgspec.Struct):
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class _Schema(msgspec.Struct):
    name: str
    description: str
    parameters: dict[str, Any]


class _Candidate(NamedTuple):
    start: int
    text: str
    closed: bool


class TextTools(msgspec.Struct, frozen=True):
    """Format of tool calls as text: `<tool_call>{json}</tool_call>`, or a fenced block with the language json.

    The record keeps the calls like native ones. Only the requests to the model have them as text.

    Attributes:
        instructions: Words of the system prompt, with {form} and {tools}.
    """

    instructions: str = INSTRUCTIONS

    def render(self, request: Request) -> Request:
        """Returns a request without native tools: their schemas, calls and results are text."""
        messages = list(_as_text(request.messages))
        if request.tools:
            words = self.instructions.replace("{form}", FORM).replace("{tools}", _schemas(request.tools))
            if messages and messages[0].role == "system":
                words = f"{messages.pop(0).text}\n\n{words}"
            messages.insert(0, Message("system", words))
        return msgspec.structs.replace(request, messages=tuple(messages), tools=())

    def parse(self, reply: Reply, *, turn: int) -> tuple[Reply, list[str]]:
        """Returns the reply with the calls in its text, and an error message for each that is malformed.

        A reply without calls in its text keeps its native ones.

        Args:
            reply: The reply of the model.
            turn: Number that tells its calls from those of other replies.
        """
        calls: list[ToolCall] = []
        errors: list[str] = []
        for number, candidate in enumerate(_candidates(reply.message.text), 1):
            try:
                name, arguments = _decoded(candidate)
                calls.append(ToolCall(f"call_{turn}_{number}", name, arguments))
            except (msgspec.DecodeError, RecursionError) as error:
                errors.append(f"error: tool call {number}: {error}; write {_OPEN}{FORM}{_CLOSE}")
        if not calls:
            return reply, errors
        return msgspec.structs.replace(
            reply, message=msgspec.structs.replace(reply.message, calls=tuple(calls))
        ), errors


def _candidates(text: str) -> list[_Candidate]:
    """Returns the parts of a text that are meant as calls, in order.

    A fenced block is one if it has the words "name" and "arguments", so that an answer may hold other JSON.
    """
    found = [_Candidate(one.start(), one[1], one[0].endswith(_CLOSE)) for one in _MARKED.finditer(text)]
    rest = _MARKED.sub(lambda one: " " * len(one[0]), text)
    fenced = (one for one in _FENCED.finditer(rest) if '"name"' in one[1] and '"arguments"' in one[1])
    return sorted([*found, *(_Candidate(one.start(), one[1], closed=True) for one in fenced)])


def _decoded(candidate: _Candidate) -> tuple[str, str]:
    """Returns name and arguments of a call; raises msgspec.DecodeError or RecursionError."""
    if not candidate.closed:
        raise msgspec.DecodeError(f"{_OPEN} has no {_CLOSE}")
    name = msgspec.json.decode(candidate.text, type=_Call).name
    arguments = msgspec.json.decode(candidate.text, type=_Unparsed).arguments  # As the model wrote them.
    return name, bytes(arguments).decode()


def _schemas(tools: Sequence[Tool]) -> str:
    return "\n".join(codec.text(_Schema(one.name, one.description, one.parameters)) for one in tools)


def _as_text(messages: Sequence[Message]) -> Iterator[Message]:
    """Yields messages without calls; the results of one reply are one message of the user."""
    results: list[Message] = []
    for message in messages:
        if message.role == "tool":
            results.append(message)
            continue
        if results:
            yield _responses(results)
            results = []
        yield Message("assistant", message.content) if message.role == "assistant" else message
    if results:
        yield _responses(results)


def _responses(results: Sequence[Message]) -> Message:
    if all(isinstance(one.content, str) for one in results):
        return Message("user", "\n".join(f"<tool_response>\n{one.text}\n</tool_response>" for one in results))
    blocks: list[Block] = []
    for one in results:
        content = (Text(one.content),) if isinstance(one.content, str) else one.content
        blocks += [Text("<tool_response>"), *content, Text("</tool_response>")]
    return Message("user", tuple(blocks))
