"""How the reference calls a tool: arguments unchecked, whatever is raised becomes text.

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

_CALLER = "Environment.make_tool_call() got multiple values for argument"
_OUTER = "tau2.environment.environment.Environment.make_tool_call() got multiple values for keyword argument"


def action(method: F) -> F:
    """Mark a method as a tool, as `tool` does; whatever it raises, the model reads."""

    @functools.wraps(method)
    def guarded(world: Any, **arguments: Any) -> str:
        try:
            return method(world, **arguments)
        except Exception as error:
            raise ToolError(f"Error: {error}") from error

    return tool(cast("F", guarded))


def respond(world: World, name: str, arguments: dict[str, Any], *, requestor: str = "assistant") -> tuple[str, bool]:
    """Play one call on the world, as the reference would.

    Returns:
        What the caller reads, and whether it is an error.
    """
    refusal = _refusal(world, name, arguments, requestor)
    if refusal:
        return f"Error: {refusal}", True
    try:
        return getattr(world, name)(**arguments), False
    except ToolError as error:
        return str(error), True


def _refusal(world: World, name: str, arguments: dict[str, Any], requestor: str) -> str:
    """Why the call does not even reach its tool; empty when it does."""
    if "requestor" in arguments:
        return f"{_OUTER} 'requestor'"
    for given in arguments:
        if given in {"self", "tool_name"}:
            return f"{_CALLER} '{given}'"
    if requestor != "assistant":
        return "User tools not available" if requestor == "user" else f"Invalid requestor: {requestor}"
    if name not in _names(type(world)):
        return f"Tool '{name}' not found."
    needed = list(inspect.signature(getattr(world, name)).parameters)
    for given in arguments:
        if given not in needed:
            return f"{world.toolkit}.{name}() got an unexpected keyword argument '{given}'"
    missing = [repr(parameter) for parameter in needed if parameter not in arguments]
    if missing:
        plural = "" if len(missing) == 1 else "s"
        return f"{world.toolkit}.{name}() missing {len(missing)} required positional argument{plural}: {_and(missing)}"
    return ""


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
