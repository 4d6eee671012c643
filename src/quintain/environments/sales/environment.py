"""E: the desk, put together."""

from __future__ import annotations

from typing import Any

import quintain as qn
from quintain.environments.twins import planted

from .harness import harness
from .state import Sales
from .tasks import tasks
from .verifier import verifier

env = qn.Environment(
    "sales",
    tasks=tasks,  # T
    harness=harness,  # H
    verifier=verifier,  # V
    state=Sales,  # S
    config=qn.Config(max_turns=40),  # C
)


def make(*, twin: str = "") -> qn.Environment[Any]:
    """The desk, or a twin of it with a planted bug.

    Args:
        twin: The class of the bug; none when empty.

    Raises:
        UsageError: No such class.
    """
    return planted(f"{__package__}.twins", twin) if twin else env
