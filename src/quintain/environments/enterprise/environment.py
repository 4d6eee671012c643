"""E: the company, put together."""

from __future__ import annotations

import quintain as qn

from .harness import harness
from .state import Enterprise
from .tasks import tasks
from .verifier import verifier

env = qn.Environment(
    "enterprise",
    tasks=tasks,  # T
    harness=harness,  # H
    verifier=verifier,  # V
    state=Enterprise,  # S
    config=qn.Config(max_turns=40),  # C
)
