"""Views of an episode for clients: results of calls, and metadata that is the same in every protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec

from quintain import codec
from quintain.environment import Environment
from quintain.errors import Failure
from quintain.harness import Harness
from quintain.serve.errors import Refused
from quintain.serve.http.keys import Caller
from quintain.tools import Tool
from quintain.trace import Content, Message, Reward, Step, Trace, Turn

if TYPE_CHECKING:
    from .live import Live

PREFIX = "dev.quintain/"
_EPISODE, _SEQ, _FINISHED, _REWARD, _VALIDITY = (
    f"{PREFIX}{name}" for name in ("episode", "seq", "finished", "reward", "validity")
)
STATE_DIGEST = f"{PREFIX}state_digest"
REWARDS = f"{PREFIX}rewards"
FAILURE = f"{PREFIX}failure"

WITHHELD = "what was said is not for agents: it stands in the record"
_OWN_TYPES = frozenset({"EpisodeError", "DeadlineExceeded"})
"""Exceptions whose messages reveal nothing of a task, unless an author's code raised them."""
_NO_FOREIGN_FRAMES = frozenset({"", codec.digest(b"")[:16]})
"""Traceback digests of exceptions that passed through no author's code."""


class CallAnswer(msgspec.Struct, frozen=True):
    """Result of one call, or of the agent's text.

    Attributes:
        seq: Number of turns in the episode before the call.
        content: What the actor reads.
        is_error: Whether the tool refused, or the call could not be made.
        reason: "not_found" for an unknown tool, "input_validation" for arguments that do not fit, else empty.
        finished: Whether the episode ended with it.
        reward: The score, on the answer that ended a valid episode; None on any other.
        meta: The same and more, by prefixed key, for the metadata of any protocol.
        data: Data of the tool's observation.
    """

    seq: int
    content: Content
    is_error: bool = False
    reason: Literal["", "not_found", "input_validation"] = ""
    finished: bool = False
    reward: float | None = None
    meta: dict[str, Any] = {}
    data: dict[str, Any] = {}

    @property
    def metadata(self) -> dict[str, Any]:
        """Data of the observation and metadata of the episode, for protocols with one place for both."""
        return self.data | self.meta


def reward(trace: Trace) -> float | None:
    """Returns the score of a valid episode that has ended, else None."""
    return trace.score if trace.validity == "valid" else None


def about(id: str, trace: Trace, caller: Caller) -> dict[str, Any]:
    """Returns the metadata of an episode, by prefixed key, as this caller may read it."""
    found: dict[str, Any] = {
        _EPISODE: id,
        _FINISHED: trace.end is not None,
        _REWARD: reward(trace),
        _VALIDITY: trace.validity,
    }
    if trace.turns and caller.role != "agent":
        found[STATE_DIGEST] = trace.turns[-1].state_digest
    if trace.end is not None:
        found |= {f"{PREFIX}reason": trace.reason, f"{PREFIX}end": trace.end.value}
    if trace.failure is not None:
        why = blamed(trace.failure, caller)
        found[FAILURE] = {"part": why.component, "kind": why.kind, "stage": why.stage, "message": why.message}
    return found


def named(digest: str, caller: Caller) -> str:
    """Returns the digest of a world or a task, or an empty text for an agent.

    An agent that has the environment's code could try hidden values until their digest fits.
    """
    return "" if caller.role == "agent" else digest


def blamed(failure: Failure, caller: Caller) -> Failure:
    """Returns a failure as this caller may read it.

    The message of an exception in an author's code may reveal the task, which an agent could begin again.
    """
    if caller.role != "agent" or (failure.type in _OWN_TYPES and failure.traceback_digest in _NO_FOREIGN_FRAMES):
        return failure
    return msgspec.structs.replace(failure, message=WITHHELD)


def answers(live: Live, *, index: int, context: Sequence[Message]) -> list[CallAnswer]:
    """Returns the results of the reply after turn `index - 1`: one for each step of its turn, or one if it has none.

    The last one carries the end. `context` is the agent's messages now.
    """
    env, trace = live.env.for_task(live.task), live.trace
    turn = next((one for one in trace.turns[index:] if one.role == "agent" or live.led or live.everyone), None)
    if turn is None:  # The harness made no turn of the reply: it ended the episode, or asks again.
        text, meta = _text_since(live, index, context), live.meta | {_SEQ: index}
        return [CallAnswer(index, text, meta=meta, finished=live.finished, reward=live.reward)]
    # Other roles may have spoken after the turn, before it is answered, and a late answer is of the time before.
    next_own = next((other for other in trace.turns[turn.index + 1 :] if other.thread == turn.thread), None)
    then = trace
    if next_own is not None:
        then = msgspec.structs.replace(trace, turns=trace.turns[: next_own.index], end=None, failure=None)
    meta = about(live.id, then, live.owner) | {_SEQ: index}
    if turn.rewards and (rewards := visible_rewards(turn.rewards, trace, live.owner)):
        meta[REWARDS] = msgspec.to_builtins(rewards)
    found = [
        CallAnswer(
            index, step.observation, is_error=step.is_error, reason=_reason(env, step), meta=meta, data=step.data
        )
        for step in turn.steps
    ] or [CallAnswer(index, _text_after(trace, turn, context), meta=meta)]
    if then.end is not None:
        found[-1] = msgspec.structs.replace(found[-1], finished=True, reward=reward(trace))
    return found


def visible_rewards(rewards: Iterable[Reward], trace: Trace, caller: Caller) -> tuple[Reward, ...]:
    """Returns rewards as this caller may read them.

    An agent reads them after the end, so that it cannot try what earns most, and without reasons.
    """
    if caller.role != "agent":
        return tuple(rewards)
    return () if trace.end is None else tuple(msgspec.structs.replace(one, reason="") for one in rewards)


def _text_after(trace: Trace, turn: Turn, context: Sequence[Message]) -> Content:
    """Returns what other roles said to the agent after its turn, after the results of held tools."""
    following = next((one for one in trace.turns[turn.index + 1 :] if one.thread == turn.thread), None)
    messages = context if following is None else following.added
    # A harness may have rewritten the context, which then has the reply as well.
    start = next((place for place in range(len(messages), 0, -1) if messages[place - 1] == turn.reply.message), 0)
    roles = {"user"} if turn.steps else {"user", "tool"}
    return "\n\n".join(message.text for message in messages[start:] if message.role in roles)


def _text_since(live: Live, index: int, context: Sequence[Message]) -> Content:
    """Returns what other roles said to the agent since its last turn before `index`."""
    before = next((one for one in reversed(live.trace.turns[:index]) if one.role == "agent"), None)
    if before is not None:
        return _text_after(live.trace, before, context)
    return "\n\n".join(message.text for message in context[len(live.first) :] if message.role == "user")


def _reason(env: Environment[Any], step: Step) -> Literal["", "not_found", "input_validation"]:
    if not step.is_error:
        return ""
    tool = env.tool_of("agent", step.call.name)
    if tool is None:
        return "not_found"
    try:
        tool.decode(step.call.arguments, strict=env.config.arguments == "strict")
    except (msgspec.DecodeError, RecursionError):
        return "input_validation"
    return ""


# -- the tool `answer`: text without a tool call, for protocols in which an agent can only call tools

ANSWER_ARGUMENT = "text"
ANSWER_DESCRIPTION = (
    "Give your final answer or, where somebody talks with you, your next message to them. A reply without a tool call "
    "is not delivered: call this tool instead."
)
ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {ANSWER_ARGUMENT: {"type": "string", "description": "What you say."}},
    "required": [ANSWER_ARGUMENT],
    "additionalProperties": False,
}


class _PlainText(msgspec.Struct, forbid_unknown_fields=True):
    text: str


@runtime_checkable
class HoldsTools(Protocol):
    """Harness that holds tools itself, outside of the world."""

    @property
    def held_tools(self) -> Sequence[Tool]: ...


def held_tools(harness: Harness) -> tuple[Tool, ...]:
    """Returns the tools that a harness holds itself."""
    return tuple(harness.held_tools) if isinstance(harness, HoldsTools) else ()


def agent_tools(env: Environment[Any]) -> tuple[Tool, ...]:
    """Returns the tools that the agent may call: those of the world, and those that the harness holds."""
    return (*env.tools_of("agent"), *held_tools(env.harness))


def answer_tool(env: Environment[Any]) -> str:
    """Returns the name under which every protocol lists the tool `answer`: another one if the environment has it."""
    taken = {*env.tools, *(tool.name for tool in held_tools(env.harness))}
    return next(name for name in ("answer", "final_answer", "say", "final_words") if name not in taken)


def answer_text(arguments: str | bytes | msgspec.Raw) -> str:
    """Returns the text in the arguments of a call of `answer`; raises Refused if they are not exactly a text."""
    try:
        return msgspec.json.decode(arguments, type=_PlainText).text
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(str(error)) from error
