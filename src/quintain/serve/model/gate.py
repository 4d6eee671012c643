"""Which tools a program's model may see, and who runs what it calls."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import msgspec

from quintain.errors import EpisodeError
from quintain.tools import Tool
from quintain.trace import ToolCall

from .asked import Asked, Offered

_SEPARATORS = "_-./:"


class _Anything(msgspec.Struct):
    """The arguments of a tool that is not ours; nobody decodes them here."""


class Gate(msgspec.Struct, frozen=True):
    """What became of the tools of one request.

    Attributes:
        tools: What the model is offered.
        theirs: The name that the program gives each of the episode's tools, and the episode's own.
        own: Names of tools that the program runs itself, and may.
        shut: Names of those that it may not.
        listed: Whether the program calls the episode's tools itself.
    """

    tools: tuple[Tool, ...]
    theirs: dict[str, str]
    own: frozenset[str]
    shut: frozenset[str]
    listed: bool

    def sorted(self, calls: Sequence[ToolCall]) -> tuple[list[ToolCall], list[ToolCall]]:
        """Calls that are answered here, by the names that the episode knows, and those that the program is given.

        A program that knows the episode's tools gets their calls, unless their arguments are no JSON object, which
        not every API has a form for; and calls of names that nobody offered, which it will say itself. One that does
        not know them gets calls of its own tools alone. Nobody gets a call of a tool that is shut.
        """
        here: list[ToolCall] = []
        there: list[ToolCall] = []
        for call in calls:
            mine = call.name in self.shut or not is_object(call.arguments)
            if self.listed:
                (here if mine else there).append(call)
            else:
                (there if call.name in self.own and not mine else here).append(call)
        named = [msgspec.structs.replace(call, name=self.theirs.get(call.name, call.name)) for call in here]
        return named, there


def gate(asked: Asked, tools: Sequence[Tool], allowed: Sequence[str], *, listed: bool) -> Gate:
    """Let through what may pass.

    Args:
        asked: The request.
        tools: The episode's.
        allowed: Patterns of names of the program's own tools that may be called.
        listed: Whether the program has taken the episode's tools over MCP.

    Raises:
        EpisodeError: It offers only tools that are not allowed, so that its model could do nothing.
    """
    names = sorted((tool.name for tool in tools), key=len, reverse=True)
    theirs: dict[str, str] = {} if listed else {tool.name: tool.name for tool in tools}
    passed: list[Tool] = [] if listed else list(tools)
    own: set[str] = set()
    shut: set[str] = set()
    for offered in asked.tools:
        known = _known(offered.name, names) if listed else None
        if known is not None:
            theirs[offered.name] = known
        elif offered.name not in theirs and any(fnmatch.fnmatchcase(offered.name, one) for one in allowed):
            own.add(offered.name)
        else:
            shut.update({offered.name} - theirs.keys())
            continue
        passed.append(_tool(offered))
    if asked.tools and not own and not listed:
        offers = ", ".join(dict.fromkeys(one.name for one in asked.tools))
        raise EpisodeError(
            f"the program offers its model tools of its own alone ({offers}), and did not take the episode's over MCP; "
            "allow those that it may use",
            part="H",
            kind="agent_command_not_allowed",
        )
    return Gate(tuple(passed), theirs, frozenset(own), frozenset(shut), listed)


def is_object(arguments: str) -> bool:
    """Whether a call's arguments are a JSON object, or nothing at all."""
    try:
        msgspec.json.decode(arguments.strip() or "{}", type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True


def _known(name: str, names: Sequence[str]) -> str | None:
    """The episode's tool behind a program's name for it, such as "mcp__world__add"."""
    for one in names:
        if name == one or (name.endswith(one) and name[-len(one) - 1] in _SEPARATORS):
            return one
    return None


def _tool(offered: Offered) -> Tool:
    return Tool(
        name=offered.name,
        description=offered.description,
        parameters=offered.parameters,
        roles=("agent",),
        arguments=_Anything,
        path=(),
    )
