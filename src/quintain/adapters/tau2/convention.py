"""Calls of tools as in the reference: arguments unchecked, exceptions become text.

A model of an Episode meets Quintain's own argument check first; `respond` leaves it out, as the reference does.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from quintain.errors import ToolError
from quintain.tools import collect, tool

from .world import World

F = TypeVar("F", bound=Callable[..., str])

_CALLER = "Environment.make_tool_call() got multiple values for"
_TAKEN = {
    "requestor": f"tau2.environment.environment.{_CALLER} keyword argument",
    "self": f"{_CALLER} argument",
    "tool_name": f"{_CALLER} argument",
}
"""Arguments that the reference's own machinery trips over."""


def action(method: F) -> F:
    """Marks a method as a tool, as `tool` does; whatever it raises, the model reads."""

    @functools.wraps(method)
    def guarded(world: Any, **arguments: Any) -> str:
        try:
            return method(world, **arguments)
        except Exception as error:
            raise ToolError(f"Error: {error}") from error

    return tool(cast("F", guarded))


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
    if requestor != "assistant":
        return "User tools not available" if requestor == "user" else f"Invalid requestor: {requestor}"
    if name not in _names(type(world)):
        return f"Tool '{name}' not found."
    complaint = _unfit(list(inspect.signature(getattr(world, name)).parameters), arguments)
    return f"{world.toolkit}.{name}() {complaint}" if complaint else ""


def _unfit(needed: list[str], arguments: dict[str, Any]) -> str:
    """Returns Python's message for arguments that do not fit a function; empty if they do."""
    for given in arguments:
        if given not in needed:
            return f"got an unexpected keyword argument '{given}'"
    missing = [repr(name) for name in needed if name not in arguments]
    plural = "" if len(missing) == 1 else "s"
    return f"missing {len(missing)} required positional argument{plural}: {_and(missing)}" if missing else ""


@functools.cache
def _names(type_: type[World]) -> frozenset[str]:
    return frozenset(collect(type_))


def _and(names: list[str]) -> str:
    match names:
        case [one]:
            return one
        case [one, two]:
            return f"{one} and {two}"
        case _:
            return f"{', '.join(names[:-1])}, and {names[-1]}"
