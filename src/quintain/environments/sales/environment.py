"""E: the desk, put together."""

from __future__ import annotations

import quintain as qn
from quintain.environments.twins import maker

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

make = maker(env, f"{__package__}.twins")
