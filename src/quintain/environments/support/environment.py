"""E: the help desk, put together."""

from __future__ import annotations

import quintain as qn
from quintain.environments.twins import maker

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

make = maker(env, f"{__package__}.twins")
