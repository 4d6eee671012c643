"""Wire types of OpenEnv: actions and frames from clients; observations, states and errors to clients."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from quintain.environment import Environment
from quintain.errors import Failure
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.views import ANSWER_DESCRIPTION, ANSWER_SCHEMA, PREFIX, CallAnswer, answer_tool
from quintain.serve.errors import Refused
from quintain.tools import Tool
from quintain.trace import Content, Text

_encode = msgspec.json.Encoder().encode

# -- what comes in


class Reset(msgspec.Struct):
    """Choice of the episode to begin. Without a task the seed chooses one; without a seed it is 0.

    Other fields may be sent along: by the protocol each environment takes those that it has.
    """

    split: str | None = None
    index: int | None = None
    task: str | None = None
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    episode_id: Annotated[str, msgspec.Meta(max_length=255)] | None = None


class Action(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Action of the agent. The type of a tool call may be left out, as in the reference."""

    type: Literal["call_tool", "list_tools", "answer"] = "call_tool"
    tool_name: str | msgspec.UnsetType = msgspec.UNSET
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    text: str | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] = {}


class ResetFrame(msgspec.Struct, tag_field="type", tag="reset", forbid_unknown_fields=True):
    """Begin an episode."""

    data: Reset = msgspec.field(default_factory=Reset)


class ResetFields(msgspec.Struct):
    """The same frame, for the names of all that stands in it."""

    data: dict[str, msgspec.Raw] = {}


class StepFrame(msgspec.Struct, tag_field="type", tag="step", forbid_unknown_fields=True):
    """Take an action."""

    data: Action


class StateFrame(msgspec.Struct, tag_field="type", tag="state", forbid_unknown_fields=True):
    """Frame that asks for the state of the episode."""


class RpcFrame(msgspec.Struct, tag_field="type", tag="mcp", forbid_unknown_fields=True):
    """A JSON-RPC request in a frame."""

    data: msgspec.Raw


class CloseFrame(msgspec.Struct, tag_field="type", tag="close", forbid_unknown_fields=True):
    """Frame that ends the socket."""


Frame = ResetFrame | StepFrame | StateFrame | RpcFrame | CloseFrame
FRAMES = ("reset", "step", "state", "mcp", "close")


class StepBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /step. A step is done once under its request_id, and answered the same again."""

    action: Action
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] | None = None
    request_id: Annotated[str, msgspec.Meta(max_length=255)] | None = None
    session_id: str | None = None
    episode_id: Annotated[str, msgspec.Meta(max_length=255)] | None = None


class ResetBody(Reset):
    """The body of POST /reset."""

    session_id: str | None = None


class AgentMove(msgspec.Struct, frozen=True):
    """An action that has been checked: a call, words, or the question which tools there are.

    Attributes:
        name: The tool; empty for words.
        text: The call's arguments as JSON, or the words.
    """

    kind: Literal["call", "say", "list"]
    name: str = ""
    text: str = ""


def move(action: Action) -> AgentMove:
    """Returns the move of an action.

    Raises:
        Refused: The action lacks a field of its type, or has one of another type.
    """
    has_name, has_text = action.tool_name is not msgspec.UNSET, action.text is not msgspec.UNSET
    if action.type == "call_tool":
        if not action.tool_name:
            raise Refused("a call_tool action needs a tool_name")
        if has_text:
            raise Refused("a call_tool action has no text")
        return AgentMove("call", action.tool_name, arguments(action.arguments))
    if has_name or bytes(action.arguments) != b"{}":
        raise Refused(f"an action of type {action.type} has no tool_name and no arguments")
    if action.type == "list_tools":
        if has_text:
            raise Refused("a list_tools action has no text")
        return AgentMove("list")
    if action.text is msgspec.UNSET:
        raise Refused("an answer action needs a text")
    return AgentMove("say", text=action.text)


def arguments(raw: msgspec.Raw) -> str:
    """Returns the JSON text of a call's arguments.

    Raises:
        Refused: The arguments are not an object.
    """
    data = bytes(raw).strip()
    if not data.startswith(b"{"):
        raise Refused("a call's arguments are an object")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"a call's arguments are not UTF-8: {error}") from error


# -- what goes out


class CallMistake(msgspec.Struct):
    """Mistake of a call, in the reference's terms."""

    error_type: Literal["tool_not_found", "invalid_args", "execution_error"]
    message: str


class CallResult(msgspec.Struct):
    """Result of a call. The text of an error is in it, too, since the model reads it."""

    tool_name: str
    result: Any
    error: CallMistake | None
    metadata: msgspec.Raw


class ToolList(msgspec.Struct):
    """List of tools."""

    tools: list[dict[str, Any]]
    metadata: msgspec.Raw


class StepResult(msgspec.Struct):
    """Data of an observation; metadata are inside it and beside it, because clients read either."""

    observation: CallResult | ToolList
    reward: float | None
    done: bool
    metadata: msgspec.Raw


class RpcSeen(msgspec.Struct):
    """The same as the result of a tools/call."""

    done: bool
    reward: float | None
    metadata: msgspec.Raw
    tool_name: str
    result: Any
    error: CallMistake | None


FAULTS: dict[str, Literal["tool_not_found", "invalid_args", "execution_error"]] = {
    "not_found": "tool_not_found",
    "input_validation": "invalid_args",
    "": "execution_error",
}


def paid(answer: CallAnswer) -> float | None:
    """The reward of a step: a number until the end, as the protocol's graders ask for, and then the score.

    So clients that sum and clients that take the last one agree.
    """
    return answer.reward if answer.finished else 0.0


def seen(name: str, answer: CallAnswer) -> bytes:
    """The data of the observation that a call, or words, led to."""
    metadata = msgspec.Raw(_encode(answer.metadata))
    one = CallResult(name, readable(answer.content), _fault(answer), metadata)
    return _encode(StepResult(one, paid(answer), answer.finished, metadata))


def rpc_seen(name: str, answer: CallAnswer) -> RpcSeen:
    """The result of a tools/call."""
    metadata = msgspec.Raw(_encode(answer.metadata))
    return RpcSeen(
        answer.finished, paid(answer), metadata, tool_name=name, result=readable(answer.content), error=_fault(answer)
    )


def opened(live: Live, details: dict[str, Any]) -> bytes:
    """The data of the observation that begins an episode: its prompt, and the messages that it is made of."""
    messages = [{"role": one.role, "content": readable(one.content)} for one in live.first]
    metadata = msgspec.Raw(_encode({**live.meta, **details, f"{PREFIX}messages": messages}))
    return _encode(StepResult(CallResult("", _prompt(live), None, metadata), live.reward, live.finished, metadata))


def ignored(fields: Iterable[str], known: type[Reset]) -> dict[str, Any]:
    """Returns the metadata that name unknown fields of a reset; empty without any."""
    names = sorted(set(fields) - set(known.__struct_fields__))
    return {f"{PREFIX}ignored": names} if names else {}


def listed(env: Environment[Any], live: Live | None) -> bytes:
    """The data of the observation that lists the tools."""
    metadata = msgspec.Raw(_encode(live.meta if live else {}))
    done = live is not None and live.finished
    reward = None if live is None or done else 0.0
    return _encode(StepResult(ToolList(tools(env, live), metadata), reward, done, metadata))


def tools(env: Environment[Any], live: Live | None = None) -> list[dict[str, Any]]:
    """Returns the tools of an environment, or of an episode, and last `answer`, as the reference lists them."""
    answer = {"name": answer_tool(env), "description": ANSWER_DESCRIPTION, "input_schema": ANSWER_SCHEMA}
    return [*map(_tool, env.tools_of("agent") if live is None else live.tools), answer]


def frame(kind: str, data: bytes) -> bytes:
    """A frame with data that are JSON already."""
    return b'{"type":"%s","data":%s}' % (kind.encode(), data)


def void(failure: Failure) -> dict[str, Any]:
    """The metadata of an episode that has failed: it is over, and has no reward."""
    details = {"part": failure.component, "kind": failure.kind, "stage": failure.stage, "message": failure.message}
    keys = {"finished": True, "reward": None, "validity": "invalid", "failure": details}
    return {f"{PREFIX}{name}": value for name, value in keys.items()}


def error(code: str, message: str, **more: Any) -> bytes:
    """An error frame."""
    return frame("error", _encode({"message": message, "code": code, **more}))


def encode(value: Any) -> bytes:
    """Any JSON value."""
    return _encode(value)


def readable(content: Content) -> Any:
    """Text as it is, and blocks where there are pictures."""
    if isinstance(content, str):
        return content
    return [
        {"type": "text", "text": block.text}
        if isinstance(block, Text)
        else {"type": "image", "data": base64.b64encode(block.data).decode(), "mimeType": block.media_type}
        for block in content
    ]


def _prompt(live: Live) -> Any:
    """Returns all that the agent reads first, the system prompt included, as one text or list of blocks."""
    contents = [one.content for one in live.first if one.content]
    if all(isinstance(content, str) for content in contents):
        return "\n\n".join(str(content) for content in contents)
    blocks: list[Any] = []
    for content in contents:
        shown = readable(content)
        blocks += [{"type": "text", "text": shown}] if isinstance(shown, str) else shown
    return blocks


def _fault(answer: CallAnswer) -> CallMistake | None:
    if not answer.is_error:
        return None
    content = readable(answer.content)
    return CallMistake(FAULTS[answer.reason], content if isinstance(content, str) else _encode(content).decode())


def _tool(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
