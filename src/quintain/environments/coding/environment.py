"""E: the repository work, put together."""

from __future__ import annotations

import quintain as qn
from quintain.environments.twins import maker

from .harness import harness
from .state import Coding
from .tasks import tasks
from .verifier import verifier

env = qn.Environment(
    "coding",
    tasks=tasks,  # T
    harness=harness,  # H
    verifier=verifier,  # V
    state=Coding,  # S
    config=qn.Config(max_turns=40),  # C
)

make = maker(env, f"{__package__}.twins")
