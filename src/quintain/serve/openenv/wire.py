"""Wire types of OpenEnv: actions and frames from clients; observations, states and errors to clients."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from quintain.environment import Environment
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.views import (
    ANSWER_DESCRIPTION,
    ANSWER_SCHEMA,
    PREFIX,
    CallAnswer,
    agent_tools,
    answer_tool,
)
from quintain.serve.errors import Refused, Void
from quintain.trace import Content, Text

encode = msgspec.json.Encoder().encode

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

FAULTS = {"not_found": "tool_not_found", "input_validation": "invalid_args", "": "execution_error"}
"""Types of mistakes in the reference's terms, by the reason of an answer."""


def paid(answer: CallAnswer) -> float | None:
    """The reward of a step: a number until the end, as the protocol's graders ask for, and then the score.

    So clients that sum and clients that take the last one agree.
    """
    return answer.reward if answer.finished else 0.0


def seen(name: str, answer: CallAnswer) -> bytes:
    """Returns the data of the observation that a call, or words, led to."""
    return _observed(_called(name, answer), answer.metadata, reward=paid(answer), done=answer.finished)


def rpc_seen(name: str, answer: CallAnswer) -> dict[str, Any]:
    """Returns the result of a tools/call."""
    about = {"done": answer.finished, "reward": paid(answer), "metadata": answer.metadata}
    return about | _called(name, answer)


def opened(live: Live, details: dict[str, Any]) -> bytes:
    """Returns the data of the observation that begins an episode: its prompt, and the messages that it is made of."""
    messages = [{"role": one.role, "content": readable(one.content)} for one in live.first]
    metadata = {**live.meta, **details, f"{PREFIX}messages": messages}
    prompt = {"tool_name": "", "result": _prompt(live), "error": None}
    return _observed(prompt, metadata, reward=live.reward, done=live.finished)


def _called(name: str, answer: CallAnswer) -> dict[str, Any]:
    """Returns the result of a call. The text of an error is in it twice, because models read `result`."""
    result = readable(answer.content)
    mistake = None
    if answer.is_error:
        words = result if isinstance(result, str) else encode(result).decode()
        mistake = {"error_type": FAULTS[answer.reason], "message": words}
    return {"tool_name": name, "result": result, "error": mistake}


def _observed(observation: dict[str, Any], metadata: dict[str, Any], *, reward: float | None, done: bool) -> bytes:
    """Returns an observation as JSON; metadata are inside it and next to it, because clients read either."""
    about = msgspec.Raw(encode(metadata))
    return encode(
        {"observation": {**observation, "metadata": about}, "reward": reward, "done": done, "metadata": about}
    )


def ignored(fields: Iterable[str], known: type[Reset]) -> dict[str, Any]:
    """Returns the metadata that name unknown fields of a reset; empty without any."""
    names = sorted(set(fields) - set(known.__struct_fields__))
    return {f"{PREFIX}ignored": names} if names else {}


def listed(env: Environment[Any], live: Live | None) -> bytes:
    """Returns the data of the observation that lists the tools."""
    done = live is not None and live.finished
    reward = None if live is None or done else 0.0
    return _observed({"tools": tools(env, live)}, live.meta if live else {}, reward=reward, done=done)


def tools(env: Environment[Any], live: Live | None = None) -> list[dict[str, Any]]:
    """Returns the tools of an environment, or of an episode, and last `answer`, as the reference lists them."""
    own = agent_tools(env) if live is None else live.tools
    listing = [(one.name, one.description, one.parameters) for one in own]
    listing.append((answer_tool(env), ANSWER_DESCRIPTION, ANSWER_SCHEMA))
    return [{"name": name, "description": about, "input_schema": schema} for name, about, schema in listing]


def frame(kind: str, data: bytes) -> bytes:
    """A frame with data that are JSON already."""
    return b'{"type":"%s","data":%s}' % (kind.encode(), data)


def void(error: Exception) -> dict[str, Any]:
    """Returns the metadata of a failed episode, which is over and has no reward; empty for other errors."""
    if not isinstance(error, Void):
        return {}
    failure = error.failure
    details = {"part": failure.component, "kind": failure.kind, "stage": failure.stage, "message": failure.message}
    keys = {"finished": True, "reward": None, "validity": "invalid", "failure": details}
    return {"metadata": {f"{PREFIX}{name}": value for name, value in keys.items()}}


def error(code: str, message: str, **more: Any) -> bytes:
    """An error frame."""
    return frame("error", encode({"message": message, "code": code, **more}))


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
    contents = [readable(one.content) for one in live.first if one.content]
    if all(isinstance(content, str) for content in contents):
        return "\n\n".join(contents)
    blocks = [[{"type": "text", "text": one}] if isinstance(one, str) else one for one in contents]
    return [block for part in blocks for block in part]
