"""Faults of the services behind a world's tools, which tests and audits inject.

An injected fault waits in the world until a tool uses a service: that use fails, and the next one is served again. A
sound world does not turn the failure into an answer: the tool reports that its service is down, or scoring fails.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import quintain as qn

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=qn.State)

FAULTS = {
    "timeout": "did not answer in time",
    "refused": "refused the connection",
    "500": "answered with status 500, internal error",
    "429": "answered with status 429, too many requests",
    "empty": "sent an empty answer",
    "truncated": "sent half an answer",
    "cancelled": "was cut off while it answered",
    "out_of_memory": "ran out of memory",
    "disk_full": "has no space left on its disk",
}
"""Faults that can be injected, each with the message of the service."""


class Unavailable(qn.ToolError):
    """A service did not do what it was asked; nothing has changed."""


class Faulty(qn.State, kw_only=True):
    """A world whose services can fail.

    Attributes:
        fault: One of FAULTS, which the next use of a service meets; empty when all is well.
    """

    fault: str = ""

    def inject(self, fault: str) -> None:
        """Makes the next use of a service fail.

        Raises:
            ValueError: The fault is unknown.
        """
        if fault not in FAULTS:
            raise ValueError(f"unknown fault {fault!r}; known: {', '.join(FAULTS)}")
        self.fault = fault


def reach(part: qn.State) -> None:
    """Use a service of a world, from the world itself or from a part of it.

    Raises:
        Unavailable: A fault was waiting for that.
    """
    world = part.clock.world
    if isinstance(world, Faulty) and world.fault:
        fault, world.fault = world.fault, ""
        raise Unavailable(f"the service {FAULTS[fault]}; nothing was changed, try again")


def served(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A tool that stands on a service."""

    @functools.wraps(method)
    def serving(self: S, /, *values: P.args, **names: P.kwargs) -> R:
        reach(self)
        return method(self, *values, **names)

    return serving
