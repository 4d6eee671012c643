"""E: the help desk, put together."""

from __future__ import annotations

import quintain as qn
from quintain.environments.twins import maker

from .harness import harness
from .state import Helpdesk
from .tasks import tasks
from .verifier import verifier

env = qn.Environment(
    "helpdesk",
    tasks=tasks,  # T
    harness=harness,  # H
    verifier=verifier,  # V
    state=Helpdesk,  # S
    config=qn.Config(max_turns=120),  # C
)

make = maker(env, f"{__package__}.twins")
