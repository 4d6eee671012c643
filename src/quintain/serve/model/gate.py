"""Tools that a program's model may see, and the side that runs each call."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import msgspec

from quintain.errors import EpisodeError
from quintain.tools import Tool
from quintain.trace import Message, ToolCall

from .api import ApiRequest, Offered

_SEPARATORS = "_-./:"
_SURE = 100
"""Characters of a description that no two tools begin with."""


class _Anything(msgspec.Struct):
    """Arguments of a tool that the program runs; they are not decoded here."""


class ToolAccess(msgspec.Struct, frozen=True):
    """Tools of one request.

    Attributes:
        tools: Tools that the model is offered.
        theirs: The name that the program gives each of the episode's tools, and the episode's own.
        own: Names of tools that the program runs itself, and may.
        ours: The episode's own names of its tools.
        listed: Whether the program calls the episode's tools itself.
    """

    tools: tuple[Tool, ...]
    theirs: dict[str, str]
    own: frozenset[str]
    ours: frozenset[str]
    listed: bool

    def sorted(self, calls: Sequence[ToolCall]) -> tuple[list[ToolCall], list[Message], list[ToolCall]]:
        """Returns the calls to make here, by the episode's names, the refusals, and the calls that the program gets.

        A program gets calls of its own tools that it may run and, if it has listed them, of the episode's, unless their
        arguments are not a JSON object, which not every API can carry. It could run any other call, such as of a tool
        that is not allowed, so it does not get it.
        """
        here: list[ToolCall] = []
        refused: list[Message] = []
        there: list[ToolCall] = []
        for call in calls:
            known = self.theirs.get(call.name)
            if (call.name in self.own or (self.listed and known)) and is_object(call.arguments):
                there.append(call)
            elif call.name in self.own:
                refused.append(Message("tool", "error: the arguments are no JSON object", call_id=call.id))
            elif known is None and call.name in self.ours:  # The model was not offered this name.
                refused.append(Message("tool", f"error: there is no tool {call.name!r}", call_id=call.id))
            else:
                here.append(msgspec.structs.replace(call, name=known or call.name))
        return here, refused, there


def gate(asked: ApiRequest, tools: Sequence[Tool], allowed: Sequence[str], *, listed: bool) -> ToolAccess:
    """Let through what may pass.

    Args:
        asked: The request.
        tools: The episode's.
        allowed: Patterns of names of the program's own tools that may be called.
        listed: Whether the program has taken the episode's tools over MCP.

    Raises:
        EpisodeError: It offers only tools that are not allowed, so that its model could do nothing.
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
        passed.append(_tool(offered))
    if asked.tools and not own and not listed:
        offers = ", ".join(dict.fromkeys(one.name for one in asked.tools))
        raise EpisodeError(
            f"the program offers its model tools of its own alone ({offers}), and did not take the episode's over MCP; "
            "allow those that it may use",
            component="H",
            kind="agent_command_not_allowed",
        )
    return ToolAccess(tuple(passed), theirs, frozenset(own), frozenset(tool.name for tool in tools), listed)


def is_object(arguments: str) -> bool:
    """True if a call's arguments are a JSON object, or empty."""
    try:
        msgspec.json.decode(arguments.strip() or "{}", type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True


def _known(offered: Offered, tools: Sequence[Tool]) -> str | None:
    """The episode's tool behind a program's name for it, such as "mcp__world__add".

    A tool of the program's own may end in the same word, or be called the same. So where it is described, that must be
    in the words that the program got with the list, of which it may leave out the end.
    """
    name, said = offered.name, " ".join((offered.description or "").split())
    for tool in tools:
        one = tool.name
        if name != one and not (name.endswith(one) and name[-len(one) - 1] in _SEPARATORS):
            continue
        if not said or " ".join(tool.description.split())[:_SURE] in said:
            return one
    return None


def _tool(offered: Offered) -> Tool:
    return Tool(
        name=offered.name,
        description=offered.description or "",
        parameters=offered.schema,
        roles=("agent",),
        arguments=_Anything,
        path=(),
    )
