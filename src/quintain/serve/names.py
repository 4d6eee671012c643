"""Names: of environments, under which they are served, and of episodes, which a proxy can route by."""

from __future__ import annotations

import copy
import re
import secrets
from collections.abc import Iterable
from typing import Any

from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.executor import Plain
from quintain.harness import Replayable

CONTROL = frozenset({"healthz", "metrics", "readyz", "v1"})
"""First path segments of the control plane."""
OWN = CONTROL | {"e", "openenv"}
"""First path segments that no environment can have."""


class Ids:
    """Ids and secret addresses of episodes, with the name of the server in front, if it has one.

    Args:
        shard: Name of this server among several behind one proxy: 1 to 16 lower-case letters and digits; empty for a
            server alone.

    Raises:
        UsageError: The name has other characters.
    """

    def __init__(self, shard: str = "") -> None:
        if shard and not re.fullmatch("[a-z0-9]{1,16}", shard):
            raise UsageError(f"--shard {shard!r} is not a name of 1 to 16 lower-case letters and digits, such as 2")
        self._prefix = f"{shard}-" if shard else ""

    def new(self) -> str:
        """Returns an unguessable id."""
        return f"{self._prefix}{secrets.token_hex(16)}"

    def named(self, digest: str) -> str:
        """Returns the id that always stands for the same digest."""
        return f"{self._prefix}{digest}"

    def token(self) -> str:
        """Returns a secret name, by which an episode is played without a key."""
        return f"{self._prefix}{secrets.token_urlsafe(30)}"


def named(environments: Iterable[Environment[Any]]) -> dict[str, Environment[Any]]:
    """Returns environments by their names in lower case, in their order.

    Raises:
        UsageError: No environment, or two of one name.
    """
    found: dict[str, Environment[Any]] = {}
    for env in environments:
        if env.name.lower() in found:
            raise UsageError(f"two environments are called {env.name.lower()!r}; serve one of them elsewhere")
        if isinstance(env.harness, Replayable):
            kind = type(env.harness).__name__
            raise UsageError(
                f"the agent of {env.name} is a program already, by its {kind}, so no client can be: serve it with the "
                "harness that stands within, and have the program play it over MCP"
            )
        found[env.name.lower()] = served = copy.copy(env)
        served.executor = Plain()  # The server watches over what blocks.
    if not found:
        raise UsageError("nothing to serve: name at least one environment")
    return found


def reachable(names: Iterable[str]) -> None:
    """Checks that environments of these names have paths of their own.

    Raises:
        UsageError: One has not.
    """
    for name in names:
        if name in OWN:
            raise UsageError(f"an environment called {name!r} cannot be served: /{name} is the server's own; rename it")
