"""Calls of tools as in the reference: arguments unchecked, exceptions become text.

A model of an Episode meets Quintain's own argument check first; `respond` leaves it out, as the reference does.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, overload

from quintain.errors import ToolError
from quintain.tools import collect, tool

from .world import World

F = TypeVar("F", bound=Callable[..., str])
W = TypeVar("W", bound=World)

_CALLER = "Environment.make_tool_call() got multiple values for"
_TAKEN = {
    "requestor": f"tau2.environment.environment.{_CALLER} keyword argument",
    "self": f"{_CALLER} argument",
    "tool_name": f"{_CALLER} argument",
}
"""Arguments that the reference's own machinery trips over."""


@overload
def action(method: F, /) -> F: ...
@overload
def action(*, roles: tuple[str, ...]) -> Callable[[F], F]: ...
def action(method: Any = None, /, *, roles: tuple[str, ...] = ("agent",)) -> Any:
    """Marks a method as a tool, as `tool` does; whatever it raises, the model reads."""
    if method is None:
        return functools.partial(_marked, roles=roles)
    return _marked(method, roles=roles)


def _marked(method: F, *, roles: tuple[str, ...]) -> F:
    @functools.wraps(method)
    def guarded(world: Any, **arguments: Any) -> str:
        try:
            return method(world, **arguments)
        except Exception as error:
            raise ToolError(f"Error: {error}") from error
        finally:
            world.settle()

    return tool(roles=roles)(cast("F", guarded))


def shared(type_: type[W]) -> type[W]:
    """Gives the agent of a domain the customer's tools too."""
    for name, one in collect(type_).items():
        if one.roles == ("user",):
            method = getattr(type_, name)
            setattr(type_, name, tool(roles=("agent", "user"))(_passed_on(method)))
    return type_


def _passed_on(method: F) -> F:
    @functools.wraps(method)
    def same(world: Any, **arguments: Any) -> str:
        return method(world, **arguments)

    return cast("F", same)


def respond(world: World, name: str, arguments: dict[str, Any], *, requestor: str = "assistant") -> tuple[str, bool]:
    """Plays one call on the world, as the reference would.

    Returns:
        What the caller reads, and whether it is an error.
    """
    refusal = _refusal(world, name, arguments, requestor=requestor)
    if refusal:
        return f"Error: {refusal}", True
    try:
        return getattr(world, name)(**arguments), False
    except ToolError as error:
        return str(error), True


def _refusal(world: World, name: str, arguments: dict[str, Any], *, requestor: str) -> str:
    """Returns the reason why a call does not reach its tool; empty if it does."""
    for given in sorted(arguments, key="requestor".__ne__):  # which of several is named
        if given in _TAKEN:
            return f"{_TAKEN[given]} '{given}'"
    toolkits = {"assistant": world.toolkit, "user": world.user_toolkit}
    if requestor not in toolkits:
        return f"Invalid requestor: {requestor}"
    if not toolkits[requestor]:
        return "User tools not available"
    if name not in _names(type(world), "agent" if requestor == "assistant" else requestor):
        return f"Tool '{name}' not found."
    complaint = unfit(inspect.signature(getattr(world, name)).parameters, arguments)
    return f"{toolkits[requestor]}.{name}() {complaint}" if complaint else ""


def unfit(parameters: Mapping[str, inspect.Parameter], arguments: dict[str, Any]) -> str:
    """Returns Python's message for arguments that do not fit a function; empty if they do."""
    for given in arguments:
        if given not in parameters:
            return f"got an unexpected keyword argument '{given}'"
    needed = (name for name, parameter in parameters.items() if parameter.default is parameter.empty)
    missing = [repr(name) for name in needed if name not in arguments]
    plural = "" if len(missing) == 1 else "s"
    return f"missing {len(missing)} required positional argument{plural}: {_and(missing)}" if missing else ""


@functools.cache
def _names(type_: type[World], role: str) -> frozenset[str]:
    return frozenset(name for name, tool in collect(type_).items() if role in tool.roles)


def _and(names: list[str]) -> str:
    match names:
        case [one]:
            return one
        case [one, two]:
            return f"{one} and {two}"
        case _:
            return f"{', '.join(names[:-1])}, and {names[-1]}"
