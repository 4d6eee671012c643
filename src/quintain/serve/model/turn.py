"""Turns whose calls the program makes, and the side that runs each call of a reply."""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Sequence
from typing import Any

import msgspec

from quintain import codec
from quintain.episode import ActorSession
from quintain.errors import EpisodeError
from quintain.tools import Tool
from quintain.trace import Message, Reply, Step, ToolCall

from .api import ApiRequest, Offered

_SURE = 100
"""Number of first characters in which descriptions of two tools differ."""


class ToolAccess(msgspec.Struct, frozen=True):
    """Tools of one request.

    The model is offered `tools`. `theirs` maps the program's name of each of the episode's tools to the episode's name,
    and `ours` has all of these. The program may run `own`, and also the episode's tools if it is `listed`.
    """

    tools: tuple[Tool, ...]
    theirs: dict[str, str]
    own: frozenset[str]
    ours: frozenset[str]
    listed: bool

    def sorted(self, calls: Sequence[ToolCall]) -> tuple[list[ToolCall], list[Message], list[ToolCall]]:
        """Returns the calls to make here, by the episode's names, the refusals, and the calls that the program gets.

        A program could run every call that it gets, so it gets calls of tools that are allowed alone, and only those
        whose arguments are a JSON object, because not every API can carry others.
        """
        here, refused, there = list[ToolCall](), list[Message](), list[ToolCall]()
        for call in calls:
            known = self.theirs.get(call.name)
            if (call.name in self.own or (self.listed and known)) and parsed(call.arguments) is not None:
                there.append(call)
            elif call.name in self.own:
                refused.append(Message("tool", "error: the arguments are no JSON object", call_id=call.id))
            elif known is None and call.name in self.ours:  # The model was not offered this name.
                refused.append(Message("tool", f"error: there is no tool {call.name!r}", call_id=call.id))
            else:
                here.append(msgspec.structs.replace(call, name=known or call.name))
        return here, refused, there


def gate(asked: ApiRequest, tools: Sequence[Tool], allowed: Sequence[str], *, listed: bool) -> ToolAccess:
    """Returns the tools of a request: the episode's, and the program's own whose names match a pattern in `allowed`.

    Raises:
        EpisodeError: The program offers only tools that are not allowed, so that its model could do nothing.
    """
    ours = sorted(tools, key=lambda tool: len(tool.name), reverse=True)
    theirs: dict[str, str] = {} if listed else {tool.name: tool.name for tool in tools}
    passed: list[Tool] = [] if listed else list(tools)
    own: set[str] = set()
    for offered in asked.tools:
        known = _known(offered, ours) if listed else None
        if known is not None:
            theirs[offered.name] = known
        elif offered.name not in theirs and any(fnmatch.fnmatchcase(offered.name, one) for one in allowed):
            own.add(offered.name)
        else:
            continue
        about: dict[str, Any] = {"description": offered.description or ""}
        about["parameters"] = offered.parameters or {"type": "object"}
        # The program runs the tool, so the arguments are not decoded here.
        passed.append(Tool(name=offered.name, **about, roles=("agent",), arguments=msgspec.Struct, path=()))
    if asked.tools and not own and not listed:
        offers = ", ".join(dict.fromkeys(one.name for one in asked.tools))
        raise EpisodeError(
            f"the program offers its model tools of its own alone ({offers}), and did not take the episode's over MCP; "
            "allow those that it may use",
            component="H",
            kind="agent_command_not_allowed",
        )
    return ToolAccess(tuple(passed), theirs, frozenset(own), frozenset(tool.name for tool in tools), listed)


def parsed(arguments: str) -> dict[str, Any] | None:
    """Returns a call's arguments, of which an empty text has none; None if they are not a JSON object."""
    try:
        return msgspec.json.decode(arguments.strip() or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _known(offered: Offered, tools: Sequence[Tool]) -> str | None:
    """Returns the episode's tool behind a program's name for it, such as "mcp__world__add".

    A tool of the program's own may have such a name, too, so a description must begin as that of the episode's tool.
    """
    name, said = offered.name, " ".join((offered.description or "").split())
    for tool in tools:
        is_named = name == tool.name or (name.endswith(tool.name) and name[-len(tool.name) - 1] in "_-./:")
        if is_named and (not said or " ".join(tool.description.split())[:_SURE] in said):
            return tool.name
    return None


class PendingReply(msgspec.Struct, frozen=True):
    """Reply that the program has, and the record does not have yet, after the model's context.

    It is `aside` if a program that has tools asked without them, such as for a title or a summary.
    """

    context: tuple[Message, ...]
    reply: Reply
    aside: bool

    @property
    def answers(self) -> bool:
        return not self.reply.message.calls and not self.aside


class OpenTurn:
    """Turn that waits for the program to make its calls: each the episode's name of a tool, and the model's call."""

    def __init__(self, session: ActorSession, held: PendingReply, pending: list[tuple[str, ToolCall]]) -> None:
        self.context, self.reply, self.pending = held.context, held.reply, pending
        self._inbox: asyncio.Queue[ToolCall | None] = asyncio.Queue()
        self._waiting: asyncio.Future[Step] | None = None
        self.task = asyncio.ensure_future(session.step(held.reply, self._course))

    def match(self, name: str, arguments: str) -> ToolCall | None:
        """Takes the call that the program makes off the list; returns None if the model made no such call."""
        given, alike = parsed(arguments), [one for one in self.pending if one[0] == name]
        if not alike:
            return None
        equal = [one for one in alike if given is not None and parsed(one[1].arguments) == given]
        chosen = (equal or alike)[0]
        self.pending.remove(chosen)
        # A program may fill in defaults.
        return ToolCall(chosen[1].id, name, chosen[1].arguments if equal else arguments)

    async def run(self, call: ToolCall) -> Step:
        """Makes a call."""
        waiting = self._waiting = asyncio.get_running_loop().create_future()
        self._inbox.put_nowait(call)
        await asyncio.wait({waiting, self.task}, return_when=asyncio.FIRST_COMPLETED)
        # A call that ended the episode is the last one, and `_course` does not get its step.
        return waiting.result() if waiting.done() else (await self.task).steps[-1]

    async def close(self) -> None:
        """Ends the turn without further calls."""
        self._inbox.put_nowait(None)
        await self.task

    async def _course(self, step: Step | None) -> ToolCall | None:
        if step is not None and self._waiting is not None:
            self._waiting.set_result(step)
        return await self._inbox.get()


def key(message: Message) -> bytes:
    """Returns what a program repeats of an assistant's message: not its reasoning, nor spaces in JSON."""
    given = [(call, parsed(call.arguments)) for call in message.calls]
    calls = [(call.id, call.name, call.arguments if value is None else codec.text(value)) for call, value in given]
    return codec.dumps([message.text.strip(), calls])
