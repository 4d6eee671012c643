"""Under which names environments are served."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quintain.environment import Environment
from quintain.errors import UsageError

CONTROL = frozenset({"healthz", "metrics", "readyz", "v1"})
"""Where paths of the control plane begin."""
OWN = CONTROL | {"e", "openenv"}
"""Where paths begin that are no environment's."""


def named(environments: Iterable[Environment[Any]]) -> dict[str, Environment[Any]]:
    """Environments by their names in lower case, in their order.

    Raises:
        UsageError: There is none, or there are two of one name.
    """
    found: dict[str, Environment[Any]] = {}
    for env in environments:
        if env.name.lower() in found:
            raise UsageError(f"two environments are called {env.name.lower()!r}; serve one of them elsewhere")
        if hasattr(env.harness, "retell"):
            kind = type(env.harness).__name__
            raise UsageError(
                f"the agent of {env.name} is a program already, by its {kind}, so no client can be: serve it with the "
                "harness that stands within, and have the program play it over MCP"
            )
        found[env.name.lower()] = env
    if not found:
        raise UsageError("nothing to serve: name at least one environment")
    return found


def reachable(names: Iterable[str]) -> None:
    """Make sure that environments of these names have paths of their own.

    Raises:
        UsageError: One has not.
    """
    for name in names:
        if name in OWN:
            raise UsageError(f"an environment called {name!r} cannot be served: /{name} is the server's own; rename it")
