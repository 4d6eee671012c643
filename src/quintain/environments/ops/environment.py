"""E: the incident desk, put together."""

from __future__ import annotations

import quintain as qn
from quintain.errors import UsageError

from .description import SERVICES
from .harness import harness
from .hierarchy import Orchestrator
from .service import environment as alone
from .state import Production
from .tasks import routed_tasks, tasks
from .verifier import verifier
from .worlds import Ops, RoutedOps

env: qn.Environment[Production] = qn.Environment(
    "ops",
    tasks=tasks,  # T
    harness=harness,  # H
    verifier=verifier,  # V
    state=Ops,  # S
    config=qn.Config(max_turns=80),  # C
)

routed: qn.Environment[Production] = qn.Environment(
    "ops_routed",
    tasks=routed_tasks,
    harness=Orchestrator(),
    verifier=verifier,
    state=RoutedOps,
    config=qn.Config(max_turns=240),
)
"""Environment with the same tasks for an orchestrator with six subagents."""


def make(*, harness: str = "flat", service: str = "") -> qn.Environment[Production]:
    """Returns the environment.

    Args:
        harness: "flat" for one agent with all tools, "hierarchical" for an orchestrator with six subagents.
        service: One of the six services, for the environment of its subagent alone; all if empty.

    Raises:
        UsageError: The harness or the service is unknown.
    """
    if service:
        if service not in SERVICES:
            raise UsageError(f"unknown service {service!r}; known: {', '.join(SERVICES)}")
        return alone(service)
    made = {"flat": env, "hierarchical": routed}
    if harness not in made:
        raise UsageError(f"unknown harness {harness!r}; known: {', '.join(made)}")
    return made[harness]
