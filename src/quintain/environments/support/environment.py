"""E: the help desk, put together."""

from __future__ import annotations

from typing import Any

import quintain as qn
from quintain.environments.twins import planted

from .harness import harness
from .state import Support
from .tasks import tasks
from .verifier import verifier

env = qn.Environment(
    "support",
    tasks=tasks,  # T
    harness=harness,  # H
    verifier=verifier,  # V
    state=Support,  # S
    config=qn.Config(max_turns=60),  # C
)


def make(*, twin: str = "") -> qn.Environment[Any]:
    """The help desk, or a twin of it with a planted bug.

    Args:
        twin: The class of the bug; none when empty.

    Raises:
        UsageError: No such class.
    """
    return planted(f"{__package__}.twins", twin) if twin else env
